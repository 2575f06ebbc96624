//! A `/dev` with nothing in it that could hurt.

use super::enter::{Stuck, place};
use super::same::open_same;
use crate::sys;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::mount::{MountFlags, OpenTreeFlags, mount, open_tree};
use std::ffi::CStr;

/// The devices that programs expect and that touch nothing.
const HARMLESS: [&CStr; 6] =
    [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom", c"/dev/tty"];

const LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];

/// Copies of the host's harmless devices, taken while its `/dev` can still be seen.
pub(super) struct Devices([Option<OwnedFd>; HARMLESS.len()]);

impl Devices {
    pub(super) fn hold() -> Result<Self, Stuck> {
        let mut held = [const { None }; HARMLESS.len()];
        for (slot, device) in held.iter_mut().zip(HARMLESS) {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            // A machine without one of them has no use for it.
            *slot = open_tree(CWD, device, flags).ok();
        }
        Ok(Self(held))
    }

    /// Mounts the new `/dev` over the old one.
    pub(super) fn lay_out(&self) -> Result<(), Stuck> {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        let options = Some(c"mode=755,size=64k");
        mount(c"tmpfs", c"/dev", c"tmpfs", flags, options).map_err(Stuck::at("mount /dev"))?;
        for (device, path) in self.0.iter().zip(HARMLESS) {
            let Some(device) = device else { continue };
            let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(CWD, path, create, Mode::RUSR | Mode::WUSR)
                .map_err(Stuck::at("make a place for a device"))?;
            // What is written to a device reaches it all the same; its mode and its owner stay.
            let attributes = sys::READ_ONLY | sys::NO_SETUID;
            sys::mount_attributes(device, c"", sys::Recursive::No, attributes)
                .map_err(Stuck::at("restrict a device"))?;
            open_same(path, None)
                .and_then(|target| place(device, &target))
                .map_err(Stuck::at("place a device"))?;
        }
        for (target, link) in LINKS {
            symlinkat(target, CWD, link).map_err(Stuck::at("link a device"))?;
        }
        for directory in [c"/dev/pts", c"/dev/shm"] {
            mkdirat(CWD, directory, Mode::RWXU | Mode::RWXG | Mode::RWXO)
                .map_err(Stuck::at("make a place in /dev"))?;
        }
        let options = Some(c"newinstance,ptmxmode=0666,mode=620");
        mount(c"devpts", c"/dev/pts", c"devpts", flags, options)
            .map_err(Stuck::at("mount /dev/pts"))?;
        let private = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"tmpfs", c"/dev/shm", c"tmpfs", private, Some(c"mode=1777"))
            .map_err(Stuck::at("mount /dev/shm"))?;
        sys::mount_attributes(CWD, c"/dev", sys::Recursive::No, sys::READ_ONLY)
            .map_err(Stuck::at("close /dev"))
    }
}
