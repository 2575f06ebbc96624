//! Starts a person's login shell once, confined, to hear what it is.

use super::prelude::Findings;
use super::report::{self, Report};
use super::start_up::Seen;
use crate::session::Services;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, OutputSink, Shell, ShellType, Stop, execute};
use sandgate_protocol::{
    ExecExpiration, ExecParams, OutputStream, SandboxPermissions, SandboxPolicy,
    SandboxablePreference,
};
use sandgate_sandbox::Selected;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BASH: &str = include_str!("shells/report.bash");
const ZSH: &str = include_str!("shells/report.zsh");

/// A snapshot that was taken: the script, and the files that it came from.
pub(super) struct Taken {
    pub(super) script: Vec<u8>,
    pub(super) seen: Seen,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// It cannot be had here, which is nobody's fault.
    NotHere(&'static str),
    /// Whoever wanted it wants nothing any more.
    Cancelled,
    /// The start-up files do not allow it; in a person's words.
    Failed(String),
}

/// A shell that a snapshot is taken of.
pub(super) struct Sitter<'a> {
    pub(super) services: &'a Services,
    pub(super) shell: &'a Shell,
    /// The person's home, canonical.
    pub(super) home: &'a Path,
    pub(super) timeout: Duration,
    pub(super) stop: &'a Stop,
}

impl Sitter<'_> {
    /// Takes the snapshot. `seen` are the files that the shell is known to read, from before it reads them.
    pub(super) async fn take(&self, mut seen: Seen) -> Result<Taken, NotTaken> {
        let mark = uuid::Uuid::now_v7().simple().to_string();
        let (script, bare_options, own_file): (_, &[&str], _) = match self.shell.shell_type() {
            ShellType::Zsh => (ZSH, &["-f", "-c"], "ZDOTDIR"),
            _ => (BASH, &["--noprofile", "--norc", "-c"], "BASH_ENV"),
        };
        let script = script.replace("@MARK@", &mark);
        let mut env = self.services.environment.clone();
        // Where somebody was when they started us is nothing to the shell's files.
        env.retain(|name, _| !super::PASSING.iter().any(|passing| name == passing));
        let login = self.hear(&["-lc"], &script, env.clone(), &mark).await?;
        // Whatever this one says, a shell is without any start-up file.
        env.remove(OsStr::new(own_file));
        let bare = self.hear(bare_options, &script, env, &mark).await?;
        let config = &self.services.config;
        let findings = Findings {
            shell: self.shell.shell_type(),
            login: &login,
            bare: &bare,
            policy: &config.environment,
            own_env: &config.own_env,
        };
        let script = findings.prelude();
        if let Some(directory) = login.variables.get(&b"ZDOTDIR"[..]) {
            let directory = PathBuf::from(OsStr::from_bytes(&directory.value));
            let more = Seen::known(self.shell.shell_type(), self.home, |_| Some(directory.clone()));
            seen.add(more);
        }
        seen.add_sourced(self.home, &self.services.environment, |name| {
            let value = &login.variables.get(name.as_bytes())?.value;
            String::from_utf8(value.clone()).ok()
        });
        Ok(Taken { script, seen })
    }

    /// Has the shell say what it is.
    async fn hear(
        &self,
        options: &[&str],
        script: &str,
        env: BTreeMap<OsString, OsString>,
        mark: &str,
    ) -> Result<Report, NotTaken> {
        let env = self.confined(options, script, env)?;
        let mut heard = Heard(Vec::new());
        let options = ExecuteOptions { stream_bytes: 4096, ..ExecuteOptions::default() };
        let spawner = &self.services.runtime.spawner;
        let executed = execute(spawner, &env, options, self.stop, &mut heard).await;
        let output = executed.map_err(|error| NotTaken::Failed(error.to_string()))?.output;
        let limit = self.timeout.as_millis();
        let failed = |why: String| Err(NotTaken::Failed(why));
        match report::read(&heard.0, mark) {
            _ if output.timed_out => {
                failed(format!("its start-up files took more than {limit} ms"))
            }
            _ if heard.0.len() > report::LARGEST => {
                failed("its start-up files printed more than 1 MiB".to_owned())
            }
            Some(report) => Ok(report),
            None if output.cancelled => Err(NotTaken::Cancelled),
            None => failed(format!(
                "its start-up files ended it or disturbed what it says (exit code {})",
                output.exit_code
            )),
        }
    }

    /// The shell in a cage that reads anything, writes nothing and has no network.
    fn confined(
        &self,
        options: &[&str],
        script: &str,
        env: BTreeMap<OsString, OsString>,
    ) -> Result<sandgate_sandbox::ExecEnv, NotTaken> {
        let sandbox = &self.services.runtime.sandbox;
        let partial = self.services.config.partial_enforcement;
        let preference = SandboxablePreference::Auto;
        if !matches!(
            sandbox.select_initial(&SandboxPolicy::ReadOnly, preference, partial),
            Selected::Confined(_)
        ) {
            return Err(NotTaken::NotHere("nothing can confine the shell"));
        }
        let program = self.shell.shell_path();
        let name = program.to_string_lossy().into_owned();
        let options = options.iter().map(|option| (*option).to_owned());
        let params = ExecParams {
            command: std::iter::once(name).chain(options).chain([script.to_owned()]).collect(),
            program: program.to_owned(),
            cwd: self.home.to_owned(),
            env,
            expiration: ExecExpiration::Timeout(self.timeout),
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            arg0: None,
        };
        let confined = sandbox.transform(Grant::to_look_around(params));
        confined.map_err(|error| NotTaken::Failed(error.to_string()))
    }
}

/// What a shell printed, to a limit.
struct Heard(Vec<u8>);

impl OutputSink for Heard {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        if stream == OutputStream::Stdout {
            self.0.extend_from_slice(bytes);
        }
        match self.0.len() > report::LARGEST {
            true => Err(io::Error::other("it prints too much")),
            false => Ok(()),
        }
    }
}
