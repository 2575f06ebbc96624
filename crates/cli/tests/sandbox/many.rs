//! Many commands, one after another and at once: nothing of them is left.

use crate::cage::Cage;
use crate::support::{Outcome, Running};
use rustix::process::{Signal, getpid, set_child_subreaper};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const IN_A_ROW: usize = 1000;
const AT_ONCE: usize = 64;
/// What ends takes a moment, but never this long.
const LIMIT: Duration = Duration::from_secs(60);

/// What could be left behind. A namespace lives as long as a process is in it, a descriptor holds it
/// or it is mounted somewhere, and each of these would show here.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    processes: BTreeMap<i32, String>,
    mounts: BTreeSet<String>,
    descriptors: usize,
    files: BTreeSet<String>,
}

impl Traces {
    fn of(cage: &Cage) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut files = BTreeSet::new();
        list(cage.base(), &mut files);
        Self {
            processes: descendants(),
            mounts: mounts.lines().map(str::to_owned).collect(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            files,
        }
    }
}

fn list(directory: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        files.insert(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), files);
        }
    }
}

/// Every process that comes from this one and is not over, with its name. What loses its parent becomes
/// this one's child, so nothing is overlooked.
fn descendants() -> BTreeMap<i32, String> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        let Some(parent) = parent.and_then(|parent| parent.parse::<i32>().ok()) else { continue };
        parents.insert(pid, (parent, state == Some("Z"), name.to_owned()));
    }
    let me = getpid().as_raw_nonzero().get();
    let comes_from_me = |pid: &i32| {
        let mut ancestor = *pid;
        while let Some((parent, ..)) = parents.get(&ancestor) {
            if *parent == me {
                return true;
            }
            ancestor = *parent;
        }
        false
    };
    let alive = parents.iter().filter(|(pid, (_, is_over, _))| !is_over && comes_from_me(pid));
    alive.map(|(pid, (_, _, name))| (*pid, name.clone())).collect()
}

/// The namespaces that processes from here are in, and this one is not.
fn namespaces() -> BTreeSet<String> {
    let of = |pid: &str| -> BTreeSet<String> {
        let links = fs::read_dir(format!("/proc/{pid}/ns")).into_iter().flatten().flatten();
        let links = links.filter_map(|link| fs::read_link(link.path()).ok());
        links.map(|link| link.display().to_string()).collect()
    };
    let own = of("self");
    let all = descendants().into_keys().flat_map(|pid| of(&pid.to_string()));
    all.filter(|name| !own.contains(name)).collect()
}

/// A cage whose every process is known for this process's own.
fn watched() -> Cage {
    set_child_subreaper(Some(getpid())).unwrap();
    let cage = Cage::new();
    fs::create_dir(cage.base().join("tmp")).unwrap();
    cage
}

fn command(cage: &Cage, script: &str) -> Command {
    let mut command = cage.command(&["--full-auto"], script);
    command.env("TMPDIR", cage.base().join("tmp"));
    command
}

#[track_caller]
fn nothing_is_left(cage: &Cage, before: &Traces) {
    let start = Instant::now();
    while Traces::of(cage) != *before {
        let now = Traces::of(cage);
        assert!(start.elapsed() < LIMIT, "something is left: {now:#?}\nbefore: {before:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts all of them, and waits until every one of them is at work.
fn all_at_once(cage: &Cage) -> Vec<Running> {
    let script = "setsid sh -c 'echo up; exec sleep 1000' & read line; exit 3";
    // What sandgate says about one that does not start belongs into the record.
    let streams = |mut command: Command| {
        command.stdin(Stdio::piped()).stderr(Stdio::inherit());
        Running::start(&mut command)
    };
    let start = |_| streams(command(cage, script));
    let mut all: Vec<_> = (0..AT_ONCE).map(start).collect();
    for running in &mut all {
        assert_eq!(running.line(), "up\n");
    }
    all
}

/// spec PROBES.30: A thousand confined commands in a row leave no process, mount, descriptor or file
/// behind.
#[test]
fn a_thousand_in_a_row_leave_nothing() {
    let cage = watched();
    let before = Traces::of(&cage);
    for number in 0..IN_A_ROW {
        let outcome = Running::start(&mut command(&cage, "exit 3")).wait();
        assert_eq!(outcome.code, Some(3), "number {number}: {outcome:?}");
    }
    nothing_is_left(&cage, &before);
}

/// spec PROBES.31: Sixty-four confined commands at once have namespaces of their own each, and leave
/// none of them behind, nor a process, mount, descriptor or file.
#[test]
fn sixty_four_at_once_leave_nothing() {
    let cage = watched();
    let before = Traces::of(&cage);
    let all = all_at_once(&cage);
    let names = namespaces();
    let of_processes = names.iter().filter(|name| name.starts_with("pid:")).count();
    assert!(of_processes >= AT_ONCE, "each has its own: {names:?}");
    let finish = |mut running: Running| -> Outcome {
        drop(running.child.stdin.take());
        running.wait()
    };
    for outcome in all.into_iter().map(finish) {
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
    }
    nothing_is_left(&cage, &before);
    assert!(namespaces().is_empty());
}

/// spec PROBES.32: SIGKILL of sandgate in the middle of sixty-four commands at once leaves nothing
/// of them either.
#[test]
fn sixty_four_that_are_killed_leave_nothing() {
    let cage = watched();
    let before = Traces::of(&cage);
    let all = all_at_once(&cage);
    for running in &all {
        running.signal(Signal::KILL);
    }
    for running in all {
        assert_eq!(running.wait().code, None);
    }
    nothing_is_left(&cage, &before);
    assert!(namespaces().is_empty());
}
