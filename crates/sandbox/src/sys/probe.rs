//! What tests need of the kernel: processes of their own, and calls exactly as they are written.

use super::done;
use crate::linux::supervisor::syscall_name;
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::CStr;

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
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    done(result).map(|()| result)
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
