//! Patches on real files.

#![cfg(unix)]

use sandgate_patch::{
    ApplyError, Disk, Outside, Plan, PlanError, Reason, Roots, Why, apply, recover,
};
use sandgate_protocol::WritableRoot;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A workspace that is a root, a place outside of it, and a place for journals.
struct World {
    _kept: TempDir,
    work: PathBuf,
    outside: PathBuf,
    journals: PathBuf,
}

impl World {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let base = kept.path().canonicalize().unwrap();
        let [work, outside, journals] = ["work", "outside", "journals"].map(|name| base.join(name));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&outside).unwrap();
        Self { _kept: kept, work, outside, journals }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        for (path, contents) in files {
            world.write(path, contents);
        }
        world
    }

    fn write(&self, path: &str, contents: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn roots(&self) -> Roots {
        let git = self.work.join(".git");
        let root = WritableRoot { path: self.work.clone(), read_only_subpaths: vec![git] };
        Roots::new([root], [])
    }

    fn plan(&self, lines: &str) -> Result<Plan, PlanError> {
        let text = format!("*** Begin Patch\n{lines}\n*** End Patch\n");
        Plan::of(&text.parse().unwrap(), &self.work, &Disk::default())
    }

    fn apply(&self, plan: &Plan) -> Result<(), ApplyError> {
        let applied = apply(plan, &self.roots(), &self.journals);
        assert_eq!(self.journals_left(), 0);
        applied.map(|applied| assert!(applied.recovered.is_empty()))
    }

    fn patch(&self, lines: &str) {
        let plan = self.plan(lines).unwrap_or_else(|error| panic!("{error}"));
        self.apply(&plan).unwrap_or_else(|error| panic!("{error}"));
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work.join(path)).unwrap()
    }

    fn journals_left(&self) -> usize {
        let entries = fs::read_dir(&self.journals).into_iter().flatten();
        entries.filter(|entry| entry.as_ref().unwrap().file_name() != "lock").count()
    }
}

/// Everything in a directory: kinds, modes and contents.
fn snapshot(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let what = if metadata.is_dir() {
            found.extend(snapshot(&path));
            String::new()
        } else if metadata.is_symlink() {
            path.read_link().unwrap().display().to_string()
        } else {
            fs::read_to_string(&path).unwrap()
        };
        found.push(format!("{} {:o} {what:?}", path.display(), metadata.mode()));
    }
    found.sort_unstable();
    found
}

const EVERYTHING: &str = "\
*** Add File: new/deep/file
+added
*** Update File: src/a
@@
-one
+two
*** Delete File: gone
*** Update File: src/b
*** Move to: moved/b
@@
-b
+c";

fn everything() -> World {
    World::with(&[("src/a", "one\n"), ("src/b", "b\n"), ("gone", "x\n"), ("other", "o\n")])
}

/// spec PATCH.50: Applying a plan makes, changes, moves and removes the files as it says, makes the
/// directories that they need, and leaves nothing else behind.
#[test]
fn a_plan_is_done() {
    let world = everything();
    world.patch(EVERYTHING);
    assert_eq!(world.read("new/deep/file"), "added\n");
    assert_eq!(world.read("src/a"), "two\n");
    assert_eq!(world.read("moved/b"), "c\n");
    assert_eq!(world.read("other"), "o\n");
    let files = snapshot(&world.work).iter().filter(|line| line.contains(" 100")).count();
    assert_eq!(files, 4, "{:?}", snapshot(&world.work));
}

/// spec PATCH.51: When one file cannot be changed none is, and the directories that were made are
/// removed again.
#[test]
fn all_or_none() {
    for interfere in [
        |world: &World| world.write("moved/b", "in the way\n"),
        |world: &World| world.write("gone", "changed\n"),
        |world: &World| world.write("src/b", "changed\n"),
        |world: &World| fs::remove_file(world.work.join("src/a")).unwrap(),
        |world: &World| {
            fs::remove_file(world.work.join("gone")).unwrap();
            fs::create_dir(world.work.join("gone")).unwrap();
        },
        |world: &World| {
            fs::remove_file(world.work.join("src/a")).unwrap();
            symlink("../other", world.work.join("src/a")).unwrap();
        },
    ] {
        let world = everything();
        let plan = world.plan(EVERYTHING).unwrap();
        interfere(&world);
        let before = snapshot(&world.work);
        let error = world.apply(&plan).unwrap_err();
        assert!(matches!(error, ApplyError::ChangedSince { .. }), "{error}");
        assert_eq!(snapshot(&world.work), before);
    }
}

