//! Commands run through the library, as a program of its own would run them.

use anyhow::Context as _;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Executed, OutputSink, Spawner, Stop, execute};
use sandgate_protocol::{ExecExpiration, ExecParams, OutputStream, SandboxPermissions};
use sandgate_sandbox::{ExecEnv, SandboxManager};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Long enough for a busy machine, short enough to notice that something hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// A spawner that is ready, and a runtime of one thread.
pub(crate) struct Library {
    pub(crate) spawner: Spawner,
    pub(crate) runtime: Runtime,
}

impl Library {
    /// The spawner comes first: it forks, and that is best done before there are threads.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let spawner = Spawner::start()?;
        Ok(Self { spawner, runtime: runtime()? })
    }

    /// Runs a command to its end and insists that it succeeds.
    pub(super) fn run(&self, env: &ExecEnv, options: ExecuteOptions) -> anyhow::Result<Executed> {
        self.runtime.block_on(run(&self.spawner, env, options))
    }
}

pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot make a runtime")
}

/// Runs a command to its end and insists that it succeeds.
pub(super) async fn run(
    spawner: &Spawner,
    env: &ExecEnv,
    options: ExecuteOptions,
) -> anyhow::Result<Executed> {
    let executed = execute(spawner, env, options, &Stop::default(), &mut Nowhere).await?;
    let output = &executed.output;
    anyhow::ensure!(
        output.exit_code == 0 && !output.timed_out,
        "{:?} ended with {}: {}",
        env.command(),
        output.exit_code,
        output.stderr.text.trim()
    );
    Ok(executed)
}

/// A command that may run, in this program's environment.
pub(super) fn granted(program: &Path, args: &[&str]) -> anyhow::Result<ExecEnv> {
    granted_with(program, args, &[], LIMIT)
}

/// The same with more in its environment, and a time limit.
pub(super) fn granted_with(
    program: &Path,
    args: &[&str],
    env: &[(&str, OsString)],
    limit: Duration,
) -> anyhow::Result<ExecEnv> {
    let mut params = params(program, args)?;
    params.env.extend(env.iter().map(|(name, value)| (OsString::from(name), value.clone())));
    params.expiration = ExecExpiration::Timeout(limit);
    Ok(SandboxManager::new().transform(Grant::unconfined_by_person(params))?)
}

/// A command that nobody has granted yet, in this program's environment.
pub(crate) fn params(program: &Path, args: &[&str]) -> anyhow::Result<ExecParams> {
    let name = super::bare::text(program)?;
    Ok(ExecParams {
        command: std::iter::once(name.as_str())
            .chain(args.iter().copied())
            .map(str::to_owned)
            .collect(),
        program: program.to_owned(),
        cwd: PathBuf::from("/"),
        env: std::env::vars_os().collect(),
        expiration: ExecExpiration::Timeout(LIMIT),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        arg0: None,
    })
}

/// Output that nobody looks at while it comes.
pub(crate) struct Nowhere;

impl OutputSink for Nowhere {
    async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
