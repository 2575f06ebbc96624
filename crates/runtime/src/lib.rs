//! Joins the stages of the pipeline, and is the only crate that sees all of them.
//!
//! A front end starts one [`Runtime`] and a [`Session`] in it, has its commands, calls and patches made
//! through a [`Requester`], and listens to the session's [`Events`]. It names no type of the sandbox and none of the process layer: the few that it
//! needs it has from here. Names are looked up here and nowhere else, before anything is judged.
//!
//! # A command through the gate
//!
//! ```
//! use sandgate_runtime::{AskedCommand, CommandLine, Runtime, Session, SessionConfig, new_call_id};
//! use std::sync::Arc;
//!
//! # #[cfg(unix)]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First of all, while the program has no threads: on Linux this forks.
//!     let runtime = Arc::new(Runtime::start()?);
//!     tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//!         let workspace = tempfile::tempdir()?;
//!         let mut config = SessionConfig::new(workspace.path().to_owned());
//!         config.own_env = std::env::vars_os().collect();
//!         let session = Session::start(runtime, config)?;
//!
//!         let requester = session.requester();
//!         let turn = requester.begin_turn();
//!         let words = ["echo", "hello through the gate"].map(str::to_owned);
//!         let asked = AskedCommand::new(CommandLine::Argv(words.to_vec()));
//!         let ran = requester.run_command(&new_call_id(), asked, &turn).await?;
//!         let output = ran.output.output;
//!         assert_eq!((output.exit_code, output.stdout.text.as_str()), (0, "hello through the gate\n"));
//!         Ok(())
//!     })
//! }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
//!
//! `docs/library.md` goes on from here to an agent with a person who is asked, and `docs/extending.md` to tools of one's
//! own.

#![forbid(unsafe_code)]

mod approval;
pub mod audit;
mod contents;
#[cfg(unix)]
pub mod daemon;
mod deltas;
mod desk;
mod detached;
mod directory;
mod environment;
mod error;
mod events;
mod git;
mod locks;
mod observe;
mod orchestrator;
mod ours;
mod outcome;
mod own_program;
#[cfg(unix)]
mod own_socket;
pub mod policy;
mod private;
mod report;
mod request;
mod resolve;
pub mod rules;
mod runtime;
mod served;
mod session;
#[cfg(unix)]
mod snapshot;
mod spills;
mod steady_path;
mod telemetry;
mod terminal;
mod tools;
mod turn_diff;
mod unified_exec;

pub use approval::{Answer, AnswerError, Approver, Question, command_text};
pub use deltas::{MAX_DELTA_BYTES, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
pub use desk::{Asker, Attendance, Desk, DeskPlace, OpenQuestion, Outcome};
#[cfg(unix)]
pub use desk::{Console, DeskError, DeskSocket, DeskWatch, Desks, Listed, PendingQuestion};
pub use environment::{InheritEnvironment, ShellEnvironmentPolicy};
pub use error::RuntimeError;
pub use events::{Delivery, EventLog, Events};
pub use locks::hold_lock;
pub use observe::{OutputTap, Tapped};
pub use orchestrator::{ApprovalCtx, Attempted, FirstAttempt, RanCommand};
pub use orchestrator::{RiskAssessor, RiskQuestion};
pub use orchestrator::{SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime};
pub use outcome::CommandOutcome;
pub use own_program::Printed;
#[cfg(unix)]
pub use own_socket::OwnSocketError;
/// Directories and files that are the person's own, and nobody else's.
pub use private::{is_in_place, make_private, open_file};
pub use request::{CommandInput, CommandLine, KeepOutput, new_call_id};
pub use runtime::Runtime;
pub use served::{ServerAnswers, ServerPipe, ServerProgram, ServerWatch};
pub use session::{
    BrokenPatches, Keeping, LiveProcess, ProcessOutput, Requester, Session, SessionConfig,
    SnapshotOptions, Turn,
};
pub use session::{ChildTerms, ChildTools, SubAgentLimits};
pub use telemetry::{
    TELEMETRY_PREVIEW_MAX_BYTES, TELEMETRY_PREVIEW_MAX_LINES, TELEMETRY_PREVIEW_TRUNCATION_NOTICE,
    telemetry_preview,
};
pub use terminal::{TerminalOutcome, TerminalRequest};
pub use terminal::{could_write, enforcement, run_in_terminal_as_person, unfinished_roots};
pub use tools::{
    AskedCommand, CheckedPatch, PatchApproval, ToolFuture, ToolHandler, ToolInvocation, ToolKind,
    ToolRegistry, ToolResult, ToolSpec,
};

pub use turn_diff::TurnDiffs;

/// The longest text of a patch that is read, in bytes.
pub use sandgate_patch::LARGEST_TEXT as LARGEST_PATCH;
/// What a tool of one's own needs to be approved; see `docs/extending.md`.
pub use sandgate_policy::{
    Approvable, ApprovalKey, ApprovalRequirement, BypassSandbox, Extras, Terms,
};
/// The start of a command in the terminal, before it is known which.
pub use sandgate_process::HeadStart;
/// Whether a shell reads the person's profile first.
pub use sandgate_process::Login;
/// How much of an output a model is given.
pub use sandgate_process::ModelFormat;
/// What became of the file that holds all of a command's output.
pub use sandgate_process::SpillReport;
/// Reads and writes at a place of a file.
pub use sandgate_process::{read_exact_at, write_all_at};
/// What becomes of commands where something of the sandbox is missing.
pub use sandgate_sandbox::PartialEnforcement;

/// The levers by which a front end ends a running command.
pub use sandgate_process::Stop;

/// The examples of the page for those who build on these crates.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
mod page {}
