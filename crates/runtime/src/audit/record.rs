//! What is recorded: plain data, whose form on disk does not change.
//!
//! Fields are added, never renamed or removed, and a reader skips a type that it does not know. The
//! values of environment variables have no place in here, on purpose: that is where secrets are.

use sandgate_policy::{Confinement, Extras, Grant};
use sandgate_protocol::{AskForApproval, CallId, Denials, Enforcement, ExecToolCallOutput};
use sandgate_protocol::{SandboxPermissions, SandboxPolicy, SandboxType, SessionSource};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One thing that happened. On disk its name is in `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// A session began.
    SessionStarted(SessionStarted),
    /// A session ended by itself; one that was killed has no such record.
    SessionEnded(SessionEnded),
    /// Somebody asked for something.
    CallAsked(CallAsked),
    /// What was asked for has been judged.
    Judged(Judged),
    /// It has been decided.
    Decided(Decision),
    /// The permission that came of it, with its terms.
    Granted(Granted),
    /// The command is about to be started.
    Began(Began),
    /// It ended.
    Ended(Ended),
    /// A patch changed files.
    PatchApplied(PatchApplied),
    /// A rule was added to those that decide.
    Amended(Amended),
    /// Anything else worth a line.
    Note {
        /// What it is.
        text: String,
    },
    /// Written by the log itself: the line before this one was never finished, because its writer
    /// was killed or the disk was full.
    Torn {
        /// How long the unfinished line is.
        bytes: u64,
        /// The SHA-256 of it, in hexadecimal.
        sha256: String,
    },
    /// Written by the log itself: what was on disk did not fit together when this was written.
    Damaged {
        /// What did not fit.
        what: String,
    },
    /// Written by the log itself: right before the line before this one, some records could not be
    /// written.
    Unrecorded {
        /// How many.
        count: u64,
        /// Why the last of them could not.
        why: String,
    },
    /// A type that a later version writes.
    #[serde(other)]
    Unknown,
}

impl Record {
    /// The call that it belongs to, if it belongs to one.
    pub fn call_id(&self) -> Option<&CallId> {
        match self {
            Self::CallAsked(asked) => Some(&asked.call_id),
            Self::Judged(judged) => Some(&judged.call_id),
            Self::Decided(decision) => Some(&decision.call_id),
            Self::Granted(granted) => Some(&granted.call_id),
            Self::Began(began) => Some(&began.call_id),
            Self::Ended(ended) => Some(&ended.call_id),
            Self::PatchApplied(applied) => Some(&applied.call_id),
            Self::Amended(amended) => amended.call_id.as_ref(),
            Self::SessionStarted(_)
            | Self::SessionEnded(_)
            | Self::Note { .. }
            | Self::Torn { .. }
            | Self::Damaged { .. }
            | Self::Unrecorded { .. }
            | Self::Unknown => None,
        }
    }
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The front end that began it, such as `run`, `tui` or `mcp`.
    pub front_end: String,
    /// The version of this program.
    pub version: String,
    /// The number of its process.
    pub pid: u32,
    /// Where it works.
    pub workspace: String,
    /// What its commands may touch.
    pub sandbox_policy: SandboxPolicy,
    /// When a person is asked.
    pub approval_policy: AskForApproval,
    /// Who it works for, where a model has a part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SessionSource>,
    /// The session that it is a subagent of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its name as a subagent, such as `review-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Why, in a person's words.
    pub reason: String,
}

/// Somebody asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAsked {
    /// The call, as all further records of it name it.
    pub call_id: CallId,
    /// The front end that it came through.
    pub front_end: String,
    /// The tool that it is for.
    pub tool: String,
    /// The command, as it was asked for; empty for a tool that runs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The directory that it is to run in.
    pub cwd: String,
    /// Whether it asks to leave the sandbox.
    #[serde(default)]
    pub sandbox_permissions: SandboxPermissions,
    /// Why it asks, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The subagent that it came from; none if it is the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What was asked for has been judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The call.
    pub call_id: CallId,
    /// How far it can be trusted.
    pub class: RiskClass,
    /// Why it is in that class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rules that speak of it, as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// How far a command can be trusted, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskClass {
    /// It is known to be safe.
    Safe,
    /// Nothing is known for or against it.
    Unknown,
    /// It can do lasting harm.
    Dangerous,
}

