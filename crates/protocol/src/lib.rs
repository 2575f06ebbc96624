//! Plain data that crosses a border: execution parameters, decisions, events, ids and errors.
//!
//! Nothing here does I/O, waits or decides. Every other crate may depend on this one, so it depends
//! on none of them.

#![forbid(unsafe_code)]

mod approval;
mod call_id;
mod codex_err;
mod conversation;
mod denial;
mod error;
mod event;
mod exec;
mod failure;
mod lookalike;
mod lossy;
mod output;
mod question;
mod sandbox_policy;
mod tool;
mod unified_exec;
mod visible;

pub use approval::{AnsweredBy, ApplyPatchApprovalRequest, ApprovalId, ApprovalResponse};
pub use approval::{AskForApproval, ExecApprovalRequest, GrantOffer, GrantScope, Offers};
pub use approval::{PatchChange, PatchChangeKind, ReviewDecision, RiskAssessment, RiskLevel};
pub use approval::{beginning_of_diff, beginnings_of_diffs};
pub use call_id::CallId;
pub use codex_err::CodexErr;
pub use conversation::{AgentEvent, CallInput, ResponseItem, Role, SessionSource};
pub use conversation::{SubAgentSource, TokenUsage};
pub use denial::{DenialEvidence, DenialRule, Denials, DeniedOperation};
pub use error::ExecError;
pub use event::{Encoding, Event, ExecCommandBegin, ExecCommandEnd, ExecCommandOutputDelta};
pub use event::{ExecCommandOutputOmitted, Notice, OutputStream, PatchApplyBegin};
pub use event::{PatchApplyEnd, SessionEvent, SubAgentEvent, TurnDiff};
pub use exec::{DEFAULT_EXEC_TIMEOUT, ExecExpiration, ExecParams, SandboxPermissions, SandboxType};
pub use failure::FailureKind;
pub use output::{EXIT_CODE_SIGNAL_BASE, EXIT_CODE_TIMEOUT, ExecToolCallOutput, StreamOutput};
pub use output::{SIGNAL_INTERRUPT, SIGNAL_KILL, Spilled};
pub use question::{Choice, Detail, Fact, FactKind, ShownQuestion};
pub use sandbox_policy::{Enforcement, NetworkAccess, SandboxPolicy, SandboxablePreference};
pub use sandbox_policy::{PROTECTED_NAMES, WritableRoot, may_be_protected, protected_name};
pub use tool::{ApplyPatchToolCallParams, GrepFilesToolCallParams, ListDirToolCallParams};
pub use tool::{
    ContentItem, GrantedToRun, Ran, ReadFileToolCallParams, ShellCommandToolCallParams,
};
pub use tool::{ShellToolCallParams, ToolCall, ToolOutput, ToolPayload};
pub use unified_exec::WriteStdinToolCallParams;
pub use unified_exec::{CommandText, ExecCommandToolCallParams, KillProcessToolCallParams};
pub use unified_exec::{ListProcessesToolCallParams, ReadOutputToolCallParams, ReturnReason};
pub use unified_exec::{
    ProcessInfo, ProcessState, ProcessWoke, ScreenReply, TerminalSizeParams, UnifiedExecReply,
};
pub use visible::{
    is_invisible, is_odd_blank, visible, visible_code, visible_line, visible_piece, visible_prose,
    visible_remark,
};
