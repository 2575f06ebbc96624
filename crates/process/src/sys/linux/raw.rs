//! The kernel calls that have no safe form elsewhere, each wrapped once.
//!
//! Everything here may be used after a fork of a process with threads: no function allocates or
//! takes a lock.

use rustix::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::Signal;
use sandgate_sandbox::linux::SO_PASSRIGHTS;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::AtomicU32;

/// Which side of a fork this is.
pub(super) enum Forked {
    /// The new process.
    Child,
    /// The old one, told the new one's id.
    Parent(c_int),
}

/// Forks the host, with the C library's own fork handlers run.
///
/// # Safety
/// The child may only call what is async-signal-safe, and must never return to the caller's code.
pub(super) unsafe fn fork_host() -> Result<Forked, Errno> {
    // SAFETY: the caller keeps the child to async-signal-safe calls.
    let pid = unsafe { libc::fork() };
    forked(i64::from(pid))
}

/// Forks a process that has one thread and no C library state worth a handler, into the namespaces
/// that are given as the flags of `clone`.
///
/// # Safety
/// As for [`fork_host`], and the flags may name namespaces only.
pub(super) unsafe fn fork_into(namespaces: u32) -> Result<Forked, Errno> {
    let flags = c_long::from(namespaces) | c_long::from(libc::SIGCHLD);
    // The argument order differs between architectures, but all but the flags are zero.
    // SAFETY: without CLONE_VM this is a plain fork; the caller keeps the child's promise.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    forked(pid)
}

/// Forks a child of this process's own parent, in the namespaces that this one was given or made.
///
/// # Safety
/// As for [`fork_host`].
pub(super) unsafe fn fork_sibling() -> Result<Forked, Errno> {
    // The signal at its end is the one that this process has.
    let flags = c_long::from(libc::CLONE_PARENT);
    // SAFETY: as in `fork_into`.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    forked(pid)
}