/// A decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The call.
    pub call_id: CallId,
    /// What was decided.
    pub decision: DecisionKind,
    /// Who decided.
    pub by: DecidedBy,
    /// Which attempt it is about: 1, or 2 after a denial.
    pub attempt: u32,
    /// What the model was told with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// It may run, and nobody had to be asked.
    Allowed,
    /// Yes, this once.
    Approved,
    /// Yes, and the same again in this session.
    ApprovedForSession,
    /// Yes, and a rule says so from now on.
    ApprovedWithRule,
    /// Yes, with what was blocked opened to it and nothing more.
    ApprovedWithGrant,
    /// No.
    Denied,
    /// No, and the work stops.
    Aborted,
    /// No, and nobody was asked.
    Forbidden,
}

impl DecisionKind {
    /// Whether it lets the call go on.
    pub fn is_yes(self) -> bool {
        !matches!(self, Self::Denied | Self::Aborted | Self::Forbidden)
    }
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub enum DecidedBy {
    /// The session's policies.
    Policy,
    /// A rule.
    Rule {
        /// The rule, as it is written.
        rule: String,
    },
    /// An earlier answer of a person, which was remembered.
    Cache,
    /// A person.
    Person {
        /// The front end that the answer came through.
        front_end: String,
    },
    /// Nobody answered in time.
    Timeout,
    /// Nobody: the work was called off while the question was open.
    CalledOff,
}

/// The permission to run a command, with its terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The call.
    pub call_id: CallId,
    /// Which attempt it is for.
    pub attempt: u32,
    /// What must confine it.
    pub confinement: GrantedConfinement,
    /// What it opens beyond that.
    #[serde(default, skip_serializing_if = "GrantedExtras::is_empty")]
    pub extras: GrantedExtras,
}

impl Granted {
    /// The terms of a grant, as they are recorded.
    pub fn of(call_id: CallId, attempt: u32, grant: &Grant) -> Self {
        Self {
            call_id,
            attempt,
            confinement: grant.confinement().into(),
            extras: grant.extras().into(),
        }
    }
}

/// What must confine a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GrantedConfinement {
    /// Nothing.
    Unconfined,
    /// The session's policy.
    Sandboxed {
        /// What it may touch.
        policy: SandboxPolicy,
        /// Where the session works.
        workspace: String,
    },
}

impl From<&Confinement> for GrantedConfinement {
    fn from(confinement: &Confinement) -> Self {
        match confinement {
            Confinement::Unconfined => Self::Unconfined,
            Confinement::Sandboxed { policy, workspace } => Self::Sandboxed {
                policy: policy.clone(),
                workspace: workspace.to_string_lossy().into_owned(),
            },
        }
    }
}

/// What a grant opens beyond the policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GrantedExtras {
    /// What can be written to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// Unix sockets that can be connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<String>,
    /// Whether the network can be reached.
    #[serde(default)]
    pub network: bool,
}

impl GrantedExtras {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Extras> for GrantedExtras {
    fn from(extras: &Extras) -> Self {
        let as_text = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        Self {
            writable: as_text(&extras.writable),
            sockets: as_text(&extras.sockets),
            network: extras.network,
        }
    }
}

/// A command is about to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The call.
    pub call_id: CallId,
    /// Which attempt it is.
    pub attempt: u32,
    /// What confines it.
    pub sandbox: SandboxType,
    /// What that really enforces here, where it confines at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
}

/// A command ended, or could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The call.
    pub call_id: CallId,
    /// Which attempt it was.
    pub attempt: u32,
    /// Its exit code, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// Whether somebody called it off.
    #[serde(default)]
    pub cancelled: bool,
    /// What the sandbox refused to it.
    #[serde(flatten)]
    pub denials: Denials,
    /// Why it could not be started or followed, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ended {
    /// The end of a command, by what it left.
    pub(crate) fn of(call_id: CallId, attempt: u32, output: &ExecToolCallOutput) -> Self {
        Self {
            call_id,
            attempt,
            exit_code: Some(output.exit_code),
            duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            timed_out: output.timed_out,
            cancelled: output.cancelled,
            denials: output.denials.clone(),
            error: None,
        }
    }
}

/// A patch changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchApplied {
    /// The call.
    pub call_id: CallId,
    /// What was changed.
    pub files: Vec<PatchedFile>,
    /// Why it was not applied, if it was not; then nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchedFile {
    /// Its path.
    pub path: String,
    /// What became of it.
    pub change: ChangeKind,
    /// How many lines came in.
    pub added_lines: u64,
    /// How many lines went out.
    pub removed_lines: u64,
    /// Where it was moved to, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content changed.
    Updated,
    /// It is gone.
    Deleted,
}

/// A rule was added to those that decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amended {
    /// The call that gave rise to it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The rule, as it is written.
    pub rule: String,
    /// The file that it was added to.
    pub file: String,
}
