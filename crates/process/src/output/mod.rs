//! What a command prints: bounded in memory, complete on disk, readable for a person and a model.
//!
//! Bytes go in at [`OutputCapture`] and, when there is more of them than memory may hold, into
//! [`Spill`]. When the command has ended they come out as [`RawOutput`], which makes the text of a
//! result and, with [`ModelFormat`], the form that a model is given. Nothing here starts, waits for
//! or ends a process.

mod borders;
mod capture;
mod gap;
mod harmless;
mod head_tail;
mod model;
mod raw;
mod sections;
mod spill;
mod text;

pub use borders::incomplete_utf8_at_end;
pub use capture::OutputCapture;
pub use harmless::harmless;
pub use head_tail::HeadTailBuffer;
pub(crate) use head_tail::Outline;
pub use model::ModelFormat;
pub use raw::{RawOutput, RawStream};
pub use spill::{Spill, SpillPolicy, SpillReport};
pub use text::{Decoded, decode};
