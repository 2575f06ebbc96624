//! The events of one command: it began, it wrote, it ended.

use crate::{AgentEvent, ProcessWoke};
use crate::{
    ApplyPatchApprovalRequest, ApprovalId, ApprovalResponse, CallId, Enforcement,
    ExecApprovalRequest, ExecToolCallOutput, PatchChange, SandboxType,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One step of a call, as every front end sees it. On the wire its name is in `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// The command is about to be started.
    ExecCommandBegin(ExecCommandBegin),
    /// It wrote something.
    ExecCommandOutputDelta(ExecCommandOutputDelta),
    /// It writes more than is shown; the rest is only counted, and in the result.
    ExecCommandOutputOmitted(ExecCommandOutputOmitted),
    /// It ended.
    ExecCommandEnd(Box<ExecCommandEnd>),
    /// A person is asked whether a command may run.
    ExecApprovalRequest(Box<ExecApprovalRequest>),
    /// A person is asked whether files may be changed.
    ApplyPatchApprovalRequest(Box<ApplyPatchApprovalRequest>),
    /// A question was answered.
    ApprovalResponse(ApprovalResponse),
    /// Files are about to be changed.
    PatchApplyBegin(PatchApplyBegin),
    /// They were changed, or not.
    PatchApplyEnd(PatchApplyEnd),
    /// Something happened to a live process while nobody waited for it.
    ProcessWoke(ProcessWoke),
    /// All that the turn changed.
    TurnDiff(TurnDiff),
    /// What this machine's sandbox can enforce.
    SandboxStatus(Enforcement),
    /// Something that a person should know, and that stops nothing.
    Warning(Notice),
    /// Something that stopped a call or the turn.
    Error(Notice),
    /// Something happened in a subagent of the session. Its questions are not in here: they are asked
    /// like any other.
    SubAgent(SubAgentEvent),
    /// Something happened in the conversation that the session serves.
    #[serde(untagged)]
    Agent(AgentEvent),
}

impl Event {
    /// The question that it asks, if it asks one, by what the answer is to name.
    pub fn asks(&self) -> Option<&ApprovalId> {
        match self {
            Self::ExecApprovalRequest(request) => Some(&request.approval_id),
            Self::ApplyPatchApprovalRequest(request) => Some(&request.approval_id),
            _ => None,
        }
    }
}

/// What happened in a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentEvent {
    /// Its name, such as `review-1`; below a subagent, `review-1/tests-2`.
    pub agent: String,
    /// What happened.
    pub event: Box<Event>,
}

/// An event with its place in the session's one line of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Files are about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchApplyBegin {
    /// The call it belongs to.
    pub call_id: CallId,
    /// Whether nobody had to be asked.
    pub auto_approved: bool,
    /// What changes.
    pub changes: Vec<PatchChange>,
}

/// Files were changed, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchApplyEnd {
    /// The call it belongs to.
    pub call_id: CallId,
    /// Whether all of it was done; otherwise none of it was.
    pub success: bool,
    /// What was done, a line for each file; or why nothing was.
    pub message: String,
}

/// All that a turn changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnDiff {
    /// As a unified diff.
    pub unified_diff: String,
    /// Files that changed and are not in the diff, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_shown: Vec<String>,
}

/// A sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The call it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<CallId>,
    /// The sentence.
    pub message: String,
}

/// The command is about to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCommandBegin {
    /// The call it belongs to.
    pub call_id: CallId,
    /// The command, as it will run.
    pub command: Vec<String>,
    /// Where it runs; what of its name is not UTF-8 is replaced on the wire.
    #[serde(serialize_with = "crate::lossy::one")]
    pub cwd: PathBuf,
    /// What confines it.
    pub sandbox: SandboxType,
    /// What that enforces on this machine; nothing where nothing confines it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enforcement: Option<Enforcement>,
}

/// A piece of output, at most 8 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCommandOutputDelta {
    /// The call it belongs to.
    pub call_id: CallId,
    /// Where it was written to.
    pub stream: OutputStream,
    /// How `chunk` is to be read.
    pub encoding: Encoding,
    /// The bytes, as text where they are text.
    pub chunk: String,
}

impl ExecCommandOutputDelta {
    /// Wraps raw output: as text where it is UTF-8, in base64 where it is not.
    pub fn new(call_id: CallId, stream: OutputStream, bytes: &[u8]) -> Self {
        let (encoding, chunk) = match std::str::from_utf8(bytes) {
            Ok(text) => (Encoding::Utf8, text.to_owned()),
            Err(_) => (Encoding::Base64, BASE64.encode(bytes)),
        };
        Self { call_id, stream, encoding, chunk }
    }

    /// The bytes as the command wrote them; `None` when the chunk is not what its encoding says.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Utf8 => Some(self.chunk.clone().into_bytes()),
            Encoding::Base64 => BASE64.decode(&self.chunk).ok(),
        }
    }
}

/// The call's share of output events is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCommandOutputOmitted {
    /// The call it belongs to.
    pub call_id: CallId,
    /// How many output events were sent before this one.
    pub after_deltas: u32,
}

/// The command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCommandEnd {
    /// The call it belongs to.
    pub call_id: CallId,
    /// What it left behind.
    #[serde(flatten)]
    pub output: ExecToolCallOutput,
    /// The same in the form a model is given.
    pub formatted_output: String,
}

/// The stream that output was written to. A terminal has only one: its output counts as stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How the bytes of a chunk are written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encoding {
    /// As they are: the chunk is valid UTF-8.
    #[serde(rename = "utf-8")]
    Utf8,
    /// In standard base64 with padding.
    #[serde(rename = "base64")]
    Base64,
}
