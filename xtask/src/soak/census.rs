//! What there is when nobody does anything: processes, descriptors, threads, memory, mounts, files.
//!
//! Some of it goes a moment after the last answer, so whatever is too much is waited for, and is a
//! violation only if it stays.

use super::audit::AuditLog;
use super::ledger::Ledger;
use super::steady::Steady;
use super::world::World;
use crate::bench::processes::{
    descendants, descriptors, is_zombie, name_of, resident_memory, threads,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use sandgate_protocol::PROTECTED_NAMES;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// How long what is left may take to go. A cage is let go some seconds after its last command.
const PATIENCE: Duration = Duration::from_secs(40);

/// So many rounds show what is usual.
pub(super) const WARM_UP: usize = 4;

/// The guards of a host that does nothing: the nursery, and the warden that waits for the next command.
/// Cages have been let go by then, but for the one of the process that keeps the daemon alive.
const GUARDS: usize = 2;
const DAEMON_GUARDS: usize = 6;

/// What may come and go beyond what is usual. The 64 processes that a session keeps after their end have no
/// descriptors.
const MORE_DESCRIPTORS: usize = 8;
const MORE_THREADS: usize = 3;

/// One host at one time.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(super) struct Host {
    pub(super) memory_bytes: u64,
    pub(super) descriptors: usize,
    pub(super) threads: usize,
    /// Its guards, and theirs.
    pub(super) guards: usize,
}

/// Everything at the end of one round.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Sample {
    pub(super) after_s: u64,
    pub(super) calls: u64,
    pub(super) settled_in_ms: u64,
    pub(super) namespaces: usize,
    pub(super) audit_lines: u64,
    pub(super) hosts: BTreeMap<&'static str, Host>,
}

/// All samples so far, and the reader of the log.
#[derive(Default)]
pub(super) struct Census {
    pub(super) samples: Vec<Sample>,
    log: AuditLog,
}

impl Census {
    /// Looks at everything after a round, and tells the ledger what is wrong.
    pub(super) fn take(
        &mut self,
        world: &World,
        steady: &Steady,
        ledger: &Ledger,
    ) -> anyhow::Result<()> {
        if let Some(lost) = steady.lost()? {
            ledger.violation(format!("{lost} has ended by itself"));
            ledger.end();
            return Ok(());
        }
        steady.settle(world)?;
        let began = Instant::now();
        let usual = self.usual();
        let mut wrong = leftovers(world, steady, &usual)?;
        while !wrong.is_empty() && began.elapsed() < PATIENCE {
            steady.library().rest(Duration::from_millis(50));
            wrong = leftovers(world, steady, &usual)?;
        }
        wrong.into_iter().for_each(|what| ledger.violation(what));
        if let Some(change) = world.changed_outside()? {
            ledger.violation(format!("something changed that nobody may change: {change}"));
        }
        let settled_in_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.check_log(world, ledger)?;
        let hosts = steady.hosts().into_iter().map(|(name, pid)| (name, host(pid))).collect();
        let namespaces = namespaces();
        let (after_s, calls) = (ledger.elapsed().as_secs(), ledger.calls());
        let audit_lines = self.log.lines;
        self.samples.push(Sample { after_s, calls, settled_in_ms, namespaces, audit_lines, hosts });
        Ok(())
    }

    fn check_log(&mut self, world: &World, ledger: &Ledger) -> anyhow::Result<()> {
        let verified = world.run(&["audit", "verify"])?;
        if verified.code != Some(0) {
            let said = String::from_utf8_lossy(&verified.stdout).into_owned();
            ledger.violation(format!("the audit log does not verify: {said}{}", verified.stderr));
        }
        self.log.read_on(&world.path("home/.codex/audit"))?;
        let missing = self.log.missing(&ledger.take_ran());
        if !missing.is_empty() {
            ledger.violation(format!("commands ran that the audit log does not have: {missing:?}"));
        }
        Ok(())
    }

    /// The most that each host had while everything was new; nothing as long as it is.
    fn usual(&self) -> BTreeMap<&'static str, Host> {
        let mut usual: BTreeMap<&'static str, Host> = BTreeMap::new();
        let Some(first) = self.samples.get(..WARM_UP) else { return usual };
        for (name, host) in first.iter().flat_map(|sample| &sample.hosts) {
            let most = usual.entry(name).or_default();
            most.memory_bytes = most.memory_bytes.max(host.memory_bytes);
            most.descriptors = most.descriptors.max(host.descriptors);
            most.threads = most.threads.max(host.threads);
        }
        usual
    }
}

/// The largest that a host may become that was usually so large: half as much again, and room for what
/// a few large outputs leave in the allocator.
pub(super) fn memory_limit(usual_bytes: u64) -> u64 {
    usual_bytes + usual_bytes / 2 + (64 << 20)
}

