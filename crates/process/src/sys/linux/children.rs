//! The children of this process, found and ended without allocating.
//!
//! Only direct children are ever signalled: their ids cannot be given to anybody else before this
//! process has waited for them. That is enough, because a subreaper inherits the children of every
//! child that ends.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// Waits for whatever child has ended, without blocking.
pub(super) fn reap() -> Reaped {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
        Ok(Some((pid, status))) => Reaped::One(pid, status),
        Ok(None) => Reaped::NoneYet,
        Err(_) => Reaped::NoChildren,
    }
}

/// What [`reap`] found.
pub(super) enum Reaped {
    /// This child ended.
    One(Pid, WaitStatus),
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

/// Sends SIGKILL to every direct child but those that `spare` names.
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
        let _ = for_each_in_proc(&mut kill);
    }
    found
}

/// Calls `f` for every direct child, by the list that the kernel keeps for each thread.
fn for_each_listed(f: &mut impl FnMut(Pid)) -> Result<(), Errno> {
    let list =
        open(c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    parse_pids(&list, f)
}

/// The same for a kernel that keeps no such list: looks at every process there is.
fn for_each_in_proc(f: &mut impl FnMut(Pid)) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = open(c"/proc", flags, Mode::empty())?;
    let mut space = [MaybeUninit::<u8>::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut space);
    let this = rustix::process::getpid();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(pid) = pid_of(name.to_bytes())
            && parent_of(&proc, name) == Some(this)
        {
            f(pid);
        }
    }
    Ok(())
}

fn parent_of(proc: &OwnedFd, name: &CStr) -> Option<Pid> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let process = openat(proc, name, flags, Mode::empty()).ok()?;
    let stat = openat(&process, c"stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0u8; 512];
    let n = rustix::io::read(&stat, &mut buffer).ok()?;
    // `PID (any name) STATE PARENT …`: the name may hold parentheses and spaces.
    let after_name = buffer.get(..n)?.rsplit(|&byte| byte == b')').next()?;
    pid_of(after_name.split(|&byte| byte == b' ').nth(2)?)
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
        let mut scanned = BTreeSet::new();
        for_each_in_proc(&mut |pid| {
            scanned.insert(pid.as_raw_nonzero().get().cast_unsigned());
        })
        .expect("scan /proc");
        for child in &mut children {
            child.kill().expect("end sleep");
            child.wait().expect("wait for sleep");
        }
        assert!(ours.is_subset(&listed), "{ours:?} in {listed:?}");
        assert!(ours.is_subset(&scanned), "{ours:?} in {scanned:?}");
    }
}