/// spec PATCH.52: A changed or moved file keeps its mode, and its owner where that may be given away.
#[test]
fn modes_are_kept() {
    let world = everything();
    let set = |path: &str, mode| {
        fs::set_permissions(world.work.join(path), Permissions::from_mode(mode)).unwrap();
    };
    let mode = |path: &str| fs::metadata(world.work.join(path)).unwrap().mode() & 0o7777;
    set("src/a", 0o751);
    set("src/b", 0o4700);
    let am_root = fs::metadata(world.work.join("src/a")).unwrap().uid() == 0;
    if am_root {
        std::os::unix::fs::chown(world.work.join("src/a"), Some(12345), Some(54321)).unwrap();
    }
    world.patch(EVERYTHING);
    assert_eq!(mode("src/a"), 0o751);
    assert_eq!(mode("moved/b"), 0o700, "whoever changes a program takes its setuid bit away");
    if am_root {
        let owner = fs::metadata(world.work.join("src/a")).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (12345, 54321));
    }
}

/// spec PATCH.53: A file that may not be written to is not replaced.
#[test]
fn a_read_only_file_stays() {
    let world = everything();
    let file = world.work.join("src/a");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&file).is_ok() {
        println!("SKIPPED: root may write to every file");
        return;
    }
    let before = snapshot(&world.work);
    let error = world.apply(&world.plan(EVERYTHING).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write to "), "{error}");
    assert_eq!(snapshot(&world.work), before);
}

/// spec PATCH.35: A link to a file is edited as the file that it leads to, and stays; deleting or
/// moving a link, and a link that leads nowhere, are refused.
#[test]
fn a_link_is_edited_through_and_never_removed() {
    let world = World::with(&[("real/file", "x\n")]);
    symlink("real/file", world.work.join("link")).unwrap();
    symlink("real", world.work.join("dir")).unwrap();
    symlink("nowhere", world.work.join("dangling")).unwrap();
    world.patch("*** Update File: link\n@@\n-x\n+y");
    assert_eq!(world.read("real/file"), "y\n");
    assert!(world.work.join("link").is_symlink());
    let plan = world.plan("*** Update File: dir/file\n@@\n-y\n+z\n*** Add File: dir/new\n+n");
    let plan = plan.unwrap();
    assert_eq!(plan.summary(), "M real/file\nA real/new\n", "shown where it really is");
    world.apply(&plan).unwrap();
    assert_eq!((world.read("real/file"), world.read("real/new")), ("z\n".into(), "n\n".into()));
    let one_file = "*** Update File: link\n@@\n-z\n+1\n*** Update File: dir/file\n@@\n-1\n+2";
    world.patch(one_file);
    assert_eq!(world.read("real/file"), "2\n");
    for lines in ["*** Delete File: link", "*** Update File: link\n*** Move to: b"] {
        let error = world.plan(lines).unwrap_err();
        assert!(matches!(*error.reason, Reason::Link { .. }), "{error}");
    }
    for lines in ["*** Add File: dangling\n+x", "*** Add File: dangling/a\n+x"] {
        let error = world.plan(lines).unwrap_err();
        assert!(error.to_string().contains("a link that leads nowhere"), "{error}");
    }
    let error = world.plan("*** Add File: real/file/x\n+x").unwrap_err();
    assert!(error.to_string().ends_with("file is not a directory"), "{error}");
}

/// spec PATCH.42: A plan that writes outside the roots, through a link out of them or to a protected
/// name is not applied, and every such path is named with its reason.
#[test]
fn nothing_is_written_outside() {
    let world = World::with(&[("a", "x\n")]);
    fs::write(world.outside.join("victim"), "safe\n").unwrap();
    symlink(&world.outside, world.work.join("out")).unwrap();
    symlink(world.outside.join("victim"), world.work.join("innocent")).unwrap();
    let victim = world.outside.join("victim");
    let outside = |path: PathBuf| Outside { path, why: Why::OutsideWritableRoots };
    let protected = |path: &str| Outside { path: world.work.join(path), why: Why::Protected };
    let update = |path: &str| format!("*** Update File: {path}\n@@\n-safe\n+owned");
    for (lines, expected) in [
        (update("innocent"), outside(victim.clone())),
        (update("out/victim"), outside(victim.clone())),
        (update("../outside/victim"), outside(victim.clone())),
        (update(victim.to_str().unwrap()), outside(victim.clone())),
        ("*** Delete File: out/victim".into(), outside(victim.clone())),
        ("*** Add File: out/new\n+x".into(), outside(world.outside.join("new"))),
        ("*** Update File: a\n*** Move to: out/new".into(), outside(world.outside.join("new"))),
        ("*** Add File: .git/hooks/pre-commit\n+x".into(), protected(".git/hooks/pre-commit")),
        ("*** Add File: sub/.git/config\n+x".into(), protected("sub/.git/config")),
        ("*** Add File: .codex/config.toml\n+x".into(), protected(".codex/config.toml")),
    ] {
        let before = (snapshot(&world.work), snapshot(&world.outside));
        let plan = world.plan(&format!("{lines}\n*** Add File: fine\n+x")).unwrap();
        assert_eq!(plan.check(&world.roots()), std::slice::from_ref(&expected), "{lines}");
        let error = world.apply(&plan).unwrap_err();
        assert!(
            matches!(&error, ApplyError::Outside { outside } if *outside == [expected]),
            "{error}"
        );
        assert_eq!((snapshot(&world.work), snapshot(&world.outside)), before, "{lines}");
    }
    let plan = world.plan(&update("innocent")).unwrap();
    let approved = Roots::new([], [victim.clone()]);
    apply(&plan, &approved, &world.journals).unwrap();
    assert_eq!(fs::read_to_string(victim).unwrap(), "owned\n", "what was approved is written");
}

