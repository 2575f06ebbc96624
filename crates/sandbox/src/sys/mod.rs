//! The kernel calls that have no safe form elsewhere, and the only unsafe code of this crate.
//!
//! None allocates or takes a lock: all may be used after a fork. None tells an error by the C library's `errno`, so
//! all may be used where memory is shared.

#![allow(unsafe_code, reason = "this module is where the crate talks to the kernel")]

mod call;
mod kept;
pub(crate) mod notify;
#[cfg(test)]
pub(crate) mod probe;

pub(crate) use kept::Inherited;
pub use kept::Kept;
pub(crate) use kept::WithBytes;
pub(crate) use notify::install_listener;

use call::{Fd, call};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::ffi::CStr;
use std::ptr;

/// No write through this mount.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// Set-user-id bits mean nothing on this mount.
pub(crate) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// Device files on this mount open nothing.
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// The descriptor that a call has just given us.
fn descriptor(number: usize) -> Result<OwnedFd, Errno> {
    let fd = RawFd::try_from(number).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Leaves namespaces for new ones.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: only namespaces are left, never memory or descriptors: the flags used name no other.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Whether this process has the capability that mounts ask for.
pub(crate) fn may_administer() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Whether this user may make the namespaces of a cage, and do something in them. A child tries it.
pub(crate) fn may_make_namespaces() -> bool {
    let flags =
        UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWNET | UnshareFlags::NEWPID;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    in_a_child(|| {
        ((may_administer() && unshare(flags).is_ok())
            || unshare(flags | UnshareFlags::NEWUSER).is_ok())
            && mount_change(c"/", private).is_ok()
    })
}

/// Whether a process can be supervised by this one. A child tries it.
pub(crate) fn may_supervise() -> bool {
    let allow = libc::SECCOMP_RET_ALLOW;
    let code = u16::try_from(libc::BPF_RET | libc::BPF_K).unwrap_or(0);
    let everything = [libc::sock_filter { code, jt: 0, jf: 0, k: allow }];
    in_a_child(|| {
        rustix::thread::set_no_new_privs(true).is_ok() && install_listener(&everything).is_ok()
    })
}

/// Tries something in a process of its own. It may make kernel calls only.
fn in_a_child(works: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes a few kernel calls and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = !works();
        // SAFETY: `_exit` runs nothing and does not return.
        unsafe { libc::_exit(libc::c_int::from(failed)) };
    }
    let Some(child) = rustix::process::Pid::from_raw(child) else { return false };
    let none = rustix::process::WaitOptions::empty();
    let status = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), none));
    status.is_ok_and(|status| status.is_some_and(|(_, status)| status.exit_status() == Some(0)))
}

/// Whether this kernel filters system calls.
pub(crate) fn has_filters() -> bool {
    let refuse = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number and says whether it knows this action.
    unsafe { call!(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const refuse) }
        .is_ok()
}

/// Changes the mode of what was opened, if as a place only: `NOSYS` before Linux 6.6.
pub(crate) fn change_mode(opened: impl AsFd, mode: Mode) -> Result<(), Errno> {
    // Newer than the C library's list. The number is the same on every architecture.
    const SYS_FCHMODAT2: libc::c_long = 452;
    let (opened, mode) = (Fd(opened.as_fd()), mode.as_raw_mode());
    // SAFETY: a C string; nothing is written back.
    unsafe { call!(SYS_FCHMODAT2, opened, c"".as_ptr(), mode, libc::AT_EMPTY_PATH) }.map(|_| ())
}

/// Adds attributes to a mount and to those beneath it.
pub(crate) fn mount_attributes(
    directory: impl AsFd,
    path: &CStr,
    attributes: u64,
) -> Result<(), Errno> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let wanted =
        libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: a C string and a live structure of the size that is named; nothing is written back.
    unsafe {
        call!(
            libc::SYS_mount_setattr,
            Fd(directory.as_fd()),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    }
    .map(|_| ())
}

/// Leaves the keyring that was inherited from the user's session.
pub(crate) fn new_session_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // A kernel without keyrings has nothing to leave, and the filter refuses to use any.
    // SAFETY: a null name asks for a new keyring.
    let _ = unsafe { call!(libc::SYS_keyctl, JOIN_SESSION_KEYRING, ptr::null::<u8>()) };
}

