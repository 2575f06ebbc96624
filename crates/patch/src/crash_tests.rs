//! What is left when the program is killed in the middle of a patch, at every step and at any moment.
//!
//! The program that is killed is this test program, started once more with a single test, which does
//! what the environment tells it.

#![expect(clippy::disallowed_methods, reason = "starts itself, to be killed")]

use crate::apply::{Step, Swap, apply_observed};
use crate::recover::recover_observed;
use crate::{ApplyError, Disk, Left, Plan, Recovered, Resolution, Roots, apply, recover};
use sandgate_protocol::WritableRoot;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const BASE: &str = "SANDGATE_PATCH_BASE";
const ACT: &str = "SANDGATE_PATCH_ACT";
const SWAP: &str = "SANDGATE_PATCH_SWAP";
const KILLED_AT: &str = "SANDGATE_PATCH_KILLED_AT";

const SWAPS: [(&str, Swap); 2] =
    [("in one step", Swap::InOneStep), ("by two renames", Swap::ByTwoRenames)];

const THERE: &str = "\
*** Begin Patch
*** Add File: new/deep/file
+added
*** Add File: new/other
+added
*** Update File: a
@@
-one
+two
*** Update File: dir/b
@@
-one
+two
*** Delete File: gone
*** Update File: moved
*** Move to: new/moved
@@
-old
+new
*** End Patch
";

const BACK: &str = "\
*** Begin Patch
*** Delete File: new/deep/file
*** Delete File: new/other
*** Update File: a
@@
-two
+one
*** Update File: dir/b
@@
-two
+one
*** Add File: gone
+gone
*** Update File: new/moved
*** Move to: moved
@@
-new
+old
*** End Patch
";

/// A workspace before the patch.
struct World {
    kept: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { kept: tempfile::tempdir().unwrap() };
        let work = world.base().join("work");
        fs::create_dir_all(work.join("dir")).unwrap();
        for (name, contents) in
            [("a", "one\n"), ("dir/b", "one\n"), ("gone", "gone\n"), ("moved", "old\n")]
        {
            fs::write(work.join(name), contents).unwrap();
        }
        world
    }

    fn base(&self) -> PathBuf {
        self.kept.path().canonicalize().unwrap()
    }

    fn work(&self) -> PathBuf {
        self.base().join("work")
    }

    fn journals(&self) -> PathBuf {
        self.base().join("journals")
    }

    fn plan(&self, text: &str) -> Plan {
        plan(&self.base(), text)
    }

    /// What every file holds.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        collect(&self.work(), &mut files);
        files
    }

    fn recover(&self) -> Vec<Recovered> {
        let recovered = recover(&self.journals()).unwrap();
        assert_eq!(recover(&self.journals()).unwrap(), [], "there is nothing left to do");
        recovered
    }

    /// Starts this program to do something here.
    fn child(&self, act: &str, swap: &str, killed_at: usize) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "crash_tests::does_what_it_is_told", "--nocapture"])
            .env(BASE, self.base())
            .env(ACT, act)
            .env(SWAP, swap)
            .env(KILLED_AT, killed_at.to_string())
            .stdout(Stdio::null());
        command
    }

    /// Has something done here, and says whether it was killed in the middle.
    fn is_killed(&self, act: &str, swap: &str, killed_at: usize) -> bool {
        let status = self.child(act, swap, killed_at).status().unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        !status.success()
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), "directory".to_owned());
            collect(&path, files);
        } else {
            let contents = fs::read_to_string(&path).unwrap();
            files.insert(path, contents);
        }
    }
}

fn plan(base: &Path, text: &str) -> Plan {
    let work = base.join("work");
    Plan::of(&text.parse().unwrap(), &work, &Disk::default()).unwrap()
}

fn roots(base: &Path) -> Roots {
    Roots::new([WritableRoot { path: base.join("work"), read_only_subpaths: Vec::new() }], [])
}

fn kill_myself() -> ! {
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    unreachable!("nobody survives that");
}

