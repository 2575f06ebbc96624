//! Patches that somebody wrote to do harm, through a whole session that asks nobody.

#![cfg(unix)]

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sandgate_protocol::{AskForApproval, CodexErr, SandboxPolicy};
use sandgate_runtime::TurnDiffs;
use serde_json::json;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use support::scene::{Scene, text};

const PROTECTED: [&str; 3] = ["work/.git", "work/.codex", "work/nested/.git"];

/// Makes everything anew: the workspace, what is around it, and links that lead from one to the other.
fn lay_out(around: &Path) {
    for name in ["work", "outside", "secret"] {
        let path = around.join(name);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    for name in ["outside/dir", "work/dir", "work/.git/hooks", "work/.codex", "work/nested/.git"] {
        fs::create_dir_all(around.join(name)).unwrap();
    }
    for name in [
        "secret",
        "outside/file",
        "work/a.txt",
        "work/dir/b.txt",
        "work/.git/config",
        "work/.codex/config.toml",
        "work/nested/.git/config",
        "work/nested/c.txt",
    ] {
        fs::write(around.join(name), "one\ntwo\nthree\n").unwrap();
    }
    let links = [
        ("../secret", "link"),
        ("../outside", "out"),
        ("../nowhere", "dangling"),
        ("loop", "loop"),
        ("a.txt", "inner"),
        (".git", "to-git"),
        ("/proc/self/root", "everything"),
    ];
    for (to, name) in links {
        symlink(to, around.join("work").join(name)).unwrap();
    }
    let fifo = around.join("work/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, fifo, rustix::fs::Mode::RWXU).unwrap();
}

/// Every name below a directory with its kind, its mode and what it holds.
fn listing(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode();
            let holds = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.push(format!("{} {mode:o} {}", path.display(), String::from_utf8_lossy(&holds)));
            if metadata.is_dir() {
                directories.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}

/// What no patch may touch: everything around the workspace, and what is protected in it.
fn closed(around: &Path) -> Vec<Vec<String>> {
    let around_it: Vec<String> = listing(around)
        .into_iter()
        .filter(|line| !line.starts_with(&*around.join("work/").to_string_lossy()))
        .collect();
    let protected = PROTECTED.iter().map(|name| listing(&around.join(name)));
    std::iter::once(around_it).chain(protected).collect()
}

fn names(around: &Path) -> Vec<String> {
    let inside = [
        "a.txt",
        "dir/b.txt",
        "new.txt",
        "new/deep/x",
        "link",
        "out/file",
        "out/new",
        "dangling",
        "loop",
        "loop/x",
        "inner",
        "to-git/config",
        "everything/tmp/x",
        ".git/config",
        ".git/new",
        ".GIT/config",
        ".git",
        ".codex/config.toml",
        ".agents/x",
        "nested/.git/config",
        "nested/.git/hooks/post-checkout",
        "nested/c.txt",
        "dir",
        "dir/",
        "dir/..",
        ".",
        "..",
        "",
        "a.txt/x",
        "fifo",
        "../secret",
        "../new",
        "../outside/file",
        "dir/../../secret",
        "dir/../a.txt",
        "./out/../secret",
        "../work/a.txt",
        "/",
        "//etc/passwd",
        "~/x",
        "a\0b",
        "-x",
        "\u{202e}x",
    ];
    let mut names: Vec<String> = inside.map(str::to_owned).to_vec();
    names.push("x".repeat(300));
    names.push("d/".repeat(100) + "x");
    for name in ["secret", "outside/new", "work/a.txt", "work/.git/config"] {
        names.push(around.join(name).display().to_string());
    }
    names
}

/// Patches of sections that make sense one by one, some of them cut or with letters changed.
fn patches(around: &Path) -> impl Strategy<Value = String> + use<> {
    let harmless = ["a.txt", "dir/b.txt", "nested/c.txt", "new.txt", "new/deep/x", "inner"];
    let harmless = prop::sample::select(harmless.map(str::to_owned).to_vec());
    let name = prop_oneof![harmless, prop::sample::select(names(around))];
    let add = name.clone().prop_map(|name| format!("*** Add File: {name}\n+x\n"));
    let delete = name.clone().prop_map(|name| format!("*** Delete File: {name}\n"));
    let update = (name.clone(), prop::option::of(name)).prop_map(|(name, to)| {
        let to = to.map(|to| format!("*** Move to: {to}\n")).unwrap_or_default();
        format!("*** Update File: {name}\n{to}@@\n one\n-two\n+2\n")
    });
    let section = prop_oneof![add, delete, update];
    let whole = prop::collection::vec(section, 1..5)
        .prop_map(|sections| format!("*** Begin Patch\n{}*** End Patch\n", sections.concat()));
    let mutated = (whole.clone(), any::<prop::sample::Index>(), "[ -~\n\0]{0,4}").prop_map(
        |(text, at, instead)| {
            let at = text
                .char_indices()
                .map(|(at, _)| at)
                .nth(at.index(text.chars().count()))
                .unwrap_or(0);
            let behind = text[at..].char_indices().nth(3).map_or(text.len(), |(more, _)| at + more);
            format!("{}{instead}{}", &text[..at], &text[behind..])
        },
    );
    prop_oneof![6 => whole, 2 => mutated, 1 => ".{0,200}"]
}

/// spec PATCH.70: Whatever text a session is given as a patch, it answers; nothing around the workspace
/// and nothing protected in it is changed, and a patch that fails changes nothing.
#[test]
fn no_patch_reaches_out_and_none_is_done_by_half() {
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = Scene::with(AskForApproval::Never, SandboxPolicy::workspace_write(), |config| {
        config.turn_diffs = TurnDiffs::Off;
    });
    let around = scene.around.path().canonicalize().unwrap();
    let strategy = (patches(&around), any::<bool>());
    let mut runner =
        TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let done = Cell::new(0_usize);
    let checked = runner.run(&strategy, |(patch, as_script)| {
        lay_out(&around);
        let (before, outside) = (listing(&around), closed(&around));
        let script = format!("cd .. && apply_patch <<'END'\n{patch}END\n");
        // A script that is no patch would run, confined; that is another matter.
        let is_patch = |script: &str| {
            let words = ["bash", "-lc", script].map(str::to_owned);
            sandgate_patch::from_script(&words).is_some()
        };
        let call = match as_script && is_patch(&script) {
            true => scene.call("shell_command", json!({ "command": script })),
            false => scene.call("apply_patch", json!({ "input": patch })),
        };
        let result = asynchronous.block_on(call);
        prop_assert_eq!(closed(&around), outside, "{}", text(&result));
        let after = listing(&around);
        if result.error.is_some() {
            prop_assert_eq!(&after, &before, "{}", text(&result));
        } else {
            done.set(done.get() + usize::from(after != before));
        }
        prop_assert!(!after.iter().any(|line| line.contains(".sandgate-")), "{:?}", after);
        let journals = fs::read_dir(scene.home.path().join("patches"));
        let left = journals.into_iter().flatten().flatten().map(|entry| entry.file_name());
        prop_assert!(left.into_iter().all(|name| name == "lock"));
        Ok(())
    });
    checked.unwrap();
    assert!(done.get() > 0, "none of them does anything");
}

/// spec PATCH.71: A patch of ten thousand files of which one may not be written changes none of them,
/// and one of more sections is refused.
#[tokio::test]
async fn many_files_are_done_all_or_not_at_all() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let adds = |count: usize| -> String {
        (0..count).map(|number| format!("*** Add File: {number}\n+x\n")).collect()
    };
    let last = "*** Add File: ../outside\n+x\n";
    let patch = format!("*** Begin Patch\n{}{last}*** End Patch\n", adds(9_999));
    let result = scene.call("apply_patch", json!({ "input": patch })).await;
    assert!(matches!(result.error, Some(CodexErr::Forbidden { .. })), "{:?}", result.error);
    let patch = format!("*** Begin Patch\n{}*** End Patch\n", adds(10_001));
    let result = scene.call("apply_patch", json!({ "input": patch })).await;
    assert!(matches!(result.error, Some(CodexErr::InvalidArguments { .. })), "{:?}", result.error);
    assert_eq!(listing(scene.path()), [""; 0]);
    assert!(!scene.around.path().join("outside").exists());
}

/// spec PATCH.45: A patch in a session may not write to the git directory that a `.git` file leads to,
/// nor to the settings, wherever in a writable root they lie: what is protected is found as it is for
/// commands, when the patch is checked and again when it is applied.
#[tokio::test]
async fn a_git_directory_under_another_name_is_protected() {
    let scene = Scene::with(AskForApproval::Never, SandboxPolicy::workspace_write(), |config| {
        config.config_home = Some(config.workspace.join("settings"));
    });
    let work = scene.path();
    for directory in ["store/g", "free", "settings"] {
        fs::create_dir_all(work.join(directory)).unwrap();
    }
    for file in ["store/g/config", "free/config", "settings/config"] {
        fs::write(work.join(file), "[core]\n").unwrap();
    }
    fs::write(work.join(".git"), "gitdir: store/g\n").unwrap();
    for (file, allowed) in [("store/g", false), ("settings", false), ("free", true)] {
        let input = format!(
            "*** Begin Patch\n*** Update File: {file}/config\n@@\n [core]\n+\tfsmonitor = x\n*** End Patch\n"
        );
        let result = scene.call("apply_patch", json!({ "input": input })).await;
        let changed = fs::read_to_string(work.join(file).join("config")).unwrap() != "[core]\n";
        assert_eq!(changed, allowed, "{file}: {}", text(&result));
        assert_eq!(text(&result).contains("protected"), !allowed, "{}", text(&result));
    }
}