/// Everything that is there and should not be.
fn leftovers(
    world: &World,
    steady: &Steady,
    usual: &BTreeMap<&'static str, Host>,
) -> anyhow::Result<Vec<String>> {
    // Whoever lost their parents and has ended is let go; nobody else waits for them.
    descendants(std::process::id()).into_iter().filter(|pid| is_zombie(*pid)).for_each(reap);
    let mut wrong = processes(steady);
    wrong.extend(files(world)?);
    wrong.extend(mounts(world)?);
    for (name, pid) in steady.hosts() {
        let now = host(pid);
        let guards = if name == "daemon" { DAEMON_GUARDS } else { GUARDS };
        if now.guards > guards {
            wrong
                .push(format!("{name} has {} guards and needs {guards} when it rests", now.guards));
        }
        let Some(usual) = usual.get(name) else { continue };
        let mut check = |what: &str, now: usize, most: usize| {
            if now > most {
                wrong.push(format!("{name} has {now} {what}, and usually {most} at the most"));
            }
        };
        check("descriptors", now.descriptors, usual.descriptors + MORE_DESCRIPTORS);
        check("threads", now.threads, usual.threads + MORE_THREADS);
        let limit = memory_limit(usual.memory_bytes);
        if now.memory_bytes > limit && name != "soak" {
            let bytes = now.memory_bytes;
            wrong.push(format!("{name} holds {bytes} bytes of memory; {limit} would be much"));
        }
    }
    Ok(wrong)
}

fn host(pid: u32) -> Host {
    // What cannot be looked at counts as nothing, and so does what has ended: its end is told elsewhere.
    Host {
        memory_bytes: resident_memory(pid).unwrap_or(0),
        descriptors: descriptors(pid).unwrap_or(0),
        threads: threads(pid).unwrap_or(0),
        guards: guards_of(pid).len(),
    }
}

/// The guards of a host. Those of this process are its children: what it started has others, and what they
/// lose with their host is left.
fn guards_of(host: u32) -> Vec<u32> {
    let below = match host == std::process::id() {
        true => {
            let own = children(host).into_iter().filter(|pid| is_guard(*pid));
            own.flat_map(|pid| std::iter::once(pid).chain(descendants(pid))).collect()
        }
        false => descendants(host),
    };
    below.into_iter().filter(|pid| is_guard(*pid)).collect()
}

fn is_guard(pid: u32) -> bool {
    name_of(pid).is_some_and(|name| name.starts_with("sg-"))
}

/// Processes below this one that are neither hosts nor guards of theirs.
fn processes(steady: &Steady) -> Vec<String> {
    let hosts: BTreeSet<u32> = steady.hosts().iter().map(|(_, pid)| *pid).collect();
    let mut guarded: BTreeSet<u32> = BTreeSet::new();
    for host in &hosts {
        guarded.extend(guards_of(*host));
    }
    let mut wrong = Vec::new();
    for pid in descendants(std::process::id()) {
        if hosts.contains(&pid) || guarded.contains(&pid) {
            continue;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let (Some(name), false) = (name_of(pid), line == "cat - ") else { continue };
        let parent = parent_of(pid).unwrap_or(0);
        wrong.push(format!("process {pid} ({name}: {line}) is left, below {parent}"));
    }
    wrong
}

fn children(pid: u32) -> Vec<u32> {
    descendants(pid).into_iter().filter(|child| parent_of(*child) == Some(pid)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Waits for a child that has ended and is nobody else's.
fn reap(pid: u32) {
    if let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that is somebody else's child is theirs to wait for.
        let _ = waitpid(Some(id), WaitOptions::NOHANG);
    }
}

/// How many different namespaces the processes below this one are in.
fn namespaces() -> usize {
    let links = descendants(std::process::id()).into_iter().flat_map(|pid| {
        ["mnt", "net", "pid", "user", "ipc"]
            .map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")))
    });
    links.flatten().collect::<BTreeSet<_>>().len()
}

/// Mounts of this process's own namespace that lie in the world.
fn mounts(world: &World) -> anyhow::Result<Vec<String>> {
    let root = world.path("").canonicalize()?;
    let root = root.to_string_lossy();
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let ours = table.lines().filter(|line| line.contains(&*root));
    Ok(ours.map(|line| format!("a mount is left: {line}")).collect())
}

/// Files that nobody asked for. What a killed command left is the command's own affair and is removed.
fn files(world: &World) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let places: [(&str, &[&str], &[&str]); 4] = [
        ("ws", &["lane-"], &["soak_"]),
        ("tmp", &[], &["tmp."]),
        ("granted", &[], &["soak_"]),
        ("anchor", &PROTECTED_NAMES, &[]),
    ];
    for (place, allowed, litter) in places {
        for entry in fs::read_dir(world.path(place))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if litter.iter().any(|prefix| name.starts_with(prefix)) {
                let _ = fs::remove_file(entry.path());
            } else if !allowed.iter().any(|prefix| name.starts_with(prefix)) {
                wrong.push(format!("{place}/{name} is left"));
            }
        }
    }
    // One for each session that lives and has written much: the servers' own.
    let sessions = entries(&world.path("home/.cache/sandgate/sessions"));
    if sessions.len() > 6 {
        wrong.push(format!("directories of sessions are left: {sessions:?}"));
    }
    Ok(wrong)
}

fn entries(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
