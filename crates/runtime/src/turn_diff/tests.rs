//! Whatever is done to a workspace, its diff is the way from what was there to what is.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "real git is the judge of our diffs")]

use super::baseline::{self, Baseline, KeptContents};
use super::walk::{Kind, Reach, Walk};
use super::{compare, patched::Originals, show};
use proptest::prelude::*;
use sandgate_protocol::TurnDiff;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    File { text: String, executable: bool },
    Link(String),
}

type Tree = BTreeMap<String, Thing>;

fn make(root: &Path, tree: &Tree) {
    for (name, thing) in tree {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        match thing {
            Thing::Link(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            Thing::File { text, executable } => {
                fs::write(&path, text).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if found.is_dir() {
                directories.push(path);
            } else if found.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                tree.insert(name, Thing::Link(target.to_str().unwrap().to_owned()));
            } else {
                let executable = found.permissions().mode() & 0o100 != 0;
                let text = fs::read_to_string(&path).unwrap();
                tree.insert(name, Thing::File { text, executable });
            }
        }
    }
    tree
}

fn diff(root: &Path, baseline: &Baseline) -> TurnDiff {
    show::diff(compare::changes(root, Some(baseline), &Originals::default()))
}

fn look(root: &Path) -> Baseline {
    Baseline::take(root, &KeptContents::default())
}

fn has_git() -> bool {
    let there = Command::new("git").arg("--version").stdout(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    if !there {
        println!("SKIPPED: there is no git");
    }
    there
}

/// Has git apply a diff, and says what it complains about.
fn git_apply(at: &Path, options: &[&str], diff: &str) -> Result<(), String> {
    let patch = tempfile::NamedTempFile::new().unwrap();
    fs::write(patch.path(), diff).unwrap();
    let output = Command::new("git")
        .args(["apply", "--whitespace=nowarn"])
        .args(options)
        .arg(patch.path())
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", at.parent().unwrap())
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let names = prop::sample::select(vec![
        "a",
        "b/c",
        "b/d",
        "sp ace/x y",
        "qu\"ote",
        "back\\slash",
        "tab\tbed",
        "ünï",
        "deep/er/est",
        "-dash",
        ".hidden",
        "line\nbreak",
    ]);
    let line =
        prop::sample::select(vec!["one", "two", "", "+x", "-y", "@@ z", "\\ No", " in", "three\r"]);
    let text = (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text = lines.join("\n");
        if ended && !text.is_empty() {
            text.push('\n');
        }
        text
    });
    let file =
        (text, any::<bool>()).prop_map(|(text, executable)| Thing::File { text, executable });
    let link =
        prop::sample::select(vec!["a", "nowhere", "b/c"]).prop_map(|to| Thing::Link(to.into()));
    let thing = prop_oneof![6 => file, 1 => link];
    prop::collection::btree_map(names.prop_map(str::to_owned), thing, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// spec TURN.4: A diff without what is not shown, applied by git to what was there, makes what is
    /// there now, and backwards.
    #[test]
    fn git_makes_the_new_workspace_of_the_old_one(old in trees(), new in trees()) {
        if !has_git() {
            return Ok(());
        }
        let outside = tempfile::tempdir().unwrap();
        let [work, copy] = ["work", "copy"].map(|name| outside.path().join(name));
        for root in [&work, &copy] {
            fs::create_dir(root).unwrap();
            make(root, &old);
        }
        let baseline = look(&work);
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            fs::remove_file(work.join(name)).unwrap();
        }
        make(&work, &new);
        let told = diff(&work, &baseline);
        prop_assert_eq!(&told.not_shown, &[] as &[String]);
        if old == new {
            prop_assert_eq!(&told.unified_diff, "");
            return Ok(());
        }
        let text = &told.unified_diff;
        prop_assert_eq!(git_apply(&work, &["--check", "-R"], text), Ok(()), "{}", text);
        prop_assert_eq!(git_apply(&copy, &[], text), Ok(()), "{}", text);
        prop_assert_eq!(tree(&copy), new);
        prop_assert_eq!(&diff(&work, &baseline), &told, "the same again");
    }
}

/// A workspace with these files.
fn workspace(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for (name, contents) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), contents).unwrap();
    }
    (directory, root)
}

/// spec TURN.5: What git ignores is not in it, and neither is what a change of `.gitignore` brings to
/// light.
#[test]
fn what_is_ignored_stays_out() {
    let (_held, root) = workspace(&[
        (".gitignore", b"target/\n*.log\n"),
        ("target/out", b"1"),
        ("a.log", b"1"),
        ("a", b"1\n"),
    ]);
    age(&root);
    let baseline = look(&root);
    fs::write(root.join("target/out"), "2").unwrap();
    fs::write(root.join("b.log"), "2").unwrap();
    assert_eq!(diff(&root, &baseline).unified_diff, "");
    fs::write(root.join(".gitignore"), "target/\na\n").unwrap();
    let told = diff(&root, &baseline).unified_diff;
    assert!(told.contains("diff --git a/.gitignore b/.gitignore\n"), "{told}");
    assert!(told.contains("b/b.log\nnew file mode"), "made in this turn: {told}");
    assert!(!told.contains("a.log"), "{told}");
    assert!(!told.contains("diff --git a/a b/a"), "unchanged, if ignored by now: {told}");
}

