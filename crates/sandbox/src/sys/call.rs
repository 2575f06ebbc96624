//! One system call, as the kernel takes it.
//!
//! What makes a cage ready shares the memory of its maker, and with it the C library's `errno`: an error that one of
//! the two is told by it could be taken by the other for its own. So no call of this crate goes through the C
//! library but for the few that end or fork a process, and `xtask tidy` holds it to that.

use rustix::fd::{AsRawFd as _, BorrowedFd};
use rustix::io::Errno;

/// What a call is given, as wide as the kernel takes it.
pub(super) trait Argument {
    fn word(self) -> usize;
}

impl Argument for usize {
    fn word(self) -> usize {
        self
    }
}

impl Argument for u64 {
    fn word(self) -> usize {
        self as usize
    }
}

impl Argument for i64 {
    fn word(self) -> usize {
        self as usize
    }
}

impl Argument for u32 {
    fn word(self) -> usize {
        self as usize
    }
}

/// As the C library does it: with its sign.
impl Argument for i32 {
    fn word(self) -> usize {
        self as isize as usize
    }
}

impl<T> Argument for *const T {
    fn word(self) -> usize {
        self.expose_provenance()
    }
}

impl<T> Argument for *mut T {
    fn word(self) -> usize {
        self.expose_provenance()
    }
}

/// A descriptor, which whoever makes the call goes on to hold.
pub(super) struct Fd<'a>(pub(super) BorrowedFd<'a>);

impl Argument for Fd<'_> {
    fn word(self) -> usize {
        self.0.as_raw_fd().word()
    }
}

/// Makes a system call with these arguments; those that are not named are zero.
macro_rules! call {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        let mut words = [0usize; 6];
        let given = [$($crate::sys::call::Argument::word($argument)),*];
        words[..given.len()].copy_from_slice(&given);
        $crate::sys::call::make($number, words)
    }};
}
pub(super) use call;

/// Makes a system call.
///
/// # Safety
/// What the kernel reads and writes for this call at the addresses among its arguments must be the caller's to have
/// read and written.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn make(number: libc::c_long, words: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = words;
    let result: isize;
    // SAFETY: the kernel changes these registers and no other, and not the stack; the rest is the caller's promise.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer(result)
}

/// Makes a system call.
///
/// # Safety
/// What the kernel reads and writes for this call at the addresses among its arguments must be the caller's to have
/// read and written.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn make(number: libc::c_long, words: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = words;
    let result: isize;
    // SAFETY: the kernel changes this register and no other, and not the stack; the rest is the caller's promise.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer(result)
}

/// Makes a system call. On these machines, for which nothing is built, an error is told by `errno` after all.
///
/// # Safety
/// What the kernel reads and writes for this call at the addresses among its arguments must be the caller's to have
/// read and written.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) unsafe fn make(number: libc::c_long, words: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = words;
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    match usize::try_from(result) {
        Ok(result) => Ok(result),
        Err(_) => {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
        }
    }
}

/// The last numbers there are stand for errors.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn answer(result: isize) -> Result<usize, Errno> {
    /// Minus the largest number of an error.
    const FIRST: isize = -4095;
    match result {
        FIRST..0 => Err(Errno::from_raw_os_error((-result) as i32)),
        _ => Ok(result as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All six arguments arrive, and what the kernel answers is told apart from an error.
    #[test]
    fn a_call_is_made_as_it_is_written() {
        let (mut to, from) = ([0u8; 5], *b"hello");
        let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: 5 };
        let remote = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: 5 };
        let me = std::process::id();
        let number = libc::SYS_process_vm_readv;
        // SAFETY: the kernel copies five live bytes to as many others.
        let copied = unsafe {
            call!(number, me, &raw const local, 1usize, &raw const remote, 1usize, 0usize)
        };
        assert_eq!((copied, &to), (Ok(5), b"hello"));
        // SAFETY: as above; flags that there are not are refused.
        let refused = unsafe {
            call!(number, me, &raw const local, 1usize, &raw const remote, 1usize, 7usize)
        };
        assert_eq!(refused, Err(Errno::INVAL));
    }

    #[test]
    fn an_error_leaves_the_c_librarys_errno_alone() {
        // SAFETY: the location is this thread's own and always valid.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = 12345 };
        let nowhere =
            crate::sys::mount_attributes(rustix::fs::CWD, c"/no/such/place", crate::sys::READ_ONLY);
        assert!(nowhere.is_err());
        assert!(crate::sys::landlock_create(u64::MAX, 0, 0).is_err());
        // SAFETY: as above.
        assert_eq!(unsafe { *errno }, 12345);
    }
}
