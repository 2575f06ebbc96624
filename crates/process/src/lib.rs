//! Starts, watches, bounds and ends processes.
//!
//! The one way in is an [`ExecEnv`](sandgate_sandbox::ExecEnv), which only the sandbox makes, so
//! nothing is started here that was not granted and confined before. The one promise out is that no
//! process outlives the call it belongs to unless the caller asked for it: see
//! [`Stragglers`] and `docs/design/no-orphans.md`.
//!
//! # One command, from start to end
//!
//! ```
//! use sandgate_policy::Grant;
//! use sandgate_process::{ExecuteOptions, OutputSink, Spawner, Stop, execute};
//! use sandgate_protocol::{ExecExpiration, ExecParams, OutputStream, SandboxPermissions};
//! use sandgate_sandbox::SandboxManager;
//! use std::time::Duration;
//!
//! /// Hears of output as it comes.
//! struct Heard(Vec<u8>);
//!
//! impl OutputSink for Heard {
//!     async fn write(&mut self, _: OutputStream, bytes: &[u8]) -> std::io::Result<()> {
//!         self.0.extend(bytes);
//!         Ok(())
//!     }
//! }
//!
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Early, because on Linux it forks.
//! let spawner = Spawner::start()?;
//! let params = ExecParams {
//!     command: ["sh", "-c", "echo working; setsid sleep 1000 & sleep 1000"].map(str::to_owned).to_vec(),
//!     program: "/bin/sh".into(),
//!     cwd: "/".into(),
//!     env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
//!     expiration: ExecExpiration::Timeout(Duration::from_millis(200)),
//!     sandbox_permissions: SandboxPermissions::UseDefault,
//!     justification: None,
//!     arg0: None,
//! };
//! // The person typed it, and wants it as it is. `sandgate_policy` has the other ways to a grant.
//! let env = SandboxManager::new().transform(Grant::unconfined_by_person(params))?;
//! let mut heard = Heard(Vec::new());
//! let stop = Stop::default();
//! let done = execute(&spawner, &env, ExecuteOptions::default(), &stop, &mut heard).await?;
//! assert!(done.output.timed_out);
//! assert_eq!(done.output.exit_code, 124);
//! assert_eq!(done.output.stdout.text, "working\n");
//! assert_eq!(heard.0, b"working\n");
//! // And neither `sleep` is there any more.
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```

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
pub use in_terminal::{HeadStart, RanInTerminal, run_in_terminal};
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
