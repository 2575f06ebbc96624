//! The steps into the cage. Nothing here allocates.

use super::cage::{Cage, Kind, Step};
use super::{Reservations, devices, network};
use crate::sys;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
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

/// The namespaces of a session, and whether a user namespace is among them.
#[derive(Debug, Clone, Copy)]
pub struct Namespaces {
    flags: UnshareFlags,
}

impl Namespaces {
    /// All of one job that has no session: those and a PID namespace.
    pub fn with_job(self) -> Self {
        Self { flags: self.flags | UnshareFlags::NEWPID }
    }

    /// Those that each job of a session has for itself.
    pub fn of_job() -> Self {
        Self { flags: UnshareFlags::NEWPID | UnshareFlags::NEWNS }
    }

    /// As the flags of a `clone` call.
    pub fn clone_flags(self) -> u32 {
        self.flags.bits()
    }
}

impl Cage {
    /// The sets of namespaces to try, the one that gives the least away first.
    pub fn namespaces(&self) -> impl Iterator<Item = Namespaces> {
        let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
        if self.inside().network == NetworkAccess::Restricted {
            flags |= UnshareFlags::NEWNET;
        }
        let as_root = self.inside().is_root && sys::may_administer();
        let of_user = Namespaces { flags: flags | UnshareFlags::NEWUSER };
        as_root.then_some(Namespaces { flags }).into_iter().chain([of_user])
    }

    /// Enters the namespaces that all commands of a session share, and lays out the file system.
    /// `reservations` are this cage's own, and taken.
    ///
    /// The calling process must have one thread. When namespaces are refused nothing has happened,
    /// and the answer says so.
    ///
    /// # Errors
    /// When a step after that fails: the process is then half way in and must not run anything.
    pub fn enter_session(&self, reservations: &Reservations) -> Result<Mode, Stuck> {
        match self.namespaces().find(|namespaces| sys::unshare(namespaces.flags).is_ok()) {
            Some(namespaces) => self.settle(namespaces, reservations),
            None => self.do_without_namespaces(),
        }
    }

    /// Whether a command can be confined where namespaces are refused. Changes nothing but the
    /// keyring.
    ///
    /// # Errors
    /// When nothing would hold files then.
    pub fn do_without_namespaces(&self) -> Result<Mode, Stuck> {
        sys::new_session_keyring();
        sys::limit_capabilities();
        match self.inside().holds_files_alone() {
            true => Ok(Mode::LandlockOnly),
            // The filter by itself holds no file.
            false => Err(Stuck { step: "find namespaces or Landlock here", errno: libc::ENOSYS }),
        }
    }

    /// Lays out the file system and the network in namespaces that this process has just been given.
    ///
    /// # Errors
    /// When a step fails: the process must not run anything.
    pub fn settle(
        &self,
        namespaces: Namespaces,
        reservations: &Reservations,
    ) -> Result<Mode, Stuck> {
        // Keyrings belong to the user; those of the session are a new one.
        sys::new_session_keyring();
        if namespaces.flags.contains(UnshareFlags::NEWUSER) {
            self.map_the_user()?;
        }
        self.lay_out_files(reservations)?;
        if namespaces.flags.contains(UnshareFlags::NEWNET) {
            network::loopback_up().map_err(Stuck::at("bring the loopback up"))?;
        }
        // This process needs its own for the jobs to come.
        sys::limit_capabilities();
        Ok(Mode::Namespaces)
    }

    fn map_the_user(&self) -> Result<(), Stuck> {
        let write = |path: &CStr, text: &CStr| -> Result<(), Errno> {
            let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, FileMode::empty())?;
            rustix::io::write(&file, text.to_bytes()).map(|_| ())
        };
        write(c"/proc/self/setgroups", c"deny").map_err(Stuck::at("give up other groups"))?;
        write(c"/proc/self/uid_map", &self.uid_map).map_err(Stuck::at("map the user"))?;
        write(c"/proc/self/gid_map", &self.gid_map).map_err(Stuck::at("map the group"))
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
                    unless_gone(protect(path)).map_err(Stuck::at("protect a name"))?;
                }
                Kind::Pin => {
                    let pinned = copy_of(path).and_then(|copy| place(&copy, path));
                    unless_gone(pinned).map_err(Stuck::at("keep a directory where it is"))?;
                }
            }
        }
        Ok(())
    }
}

/// Somebody outside may have removed meanwhile what was found: a directory for temporary files is
/// everybody's.
fn unless_gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        result => result,
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

pub(super) fn protect(path: &CStr) -> Result<(), Errno> {
    let copy = copy_of(path)?;
    sys::mount_attributes(&copy, c"", sys::Recursive::Yes, sys::READ_ONLY)?;
    place(&copy, path)
}
