//! Starts, watches, bounds and ends processes.
//!
//! The one way in is an [`ExecEnv`](sandgate_sandbox::ExecEnv), which only the sandbox makes, so
//! nothing is started here that was not granted and confined before. The one promise out is that no
//! process outlives the call it belongs to unless the caller asked for it: see
//! [`Stragglers`] and `docs/design/no-orphans.md`.

#![deny(unsafe_code)]

mod broadcast;
#[cfg(unix)]
mod detached;
mod drive;
mod error;
mod execute;
mod handle;
mod in_terminal;
mod live;
mod output;
mod place;
mod shell;
mod spawner;
mod stop;
mod sys;

pub use broadcast::{OutputChunk, OutputReceiver, Received};
#[cfg(unix)]
pub use detached::start_detached;
pub use drive::{OutputSink, Stragglers};
pub use error::SpawnError;
pub use execute::{ExecuteOptions, Executed, execute};
pub use handle::{Exit, ProcessHandle, SpawnedProcess};
pub use in_terminal::{RanInTerminal, run_in_terminal};
#[cfg(unix)]
pub use live::with_marks;
pub use live::{
    Answered, Deed, LiveChanges, LiveEnd, LiveOptions, LiveState, LiveStdio, Moment, Patience,
    Printed, SIGNAL_NAMES, Search, UnifiedExecProcess, signal_number,
};
pub use live::{CursorKeys, ScreenView, ScreenWanted, UnknownKey, keys};
pub use output::{
    Decoded, HeadTailBuffer, ModelFormat, OutputCapture, RawOutput, RawStream, Spill, SpillPolicy,
    SpillReport, decode, harmless, incomplete_utf8_at_end,
};
pub use place::{read_exact_at, write_all_at};
pub use shell::{Login, Shell, ShellError, ShellType};
pub use spawner::{Spawner, Stdin, TerminalSize};
pub use stop::Stop;
