//! Processes that live across calls: a shell, a REPL, a debugger, a server.
//!
//! What they print is kept, bounded in memory and complete on disk; a call is answered when the process
//! has ended, waits for input, or printed what was waited for, and not when a clock says so.

mod end;
mod keys;
mod log;
mod log_file;
mod marks;
mod process;
mod screen;
mod seen;
mod sequences;
#[cfg(unix)]
mod shell_marks;
mod signals;
mod transcript;
mod waiting;

pub use end::LiveEnd;
pub use keys::{CursorKeys, UnknownKey, keys};
pub use process::UnifiedExecProcess;
pub use process::{
    Answered, LiveChanges, LiveOptions, LiveState, LiveStdio, Moment, Patience, Search,
};
pub use screen::ScreenView;
pub(crate) use seen::{Seen, Waiter};
#[cfg(unix)]
pub use shell_marks::with_marks;
pub use signals::{SIGNAL_NAMES, signal_number};
pub use transcript::{Printed, ScreenWanted};
pub use waiting::Deed;
