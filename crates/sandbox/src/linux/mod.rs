//! Linux: namespaces, Landlock and seccomp, in layers.
//!
//! A [`Cage`] is built once, from the [`Site`] of a policy, by ordinary code; it holds every path as the kernel
//! wants it, the Landlock rules and the filters. Entering it allocates nothing, so that it can be
//! done by a process that was forked from one with threads.

mod cage;
mod cages;
mod devices;
mod enter;
mod inside;
mod landlock;
mod limits;
mod network;
mod outside;
mod program;
mod requests;
mod reserve;
mod room;
mod same;
mod seccomp;
mod site;
mod status;
pub mod supervisor;

pub use crate::sys::{Kept, Patience, take_short_turns};
pub use cage::Cage;
pub(crate) use cages::Cages;
pub use enter::{Entry, Mode, Of, PROCESSES_OF_JOB, Stuck, join_network};
pub use inside::{Inside, JobRules, ScopeNames};
pub use landlock::StreamsOf;
pub use outside::rule_seen_from_outside;
pub use reserve::{Leftovers, Reservations};
pub use room::{HostProc, Room};
pub use seccomp::SO_PASSRIGHTS;
pub use site::Site;
pub(crate) use status::{enforced, status};
pub use supervisor::syscall_name;

use std::path::PathBuf;

/// Why a cage could not be built.
#[derive(Debug, thiserror::Error)]
pub enum CageError {
    /// A path that no system call can be given.
    #[error("{} contains a NUL byte", .0.display())]
    NulByte(PathBuf),
    /// The kernel's file access rules could not be made.
    #[error("cannot make the rules for files (Landlock): {0}")]
    Landlock(String),
    /// There are too many roots or sockets.
    #[error("too many writable roots or sockets")]
    TooMuch,
    /// Nobody knows what is protected in most of a root.
    #[error(
        "{} holds too many directories to be searched for repositories; work in one of them, or \
         remove what is not needed",
        .0.display()
    )]
    TooLarge(PathBuf),
    /// A root, or something in one, that no mount can be put over.
    #[error("{} cannot be made writable: {why}; name another directory", place.display())]
    Unfit {
        /// Where it is.
        place: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Names that links lead to and that would have to be kept free.
    #[error(
        "too many names in the workspace would have to be kept free, because `.git` links lead to \
         them; remove those that lead nowhere"
    )]
    TooManyNames,
    /// There is no memory for it.
    #[error("cannot keep the rules of the sandbox in memory: {0}")]
    Memory(std::io::Error),
    /// The filter could not be compiled.
    #[error("cannot compile the filter for system calls: {0}")]
    Filter(String),
}

impl CageError {
    fn filter(error: impl std::fmt::Display) -> Self {
        Self::Filter(error.to_string())
    }
}
