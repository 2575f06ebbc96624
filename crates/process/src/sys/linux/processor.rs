//! Which processor a process is on.
//!
//! Some kernels put a process behind whoever runs on a processor although another one is idle, and leave it there: a
//! virtual one that sleeps seems taken to them. Somebody waits for most of what is started here, so it is said where it
//! is to run. It may use the same processors as its maker afterwards, and so may the commands.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Has a process go on on another processor than this one's, if it may use any: who does this has more to do. Until this
/// returns, the process may not fork anything, which would inherit what it may use meanwhile.
pub(super) fn send_apart(pid: Pid) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let Some(here) = here() else { return };
    let mut others = allowed;
    others.unset(here);
    // Where there is no other one, or nobody may say so, it stays.
    if others.count() > 0 && sched_setaffinity(Some(pid), &others).is_ok() {
        allow(Some(pid), &allowed);
    }
}

/// Stays on its processor, and has what it forks begin there, until both have let go: the maker is about to wait,
/// or to make one more.
pub(super) struct Pinned(CpuSet);

impl Pinned {
    pub(super) fn here() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut only = CpuSet::new();
        only.set(here()?);
        sched_setaffinity(None, &only).ok()?;
        Some(Self(allowed))
    }

    /// Both the maker and what it has forked have to do so before they fork anything else, which would inherit this.
    pub(super) fn let_go(&self) {
        allow(None, &self.0);
    }
}

/// The processor that this process is on, if that can be told.
pub(super) fn here() -> Option<usize> {
    Some(sched_getcpu()).filter(|number| *number < CpuSet::MAX_CPU)
}

/// Leaves a processor to another process, if this one is on it.
pub(super) fn leave(number: Option<usize>) {
    if number.is_some() && number == here() {
        send_apart(rustix::process::getpid());
    }
}

fn allow(pid: Option<Pid>, allowed: &CpuSet) {
    // Whoever may use all that are there may use those that are added later.
    let mut every = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|number| every.set(number));
    let as_before = sched_setaffinity(pid, &every).is_ok()
        && sched_getaffinity(pid).is_ok_and(|now| now == *allowed);
    if !as_before {
        let _ = sched_setaffinity(pid, allowed);
    }
}
