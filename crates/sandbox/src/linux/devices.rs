//! A `/dev` with nothing in it that could hurt.
//!
//! Most of it is made before anybody knows what the cage is about, by a process that shares its maker's
//! memory: no call tells an error by the C library's `errno`.

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

/// Mounts a new `/dev` over the old one. It becomes read-only with everything else, and what must not is
/// [mounted after that](mount_what_is_written_to).
pub(super) fn lay_out() -> Result<(), Stuck> {
    let devices = hold();
    // A device can be written to on a read-only mount as well, so no other opens anything.
    sys::mount_attributes(CWD, c"/", sys::NO_DEVICES)
        .map_err(Stuck::at("close the devices of other directories"))?;
    let options = Some(c"mode=755,size=64k");
    mount(c"tmpfs", c"/dev", c"tmpfs", FLAGS, options).map_err(Stuck::at("mount /dev"))?;
    for (device, path) in devices.iter().zip(HARMLESS) {
        let Some(device) = device else { continue };
        let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(CWD, path, create, Mode::RUSR | Mode::WUSR)
            .map_err(Stuck::at("make a place for a device"))?;
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
    Ok(())
}

const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NOEXEC);

/// Copies of the host's harmless devices, taken while its `/dev` can still be seen.
fn hold() -> [Option<OwnedFd>; HARMLESS.len()] {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    // A machine without one of them has no use for it.
    HARMLESS.map(|device| open_tree(CWD, device, flags).ok())
}

/// Mounts what in there is the cage's own and can be written to.
pub(super) fn mount_what_is_written_to() -> Result<(), Stuck> {
    let options = Some(c"newinstance,ptmxmode=0666,mode=620");
    mount(c"devpts", c"/dev/pts", c"devpts", FLAGS, options)
        .map_err(Stuck::at("mount /dev/pts"))?;
    let private = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"tmpfs", c"/dev/shm", c"tmpfs", private, Some(c"mode=1777"))
        .map_err(Stuck::at("mount /dev/shm"))
}
