//! What tests need of the kernel: processes of their own, and calls exactly as they are written.

use super::call::call;
use crate::linux::supervisor::syscall_name;
use rustix::fd::{AsRawFd as _, BorrowedFd};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

/// An argument of a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    Number(i64),
    Text(&'a CStr),
    Bytes(&'a [u8]),
}

impl From<i32> for Argument<'_> {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Argument<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a CStr> for Argument<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Text(text)
    }
}

/// Makes one of the calls that a supervisor is asked about.
pub(crate) fn call(number: libc::c_long, arguments: &[Argument<'_>]) -> Result<i64, Errno> {
    let name = syscall_name(i32::try_from(number).unwrap());
    assert!(!matches!(name, "unknown" | "clone"), "{number}");
    let mut raw = [0; 6];
    for (raw, argument) in raw.iter_mut().zip(arguments) {
        *raw = match argument {
            Argument::Number(number) => *number,
            Argument::Text(text) => text.as_ptr() as i64,
            Argument::Bytes(bytes) => bytes.as_ptr() as i64,
        };
    }
    let [a, b, c, d, e, f] = raw;
    // SAFETY: the calls that get here read their caller's memory and write none of it, but for the
    // counts of `sendmmsg`, which its tests have room for; pointers lead to what is live, or are
    // numbers that the kernel checks.
    let result = unsafe { call!(number, a, b, c, d, e, f) };
    result.map(|result| i64::try_from(result).unwrap())
}

/// Runs something in a process of its own, which ends with it.
pub(crate) fn in_process(work: impl FnOnce() -> i32) -> Pid {
    // SAFETY: the C library's allocator is usable in the child, whose work takes no other lock that
    // a thread of the parent's could hold, and never returns.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(101);
        // SAFETY: `_exit` runs nothing and does not return.
        unsafe { libc::_exit(code) };
    }
    Pid::from_raw(pid).expect("a process can be made")
}

/// Who is accepted when the signal of [`interrupt`] comes.
static ACCEPTED_FROM: AtomicI32 = AtomicI32::new(-1);

/// Has a signal come every tenth of a second. It accepts one connection of a listening socket, if
/// that is open; a call that it interrupts is begun anew, or not.
pub(crate) fn interrupt(restart: bool, accepted_from: libc::c_int) {
    extern "C" fn accept(_signal: libc::c_int) {
        let socket = ACCEPTED_FROM.load(Ordering::Relaxed);
        // SAFETY: it may be called in a handler, and no address is wanted.
        unsafe { libc::accept(socket, std::ptr::null_mut(), std::ptr::null_mut()) };
    }
    ACCEPTED_FROM.store(accepted_from, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = accept;
    // SAFETY: a zeroed action is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
    // SAFETY: the handler makes one call that handlers may make; the structure is live.
    let set = unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    every(100_000);
}

/// No signal comes any more.
pub(crate) fn interrupt_no_more() {
    every(0);
}

fn every(micros: libc::suseconds_t) {
    let pause = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: pause, it_value: pause };
    // SAFETY: the kernel reads a live structure; no old one is wanted.
    let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

/// Puts a pipe in the place of every descriptor that is not one. What was opened before the cage was
/// entered leads past its mounts, to the host's own files: a test that does not know what it will
/// do must not have it.
pub(crate) fn let_go_of_files() {
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let open: Vec<libc::c_int> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().unwrap())
        .collect();
    for number in open {
        // SAFETY: the number is not used as a descriptor for longer than this loop's turn.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let is_pipe =
            |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
        match rustix::fs::fstat(descriptor).map(is_pipe) {
            // The directory that was just read is closed already.
            Ok(true) | Err(Errno::BADF) => continue,
            Ok(false) | Err(_) => {}
        }
        // SAFETY: the process belongs to its test, which uses none of what it had open before.
        assert_eq!(unsafe { libc::dup2(pipe.as_raw_fd(), number) }, number);
    }
    // It stays open for as long as the process lives.
    std::mem::forget(pipe);
}

/// Closes a descriptor that a call has returned as a number.
pub(crate) fn close_number(number: i64) {
    let number = libc::c_int::try_from(number).unwrap();
    // SAFETY: the number was returned by a call just now, and nobody else knows it.
    assert_eq!(unsafe { libc::close(number) }, 0);
}
