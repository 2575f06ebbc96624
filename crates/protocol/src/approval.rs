//! When a person is asked, what the person is shown, and what the person can answer.

use crate::{CallId, DenialEvidence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// When a person is asked before a command runs: the session's approval policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskForApproval {
    /// Before everything that is not known to be safe.
    #[serde(rename = "untrusted")]
    UnlessTrusted,
    /// Before what is dangerous, and when the sandbox has blocked something.
    OnFailure,
    /// Before what is dangerous or asks to leave the sandbox, and when the sandbox has blocked something.
    #[default]
    OnRequest,
    /// Never.
    Never,
}

/// The name of one question. A call can raise two: before it runs, and after its sandbox refused
/// something.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Takes an id as it came from outside; it is never interpreted, only repeated.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A person is asked whether a command may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecApprovalRequest {
    /// What the answer is to name.
    pub approval_id: ApprovalId,
    /// The call it belongs to.
    pub call_id: CallId,
    /// The command, as it would run.
    pub command: Vec<String>,
    /// The same as one line for people: quoted like a shell would read it, with everything that does
    /// not show itself spelled out.
    pub command_text: String,
    /// Where it would run.
    #[serde(serialize_with = "crate::lossy::one")]
    pub cwd: PathBuf,
    /// Why a person is asked.
    pub reason: String,
    /// Why the model wants it, in the model's own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// What its sandbox refused, when this is about trying again.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub denials: Vec<DenialEvidence>,
    /// How many further refusals are not listed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more_denials: u64,
    /// What somebody who looked at it thinks of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub risk: Option<RiskAssessment>,
    /// The words of a rule that would allow all commands which begin like this one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proposed_rule: Option<Vec<String>>,
    /// The least that would have let it through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grant_offer: Option<GrantOffer>,
    /// What a plain yes would mean.
    pub without_sandbox: bool,
    /// Whether a yes holds for this once whatever it says: what would run another time may be something
    /// else.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub only_once: bool,
    /// The subagent that asks, such as `review-1`; none if it is the session itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like that")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What could be opened to a command instead of leaving the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantOffer {
    /// The whole of it, as a person would say it: `write to .git`.
    pub summary: String,
    /// Paths that could be written to.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "crate::lossy::all", default)]
    pub writable: Vec<PathBuf>,
    /// Sockets that could be connected to.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "crate::lossy::all", default)]
    pub sockets: Vec<PathBuf>,
    /// The network could be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub network: bool,
}

/// A person is asked whether files may be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApplyPatchApprovalRequest {
    /// What the answer is to name.
    pub approval_id: ApprovalId,
    /// The call it belongs to.
    pub call_id: CallId,
    /// What would change.
    pub changes: Vec<PatchChange>,
    /// Why a person is asked.
    pub reason: String,
    /// The directory that a yes for the session would open to further patches.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::lossy::maybe",
        default
    )]
    pub grant_root: Option<PathBuf>,
    /// Whether a yes holds for this once whatever it says: settings are asked about each time.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub only_once: bool,
    /// The subagent that asks, such as `review-1`; none if it is the session itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
}

/// One file that a patch changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchChange {
    /// The file.
    #[serde(serialize_with = "crate::lossy::one")]
    pub path: PathBuf,
    /// What becomes of it.
    pub kind: PatchChangeKind,
    /// Where it moves to, if it does.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::lossy::maybe",
        default
    )]
    pub moved_to: Option<PathBuf>,
    /// The change as a unified diff.
    pub diff: String,
}

/// What stands where a diff was cut.
const CUT: &str = "[the rest of it is too long to be here]\n";

/// The beginning of a diff, in whole lines, that is longer than this many bytes. None if it is not.
pub fn beginning_of_diff(diff: &str, most_bytes: usize) -> Option<String> {
    if diff.len() <= most_bytes {
        return None;
    }
    let fits = diff.floor_char_boundary(most_bytes);
    let end = diff[..fits].rfind('\n').map_or(0, |end| end + 1);
    Some(format!("{}{CUT}", &diff[..end]))
}

/// All changes, with the beginnings of their diffs, if those are together longer than this many bytes. None if
/// they are not.
pub fn beginnings_of_diffs(changes: &[PatchChange], most_bytes: usize) -> Option<Vec<PatchChange>> {
    let length: usize = changes.iter().map(|change| change.diff.len()).sum();
    let mut room = most_bytes;
    let cut = |PatchChange { path, kind, moved_to, diff }: &PatchChange| {
        let diff = beginning_of_diff(diff, room).unwrap_or_else(|| diff.clone());
        room = room.saturating_sub(diff.len());
        PatchChange { path: path.clone(), kind: *kind, moved_to: moved_to.clone(), diff }
    };
    (length > most_bytes).then(|| changes.iter().map(cut).collect())
}

