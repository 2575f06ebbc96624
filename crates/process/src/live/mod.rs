//! Processes that live across calls: a shell, a REPL, a debugger, a server.
//!
//! What they print is kept, bounded in memory and complete on disk; a call is answered when the process
//! has ended, waits for input, or printed what was waited for, and not when a clock says so.

mod log;
mod process;
mod seen;
mod transcript;
mod waiting;

pub use process::{
    Answered, LiveEnd, LiveOptions, LiveStdio, Moment, Patience, UnifiedExecProcess,
};
pub(crate) use seen::{Seen, Waiter};
pub use transcript::Printed;
