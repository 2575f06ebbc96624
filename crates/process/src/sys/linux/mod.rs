//! Linux: jobs are started by a small process of their own, so that none is ever orphaned.
//!
//! Three kinds of process take part; `docs/design/no-orphans.md` says why.
//!
//! - The *host* is the program that uses this library.
//! - The *nursery* is forked from the host once. It drops the host's memory and descriptors, and
//!   from then on only keeps idle wardens ready.
//! - A *warden* takes one request, starts its command, and is the subreaper of everything that the
//!   command starts. It ends them all when it is told to, or when its socket to the host closes,
//!   which also happens when the host is killed.
//!
//! A *forerunner* makes the namespaces of a cage while the host builds the rest of it, forks the process
//! that lives in them, and is gone before the first command runs.
//!
//! The nursery and the wardens run after a `fork` of a process that may have threads. They
//! allocate nothing, take no lock and call nothing but the kernel.

mod children;
mod foreground;
mod forerunner;
mod forget;
mod given;
mod group;
mod host;
pub(crate) mod in_place;
mod job;
mod nursery;
mod plan;
mod processor;
mod raw;
mod rooms;
mod sight;
mod tick;
mod vestibule;
mod warden;
mod wire;

pub(crate) use forerunner::Forerunner;
pub(crate) use host::Nursery;
pub(crate) use job::{Job, Remote};
pub(crate) use sight::Sight;
pub(crate) use tick::pause;