/// Asks for short turns on a processor, which come sooner when there is something to do: for whoever answers others and
/// then waits again. Kernels before 6.12 take no notice.
pub fn take_short_turns() {
    const SHORTEST_NANOSECONDS: u64 = 100_000;
    let mut turns = libc::sched_attr {
        size: 0,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes no more than `size` bytes to a live structure.
    let asked = unsafe { call!(libc::SYS_sched_getattr, 0, &raw mut turns, size, 0) };
    // Who was told to run in another way than the usual one goes on so.
    if asked.is_ok() && turns.sched_policy == libc::SCHED_OTHER.cast_unsigned() {
        turns.sched_runtime = SHORTEST_NANOSECONDS;
        // SAFETY: the kernel reads a live structure, which says how long it is.
        let _ = unsafe { call!(libc::SYS_sched_setattr, 0, &raw const turns, 0) };
    }
}

/// While it lasts, a process that this thread makes does not take the processor from it: its maker says where it is to
/// run before it does. Both of them end it, since who is made is given turns as its maker is.
#[derive(Debug, Clone, Copy)]
#[must_use = "it has to be ended"]
pub struct Patience {
    was_asked_for: bool,
}

impl Patience {
    /// Who was told to run in another way than the usual one goes on so.
    pub fn begin() -> Self {
        // SAFETY: only a number.
        let policy = unsafe { call!(libc::SYS_sched_getscheduler, 0) };
        let is_usual = policy == Ok(libc::SCHED_OTHER.cast_unsigned() as usize);
        Self { was_asked_for: is_usual && take_turns_as(libc::SCHED_BATCH).is_ok() }
    }

    /// Back to the usual way, for the thread that calls this.
    pub fn end(self) {
        if self.was_asked_for {
            // It has been in that way, so that nobody refuses it.
            let _ = take_turns_as(libc::SCHED_OTHER);
        }
    }
}

/// Has this thread given turns in one of the ways that everybody may choose.
fn take_turns_as(policy: i32) -> Result<(), Errno> {
    let priority: libc::c_int = 0;
    // SAFETY: the kernel reads one live number.
    unsafe { call!(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) }.map(|_| ())
}

/// Sees to it that no exec gives a capability, root's neither. Those that are there stay.
pub(crate) fn limit_capabilities() {
    use rustix::thread::CapabilitiesSecureBits as Bits;
    let locked = Bits::NO_ROOT
        | Bits::NO_ROOT_LOCKED
        | Bits::NO_SETUID_FIXUP
        | Bits::NO_SETUID_FIXUP_LOCKED
        | Bits::NO_CAP_AMBIENT_RAISE
        | Bits::NO_CAP_AMBIENT_RAISE_LOCKED;
    // Without the capability to say so there is none to gain by an exec either.
    let _ = rustix::thread::set_capabilities_secure_bits(locked);
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            // Numbers that this kernel does not know, and having no right to drop any.
            break;
        }
    }
}

/// Gives up all capabilities.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)
}

/// Uses every capability again that was only set aside.
pub(crate) fn use_all_capabilities() {
    if let Ok(mut sets) = rustix::thread::capabilities(None) {
        sets.effective = sets.permitted;
        let _ = rustix::thread::set_capabilities(None, sets);
    }
}

/// Makes a set of Landlock rules that refuses all of this, until it is given rules that allow some.
/// No bit may be set that this kernel does not know.
pub(crate) fn landlock_create(files: u64, network: u64, scopes: u64) -> Result<OwnedFd, Errno> {
    // Older kernels take a longer structure than theirs as long as the rest of it is zero.
    let refused = [files, network, scopes];
    // SAFETY: the kernel reads three numbers from a live array of that size.
    let made = unsafe {
        call!(libc::SYS_landlock_create_ruleset, refused.as_ptr(), size_of_val(&refused), 0)
    };
    made.and_then(descriptor)
}

/// Lives by Landlock rules from now on.
pub(crate) fn landlock_restrict(rules: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: only integers.
    unsafe { call!(libc::SYS_landlock_restrict_self, Fd(rules.as_fd()), 0) }.map(|_| ())
}

/// Allows more beneath a directory.
pub(crate) fn landlock_allow(
    rules: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    access: u64,
) -> Result<(), Errno> {
    #[repr(C, packed)]
    struct PathBeneath {
        allowed_access: u64,
        parent: libc::c_int,
    }
    const PATH_BENEATH: libc::c_int = 1;
    let parent = rustix::fd::AsRawFd::as_raw_fd(&directory);
    let rule = PathBeneath { allowed_access: access, parent };
    // SAFETY: the kernel reads the structure that this kind of rule has.
    unsafe {
        call!(libc::SYS_landlock_add_rule, Fd(rules.as_fd()), PATH_BENEATH, &raw const rule, 0)
    }
    .map(|_| ())
}

/// The version of Landlock that this kernel has; 0 without it.
pub(crate) fn landlock_version() -> i32 {
    const VERSION: libc::c_int = 1;
    // SAFETY: no structure is given, which asks for the version only.
    let version =
        unsafe { call!(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0, VERSION) };
    version.ok().and_then(|version| i32::try_from(version).ok()).unwrap_or(0)
}

/// Installs a filter for system calls. `no_new_privs` must be set.
pub(crate) fn install_filter(filter: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program points to a live array of the length it names; both structures are laid
    // out as the kernel's.
    unsafe { call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) }
        .map(|_| ())
}

/// The network namespace that a socket belongs to.
pub(crate) fn network_of(socket: impl AsFd) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes no address.
    unsafe { call!(libc::SYS_ioctl, Fd(socket.as_fd()), libc::SIOCGSKNS) }.and_then(descriptor)
}

/// Brings a network interface up.
pub(crate) fn interface_up(socket: impl AsFd, name: &CStr) -> Result<(), Errno> {
    const SET_FLAGS: rustix::ioctl::Opcode = libc::SIOCSIFFLAGS as rustix::ioctl::Opcode;
    // SAFETY: a zeroed request is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: this is the kind of request that this call takes.
    let request = unsafe { rustix::ioctl::Setter::<SET_FLAGS, _>::new(request) };
    // SAFETY: as above; the kernel only reads it.
    unsafe { rustix::ioctl::ioctl(socket, request) }
}
