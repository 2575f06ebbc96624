//! The mounts that one job after the other lives among.
//!
//! Every job needs a `/proc` of its own, and so mounts of its own. To copy all that are in a cage costs the more the more
//! mounts the machine has, and a job cannot change any. So a job can live where another one has lived.
//!
//! It must not where somebody is left who has a way there: a descriptor of any directory in a room leads to the `/proc`
//! of whoever lives in it, and to the host's when that is taken away. Who keeps rooms sees to that.

use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat_raw};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{chroot, fchdir};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::mem::MaybeUninit;

/// The mounts of one job. Only a process that shares its directories with no other can enter them.
#[derive(Debug)]
pub struct Room {
    mounts: OwnedFd,
    /// What is `/` there, which need not be where the mounts begin.
    root: OwnedFd,
}

impl Room {
    /// The mounts that this process has.
    ///
    /// # Errors
    /// When there is no `/proc` that knows this process.
    pub fn here() -> Result<Self, Errno> {
        let open = |path, flags| openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
        let mounts = open(c"/proc/self/ns/mnt", OFlags::RDONLY)?;
        Ok(Self { mounts, root: open(c"/", OFlags::PATH | OFlags::DIRECTORY)? })
    }

    /// A copy of the mounts that this process has, which it has from now on.
    ///
    /// # Errors
    /// When the kernel refuses. The process may have the copy all the same.
    pub fn another() -> Result<Self, Errno> {
        sys::unshare(UnshareFlags::NEWNS)?;
        clear()?;
        Self::here()
    }

    /// Has these mounts from now on, and is in their root.
    ///
    /// # Errors
    /// When the kernel refuses: nothing may run where the process is then.
    pub fn enter(&self) -> Result<(), Errno> {
        move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        // Who joins mounts finds itself where they begin, outside of what was the root.
        fchdir(&self.root)?;
        chroot(c".")?;
        clear()
    }
}

/// Takes away the `/proc` of the job that was here last: one that does not know this process. Not earlier: what it covers
/// is the host's, and somebody may be there who could look at it.
fn clear() -> Result<(), Errno> {
    let mut link = [MaybeUninit::uninit(); 16];
    while readlinkat_raw(CWD, c"/proc/self", &mut link).is_err() {
        unmount(c"/proc", UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}
