//! The children of this process, found and ended without allocating.
//!
//! Only direct children are ever signalled: their ids cannot be given to anybody else before this
//! process has waited for them. That is enough, because a subreaper inherits the children of every
//! child that ends.

use rustix::event::Timespec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat_raw};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use rustix::process::{kill_process, wait, waitid};
use std::mem::MaybeUninit;

/// Waits for whatever child has ended or was stopped, without blocking.
pub(super) fn reap() -> Reaped {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG | WaitOptions::UNTRACED)) {
        Ok(Some((pid, status))) if status.stopped() => Reaped::Stopped(pid),
        Ok(Some((pid, status))) => Reaped::One(pid, status),
        Ok(None) => Reaped::NoneYet,
        Err(_) => Reaped::NoChildren,
    }
}

/// What [`reap`] found.
pub(super) enum Reaped {
    /// This child ended.
    One(Pid, WaitStatus),
    /// This child was stopped.
    Stopped(Pid),
    /// There are children, and none of them has ended.
    NoneYet,
    /// There are no children at all.
    NoChildren,
}

/// Who was found by [`kill_all`].
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Found {
    /// Direct children, ended or not.
    pub(super) all: u32,
    /// Those of them that the system did not let us signal.
    pub(super) refused: u32,
}

/// Sends SIGKILL to every direct child but those that `spare` names. A guard has one thread, and that waits for
/// children elsewhere: whoever is on the list, ended or not, still has its number.
pub(super) fn kill_all(spare: impl Fn(Pid) -> bool) -> Found {
    let mut found = Found::default();
    let mut kill = |pid: Pid| {
        if spare(pid) {
            return;
        }
        found.all += 1;
        if kill_process(pid, Signal::KILL) == Err(Errno::PERM) {
            found.refused += 1;
        }
    };
    if for_each_listed(&mut kill).is_err() {
        for_each_probed(&mut kill);
    }
    found
}

/// Whether there are children but this one, or nobody knows.
pub(super) fn any_but(own: Option<Pid>) -> bool {
    let mut others = false;
    for_each_listed(&mut |pid| others |= own != Some(pid)).is_err() || others
}

/// Ends every direct child, and those that become such by that, as far as the system lets us and as soon as it does.
pub(super) fn end_all() {
    const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // What waits for a disk that does not answer ends when that does.
    const MOMENTS: usize = 5_000;
    for _ in 0..MOMENTS {
        match reap() {
            Reaped::One(..) | Reaped::Stopped(_) => {}
            Reaped::NoChildren => return,
            Reaped::NoneYet => {
                let found = kill_all(|_| false);
                if found.all > 0 && found.all == found.refused {
                    return;
                }
                let _ = rustix::thread::nanosleep(&MOMENT);
            }
        }
    }
}

/// Calls `f` for every direct child, by the list that the kernel keeps for each thread.
fn for_each_listed(f: &mut impl FnMut(Pid)) -> Result<(), Errno> {
    // A /proc of another PID namespace would name strangers.
    let mut link = [MaybeUninit::uninit(); 16];
    let (name, _) = readlinkat_raw(CWD, c"/proc/self", &mut link)?;
    if pid_of(name) != Some(rustix::process::getpid()) {
        return Err(Errno::SRCH);
    }
    parse_pids(&list()?, f)
}

/// The list of this thread's children, by the numbers of the `/proc` that it is opened in.
pub(super) fn list() -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    list_in(openat(CWD, c"/proc", flags, Mode::empty())?.as_fd())
}

/// The same in a `/proc` that is held.
pub(super) fn list_in(proc: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(proc, c"thread-self/children", flags, Mode::empty())
}

/// The only child in a list.
pub(super) fn only(list: &OwnedFd) -> Option<Pid> {
    let mut found = None;
    let mut count = 0;
    let mut note = |pid| {
        found = Some(pid);
        count += 1;
    };
    parse_pids(list, &mut note).ok()?;
    found.filter(|_| count == 1)
}

/// The same where there is no such list: asks about every number there can be. Only one's own
/// children answer.
fn for_each_probed(f: &mut impl FnMut(Pid)) {
    /// The most that the kernel can be configured for.
    const LAST: i32 = 4_194_304;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for pid in (2..=LAST).filter_map(Pid::from_raw) {
        if waitid(WaitId::Pid(pid), look).is_ok() {
            f(pid);
        }
    }
}

fn pid_of(digits: &[u8]) -> Option<Pid> {
    let number = digits.iter().try_fold(0i32, |number, &digit| {
        let value = char::from(digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(i32::try_from(value).ok()?)
    })?;
    Pid::from_raw(number)
}

/// Reads numbers separated by spaces. A child that ends while the list is read may hide another
/// one, so callers look again until there are no children left.
fn parse_pids(list: impl AsFd, f: &mut impl FnMut(Pid)) -> Result<(), Errno> {
    let mut buffer = [0u8; 2048];
    let mut number: i32 = 0;
    loop {
        let n = rustix::io::retry_on_intr(|| rustix::io::read(&list, &mut buffer))?;
        for &byte in buffer.get(..n).unwrap_or_default() {
            if byte.is_ascii_digit() {
                number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
            } else if let Some(pid) = Pid::from_raw(std::mem::take(&mut number)) {
                f(pid);
            }
        }
        if n == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs children of its own thread")]
    fn both_ways_find_the_same_children() {
        let mut children: Vec<_> = (0..3)
            .map(|_| std::process::Command::new("sleep").arg("60").spawn().expect("start sleep"))
            .collect();
        let ours: BTreeSet<u32> = children.iter().map(std::process::Child::id).collect();
        let mut listed = BTreeSet::new();
        for_each_listed(&mut |pid| {
            listed.insert(pid.as_raw_nonzero().get().cast_unsigned());
        })
        .expect("read the list");
        let mut probed = BTreeSet::new();
        for_each_probed(&mut |pid| {
            probed.insert(pid.as_raw_nonzero().get().cast_unsigned());
        });
        for child in &mut children {
            child.kill().expect("end sleep");
            child.wait().expect("wait for sleep");
        }
        assert!(ours.is_subset(&listed), "{ours:?} in {listed:?}");
        assert!(ours.is_subset(&probed), "{ours:?} in {probed:?}");
    }
}
