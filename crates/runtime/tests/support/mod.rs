//! What the tests of this crate share: commands that are ready to be asked for.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod scene;

use sandgate_protocol::{CodexErr, SandboxPolicy};
use sandgate_runtime::{AskedCommand, Attempted, CommandLine, CommandOutcome, KeepOutput, Login};
use sandgate_runtime::{Runtime, Session, SessionConfig, Stop, new_call_id};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A command and the session that it is asked for in.
pub(crate) struct Asking {
    pub(crate) config: SessionConfig,
    pub(crate) command: AskedCommand,
    pub(crate) stop: Stop,
}

impl Asking {
    /// The session.
    pub(crate) fn session(&self) -> Session {
        let runtime = Arc::new(Runtime::start().unwrap());
        Session::start(runtime, self.config.clone()).unwrap()
    }

    /// Asks for the command in it.
    pub(crate) async fn run_in(
        self,
        session: &Session,
    ) -> Result<Attempted<CommandOutcome>, CodexErr> {
        let turn = session.begin_turn().stopped_by(&self.stop);
        session.requester().run_command(&new_call_id(), self.command, &turn).await
    }

    /// The same in a session that ends with it.
    pub(crate) async fn run(self) -> Result<Attempted<CommandOutcome>, CodexErr> {
        let session = self.session();
        self.run_in(&session).await
    }
}

/// A script for `sh`.
pub(crate) fn script(text: &str) -> Asking {
    let shell = Some("sh".to_owned());
    asking(CommandLine::Script { text: text.to_owned(), shell, login: Login::No })
}

/// A program and its arguments.
pub(crate) fn argv(words: &[&str]) -> Asking {
    asking(CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()))
}

/// A command with nothing special about it, all the time it needs, and nothing that confines it: what
/// is tested with this holds in any case.
pub(crate) fn asking(command: CommandLine) -> Asking {
    let mut config = SessionConfig::new(PathBuf::from("/"));
    config.sandbox_policy = SandboxPolicy::DangerFullAccess;
    config.own_env = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]);
    config.keep = KeepOutput::HeadAndTail;
    Asking { config, command: AskedCommand::new(command), stop: Stop::default() }
}
