//! The kernel's questions about system calls: hearing them, answering them, and looking at what
//! the process that is held up meanwhile has given as arguments.

use super::call::{Fd, call};
use super::descriptor;
use libc::sock_filter;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::ptr;

/// One system call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// What the answer is sent to.
    pub(crate) id: u64,
    /// The thread that makes the call, as this process's namespace counts; 0 when it is outside.
    pub(crate) thread: i32,
    pub(crate) call: i32,
    pub(crate) arguments: [u64; 6],
}

/// What a call that waits is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The kernel does it, as if nobody had been asked.
    Continue,
    /// It was done and came to this.
    Success,
    /// It comes to an error, which may be one of those that only the kernel itself sees.
    Error(i32),
}

/// Installs a filter whose calls are answered through the descriptor that is returned.
/// `no_new_privs` must be set.
///
/// Answers `EBUSY` in a process that has such a filter already.
pub(crate) fn install_listener(filter: &[sock_filter]) -> Result<OwnedFd, Errno> {
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A call that is being answered is done only once, whatever signals come meanwhile. Kernels
    // before 5.19 have no such flag.
    match install(filter, listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => install(filter, listen),
        result => result,
    }
}

fn install(filter: &[sock_filter], flags: libc::c_ulong) -> Result<OwnedFd, Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program points to a live array of the length it names; both structures are laid
    // out as the kernel's.
    let made = unsafe {
        call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    made.and_then(descriptor)
}

/// Where the kernel wakes whoever waits for a question or an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// On the processor of the one that wakes it, which is about to wait itself.
    Here,
    /// Wherever the kernel likes.
    Anywhere,
}

/// Says where to wake from now on. Kernels before 6.6 know no such thing.
pub(crate) fn wake(listener: BorrowedFd<'_>, place: Wake) {
    /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
    const HERE: u64 = 1;
    let flags = if place == Wake::Here { HERE } else { 0 };
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: only integers.
    let _ = unsafe { call!(libc::SYS_ioctl, Fd(listener), request, flags) };
}

/// Takes the next question. Waits for one: only to be called when the descriptor is readable.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> Result<Asked, Errno> {
    /// With room for what later kernels may add.
    #[repr(C)]
    struct Question {
        known: libc::seccomp_notif,
        room: [u64; 32],
    }
    // SAFETY: all of it is numbers, and the kernel wants them to be zero.
    let mut question: Question = unsafe { std::mem::zeroed() };
    let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
    // SAFETY: the kernel writes a structure that has room in the live one that it is given.
    unsafe { call!(libc::SYS_ioctl, Fd(listener), request, &raw mut question) }?;
    let libc::seccomp_notif { id, pid, data, .. } = question.known;
    Ok(Asked { id, thread: pid.cast_signed(), call: data.nr, arguments: data.args })
}

/// Answers a question.
///
/// # Errors
/// `ENOENT` when nobody waits for the answer any more.
pub(crate) fn reply(listener: BorrowedFd<'_>, id: u64, reply: Reply) -> Result<(), Errno> {
    let (error, flags) = match reply {
        Reply::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
        Reply::Success => (0, 0),
        Reply::Error(errno) => (-errno, 0),
    };
    let flags = u32::try_from(flags).unwrap_or(0);
    let response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the kernel reads a live structure of the kind that this call takes.
    unsafe { call!(libc::SYS_ioctl, Fd(listener), request, &raw const response) }.map(|_| ())
}

/// Whether the call still waits: if so, what was seen under its thread's number until now was its
/// own.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the kernel reads one live number.
    unsafe { call!(libc::SYS_ioctl, Fd(listener), request, &raw const id) }.is_ok()
}

/// Copies from another process's memory, as far as it is mapped. Says how much it was.
pub(crate) fn read_memory(thread: i32, address: u64, into: &mut [u8]) -> usize {
    const PAGE: usize = 4096;
    let Ok(start) = usize::try_from(address) else { return 0 };
    // The kernel copies whole pieces or nothing, so that a border of pages must be one of pieces.
    let first = into.len().min(PAGE - start % PAGE);
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let piece = |start: usize, iov_len| libc::iovec {
        iov_base: ptr::without_provenance_mut(start),
        iov_len,
    };
    let remote = [piece(start, first), piece(start.wrapping_add(first), into.len() - first)];
    // SAFETY: the kernel writes no more than its length to the live buffer; the other addresses are
    // another process's, where it only reads.
    let copied = unsafe {
        call!(
            libc::SYS_process_vm_readv,
            thread,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len(),
        )
    };
    copied.unwrap_or(0)
}

/// Sends a signal to a process, whatever the number of the signal.
pub(crate) fn signal(process: i32, number: i32) -> Result<(), Errno> {
    // SAFETY: only integers.
    unsafe { call!(libc::SYS_kill, process, number) }.map(|_| ())
}

/// Connects a socket to an address as the kernel knows them.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: the kernel reads the live bytes of the length that is named.
    unsafe { call!(libc::SYS_connect, Fd(socket), address.as_ptr(), address.len()) }.map(|_| ())
}
