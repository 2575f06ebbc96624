//! Where a new process begins.
//!
//! Some kernels put it behind whoever runs on a processor although another one is idle, or is about to be, and leave
//! it there. Somebody waits for most of what is started here, so it is said where it begins. Afterwards it may use the
//! same processors as its maker.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Has a new process begin on another processor than this one's, if it may use any: its maker has more to do.
pub(super) fn begin_apart(pid: Pid) {
    begin(pid, |here, allowed| {
        let mut others = *allowed;
        others.unset(here);
        others
    });
}

/// Has a new process begin on this one's processor: its maker is about to wait.
pub(super) fn begin_here(pid: Pid) {
    begin(pid, |here, _| {
        let mut only = CpuSet::new();
        only.set(here);
        only
    });
}

/// The processor that this process is on, if that can be told.
pub(super) fn here() -> Option<usize> {
    Some(sched_getcpu()).filter(|number| *number < CpuSet::MAX_CPU)
}

/// Leaves a processor to another process, if this one is on it.
pub(super) fn leave(number: Option<usize>) {
    if number.is_some() && number == here() {
        begin_apart(rustix::process::getpid());
    }
}

fn begin(pid: Pid, on: impl FnOnce(usize, &CpuSet) -> CpuSet) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let Some(here) = here() else { return };
    let first = on(here, &allowed);
    // Where there is no such processor, or nobody may say so, it begins where it is.
    if first.count() == 0 || sched_setaffinity(Some(pid), &first).is_err() {
        return;
    }
    // Whoever may use all that are there may use those that are added later.
    let mut every = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|number| every.set(number));
    let as_before = sched_setaffinity(Some(pid), &every).is_ok()
        && sched_getaffinity(Some(pid)).is_ok_and(|now| now == allowed);
    if !as_before {
        let _ = sched_setaffinity(Some(pid), &allowed);
    }
}
