//! What a session is started with. All of it comes from the person, none of it from a call.

use super::{BrokenPatches, SubAgentLimits};
use crate::audit::AuditOptions;
use crate::environment::ShellEnvironmentPolicy;
use crate::observe::OutputTap;
use crate::orchestrator::RiskAssessor;
use crate::request::KeepOutput;
use crate::served::{ServerAnswers, ServerProgram};
use crate::tools::ToolHandler;
use crate::turn_diff::TurnDiffs;
use crate::unified_exec::ProcessNames;
use sandgate_policy::Policies;
use sandgate_policy::rules::Rules;
use sandgate_process::ModelFormat;
use sandgate_protocol::{AskForApproval, SandboxPolicy, SessionSource};
use sandgate_sandbox::PartialEnforcement;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a session is started with.
#[derive(Clone)]
pub struct SessionConfig {
    /// Where it works, and the workspace of its policy.
    pub workspace: PathBuf,
    /// When a person is asked.
    pub approval_policy: AskForApproval,
    /// What its commands may touch.
    pub sandbox_policy: SandboxPolicy,
    /// Whether a sandbox that lacks something will do.
    pub partial_enforcement: PartialEnforcement,
    /// The person's own environment.
    pub own_env: BTreeMap<OsString, OsString>,
    /// What of it commands are given.
    pub environment: ShellEnvironmentPolicy,
    /// The person's rules.
    pub rules: Rules,
    /// The directory of the person's settings: new rules are added there, and what happens is
    /// recorded there. Without it nothing is.
    pub config_home: Option<PathBuf>,
    /// How what happens is recorded; not at all if it is not said.
    pub audit: Option<AuditOptions>,
    /// What is done about patches that a crash broke off.
    pub broken_patches: BrokenPatches,
    /// What the session is called by in the record: `run`, `call`, a server.
    pub front_end: String,
    /// Who it works for, where a model has a part in it; for the record.
    pub source: Option<SessionSource>,
    /// How many subagents there may be.
    pub subagents: SubAgentLimits,
    /// How long a question waits for its answer; for ever if there is no limit.
    pub approval_timeout: Option<Duration>,
    /// How long a command may take whose call names no limit; if there is none here, the usual one.
    pub command_timeout: Option<Duration>,
    /// How much of an output a model is given.
    pub model_format: ModelFormat,
    /// Who looks at commands that were blocked.
    pub risk: Option<Arc<dyn RiskAssessor>>,
    /// What becomes of output that is more than memory may hold.
    pub keep: KeepOutput,
    /// Who takes every byte that commands write.
    pub tap: Option<Arc<dyn OutputTap>>,
    /// Whether what turns change is followed.
    pub turn_diffs: TurnDiffs,
    /// Who keeps processes alive that are asked to outlive the session.
    pub keeping: Keeping,
    /// How the person's login shell is started once for all commands that want one; each starts its own
    /// if it is not said.
    pub snapshot: Option<SnapshotOptions>,
    /// The ids of its live processes, and of those of other sessions that must have others.
    pub(crate) process_names: Arc<ProcessNames>,
    /// Tools beside those that every session has. One of the same name takes the other's place.
    pub tools: Vec<Arc<dyn ToolHandler>>,
    /// Programs that may be started to serve the session, by their names.
    pub servers: BTreeMap<String, ServerProgram>,
    /// The same, named by a client and not by the person: none is started that a person was not asked about, and
    /// none takes the name of one of the person's.
    pub client_servers: BTreeMap<String, ServerProgram>,
    /// What was answered about servers in the sessions that this one follows.
    pub server_answers: ServerAnswers,
}

/// Who keeps processes alive that are asked to outlive their session (`keep_alive`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keeping {
    /// Nobody: they are not started.
    #[default]
    Nowhere,
    /// A daemon, which this program becomes when its first argument is `daemon`; it is started if there is
    /// none. On systems without one it is the same as nobody.
    ByDaemon {
        /// The program.
        program: PathBuf,
    },
    /// The session itself: it is one of the daemon's.
    Here,
}

/// How a snapshot of the person's login shell is taken and kept. Elsewhere than on Unix there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// How long its start-up files may take.
    pub timeout: Duration,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10) }
    }
}

impl SessionConfig {
    /// A session in this directory, with the mildest policies that confine everything.
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            approval_policy: AskForApproval::default(),
            sandbox_policy: SandboxPolicy::workspace_write(),
            partial_enforcement: PartialEnforcement::default(),
            own_env: BTreeMap::new(),
            environment: ShellEnvironmentPolicy::default(),
            rules: Rules::default(),
            config_home: None,
            audit: None,
            broken_patches: BrokenPatches::default(),
            front_end: "library".to_owned(),
            source: None,
            subagents: SubAgentLimits::default(),
            approval_timeout: None,
            command_timeout: None,
            model_format: ModelFormat::default(),
            risk: None,
            keep: KeepOutput::Everything,
            tap: None,
            turn_diffs: TurnDiffs::default(),
            keeping: Keeping::Nowhere,
            snapshot: None,
            process_names: Arc::default(),
            tools: Vec::new(),
            servers: BTreeMap::new(),
            client_servers: BTreeMap::new(),
            server_answers: ServerAnswers::default(),
        }
    }

    /// The same for somebody who wants other policies: as much of them as is no looser. What is not said
    /// stays as it is.
    #[must_use]
    pub fn tightened(
        mut self,
        approval: Option<AskForApproval>,
        sandbox: Option<SandboxPolicy>,
    ) -> Self {
        let held = Policies { approval: self.approval_policy, sandbox: self.sandbox_policy };
        let wanted = Policies {
            approval: approval.unwrap_or(held.approval),
            sandbox: sandbox.unwrap_or_else(|| held.sandbox.clone()),
        };
        let Policies { approval, sandbox } = held.tighter_of(&wanted, &self.workspace);
        (self.approval_policy, self.sandbox_policy) = (approval, sandbox);
        self
    }

    /// The person's home directory, if it is known.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let home = self.own_env.get(OsStr::new(if cfg!(windows) { "USERPROFILE" } else { "HOME" }));
        home.map(PathBuf::from).filter(|home| home.is_absolute())
    }
}
