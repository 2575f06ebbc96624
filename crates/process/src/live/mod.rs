//! Processes that live across calls: a shell, a REPL, a debugger, a server.
//!
//! What they print is kept, bounded in memory and complete on disk; a call is answered when the process
//! has ended, waits for input, or printed what was waited for, and not when a clock says so.

mod log;
mod process;
mod seen;
mod signals;
mod transcript;
mod waiting;

pub use process::UnifiedExecProcess;
pub use process::{Answered, LiveEnd, LiveOptions, LiveState, LiveStdio, Moment, Patience};
pub(crate) use seen::{Seen, Waiter};
pub use signals::{SIGNAL_NAMES, signal_number};
pub use transcript::Printed;