/// spec PATCH.43: A directory that becomes a link out of the root after the check is not followed.
#[test]
fn a_link_made_after_the_check_is_not_followed() {
    let world = World::with(&[("dir/file", "x\n")]);
    fs::write(world.outside.join("file"), "x\n").unwrap();
    let lines = "*** Update File: dir/file\n@@\n-x\n+y\n*** Add File: dir/sub/new\n+n";
    let plan = world.plan(lines).unwrap();
    assert!(plan.check(&world.roots()).is_empty());
    fs::rename(world.work.join("dir"), world.work.join("before")).unwrap();
    symlink(&world.outside, world.work.join("dir")).unwrap();
    let before = (snapshot(&world.work), snapshot(&world.outside));
    let error = world.apply(&plan).unwrap_err();
    assert!(matches!(error, ApplyError::Io { .. }), "{error}");
    assert_eq!((snapshot(&world.work), snapshot(&world.outside)), before);
}

/// spec PATCH.36: What is neither a file nor a directory is refused, and is not opened.
#[test]
fn a_pipe_is_not_waited_for() {
    let world = World::new();
    let pipe = world.work.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let error = world.plan("*** Update File: pipe\n@@\n-x").unwrap_err();
    assert_eq!(*error.reason, Reason::Special);
}

/// spec PATCH.54: Of two patches that change the same file at once, one is done wholly and the other is
/// refused wholly.
#[test]
fn of_two_patches_at_once_one_wins() {
    let world = World::with(&[("shared", "0\n")]);
    for round in 0..20 {
        let plan = |who: char| {
            let lines = format!(
                "*** Add File: {round}/{who}\n+x\n*** Update File: shared\n@@\n-{}\n+{round}{who}",
                world.read("shared").trim_end()
            );
            world.plan(&lines).unwrap()
        };
        let plans = [plan('a'), plan('b')];
        let barrier = std::sync::Barrier::new(2);
        let done: Vec<bool> = std::thread::scope(|scope| {
            let start = |plan| {
                let (world, barrier) = (&world, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    match apply(plan, &world.roots(), &world.journals) {
                        Ok(_) => true,
                        Err(ApplyError::ChangedSince { .. }) => false,
                        Err(other) => panic!("{other}"),
                    }
                })
            };
            let threads: Vec<_> = plans.iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(done.iter().filter(|won| **won).count(), 1, "{done:?}");
        let winner = if done[0] { 'a' } else { 'b' };
        assert_eq!(world.read("shared"), format!("{round}{winner}\n"));
        let added: Vec<_> = fs::read_dir(world.work.join(round.to_string())).unwrap().collect();
        assert_eq!(added.len(), 1);
        assert_eq!(
            added[0].as_ref().unwrap().file_name().to_str(),
            Some(winner.to_string().as_str())
        );
    }
}

/// spec PATCH.37: `git apply` makes the same of a plan's diff as applying the plan does.
#[test]
#[expect(clippy::disallowed_methods, reason = "asks git what it makes of a diff")]
fn git_reads_the_diff() {
    let git = |directory: &Path, arguments: &[&str]| {
        std::process::Command::new("git").args(arguments).current_dir(directory).status()
    };
    let (ours, theirs) = (everything(), everything());
    if !git(&theirs.work, &["--version"]).is_ok_and(|status| status.success()) {
        println!("SKIPPED: there is no git");
        return;
    }
    for world in [&ours, &theirs] {
        world.write("crlf", "a\r\nb\r\nc");
        fs::write(world.work.join("bytes"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n").unwrap();
    }
    let lines = format!(
        "{EVERYTHING}\n*** Update File: crlf\n@@\n-b\n+x\n+y\n*** Update File: bytes\n@@\n-2\n@@\n 8\n+8.5"
    );
    let plan = ours.plan(&lines).unwrap();
    let diff = theirs.outside.join("diff");
    fs::write(&diff, plan.diff()).unwrap();
    assert!(git(&theirs.work, &["apply", diff.to_str().unwrap()]).unwrap().success());
    ours.apply(&plan).unwrap();
    let relative = |world: &World| -> Vec<String> {
        let prefix = world.work.display().to_string();
        snapshot(&world.work).iter().map(|line| line.replace(&prefix, "")).collect()
    };
    assert_eq!(relative(&ours), relative(&theirs));
}

#[test]
fn there_is_nothing_to_recover_where_nothing_was_done() {
    let world = World::new();
    assert_eq!(recover(&world.journals).unwrap(), []);
    assert!(!world.journals.exists());
}