/// What a patch does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchChangeKind {
    /// It is made.
    Add,
    /// It is removed.
    Delete,
    /// Its lines change, or its name.
    Update,
}

/// What somebody who looked at a blocked command thinks of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RiskAssessment {
    /// How bad it could be.
    pub risk_level: RiskLevel,
    /// What it does, and why it was blocked.
    pub description: String,
}

/// How bad a command could be.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum RiskLevel {
    /// It reads, or is known to be harmless.
    Low,
    /// It changes files, or reaches the network.
    Medium,
    /// It changes the system, or touches secrets.
    High,
}

/// What can be answered to a question beside yes, no and stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offers {
    /// Yes, for the rest of the session.
    pub session: bool,
    /// Only what was blocked.
    pub grant: bool,
    /// Yes, and the proposed rule is kept.
    pub rule: bool,
}

impl Offers {
    /// Whether this is an answer to the question.
    pub fn has(self, decision: &ReviewDecision) -> bool {
        match decision {
            ReviewDecision::Approved | ReviewDecision::Denied { .. } | ReviewDecision::Abort => {
                true
            }
            ReviewDecision::ApprovedForSession => self.session,
            ReviewDecision::ApprovedWithGrant { .. } => self.grant,
            ReviewDecision::ApprovedWithRule => self.rule,
        }
    }
}

impl ExecApprovalRequest {
    /// What can be answered. A yes after the sandbox refused something is never remembered, so it is not
    /// offered for the session: that is what a grant is for.
    pub fn offers(&self) -> Offers {
        Offers {
            session: self.grant_offer.is_none() && !self.was_blocked() && !self.only_once,
            grant: self.grant_offer.is_some(),
            rule: self.proposed_rule.is_some(),
        }
    }

    /// Whether it ran, and its sandbox refused something.
    pub fn was_blocked(&self) -> bool {
        !self.denials.is_empty() || self.more_denials > 0
    }
}

impl ApplyPatchApprovalRequest {
    /// The same question with its changes told otherwise.
    #[must_use]
    pub fn with_changes(&self, changes: Vec<PatchChange>) -> Self {
        Self {
            approval_id: self.approval_id.clone(),
            call_id: self.call_id.clone(),
            changes,
            reason: self.reason.clone(),
            grant_root: self.grant_root.clone(),
            only_once: self.only_once,
            agent: self.agent.clone(),
        }
    }

    /// What can be answered.
    pub fn offers(&self) -> Offers {
        Offers { session: !self.only_once, grant: false, rule: false }
    }
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ReviewDecision {
    /// Yes, this once.
    Approved,
    /// Yes, and do not ask again for the same in this session.
    ApprovedForSession,
    /// Yes, and the proposed rule is kept for this and later sessions.
    ApprovedWithRule,
    /// Not the whole of it: only what was blocked is opened, and the command stays confined.
    ApprovedWithGrant {
        /// For how long.
        scope: GrantScope,
    },
    /// No; the work goes on without it.
    Denied {
        /// What the model is told beside the no.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        feedback: Option<String>,
    },
    /// No, and the work stops.
    Abort,
}

impl ReviewDecision {
    /// No, without a word.
    pub const DENIED: Self = Self::Denied { feedback: None };

    /// Its name on the wire, in the audit log and in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::ApprovedForSession => "approved_for_session",
            Self::ApprovedWithRule => "approved_with_rule",
            Self::ApprovedWithGrant { .. } => "approved_with_grant",
            Self::Denied { .. } => "denied",
            Self::Abort => "abort",
        }
    }

    /// Whether it is a yes of any kind.
    pub fn approves(&self) -> bool {
        !matches!(self, Self::Denied { .. } | Self::Abort)
    }
}

/// How long a narrow grant lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// For this call.
    Call,
    /// For the rest of the session.
    Session,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResponse {
    /// The question.
    pub approval_id: ApprovalId,
    /// The call it belonged to.
    pub call_id: CallId,
    /// The answer.
    #[serde(flatten)]
    pub decision: ReviewDecision,
    /// Who gave it.
    pub answered_by: AnsweredBy,
    /// Both in words, harmless to show: `answered by approvals: yes, once`.
    #[serde(default)]
    pub said: String,
}

impl ApprovalResponse {
    /// What came of a question, with its words.
    pub fn new(
        approval_id: ApprovalId,
        call_id: CallId,
        decision: ReviewDecision,
        answered_by: AnsweredBy,
    ) -> Self {
        let said = format!("{} {}", answered_by.said(), decision.in_words());
        Self { approval_id, call_id, decision, answered_by, said }
    }
}

/// Who answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person, through the front end of this name.
    Person(String),
    /// Nobody, in the time that was given.
    Timeout,
    /// Nobody, because nobody could be asked.
    Nobody,
    /// The work was stopped before anybody answered.
    Cancelled,
}