/// Not a test but the other side of the tests here: nobody told it anything unless one of them started
/// it.
#[test]
fn does_what_it_is_told() {
    if std::env::var_os(ACT).is_none() {
        return;
    }
    let told = |name| std::env::var(name).unwrap();
    let base = PathBuf::from(told(BASE));
    let journals = base.join("journals");
    let (_, swap) = SWAPS.into_iter().find(|(name, _)| *name == told(SWAP)).unwrap();
    let killed_at: usize = told(KILLED_AT).parse().unwrap();
    let mut steps = 0;
    let mut observe = |_: Step| {
        steps += 1;
        if steps == killed_at {
            kill_myself();
        }
    };
    match told(ACT).as_str() {
        "apply" => {
            let plan = plan(&base, THERE);
            apply_observed(&plan, &roots(&base), &journals, swap, &mut observe).unwrap();
        }
        "recover" => {
            recover_observed(&journals, swap, &mut observe).unwrap();
        }
        // There and back without end, and a byte for each step.
        _ => {
            let mut out = std::io::stderr();
            let mut observe = |_: Step| out.write_all(b".").unwrap();
            loop {
                for text in [THERE, BACK] {
                    let plan = plan(&base, text);
                    apply_observed(&plan, &roots(&base), &journals, swap, &mut observe).unwrap();
                }
            }
        }
    }
}

/// The files before the patch and after it.
fn both_sides() -> [BTreeMap<String, String>; 2] {
    let world = World::new();
    let before = relative(&world);
    apply(&world.plan(THERE), &roots(&world.base()), &world.journals()).unwrap();
    [before, relative(&world)]
}

fn relative(world: &World) -> BTreeMap<String, String> {
    let work = world.work();
    let from = |path: PathBuf| path.strip_prefix(&work).unwrap().display().to_string();
    world.files().into_iter().map(|(path, contents)| (from(path), contents)).collect()
}

