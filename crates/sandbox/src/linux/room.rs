//! The mounts that one job after the other lives among.
//!
//! Every job needs a `/proc` of its own, and so mounts of its own. To copy all that are in a cage costs more than the
//! rest of what makes a job ready, and more with every mount that the machine has; a job cannot change any. So they are
//! copied for as many jobs as there are at once, and the next job finds them as the first one did.

use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat_raw};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::mem::MaybeUninit;

/// The mounts of one job. Only a process that shares its directories with no other can enter them.
#[derive(Debug)]
pub struct Room(OwnedFd);

impl Room {
    /// The mounts that this process has.
    ///
    /// # Errors
    /// When there is no `/proc` that knows this process.
    pub fn here() -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(CWD, c"/proc/self/ns/mnt", flags, Mode::empty()).map(Self)
    }

    /// A copy of the mounts that this process has, which it has from now on.
    ///
    /// # Errors
    /// When the kernel refuses. The process may have the copy all the same.
    pub fn another() -> Result<Self, Errno> {
        sys::unshare(UnshareFlags::NEWNS)?;
        clear();
        Self::here()
    }

    /// Has these mounts from now on.
    ///
    /// # Errors
    /// When the kernel refuses: the process has those that it had.
    pub fn enter(&self) -> Result<(), Errno> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Mount))?;
        clear();
        Ok(())
    }
}

/// Takes away what jobs have left that did not end by themselves. Theirs is a `/proc` that does not know this process.
fn clear() {
    let mut link = [MaybeUninit::uninit(); 16];
    while readlinkat_raw(CWD, c"/proc/self", &mut link).is_err() {
        if leave_proc().is_err() {
            break;
        }
    }
}

/// Takes the `/proc` of a job away, for the first process of that job when it is the last.
///
/// # Errors
/// When the kernel refuses. Whoever enters next does it then.
pub fn leave_proc() -> Result<(), Errno> {
    unmount(c"/proc", UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}