/// Waits until everything in a workspace counts as older than what comes.
fn age(root: &Path) {
    let newest = || Walk::of(root, 1000, Duration::from_secs(10)).files;
    let now = std::time::SystemTime::now;
    while newest().iter().any(|(_, stamp)| stamp.changed_since(now())) {
        std::thread::yield_now();
    }
}

/// spec TURN.6: Binary files are named, what is too large to be kept or shown is named with the reason,
/// and so is what is not UTF-8.
#[test]
fn what_cannot_be_shown_is_named() {
    let large = vec![b'x'; 300 << 10];
    let (_held, root) = workspace(&[
        ("large", &large),
        ("binary", b"a\0b"),
        ("latin", b"caf\xe9\n"),
        ("gone", &large),
    ]);
    let baseline = look(&root);
    fs::write(root.join("large"), "small now\n").unwrap();
    fs::write(root.join("binary"), b"a\0c").unwrap();
    fs::write(root.join("latin"), b"the caf\xe9\n").unwrap();
    fs::write(root.join("new"), &large).unwrap();
    fs::remove_file(root.join("gone")).unwrap();
    let told = diff(&root, &baseline);
    assert_eq!(
        told.not_shown,
        [
            "gone: deleted; its old content was not kept",
            "large: changed; its old content was not kept",
            "latin: not all of it is UTF-8",
            "new: new, and too large to show",
        ]
    );
    let binary = "diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n";
    assert!(told.unified_diff.starts_with(binary), "{}", told.unified_diff);
}

/// spec TURN.7: A diff has at most 1 MiB of text; the files that do not fit are named.
#[test]
fn a_diff_is_bounded() {
    let (_held, root) = workspace(&[]);
    let baseline = look(&root);
    let line = "x".repeat(99) + "\n";
    for name in 0..8 {
        fs::write(root.join(name.to_string()), line.repeat(2500)).unwrap();
    }
    let told = diff(&root, &baseline);
    assert!(told.unified_diff.len() <= 1 << 20);
    let shown = told.unified_diff.matches("diff --git").count();
    assert_eq!((shown, told.not_shown.len()), (4, 4));
    assert!(told.not_shown[0].starts_with("4: its diff of 25"), "{:?}", told.not_shown);
}

/// spec TURN.8: A workspace that is too large to be looked at whole is looked at in part, and the diff
/// says so.
#[test]
fn a_workspace_that_is_too_large_is_told_of() {
    let (_held, root) = workspace(&[("a", b"1\n"), ("b", b"1\n"), ("c", b"1\n")]);
    assert_eq!(Walk::of(&root, 3, Duration::from_secs(60)).reach, Reach::Whole);
    let walk = Walk::of(&root, 2, Duration::from_secs(60));
    assert_eq!((walk.reach, walk.files.len()), (Reach::Partial, 2));
    age(&root);
    let mut baseline = look(&root);
    baseline.reach = Reach::Partial;
    baseline.files.pop_last();
    fs::write(root.join("a"), "2\n").unwrap();
    fs::write(root.join("d"), "2\n").unwrap();
    let told = diff(&root, &baseline);
    assert!(told.unified_diff.contains("-1\n+2\n"), "{told:?}");
    assert_eq!(told.unified_diff.matches("diff --git").count(), 1, "{told:?}");
    assert!(told.not_shown[0].starts_with("the workspace is too large to be"), "{told:?}");
    assert_eq!(told.not_shown[1], "1 files that had not been looked at were made or changed");
}

/// Links are shown as links, and nothing behind them is looked at.
#[test]
fn links_are_not_followed() {
    let (_held, root) = workspace(&[("inside/a", b"1\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
    let baseline = look(&root);
    fs::write(outside.path().join("secret"), "changed").unwrap();
    assert_eq!(diff(&root, &baseline).unified_diff, "");
    fs::remove_file(root.join("out")).unwrap();
    std::os::unix::fs::symlink("inside", root.join("out")).unwrap();
    let told = diff(&root, &baseline).unified_diff;
    let expected = "diff --git a/out b/out\n--- a/out\n+++ b/out\n@@ -1 +1 @@\n";
    assert!(told.starts_with(expected) && told.contains("+inside\n\\ No newline"), "{told}");
}

/// What was read once is not read again while the file is the same.
#[test]
fn contents_are_remembered_from_turn_to_turn() {
    let (_held, root) = workspace(&[("a", b"1\n")]);
    age(&root);
    let kept = KeptContents::default();
    let held = |baseline: Baseline| baseline.files[Path::new("a")].held.clone();
    let (first, second) = (held(Baseline::take(&root, &kept)), held(Baseline::take(&root, &kept)));
    let (super::baseline::Held::Contents(first), super::baseline::Held::Contents(second)) =
        (first, second)
    else {
        panic!("not kept");
    };
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}

#[test]
fn what_an_empty_file_holds_is_known_though_nobody_may_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    fs::write(&lock, "").unwrap();
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o200)).unwrap();
    assert_eq!(baseline::read(&lock, Kind::File).as_deref(), Some(&[][..]));
    fs::write(&lock, "x").unwrap();
    // Root may read it.
    let held = rustix::process::geteuid().is_root().then_some(&b"x"[..]);
    assert_eq!(baseline::read(&lock, Kind::File).as_deref(), held);
}
