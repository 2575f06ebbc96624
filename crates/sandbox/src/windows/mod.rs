//! Windows: a restricted token, a job object and access lists. `docs/design/windows.md` says why
//! these.
//!
//! What is plain data (which entries on which paths, command lines, the environment, the records of
//! sessions) is tested on every system. What calls Windows is in `sys`, and only there. It is all
//! experimental, and off unless the person's settings say
//! `features.enable_experimental_windows_sandbox = true`.

mod acl;
pub mod environment;
pub mod list;
pub mod network;
pub mod quote;
#[cfg(windows)]
mod restriction;
mod session;
mod sid;

pub use acl::{Action, Entry, Kind, Reach, Step, plan};
#[cfg(windows)]
pub use restriction::{Restriction, WindowsSandbox};
pub use session::{AccessLists, Session};
pub use sid::{NotASession, SessionSid};

use std::io;
use std::path::PathBuf;

/// What `CODEX_SANDBOX` says to a command that is confined here.
pub const SANDBOX_NAME: &str = "windows";

/// Whether the sandbox may be used: the setting `features.enable_experimental_windows_sandbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Feature {
    /// It is off.
    #[default]
    Off,
    /// The person wants it, as it is.
    Experimental,
}

/// What the sandbox cannot do, as `sandgate sandbox --status` says it.
pub const NOT_HELD: [&str; 4] = [
    "the network is closed to tools that heed proxy variables, and to no others",
    "files that everyone may write to stay writable outside the roots",
    "a command sees the person's other processes",
    "what the sandbox refused is guessed from the exit code and the output: Windows does not tell",
];

/// Why a command could not be confined here.
#[derive(Debug, thiserror::Error)]
pub enum WindowsError {
    /// The feature is off.
    #[error(
        "the sandbox for Windows is experimental and off: set \
         features.enable_experimental_windows_sandbox = true to use it"
    )]
    Off,
    /// The records of sessions cannot be kept.
    #[error("cannot keep the sandbox's records in {}: {source}", path.display())]
    State {
        /// Where they should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The records would be in the hands of the commands.
    #[error("the sandbox's records cannot be in {}, where its commands may write", .0.display())]
    StateIsWritable(PathBuf),
    /// A path that cannot be written down.
    #[error("{:?} cannot be protected: its name has a line break or is not Unicode", .0)]
    Path(PathBuf),
    /// An access list cannot be changed.
    #[error("cannot change who may write to {}: {source}", path.display())]
    Access {
        /// What it belongs to.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The token cannot be made.
    #[error("cannot make a restricted token: {0}")]
    Token(io::Error),
}
