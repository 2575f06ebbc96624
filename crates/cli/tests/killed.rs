//! `kill -9` at a moment that nobody chose, and what is left afterwards.
//!
//! `SANDGATE_TEST_KILLS=200` is the long profile. A failure tells the seed of its run;
//! `SANDGATE_TEST_SEED` plays one again, as far as a moment can be played again.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use sandgate_protocol::PROTECTED_NAMES;
use sandgate_runtime::audit::{Record, audit_directory, entries};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Running, World, eventually};

/// How often the program is killed.
const KILLS: &str = "SANDGATE_TEST_KILLS";
/// Where the random numbers begin.
const SEED: &str = "SANDGATE_TEST_SEED";
/// Every process that comes of a run has this variable.
const MARK: &str = "SANDGATE_TEST_MARK";
/// So often the script changes the files.
const VERSIONS: u64 = 6;
/// The files that change together; many, so that a patch takes its time.
const FILES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// spec CALL.20: A `sandgate call` that is killed at whatever moment leaves no process behind, no file
/// half patched once the next session has begun, nothing in the workspace that keeps names free, and a
/// log that verifies and has the end of every call that was answered.
#[test]
fn a_kill_at_any_moment_leaves_nothing_half_done() {
    let kills = std::env::var(KILLS).map_or(15, |kills| kills.parse().unwrap());
    let seed = std::env::var(SEED);
    let seed =
        seed.map_or_else(|_| RandomState::new().hash_one("seed"), |seed| seed.parse().unwrap());
    println!("{SEED}={seed}");
    // Whatever loses its parent becomes a child of this process, so that nothing can hide.
    set_child_subreaper(Some(getpid())).unwrap();
    for round in 0..kills {
        let mut random = Random(seed.wrapping_add(round));
        let stage = Stage::new(&mut random);
        let answered = stage.run_and_kill(&mut random);
        stage.has_no_process();
        stage.log_verifies();
        stage.log_has_the_end_of(&answered);
        stage.begin_once_more();
        stage.is_patched_as_a_whole();
        stage.log_verifies();
        stage.has_no_process();
    }
}

/// Numbers without a pattern, the same for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A workspace with files that change together, and a place beside it.
struct Stage {
    world: World,
    outside: tempfile::TempDir,
    mark: String,
}

impl Stage {
    fn new(random: &mut Random) -> Self {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        for file in FILES {
            fs::write(world.path("ws").join(file), "version 0\n").unwrap();
        }
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let mark = format!("{}.{}", std::process::id(), random.below(1 << 40));
        let stage = Self { world, outside, mark };
        let lines: Vec<String> = stage.calls().iter().map(ToString::to_string).collect();
        fs::write(stage.world.path("calls"), lines.join("\n")).unwrap();
        stage
    }

    /// The script: patches, commands that leave processes behind, that are asked about, and that the
    /// sandbox blocks.
    fn calls(&self) -> Vec<Value> {
        let outside = self.outside.path().display();
        let calls = (0..VERSIONS).flat_map(|version| {
            // What holds the output open would be waited for.
            let stay = format!("sleep 1000.{} >/dev/null 2>&1", self.mark.replace('.', ""));
            [
                call("apply_patch", &json!({"input": patch(version)})),
                call("shell_command", &json!({
                    "command": format!("({stay} &) ; setsid {stay} & echo {version} >> log; sleep 0.01"),
                    "login": false,
                })),
                call("shell", &json!({"command": ["touch", format!("made-{version}")]})),
                call("shell", &json!({"command": ["touch", format!("{outside}/{version}")]})),
                call("read_file", &json!({"path": "a"})),
            ]
        });
        let numbered = calls.enumerate().map(|(number, mut call)| {
            call["call_id"] = format!("call_{number}").into();
            call
        });
        numbered.collect()
    }

