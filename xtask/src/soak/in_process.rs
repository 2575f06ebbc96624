//! The library in this process, as a program that embeds it has it.

use super::world::World;
use crate::bench::bare;
use crate::bench::library::{Library, Nowhere, params};
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Executed, Stop, execute};
use sandgate_protocol::{ExecExpiration, NetworkAccess, SandboxPolicy};
use sandgate_sandbox::{ExecEnv, SandboxManager};
use std::path::PathBuf;
use std::time::Duration;

/// Guards, cages and a workspace.
pub(super) struct InProcess {
    library: Library,
    manager: SandboxManager,
    workspace: PathBuf,
    tmp: PathBuf,
}

/// Whether a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confined {
    Yes,
    No,
}

impl InProcess {
    pub(super) fn start(world: &World) -> anyhow::Result<Self> {
        let library = Library::start()?;
        let (workspace, tmp) = (world.path("ws").canonicalize()?, world.path("tmp"));
        Ok(Self { library, manager: SandboxManager::new(), workspace, tmp })
    }

    fn ready(
        &self,
        argv: &[String],
        confined: Confined,
        limit: Duration,
    ) -> anyhow::Result<ExecEnv> {
        let [name, args @ ..] = argv else { anyhow::bail!("there is no command") };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut params = params(&bare::find(name)?, &args)?;
        params.cwd.clone_from(&self.workspace);
        params.env.insert("TMPDIR".into(), self.tmp.clone().into());
        params.expiration = ExecExpiration::Timeout(limit);
        let grant = match confined {
            Confined::No => Grant::unconfined_by_person(params),
            Confined::Yes => {
                let policy = SandboxPolicy::WorkspaceWrite {
                    writable_roots: Vec::new(),
                    network_access: NetworkAccess::Restricted,
                    exclude_tmpdir_env_var: false,
                    exclude_slash_tmp: true,
                };
                Grant::sandboxed_by_person(params, policy, self.workspace.clone())
            }
        };
        Ok(self.manager.transform(grant)?)
    }

    /// Does nothing for a while, but what is due: a cage is let go some time after its last command.
    pub(super) fn rest(&self, time: Duration) {
        self.library.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Runs a command to its end.
    pub(super) fn run(
        &self,
        argv: &[String],
        confined: Confined,
        limit: Duration,
    ) -> anyhow::Result<Executed> {
        let env = self.ready(argv, confined, limit)?;
        let (stop, mut nowhere) = (Stop::default(), Nowhere);
        let running =
            execute(&self.library.spawner, &env, ExecuteOptions::default(), &stop, &mut nowhere);
        Ok(self.library.runtime.block_on(running)?)
    }

    /// Starts a command and lets go of it after a while. Whether it had ended by then.
    pub(super) fn let_go(
        &self,
        argv: &[String],
        confined: Confined,
        after: Duration,
    ) -> anyhow::Result<bool> {
        let env = self.ready(argv, confined, Duration::from_secs(600))?;
        let (stop, mut nowhere) = (Stop::default(), Nowhere);
        self.library.runtime.block_on(async {
            let running = execute(
                &self.library.spawner,
                &env,
                ExecuteOptions::default(),
                &stop,
                &mut nowhere,
            );
            match tokio::time::timeout(after, running).await {
                Ok(ended) => ended.map(|_| true).map_err(anyhow::Error::from),
                Err(_) => Ok(false),
            }
        })
    }
}
