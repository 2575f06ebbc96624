//! The steps into the cage. Nothing here allocates.

use super::cage::{Cage, Kind, Step};
use super::{Reservations, devices, network};
use crate::sys;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};
use rustix::thread::UnshareFlags;
use sandgate_protocol::NetworkAccess;
use std::ffi::CStr;

/// How much of the cage the kernel lets us build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All of it.
    Namespaces,
    /// Landlock and seccomp: user namespaces are refused here.
    LandlockOnly,
}

/// A step that failed, by its name.
#[derive(Debug, Clone, Copy)]
pub struct Stuck {
    /// What was being done.
    pub step: &'static str,
    /// The kernel's answer.
    pub errno: i32,
}

impl Stuck {
    pub(super) fn at(step: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { step, errno: errno.raw_os_error() }
    }
}

/// The most roots whose mounts can be held while the rest is made read-only.
const MAX_ROOTS: usize = 64;

impl Cage {
    /// Enters the namespaces that all commands of a session share, and lays out the file system.
    /// `reservations` are this cage's own, and taken.
    ///
    /// The calling process must have one thread. When namespaces are refused nothing has happened,
    /// and the answer says so.
    ///
    /// # Errors
    /// When a step after that fails: the process is then half way in and must not run anything.
    pub fn enter_session(&self, reservations: &Reservations) -> Result<Mode, Stuck> {
        if !self.enter_namespaces()? {
            return match self.rules.alone {
                Some(_) => Ok(Mode::LandlockOnly),
                // The filter by itself holds no file.
                None => {
                    Err(Stuck { step: "find namespaces or Landlock here", errno: libc::ENOSYS })
                }
            };
        }
        self.lay_out_files(reservations)?;
        if self.network == NetworkAccess::Restricted {
            network::loopback_up().map_err(Stuck::at("bring the loopback up"))?;
        }
        Ok(Mode::Namespaces)
    }

    /// Leaves the host's namespaces, all in one call: it does everything or nothing.
    fn enter_namespaces(&self) -> Result<bool, Stuck> {
        let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
        if self.network == NetworkAccess::Restricted {
            flags |= UnshareFlags::NEWNET;
        }
        if self.is_root && sys::may_administer() && sys::unshare(flags).is_ok() {
            return Ok(true);
        }
        if sys::unshare(flags | UnshareFlags::NEWUSER).is_err() {
            return Ok(false);
        }
        let write = |path: &CStr, text: &CStr| -> Result<(), Errno> {
            let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, FileMode::empty())?;
            rustix::io::write(&file, text.to_bytes()).map(|_| ())
        };
        write(c"/proc/self/setgroups", c"deny").map_err(Stuck::at("give up other groups"))?;
        write(c"/proc/self/uid_map", &self.uid_map).map_err(Stuck::at("map the user"))?;
        write(c"/proc/self/gid_map", &self.gid_map).map_err(Stuck::at("map the group"))?;
        Ok(true)
    }

    fn lay_out_files(&self, reservations: &Reservations) -> Result<(), Stuck> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change(c"/", private).map_err(Stuck::at("part from the host's mounts"))?;
        // Copies of what stays writable are taken before everything becomes read-only.
        let mut copies = [const { None }; MAX_ROOTS];
        let mut free = copies.iter_mut();
        for step in self.steps.iter().filter(|step| step.kind == Kind::Root) {
            let Some(slot) = free.next() else {
                return Err(Stuck { step: "hold that many writable roots", errno: libc::E2BIG });
            };
            *slot = Some(copy_of(&step.path).map_err(Stuck::at("copy a writable root"))?);
        }
        let devices = devices::Devices::hold()?;
        sys::mount_attributes(CWD, c"/", sys::Recursive::Yes, sys::READ_ONLY | sys::NO_SETUID)
            .map_err(Stuck::at("make the file system read-only"))?;
        devices.lay_out()?;
        let mut copies = copies.iter().flatten();
        for Step { path, kind } in &self.steps {
            match kind {
                Kind::Root => {
                    let Some(copy) = copies.next() else { continue };
                    let attributes = sys::NO_SETUID | sys::NO_DEVICES;
                    sys::mount_attributes(copy, c"", sys::Recursive::Yes, attributes)
                        .map_err(Stuck::at("restrict a writable root"))?;
                    place(copy, path).map_err(Stuck::at("place a writable root"))?;
                }
                Kind::Reserved(index) if !reservations.is_taken(*index) => {}
                Kind::Protect | Kind::Reserved(_) => {
                    protect(path).map_err(Stuck::at("protect a name"))?;
                }
                Kind::Pin => {
                    let copy = copy_of(path).map_err(Stuck::at("copy a directory"))?;
                    place(&copy, path).map_err(Stuck::at("keep a directory where it is"))?;
                }
            }
        }
        Ok(())
    }

    /// Enters a PID namespace and a mount namespace for one job. The next child is its first
    /// process, which must call [`Cage::mount_proc`] before anything else runs there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter_job(&self) -> Result<(), Stuck> {
        sys::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS)
            .map_err(Stuck::at("make a namespace for processes"))
    }

    /// Mounts the job's own `/proc`. For the first process of the job's PID namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn mount_proc(&self) -> Result<(), Stuck> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"proc", c"/proc", c"proc", flags, None).map_err(Stuck::at("mount /proc"))?;
        if self.is_root {
            // The kernel's switches ask for the user's number only, and root's is the right one.
            for path in
                [c"/proc/sys", c"/proc/sysrq-trigger", c"/proc/irq", c"/proc/bus", c"/proc/fs"]
            {
                match protect(path) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Stuck::at("protect the kernel's switches")(errno)),
                }
            }
        }
        Ok(())
    }

    /// Gives up every right for good. For the process that is about to execute the command.
    ///
    /// # Errors
    /// When the kernel refuses: the command must then not run.
    pub fn confine(&self, mode: Mode) -> Result<(), Stuck> {
        sys::new_session_keyring();
        sys::drop_capabilities().map_err(Stuck::at("give up capabilities"))?;
        rustix::thread::set_no_new_privs(true).map_err(Stuck::at("refuse new rights"))?;
        let (rules, filters) = match mode {
            Mode::Namespaces => (&self.rules.namespaces, &self.filters.namespaces),
            Mode::LandlockOnly => (&self.rules.alone, &self.filters.alone),
        };
        if let Some(rules) = rules {
            if mode == Mode::Namespaces {
                self.allow_own_mounts(rules.as_fd())?;
            }
            sys::landlock_restrict(rules.as_fd()).map_err(Stuck::at("restrict files"))?;
        }
        for filter in filters {
            sys::install_filter(filter).map_err(Stuck::at("install the filter"))?;
        }
        Ok(())
    }

    /// What the cage itself mounted is not covered by rules that were made before.
    fn allow_own_mounts(&self, rules: BorrowedFd<'_>) -> Result<(), Stuck> {
        for path in [c"/dev", c"/proc"] {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let directory = openat(CWD, path, flags, FileMode::empty())
                .map_err(Stuck::at("open a directory of the cage"))?;
            sys::landlock_allow(rules, directory.as_fd(), self.rules.everything)
                .map_err(Stuck::at("allow a directory of the cage"))?;
        }
        Ok(())
    }
}

fn copy_of(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags)
}

/// Mounts on a path. A link at its end is mounted on itself.
pub(super) fn place(mount: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    move_mount(mount, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn protect(path: &CStr) -> Result<(), Errno> {
    let copy = copy_of(path)?;
    sys::mount_attributes(&copy, c"", sys::Recursive::Yes, sys::READ_ONLY)?;
    place(&copy, path)
}