/// Gets a table of descriptors of one's own, a copy of the one that was shared.
pub(super) fn part_with_descriptors() -> Result<(), Errno> {
    const UNSHARE: c_long = 1 << 1;
    let none = c_long::from(libc::c_uint::MAX);
    // SAFETY: closes no descriptor, because none has this number.
    let result = unsafe { libc::syscall(libc::SYS_close_range, none, none, UNSHARE) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Has the kernel write 0 to a number in memory that this process shares with another, and wake whoever waits for it by
/// a futex, when this one does not share it any more: it has executed a program, or has ended.
///
/// # Safety
/// It must stay where it is until this process does not share it any more.
pub(super) unsafe fn clear_when_gone(number: &AtomicU32) {
    // SAFETY: the kernel writes only to a number that others change too; where nobody shares it, it does not.
    unsafe { libc::syscall(libc::SYS_set_tid_address, number.as_ptr()) };
}

/// Lets no other process of this user look into this one, or trace it.
pub(super) fn forbid_inspection() {
    // SAFETY: only numbers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Has nobody send descriptors to a unix socket.
pub(super) fn take_no_descriptors(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let no: c_int = 0;
    let length = size_of::<c_int>() as libc::socklen_t;
    let (fd, value) = (socket.as_raw_fd(), (&raw const no).cast());
    // SAFETY: the kernel reads a number of that length.
    let result = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, value, length) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Kills every other process of this one's PID namespace, whose first it must be.
pub(super) fn kill_everybody_else() {
    // SAFETY: only numbers; the kernel spares the first process of a namespace.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

fn forked(pid: i64) -> Result<Forked, Errno> {
    match pid {
        0 => Ok(Forked::Child),
        1.. => Ok(Forked::Parent(c_int::try_from(pid).unwrap_or(c_int::MAX))),
        _ => Err(last_errno()),
    }
}

fn last_errno() -> Errno {
    // SAFETY: the location is this thread's own and always valid.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: as above; reading an integer.
    Errno::from_raw_os_error(unsafe { *location })
}

/// Ends this process at once, without running anything of the C library or of Rust.
pub(super) fn exit_now(code: c_int) -> ! {
    // SAFETY: `_exit` is async-signal-safe and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends the process when it is dropped: a panic after a fork must not unwind into the host's code.
pub(super) struct NeverReturn;

impl Drop for NeverReturn {
    fn drop(&mut self) {
        exit_now(70);
    }
}

/// Holds back every signal that can be held back.
pub(super) fn block_signals() {
    set_signal_mask(!0);
}

/// Some signals, as the kernel counts them in a set.
#[derive(Clone, Copy)]
pub(super) struct Signals(u64);

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

impl Signals {
    /// What this program was started to ignore, as by `nohup`. Not SIGPIPE, which the standard library ignores whatever
    /// there was before, and not SIGCHLD: who ignores that can wait for nobody.
    pub(super) fn ignored() -> Self {
        let mut ignored = 0;
        for signal in 1..=64 {
            let mut action = [0u64; 4];
            // SAFETY: the kernel writes no more than 32 bytes to a live array, and changes nothing.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigaction,
                    signal,
                    ptr::null::<u64>(),
                    action.as_mut_ptr(),
                    size_of::<u64>(),
                )
            };
            if action.first() == Some(&IGNORE) {
                ignored |= bit(signal);
            }
        }
        Self(ignored & !bit(libc::SIGPIPE) & !bit(libc::SIGCHLD))
    }

    /// Ignores them, and so does what is executed by this process.
    pub(super) fn ignore(self) {
        for signal in (1..=64).filter(|signal| self.0 & bit(*signal) != 0) {
            set_action(signal, &[IGNORE, 0, 0, 0]);
        }
    }
}

/// The kernel's `SIG_IGN`.
const IGNORE: u64 = 1;

/// A descriptor for what a front end that waits for a command is told, but for what it ignores. All must be blocked.
pub(super) fn front_signal_fd(ignored: Signals) -> Result<OwnedFd, Errno> {
    let mask = bit(libc::SIGCHLD)
        | bit(libc::SIGTERM)
        | bit(libc::SIGHUP)
        | bit(libc::SIGINT)
        | bit(libc::SIGQUIT);
    signal_fd(mask & !ignored.0, libc::SFD_CLOEXEC)
}

/// Waits for one of them; the signal to pass on, if it is one. What a terminal sends reaches the
/// command without us.
pub(super) fn next_signal(fd: BorrowedFd<'_>) -> Option<Signal> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut bytes)).ok()?;
    // SAFETY: the kernel has written such a structure, which is plain numbers.
    let info: libc::signalfd_siginfo = unsafe { std::mem::transmute(bytes) };
    let number = info.ssi_signo.cast_signed();
    let from_process = info.ssi_code <= 0;
    // But when the terminal is gone, the kernel says so to nobody but who leads its session.
    let hung_up =
        number == libc::SIGHUP && rustix::process::getsid(None) == Ok(rustix::process::getpid());
    (number != libc::SIGCHLD && (from_process || hung_up))
        .then(|| Signal::from_named_raw(number))
        .flatten()
}

/// Blocks every signal and sets every handler back to the default.
///
/// In this order, so that no handler of the host runs in the new process.
pub(super) fn take_over_signals() {
    set_signal_mask(!0);
    default_handlers();
}

/// Lets every signal through again: what a new program expects.
pub(super) fn unblock_signals() {
    set_signal_mask(0);
}

/// Does something while every signal is held back in this thread, so that a process that is made by it
/// runs no handler.
pub(super) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let before = set_signal_mask(!0);
    let done = work();
    set_signal_mask(before);
    done
}

/// Gives back the mask that was there before.
fn set_signal_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // The raw call takes the kernel's 64-bit set; the C library's own leaves out its private
    // signals, which must be blocked and unblocked here too.
    // SAFETY: the kernel reads eight bytes from a live u64 and writes eight to another.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            ptr::from_ref(&mask),
            ptr::from_mut(&mut before),
            size_of::<u64>(),
        )
    };
    before
}

fn default_handlers() {
    // The kernel's own structure, zeroed, on every architecture: SIG_DFL, no flags, empty mask. The
    // C library's call would refuse the signals that it keeps for itself.
    for signal in 1..=64 {
        // The two that cannot be changed answer EINVAL, which is as good.
        set_action(signal, &[0; 4]);
    }
}

/// `action` is the kernel's structure, and names no handler of this program's.
fn set_action(signal: c_int, action: &[u64; 4]) {
    // SAFETY: the kernel reads no more than 32 bytes of a live array; no old action is wanted.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            action.as_ptr(),
            ptr::null_mut::<u64>(),
            size_of::<u64>(),
        )
    };
}

