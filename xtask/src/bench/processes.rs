//! What the kernel tells of processes: their children, their descriptors, their memory, their end.

use super::session::Impossible;
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::time::{Duration, Instant};

/// Every process below this one, those that have ended and were not waited for included.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let mut found = Vec::new();
    for list in lists {
        for child in list.split_whitespace().filter_map(|child| child.parse().ok()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// Whether a process has ended and was not waited for.
pub(crate) fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may hold anything; the last parenthesis ends it.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> anyhow::Result<usize> {
    entries(&format!("/proc/{pid}/fd"))
}

/// How many threads a process has.
pub(crate) fn threads(pid: u32) -> anyhow::Result<usize> {
    entries(&format!("/proc/{pid}/task"))
}

fn entries(directory: &str) -> anyhow::Result<usize> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {directory}"))?;
    Ok(entries.count())
}

/// How much larger this process has been at its peak, while `action` ran, than it was before.
///
/// # Errors
/// [`Impossible`] on a kernel that cannot forget an older peak.
pub(super) fn memory_growth(action: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<u64> {
    fs::write("/proc/self/clear_refs", "5")
        .map_err(|error| Impossible(format!("/proc/self/clear_refs: {error}")))?;
    let before = memory("self", "VmRSS")?;
    action()?;
    Ok(memory("self", "VmHWM")?.saturating_sub(before))
}

/// The largest that a process has been, in bytes.
pub(super) fn peak_memory(pid: u32) -> anyhow::Result<u64> {
    memory(&pid.to_string(), "VmHWM")
}

/// The memory that a process holds, in bytes, with all that it shares.
pub(crate) fn resident_memory(pid: u32) -> anyhow::Result<u64> {
    memory(&pid.to_string(), "VmRSS")
}

/// The memory that a process holds, in bytes. What it shares with others counts in parts.
///
/// # Errors
/// [`Impossible`] when this user may not look at it: guards do not let themselves be inspected.
pub(super) fn proportional_memory(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).map_err(|error| Impossible(format!("{path}: {error}")))?;
    field_in_kib(&text, "Pss").map(|kib| kib * 1024).with_context(|| format!("{path} has no Pss"))
}

/// What a process calls itself.
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// How often this process has given the processor away to wait for something.
pub(super) fn voluntary_waits() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(count.context("/proc/self/status does not count waits")?.trim().parse()?)
}

fn memory(process: &str, field: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    field_in_kib(&status, field)
        .map(|kib| kib * 1024)
        .with_context(|| format!("/proc/{process}/status has no {field}"))
}

fn field_in_kib(status: &str, field: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

/// Processes whose end is watched, by handles that cannot come to mean another process.
pub(crate) struct Watched(Vec<OwnedFd>);

impl Watched {
    /// # Errors
    /// [`Impossible`] on a kernel without such handles; otherwise when one has ended already.
    pub(crate) fn open(pids: &[u32]) -> anyhow::Result<Self> {
        let open = |&pid: &u32| -> anyhow::Result<OwnedFd> {
            let id = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process id")?;
            pidfd_open(id, PidfdFlags::empty()).map_err(|errno| match errno {
                Errno::NOSYS => Impossible("the kernel has no pidfd_open".to_owned()).into(),
                _ => anyhow::anyhow!("process {pid} has ended already: {errno}"),
            })
        };
        Ok(Self(pids.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Waits until the last of them has ended, and says when that was.
    ///
    /// # Errors
    /// When some are still there after `patience`.
    pub(crate) fn all_gone(mut self, patience: Duration) -> anyhow::Result<Instant> {
        let limit = Instant::now() + patience;
        while !self.0.is_empty() {
            let mut fds: Vec<_> = self.0.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            let left = limit.saturating_duration_since(Instant::now());
            anyhow::ensure!(
                !left.is_zero(),
                "{} processes are still there after {patience:?}",
                fds.len()
            );
            poll(&mut fds, Some(&Timespec::try_from(left)?))?;
            let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut ended = ended.into_iter();
            self.0.retain(|_| !ended.next().unwrap_or(false));
        }
        Ok(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_status_is_found_by_its_whole_name() {
        let status = "VmHWM:\t    8304 kB\nVmRSSX:\t 1 kB\nVmRSS:\t    4864 kB\n";
        assert_eq!(field_in_kib(status, "VmRSS"), Some(4864));
        assert_eq!(field_in_kib(status, "VmHWM"), Some(8304));
        assert_eq!(field_in_kib(status, "VmPeak"), None);
    }

    #[test]
    fn memory_that_is_touched_is_growth() {
        let size = 32 << 20;
        let growth = memory_growth(|| {
            std::hint::black_box(vec![1u8; size]);
            Ok(())
        });
        match growth {
            Ok(growth) => assert!(growth >= (size as u64) / 2, "{growth}"),
            Err(error) => assert!(error.is::<Impossible>(), "{error:#}"),
        }
    }
}