/// spec PATCH.55: However far a patch had come when its program was killed, after recovery either all
/// of it is there or nothing, and nothing besides.
#[test]
fn killed_at_every_step() {
    let [before, after] = both_sides();
    for (name, _) in SWAPS {
        let mut undone = 0;
        let mut finished = 0;
        for step in 1.. {
            let world = World::new();
            if !world.is_killed("apply", name, step) {
                assert_eq!(relative(&world), after);
                break;
            }
            let recovered = world.recover();
            let resolutions: Vec<_> = recovered.iter().map(|found| found.resolution).collect();
            assert!(recovered.iter().all(|found| found.left_alone.is_empty()), "{recovered:?}");
            match resolutions.as_slice() {
                [Resolution::Undone] => {
                    assert_eq!(relative(&world), before, "step {step}");
                    assert_eq!(finished, 0, "what was done is not undone");
                    undone += 1;
                }
                // The last step leaves nothing to recover.
                [Resolution::Finished] | [] => {
                    assert_eq!(relative(&world), after, "step {step}");
                    finished += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(undone >= 15 && finished >= 8, "{name}: {undone} and {finished}");
    }
}

/// spec PATCH.56: A recovery that is killed is gone on with by the next.
#[test]
fn killed_while_recovering() {
    let [before, after] = both_sides();
    for (name, swap) in SWAPS {
        // One crash amid the changes of names, one when all of them are made and written down.
        for (step, expected) in [
            (steps_until(Step::Changed, 4, swap), &before),
            (steps_until(Step::Committed, 1, swap), &after),
        ] {
            let mut kills = 0;
            for recovery_step in 1.. {
                let world = World::new();
                assert!(world.is_killed("apply", name, step));
                let is_killed = world.is_killed("recover", name, recovery_step);
                let recovered = world.recover();
                assert!(recovered.iter().all(|found| found.left_alone.is_empty()));
                assert_eq!(&relative(&world), expected, "{name}, {recovery_step}");
                if !is_killed {
                    break;
                }
                kills += 1;
            }
            assert!(kills >= 5, "{kills}");
        }
    }
}

/// spec PATCH.57: A patch whose program is killed at any moment is there wholly or not at all after
/// recovery.
#[test]
fn killed_at_any_moment() {
    kill_at_random(40);
}

#[test]
#[ignore = "takes two minutes; killed_at_any_moment does the same in few rounds"]
fn killed_at_many_moments() {
    kill_at_random(500);
}

fn kill_at_random(rounds: usize) {
    // Deleting files leaves their directories.
    let only_files = |mut files: BTreeMap<String, String>| {
        files.retain(|_, contents| contents != "directory");
        files
    };
    let sides = both_sides().map(only_files);
    let world = World::new();
    for round in 0..rounds {
        let swap = SWAPS[round % 2].0;
        let mut child = world.child("run", swap, 0).stderr(Stdio::piped()).spawn().unwrap();
        // Every step of the way there and back, and the moments after it.
        let bytes = 1 + usize::from(uuid::Uuid::now_v7().as_bytes()[15]) % 60;
        let mut seen = vec![0; bytes];
        child.stderr.take().unwrap().read_exact(&mut seen).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let recovered = world.recover();
        assert!(recovered.iter().all(|found| found.left_alone.is_empty()), "{recovered:?}");
        let found = only_files(relative(&world));
        assert!(sides.contains(&found), "{found:?}");
        if found.contains_key("new/other") {
            let plan = world.plan(BACK);
            apply(&plan, &roots(&world.base()), &world.journals()).unwrap();
        }
    }
}

/// spec PATCH.58: What somebody changed after a crash is left alone and reported, with the place where
/// its former contents are; everything else is put back.
#[test]
fn what_was_changed_since_is_left_alone() {
    let [before, _] = both_sides();
    let world = World::new();
    let steps = steps_until(Step::Changed, 6, Swap::InOneStep);
    assert!(world.is_killed("apply", "in one step", steps));
    assert_eq!(fs::read_to_string(world.work().join("a")).unwrap(), "two\n");
    fs::write(world.work().join("a"), "mine\n").unwrap();
    fs::write(world.work().join("new/other"), "mine\n").unwrap();
    let recovered = world.recover();
    assert_eq!(recovered.len(), 1);
    let left = &recovered[0].left_alone;
    let mut paths: Vec<_> = left.iter().map(|left| left.path.clone()).collect();
    paths.sort_unstable();
    assert_eq!(paths, [world.work().join("a"), world.work().join("new/other")]);
    assert!(left.iter().all(|left| left.why == Left::Changed));
    let kept = left.iter().find_map(|left| left.kept.clone()).unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "one\n");
    fs::remove_file(kept).unwrap();
    let mut expected = before;
    expected.insert("a".into(), "mine\n".into());
    expected.insert("new".into(), "directory".into());
    expected.insert("new/other".into(), "mine\n".into());
    assert_eq!(relative(&world), expected);
}

/// The number of steps until one has been done so often.
fn steps_until(wanted: Step, times: usize, swap: Swap) -> usize {
    let world = World::new();
    let mut steps = Vec::new();
    let mut observe = |step| steps.push(step);
    let plan = world.plan(THERE);
    let roots = roots(&world.base());
    apply_observed(&plan, &roots, &world.journals(), swap, &mut observe).unwrap();
    let mut done = steps.iter().enumerate().filter(|(_, step)| **step == wanted);
    done.nth(times - 1).unwrap().0 + 1
}

/// spec PATCH.59: A patch that finds one that a crash broke off settles that one first.
#[test]
fn the_next_patch_settles_what_a_crash_left() {
    let world = World::new();
    let plan = world.plan(THERE);
    assert!(world.is_killed(
        "apply",
        "in one step",
        steps_until(Step::Changed, 3, Swap::InOneStep)
    ));
    let applied = apply(&plan, &roots(&world.base()), &world.journals()).unwrap();
    assert_eq!(applied.recovered.len(), 1);
    assert_eq!(applied.recovered[0].resolution, Resolution::Undone);
    assert_eq!([relative(&world)].as_slice(), &both_sides()[1..]);
    assert_eq!(world.recover(), []);
}

/// spec PATCH.60: A file that somebody changes while a patch is being applied is not overwritten: the
/// patch is refused and undone.
#[test]
fn a_change_at_the_last_moment_is_seen() {
    for (_, swap) in SWAPS {
        for moment in [Step::Journalled, Step::Staged, Step::Changed] {
            for victim in ["a", "dir/b", "gone", "moved"] {
                let world = World::new();
                let mut expected = relative(&world);
                let before = expected.get(victim).cloned().unwrap();
                let mut observe = |step| {
                    let path = world.work().join(victim);
                    // Only as long as it is there as it was; a patch that has changed it already was
                    // first.
                    if step == moment && fs::read_to_string(&path).is_ok_and(|now| now == before) {
                        fs::write(path, "mine\n").unwrap();
                    }
                };
                let plan = world.plan(THERE);
                let roots = roots(&world.base());
                let error = apply_observed(&plan, &roots, &world.journals(), swap, &mut observe)
                    .unwrap_err();
                assert!(matches!(error, ApplyError::ChangedSince { .. }), "{error}");
                expected.insert(victim.to_owned(), "mine\n".to_owned());
                assert_eq!(relative(&world), expected, "{victim} at {moment:?}");
                assert_eq!(world.recover(), []);
            }
        }
    }
}
