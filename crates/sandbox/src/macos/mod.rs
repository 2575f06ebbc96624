//! macOS: a Seatbelt profile, entered by the system's own `sandbox-exec`.
//!
//! The profile is text that depends on the shape of a [`Layout`](crate::Layout) only. Every path goes beside it as
//! a parameter, so no path can ever be read as a rule. All of this is plain data and is tested on
//! every system; the one thing that only macOS can do is to run the command line that comes out.
//!
//! Seatbelt reports nothing about what it refused to the program that asked for it, so there is no
//! evidence here: a denial is guessed from what the command printed.

mod profile;
mod rule;

pub use profile::Seatbelt;

use sandgate_protocol::{Enforcement, SandboxType};
use std::path::{Path, PathBuf};

/// The program that enters a profile. Never looked up: a `PATH` could name another one.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// What `CODEX_SANDBOX` says to a command that Seatbelt confines.
pub const SANDBOX_NAME: &str = "seatbelt";

/// Why there is no profile for a layout.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SeatbeltError {
    /// A path that would not mean what it says.
    #[error("{} cannot be named in a sandbox profile: {reason}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// What a machine that has `sandbox-exec` enforces.
pub fn status() -> Enforcement {
    let present = Path::new(SANDBOX_EXEC).is_file();
    let mut missing = Vec::new();
    if present {
        missing.extend(NOT_HELD.map(str::to_owned));
    } else {
        missing.push(format!("there is no {SANDBOX_EXEC} here"));
    }
    let sandbox = if present { SandboxType::MacosSeatbelt } else { SandboxType::None };
    Enforcement {
        sandbox,
        namespaces: false,
        landlock_abi: 0,
        seccomp: false,
        supervisor: false,
        missing,
    }
}

/// What Seatbelt cannot do, as `sandgate sandbox --status` says it.
const NOT_HELD: [&str; 3] = [
    "a command has no loopback of its own: with the network off it reaches no address at all",
    "what the sandbox refused is guessed from the output: Seatbelt does not tell",
    "a command that leaves its process group outlives it, and sandgate",
];
