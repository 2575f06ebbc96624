//! Joins the stages of the pipeline, and is the only crate that sees all of them.
//!
//! A front end starts one [`Runtime`], hands it a [`CommandRequest`] and watches what happens as an
//! [`Observer`]. It names no type of the sandbox and none of the process layer: the few that it
//! needs it has from here. Names are looked up here and nowhere else, before anything is judged.

#![forbid(unsafe_code)]

mod approval;
pub mod audit;
mod deltas;
mod directory;
mod environment;
mod error;
mod events;
mod observe;
mod orchestrator;
mod outcome;
pub mod policy;
mod private;
mod report;
mod request;
mod resolve;
pub mod rules;
mod runtime;
mod session;
mod telemetry;
mod terminal;
mod tools;

pub use approval::{Answer, AnswerError, Approver, Question, command_text};
pub use deltas::{MAX_DELTA_BYTES, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
pub use environment::{InheritEnvironment, ShellEnvironmentPolicy};
pub use error::{FailureKind, RuntimeError};
pub use events::{Delivery, EventLog, Events};
pub use observe::{Observer, OutputTap, WantedEvents};
pub use orchestrator::{ApprovalCtx, Attempted, FirstAttempt, RiskAssessor, RiskQuestion};
pub use orchestrator::{SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime};
pub use outcome::CommandOutcome;
pub use request::{CommandInput, CommandLine, CommandRequest, KeepOutput, new_call_id};
pub use runtime::Runtime;
pub use session::{Requester, Session, SessionConfig, Turn};
pub use telemetry::{
    TELEMETRY_PREVIEW_MAX_BYTES, TELEMETRY_PREVIEW_MAX_LINES, TELEMETRY_PREVIEW_TRUNCATION_NOTICE,
    telemetry_preview,
};
pub use terminal::{TerminalOutcome, TerminalRequest};
pub use terminal::{enforcement, run_in_terminal_as_person, unfinished_roots};
pub use tools::{
    AskedCommand, ToolHandler, ToolInvocation, ToolKind, ToolRegistry, ToolResult, ToolSpec,
};

/// Whether a shell reads the person's profile first.
pub use sandgate_process::Login;
/// What became of the file that holds all of a command's output.
pub use sandgate_process::SpillReport;
/// The levers by which a front end ends a running command.
pub use sandgate_process::Stop;
