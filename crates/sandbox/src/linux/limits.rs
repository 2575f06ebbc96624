//! Whether the kernel refuses namespaces for good, or has only had too many of something.
//!
//! Where it refuses them for good a weaker cage is what there is. Where it may give them in a moment, who went on without
//! them would have a cage that holds less than the last one did, and that nobody asked for.

use super::Stuck;
use crate::sys;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::ffi::CStr;

/// A kind of namespace, and the file that says how many there may be.
struct Kind {
    flag: UnshareFlags,
    file: &'static CStr,
    /// What cannot be done when there are as many.
    step: &'static str,
}

macro_rules! kind {
    ($flag:ident, $named:literal, $file:literal) => {
        Kind {
            flag: UnshareFlags::$flag,
            file: match CStr::from_bytes_with_nul(concat!("/proc/sys/user/", $file, "\0").as_bytes()) {
                Ok(file) => file,
                Err(_) => panic!("it has no other NUL"),
            },
            step: concat!(
                "make another ",
                $named,
                " namespace, because there are as many as /proc/sys/user/",
                $file,
                " allows here or around this container; end other sandboxed commands, or raise that limit"
            ),
        }
    };
}

/// The one that gives the right to make the others comes first.
const KINDS: [Kind; 5] = [
    kind!(NEWUSER, "user", "max_user_namespaces"),
    kind!(NEWNS, "mount", "max_mnt_namespaces"),
    kind!(NEWIPC, "IPC", "max_ipc_namespaces"),
    kind!(NEWPID, "PID", "max_pid_namespaces"),
    kind!(NEWNET, "network", "max_net_namespaces"),
];

impl Kind {
    /// Whether there may be none. What is allowed to users around this container cannot be read.
    fn is_switched_off(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut text = [0; 8];
        let read = openat(CWD, self.file, flags, Mode::empty())
            .and_then(|file| rustix::io::read(&file, &mut text));
        read.is_ok_and(|length| text.get(..length).is_some_and(|text| text.trim_ascii() == b"0"))
    }
}

fn kinds(of: UnshareFlags) -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(move |kind| of.contains(kind.flag))
}

/// Whether namespaces are refused for good, whoever waits.
pub(super) fn is_refusal(asked: UnshareFlags, answer: Errno) -> bool {
    match answer {
        Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL => true,
        Errno::NOSPC => kinds(asked).any(Kind::is_switched_off),
        _ => false,
    }
}

/// Why they could not be had just now. The calling process is of no use afterwards: each kind is tried by itself.
pub(super) fn shortage(asked: UnshareFlags, answer: Errno) -> Stuck {
    let full = |kind: &&Kind| sys::unshare(kind.flag) == Err(Errno::NOSPC);
    let reached = kinds(asked).find(|kind| answer == Errno::NOSPC && full(kind));
    let step = reached.map_or("make namespaces", |kind| kind.step);
    Stuck { step, errno: answer.raw_os_error() }
}

impl Stuck {
    /// Whether this step failed because something is refused here for good that a cage can do without. To be asked in
    /// the namespaces that were to be left.
    pub fn is_refusal(step: &str, errno: i32) -> bool {
        let errno = Errno::from_raw_os_error(errno);
        match step {
            Self::NO_NETWORK => is_refusal(UnshareFlags::NEWNET, errno),
            Self::NO_PROC => !matches!(
                errno,
                Errno::NOMEM | Errno::NOSPC | Errno::AGAIN | Errno::MFILE | Errno::NFILE
            ),
            step if Self::FIRST.contains(&step) => matches!(errno, Errno::PERM | Errno::ACCESS),
            _ => false,
        }
    }

    /// What could not be done, for a person.
    pub fn in_words(step: &str, errno: i32) -> &str {
        match (step, KINDS.last()) {
            (Self::NO_NETWORK, Some(network)) if errno == libc::ENOSPC => network.step,
            _ => step,
        }
    }
}
