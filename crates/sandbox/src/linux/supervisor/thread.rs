//! What can be learned of a thread that waits for an answer, and had from it.

use super::text::Text;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A signal that a thread would take if it did not wait for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// Nobody else can take it.
    Certain,
    /// Another thread of its process could take it instead.
    Possible,
}

/// A second descriptor of what a thread has open under a number.
///
/// # Errors
/// `EBADF` when it has nothing open there; others when it cannot be looked into.
pub(super) fn duplicate(thread: i32, number: i32) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    let process = open_thread(thread)?;
    pidfd_getfd(process, number, PidfdGetfdFlags::empty())
}

fn open_thread(thread: i32) -> Result<OwnedFd, Errno> {
    let pid = numbered(thread).ok_or(Errno::SRCH)?;
    /// A thread is meant that need not be its process's first. Kernels before 6.9 know only those.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
    match pidfd_open(pid, THREAD) {
        Err(Errno::INVAL) => {}
        result => return result,
    }
    match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::INVAL | Errno::NOENT) => {}
        result => return result,
    }
    // Threads of a process have one table of descriptors unless they were made in an odd way; then
    // it is a socket of theirs all the same that is found, or none.
    let first = Status::read(thread).and_then(|status| status.number(b"Tgid:", 10));
    let first = first.and_then(|first| i32::try_from(first).ok()).and_then(numbered);
    pidfd_open(first.ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

fn numbered(number: i32) -> Option<Pid> {
    if number > 0 { Pid::from_raw(number) } else { None }
}

/// Whether a signal waits that would end a thread's own waiting.
pub(super) fn interruption(thread: i32) -> Option<Interruption> {
    let status = Status::read(thread)?;
    let set = |name| status.number(name, 16).unwrap_or(0);
    let taken = !(set(b"SigBlk:") | set(b"SigIgn:"));
    let alone = status.number(b"Threads:", 10) == Some(1);
    if set(b"SigPnd:") & taken != 0 || (alone && set(b"ShdPnd:") & taken != 0) {
        Some(Interruption::Certain)
    } else {
        (set(b"ShdPnd:") & taken != 0).then_some(Interruption::Possible)
    }
}

/// What the kernel writes about a thread, a name and its values on each line.
pub(super) struct Status {
    bytes: [u8; 4096],
    len: usize,
}

impl Status {
    pub(super) fn read(thread: i32) -> Option<Self> {
        let mut path = Text::<64>::new();
        path.push(b"/proc/")?.push_number(u64::try_from(thread).ok()?)?.push(b"/status")?;
        Self::of(path.as_c_str())
    }

    /// What is written about something else in the same way.
    pub(super) fn of(path: &std::ffi::CStr) -> Option<Self> {
        let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let mut status = Self { bytes: [0; 4096], len: 0 };
        status.len = rustix::io::read(file.ok()?, status.bytes.as_mut_slice()).ok()?;
        Some(status)
    }

    pub(super) fn number(&self, name: &[u8], base: u32) -> Option<u64> {
        let lines = self.bytes.get(..self.len)?.split(|&byte| byte == b'\n');
        let value = lines.filter_map(|line| line.strip_prefix(name)).next()?;
        u64::from_str_radix(std::str::from_utf8(value).ok()?.trim(), base).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_looked_into_whether_it_is_the_first_or_not() {
        let (one, two) = std::os::unix::net::UnixStream::pair().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&one);
        // Tests run in threads of their own, and this is one more.
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let first = rustix::process::getpid().as_raw_nonzero().get();
        for thread in [first, rustix::thread::gettid().as_raw_nonzero().get()] {
            let again = duplicate(thread, number).unwrap();
            rustix::io::write(again, b"x").unwrap();
            rustix::io::read(&two, &mut [0; 1]).unwrap();
            let status = Status::read(thread).unwrap();
            assert_eq!(status.number(b"Tgid:", 10), u64::try_from(first).ok());
            assert_eq!(interruption(thread), None);
        }
        for number in [i32::MAX, -1, libc::AT_FDCWD] {
            assert_eq!(duplicate(first, number).err(), Some(Errno::BADF));
        }
        let gone = thread.join().unwrap();
        assert!(duplicate(0, number).is_err() && duplicate(-1, number).is_err());
        assert!(gone > 0);
    }
}