    /// Runs the script until some random moment. Gives back the calls that were answered by then.
    fn run_and_kill(&self, random: &mut Random) -> BTreeSet<String> {
        let mut running = self.start("calls");
        let answers = random.below(VERSIONS * 5);
        let read: Vec<String> = (0..answers).map(|_| running.line()).collect();
        let then = Instant::now() + Duration::from_micros(random.below(15_000));
        while Instant::now() < then {
            std::hint::spin_loop();
        }
        running.child.kill().unwrap();
        let rest = running.wait();
        // `wait` gives all of the output; a line without its end is no answer.
        let text = String::from_utf8(rest.stdout).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let id = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["call_id"].as_str().unwrap().to_owned()
        };
        let answered: BTreeSet<String> = whole.map(id).collect();
        assert!(answered.len() >= read.len());
        answered
    }

    /// Another session in the same place, which must find everything usable.
    fn begin_once_more(&self) {
        let input = "*** Begin Patch\n*** Add File: later\n+later\n*** End Patch\n";
        let mut patch = call("apply_patch", &json!({ "input": input }));
        patch["call_id"] = "later".into();
        fs::write(self.world.path("later"), patch.to_string()).unwrap();
        let outcome = self.start("later").wait();
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.events()[0]["success"], true, "{}", outcome.stdout());
    }

    fn start(&self, file: &str) -> Running {
        let mut command = self.world.program(["call", "--decide", "approve"]);
        command.args(["--ask-for-approval", "untrusted", "--cd"]).arg(self.ws());
        command.arg(self.world.path(file)).env(MARK, &self.mark);
        Running::start(&mut command)
    }

    fn ws(&self) -> PathBuf {
        self.world.path("ws")
    }

    /// Processes end a moment after the one that held them, and what keeps names free with them.
    fn has_no_process(&self) {
        eventually("every process is gone", || {
            (marked(&self.mark).is_empty() && children() == 0).then_some(())
        });
        for name in PROTECTED_NAMES {
            assert!(!self.ws().join(name).exists(), "{name} is left behind");
        }
    }

    fn log_verifies(&self) {
        if !audit_directory(&self.world.path(".codex")).exists() {
            // It was killed before it had anything to record, so it cannot have done anything either.
            assert_eq!(fs::read_to_string(self.ws().join("a")).unwrap(), "version 0\n");
            return;
        }
        let verified = self.world.sandgate(&["audit", "verify"]);
        assert_eq!(verified.code, Some(0), "{}{}", verified.stdout(), verified.stderr);
    }

    /// What was answered had been recorded before.
    fn log_has_the_end_of(&self, answered: &BTreeSet<String>) {
        let directory = audit_directory(&self.world.path(".codex"));
        let records = entries(&directory, None).unwrap().map(|entry| entry.unwrap().record);
        let ended: BTreeSet<String> = records
            .filter_map(|record| match record {
                Record::Ended(ended) => Some(ended.call_id.to_string()),
                Record::PatchApplied(applied) => Some(applied.call_id.to_string()),
                _ => None,
            })
            .collect();
        // Files that are only read are read in the program itself.
        let reads: BTreeSet<String> =
            (0..VERSIONS).map(|version| format!("call_{}", version * 5 + 4)).collect();
        let lost: Vec<_> = answered.difference(&ended).filter(|id| !reads.contains(*id)).collect();
        assert!(lost.is_empty(), "{lost:?} were answered and are not in {ended:?}");
    }

    /// Each patch changed all of its files or none, and nothing else is there.
    fn is_patched_as_a_whole(&self) {
        let content = |name: &str| fs::read_to_string(self.ws().join(name)).unwrap();
        for file in FILES {
            assert_eq!(content(file), content("a"), "{file} is as far as the others");
        }
        let version: u64 = content("a").trim().strip_prefix("version ").unwrap().parse().unwrap();
        let entries = fs::read_dir(self.ws()).unwrap().flatten();
        let mut there: BTreeSet<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        for name in FILES.iter().chain(&["later"]) {
            assert!(there.remove(*name), "{name} is there");
        }
        for number in 0..version {
            assert!(there.remove(&format!("new-{number}")), "new-{number} is there");
        }
        let by_commands = |name: &String| name == "log" || name.starts_with("made-");
        there.retain(|name| !by_commands(name));
        assert!(there.is_empty(), "left behind at version {version}: {there:?}");
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "name": name, "arguments": arguments.to_string()})
}

/// Takes the files from one version to the next, and makes one more.
fn patch(version: u64) -> String {
    let next = version + 1;
    let update =
        |file| format!("*** Update File: {file}\n@@\n-version {version}\n+version {next}\n");
    let updates: String = FILES.into_iter().map(update).collect();
    format!("*** Begin Patch\n*** Add File: new-{version}\n+new\n{updates}*** End Patch\n")
}

/// How many children this process has. Those that have ended are let go.
fn children() -> usize {
    let own = getpid().as_raw_pid();
    let stats = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: i32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        (parent == own).then_some(pid)
    });
    let children: Vec<i32> = stats.collect();
    for child in &children {
        let _ = waitpid(Pid::from_raw(*child), WaitOptions::NOHANG);
    }
    children.len()
}

/// The processes that have a run's variable, or sleep for as long as its script says.
fn marked(mark: &str) -> Vec<String> {
    let variable = format!("{MARK}={mark}");
    let argument = format!("1000.{}", mark.replace('.', ""));
    let has = |file: PathBuf, text: &str| {
        fs::read(file)
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|one| one == text.as_bytes()))
    };
    let is_marked = |process: &Path| {
        has(process.join("environ"), &variable) || has(process.join("cmdline"), &argument)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(|path| is_marked(path)).map(|path| path.display().to_string()).collect()
}