/// A descriptor that becomes readable when a child changes state. SIGCHLD must be blocked.
pub(super) fn child_signal_fd() -> Result<OwnedFd, Errno> {
    signal_fd(1 << (libc::SIGCHLD - 1), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
}

fn signal_fd(mask: u64, flags: c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel reads eight bytes from a live u64.
    let fd = unsafe {
        libc::syscall(libc::SYS_signalfd4, -1, ptr::from_ref(&mask), size_of::<u64>(), flags)
    };
    let Ok(fd @ 0..) = RawFd::try_from(fd) else { return Err(last_errno()) };
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes every descriptor that is not in `keep`, which must be sorted.
///
/// # Safety
/// No value that owns one of the closed descriptors may be used afterwards.
pub(super) unsafe fn close_all_but(keep: &[RawFd]) {
    let mut from: libc::c_uint = 0;
    for &fd in keep {
        let fd = fd.cast_unsigned();
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_range(from, libc::c_uint::MAX);
}

/// Closes all descriptors from 3 on.
///
/// # Safety
/// As for [`close_all_but`].
pub(super) unsafe fn close_all_but_stdio() {
    close_range(3, libc::c_uint::MAX);
}

fn close_range(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: closing descriptors touches no memory; who owned them is the callers' promise.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    // Kernels before 5.9 have no such call. Their descriptors are counted one by one, as far as
    // any can be open.
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the live value it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let end = libc::c_uint::try_from(limit.rlim_max).unwrap_or(1 << 20).min(1 << 20);
    for fd in first..=last.min(end) {
        // SAFETY: as above.
        unsafe { libc::close(fd.cast_signed()) };
    }
}

/// The stack that a command's process uses between its making and its exec.
pub(super) struct ChildStack {
    base: *mut c_void,
    /// Where it begins.
    top: *mut c_void,
    size: usize,
}

impl ChildStack {
    const SIZE: usize = 64 * 1024;

    /// For a process that goes on to become a guard. Only what is used of it takes memory.
    const ROOMY: usize = 1024 * 1024;

    /// Maps a stack; it lives as long as this process.
    pub(super) fn map() -> Result<Self, Errno> {
        Self::with_room_above(Self::SIZE, 0)
    }

    /// The same with room for the life of a guard, which keeps what is around the end of its stack when
    /// it drops its host's memory. Nothing of the host's may lie there.
    pub(super) fn roomy() -> Result<Self, Errno> {
        Self::with_room_above(Self::ROOMY, 2 * super::forget::KEPT)
    }

    fn with_room_above(size: usize, above: usize) -> Result<Self, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::STACK;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), size + above, access, flags) }?;
        // SAFETY: inside of the mapping, or one past its end, which is where a stack that grows down
        // begins.
        Ok(Self { base, top: unsafe { base.byte_add(size) }, size: size + above })
    }

    /// Gives it back.
    ///
    /// # Safety
    /// Nobody may use it any more, nor be given it again.
    pub(super) unsafe fn unmap(&mut self) {
        // SAFETY: this is the whole mapping.
        let _ = unsafe { munmap(self.base, self.size) };
    }
}

/// Starts a process that shares this one's memory until it executes a program or exits; this one
/// is held up until then. Returns the new process's id.
///
/// # Safety
/// `child` must end by an exec or by [`exit_now`], may only call what is async-signal-safe, and
/// must leave this process's memory in a state that it can go on with. `arg` must be what `child`
/// expects.
pub(super) unsafe fn start_sharing_memory(
    stack: &ChildStack,
    child: extern "C" fn(*mut c_void) -> c_int,
    arg: *mut c_void,
) -> Result<c_int, Errno> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is live, big enough and used by nobody else while this process is held up.
    let pid = unsafe { libc::clone(child, stack.top, flags, arg) };
    if pid > 0 { Ok(pid) } else { Err(last_errno()) }
}

/// Starts a process that shares this one's memory until it executes a program or exits, and its table
/// of descriptors until it has called [`part_with_descriptors`]. Both go on at once. Returns the new
/// process's id.
///
/// # Safety
/// As for [`start_sharing_memory`]. Nobody else may use the stack, neither process may close what the
/// other one uses of the descriptors that they share, and only one of them at a time may make a call
/// that tells an error by the C library's `errno`, which they share as well.
pub(super) unsafe fn start_beside(
    stack: &ChildStack,
    child: extern "C" fn(*mut c_void) -> c_int,
    arg: *mut c_void,
) -> Result<c_int, Errno> {
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the caller's promise; the stack stays mapped as long as this process lives.
    let pid = unsafe { libc::clone(child, stack.top, flags, arg) };
    if pid > 0 { Ok(pid) } else { Err(last_errno()) }
}

/// Replaces this process by a program.
///
/// # Safety
/// `program` must be a C string; `argv` and `envp` must be arrays of C strings ended by null.
pub(super) unsafe fn execve(
    program: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> Errno {
    // SAFETY: the caller's promise.
    unsafe { libc::execve(program, argv, envp) };
    last_errno()
}
