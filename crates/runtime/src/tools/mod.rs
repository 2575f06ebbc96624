//! The tools: what a model can ask for, and who does it.
//!
//! A tool is a [`ToolHandler`]. The [`ToolRegistry`] knows them by name, and the router takes the
//! calls of one response of a model to them, all at once where each can bear that, one after the
//! other otherwise, and gives the results back in the order of the calls.

mod apply_patch;
mod arguments;
mod command;
mod files;
mod live;
mod registry;
mod router;
mod shell;

pub use apply_patch::{CheckedPatch, PatchApproval};
pub(crate) use apply_patch::{apply_patch, check_patch};
pub(crate) use arguments::{parse, schema};
pub use command::AskedCommand;
pub(crate) use command::{CommandOutput, decided_by, judged, run_command};
pub(crate) use files::{careful_walk, open_regular, said_of};
pub(crate) use live::process_infos;
#[cfg(unix)]
pub(crate) use live::{Launch, Launched, Manner, type_unjudged};
pub(crate) use registry::SessionTools;
pub use registry::{ToolFuture, ToolHandler, ToolInvocation, ToolKind, ToolRegistry, ToolSpec};
pub use router::ToolResult;
pub(crate) use router::route;

use sandgate_protocol::CodexErr;

/// A payload of another kind than the tool takes.
fn wrong_kind(tool: &str) -> CodexErr {
    let reason = "they are not of the kind that it takes".to_owned();
    CodexErr::InvalidArguments { tool: tool.to_owned(), reason }
}
