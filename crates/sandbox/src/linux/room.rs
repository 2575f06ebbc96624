//! The mounts that one job after the other lives among.
//!
//! Every job needs a `/proc` of its own, and so mounts of its own. A job can change none of them, so that the next one
//! can live among the same, and must: a command may have handed a descriptor of a directory to another one beside it. When mounts
//! are given up, the kernel takes each of them off what it lies on, and a writable root that somebody still holds would
//! have nothing left over it that protects.
//!
//! By way of such a descriptor one also gets to the `/proc` of whoever lives there next, and of what is beneath. So the
//! processes in there are shown only to those who may trace them, which Landlock lets no other command, and what is
//! beneath is a curtain.

use crate::sys;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, openat, statfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{chroot, fchdir};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// The `/proc` of who makes jobs, which their mounts do not show.
#[derive(Debug)]
pub struct HostProc(OwnedFd);

impl HostProc {
    /// Holds it.
    ///
    /// # Errors
    /// When there is none that knows this process.
    pub fn hold() -> Result<Self, Errno> {
        let proc = open(CWD, c"/proc", OFlags::PATH | OFlags::DIRECTORY)?;
        open(&proc, c"self/ns/mnt", OFlags::PATH)?;
        Ok(Self(proc))
    }

    /// The directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The mounts of one job. Only a process that shares its directories with no other can enter them.
#[derive(Debug)]
pub struct Room {
    mounts: OwnedFd,
    /// What is `/` there, which need not be where the mounts begin.
    root: OwnedFd,
}

impl Room {
    /// The mounts that this process has, with a curtain over `/proc`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn first(host: &HostProc) -> Result<Self, Errno> {
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
        mount(c"tmpfs", c"/proc", c"tmpfs", flags, Some(c"mode=555,size=4k"))?;
        Self::here(host)
    }

    fn here(host: &HostProc) -> Result<Self, Errno> {
        let mounts = open(&host.0, c"self/ns/mnt", OFlags::RDONLY)?;
        Ok(Self { mounts, root: open(CWD, c"/", OFlags::PATH | OFlags::DIRECTORY)? })
    }

    /// A copy of the mounts that this process has, which it has from now on.
    ///
    /// # Errors
    /// When the kernel refuses: nothing may run where the process is then.
    pub fn another(host: &HostProc) -> Result<Self, Errno> {
        sys::unshare(UnshareFlags::NEWNS)?;
        clear()?;
        Self::here(host)
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

/// Takes away the `/proc` of the job that was here last, down to the curtain.
fn clear() -> Result<(), Errno> {
    while statfs(c"/proc")?.f_type == PROC_SUPER_MAGIC {
        unmount(c"/proc", UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}

fn open(
    directory: impl rustix::fd::AsFd,
    name: &std::ffi::CStr,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty())
}
