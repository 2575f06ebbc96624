//! The session that `run`, `call` and `patch` work in: its policies from the command line.

use crate::decide::Decide;
use crate::sandbox::Mode;
use crate::settings::{config_home, rules_in_effect};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use sandgate_runtime::SessionConfig;
use sandgate_runtime::audit::AuditOptions;
use std::path::PathBuf;
use std::time::Duration;

/// What may be said about a session.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CliSession {
    /// Run commands in this directory, which is the workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,

    /// When a person is asked [default: on-request]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) ask_for_approval: Option<Asking>,

    /// What commands may touch [default: workspace-write]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) sandbox: Option<Mode>,

    /// Let commands write to this directory too; with workspace-write
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,

    /// Let commands reach the network; with workspace-write
    #[arg(long)]
    pub(crate) network: bool,

    /// Answer questions without asking: approve, deny, or a file with an answer a line (approve, session,
    /// grant, grant-session, rule, deny, abort); with call also stdin
    #[arg(long, value_name = "ANSWER")]
    pub(crate) decide: Option<String>,

    /// Count a question as answered with no when nobody has answered it after so many seconds
    /// [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    pub(crate) approval_timeout: Option<u64>,
}

/// The longest time that a question can be told to wait: a year, which is for ever.
const MOST_SECONDS: u64 = 366 * 24 * 60 * 60;

/// What is said when options of one mode are given with another.
pub(crate) const ONLY_WORKSPACE_WRITE: &str =
    "--writable and --network are for --sandbox workspace-write only";

/// When a person is asked: the words for the approval policies, wherever they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Asking {
    /// Before everything that is not known to be safe
    Untrusted,
    /// Before what is dangerous, and when the sandbox has blocked something
    OnFailure,
    /// Before what is dangerous or asks to leave the sandbox, and when the sandbox has blocked
    /// something
    OnRequest,
    /// Never: what would need an answer is refused
    Never,
}

impl From<Asking> for AskForApproval {
    fn from(asking: Asking) -> Self {
        match asking {
            Asking::Untrusted => Self::UnlessTrusted,
            Asking::OnFailure => Self::OnFailure,
            Asking::OnRequest => Self::OnRequest,
            Asking::Never => Self::Never,
        }
    }
}

impl CliSession {
    /// Who answers questions.
    pub(crate) fn decide(&self) -> Decide {
        Decide::of(self.decide.as_deref())
    }

    /// What is wrong with it, if something is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let writes = self.sandbox.unwrap_or(Mode::WorkspaceWrite) == Mode::WorkspaceWrite;
        match writes || (self.writable.is_empty() && !self.network) {
            true => Ok(()),
            false => Err(ONLY_WORKSPACE_WRITE.to_owned()),
        }
    }

    /// The session.
    pub(crate) fn config(&self) -> SessionConfig {
        let mut config = SessionConfig::new(self.cd.clone().unwrap_or_else(|| ".".into()));
        config.approval_policy = self.ask_for_approval.unwrap_or(Asking::OnRequest).into();
        config.approval_timeout = self.approval_timeout.map(Duration::from_secs);
        config.sandbox_policy = match self.sandbox.unwrap_or(Mode::WorkspaceWrite) {
            Mode::ReadOnly => SandboxPolicy::ReadOnly,
            Mode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
            Mode::WorkspaceWrite => SandboxPolicy::WorkspaceWrite {
                // They start where this program does, not in the workspace.
                writable_roots: self.writable.iter().flat_map(std::path::absolute).collect(),
                network_access: match self.network {
                    true => NetworkAccess::Enabled,
                    false => NetworkAccess::Restricted,
                },
                exclude_tmpdir_env_var: false,
                exclude_slash_tmp: false,
            },
        };
        config.own_env = std::env::vars_os().collect();
        config.config_home = config_home();
        config.audit = Some(AuditOptions::default());
        config.rules = rules_in_effect();
        config
    }
}
