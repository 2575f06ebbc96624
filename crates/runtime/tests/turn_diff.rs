//! What a turn changed, through a whole session.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "the repositories are made by the real git")]

mod support;

use sandgate_protocol::{AskForApproval, Event, SandboxPolicy, TurnDiff};
use sandgate_runtime::TurnDiffs;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::scene::{Scene, heard};

fn scene() -> Scene {
    Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write())
}

fn patch(sections: &str) -> serde_json::Value {
    json!({ "input": format!("*** Begin Patch\n{sections}*** End Patch\n") })
}

fn script(text: &str) -> serde_json::Value {
    json!({ "command": text, "login": false })
}

/// The diffs that were told.
fn diffs(events: Vec<Event>) -> Vec<TurnDiff> {
    let told = events.into_iter().filter_map(|event| match event {
        Event::TurnDiff(diff) => Some(diff),
        _ => None,
    });
    told.collect()
}

/// spec TURN.1: When a turn ends that changed something in the workspace, by patches or by commands, one
/// unified diff of all of it is told; before that it can be asked for at any moment.
#[tokio::test]
async fn a_turn_tells_what_patches_and_commands_changed() {
    let scene = scene();
    fs::write(scene.path().join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(scene.path().join("b.txt"), "one\n").unwrap();
    fs::write(scene.path().join("gone.txt"), "gone\n").unwrap();
    let mut events = scene.events().await;
    let requester = scene.session.requester();
    let turn = requester.begin_turn();
    assert_eq!(turn.diff().await.unified_diff, "");

    let update = "*** Update File: a.txt\n@@\n-one\n+ONE\n";
    scene.call_in(&turn, "apply_patch", patch(update)).await;
    let after_patch = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n\
                       +ONE\n two\n";
    assert_eq!(turn.diff().await.unified_diff, after_patch);

    let commands = "sed -i s/two/TWO/ a.txt; echo two >> b.txt; rm gone.txt; mkdir new; \
                    printf '#!/bin/sh\\n' > new/run; chmod +x new/run";
    let result = scene.call_in(&turn, "shell_command", script(commands)).await;
    assert_eq!(result.error, None);
    let back = "*** Update File: b.txt\n@@\n one\n-two\n+three\n";
    scene.call_in(&turn, "apply_patch", patch(back)).await;
    requester.end_turn(turn).await;

    let told = diffs(heard(&mut events));
    let expected = "\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-one
-two
+ONE
+TWO
diff --git a/b.txt b/b.txt
--- a/b.txt
+++ b/b.txt
@@ -1 +1,2 @@
 one
+three
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/new/run b/new/run
new file mode 100755
--- /dev/null
+++ b/new/run
@@ -0,0 +1 @@
+#!/bin/sh
";
    assert_eq!(told, [TurnDiff { unified_diff: expected.to_owned(), not_shown: Vec::new() }]);
}

/// spec TURN.2: A turn that changed nothing, or put back what it changed, tells nothing; and a turn's
/// diff is about that turn only.
#[tokio::test]
async fn a_turn_that_changed_nothing_tells_nothing() {
    let scene = scene();
    fs::write(scene.path().join("a.txt"), "one\n").unwrap();
    let mut events = scene.events().await;
    let requester = scene.session.requester();
    let turn = requester.begin_turn();
    scene.call_in(&turn, "shell", json!({"command": ["ls"]})).await;
    let there_and_back = "echo two > a.txt; echo one > a.txt; touch a.txt";
    scene.call_in(&turn, "shell_command", script(there_and_back)).await;
    requester.end_turn(turn).await;
    assert_eq!(diffs(heard(&mut events)), []);

    let turn = requester.begin_turn();
    scene.call_in(&turn, "shell_command", script("echo two > a.txt")).await;
    requester.end_turn(turn).await;
    assert_eq!(diffs(heard(&mut events)).len(), 1);
    let turn = requester.begin_turn();
    scene.call_in(&turn, "shell_command", script("echo new > b.txt")).await;
    requester.end_turn(turn).await;
    let told = diffs(heard(&mut events));
    assert!(!told[0].unified_diff.contains("a.txt"), "{told:?}");
}

fn git(at: &Path, words: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(words).current_dir(at).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    command.status().is_ok_and(|status| status.success())
}

/// spec TURN.3: What a file held that is as git has it is had from git, without a filter or a hook of
/// the repository's being run.
#[tokio::test]
async fn what_git_has_is_not_kept_twice() {
    let scene = scene();
    let top = scene.path();
    if !git(top, &["init", "-q"]) {
        println!("SKIPPED: there is no git");
        return;
    }
    let mark = scene.around.path().join("ran");
    let text: String = (0..100).map(|line| format!("line {line}\n")).collect();
    fs::create_dir(top.join("sub")).unwrap();
    for name in ["a.txt", "sub/b.txt"] {
        fs::write(top.join(name), &text).unwrap();
    }
    // Who was changed long before the index was written is as git has it.
    for name in ["a.txt", "sub/b.txt"] {
        let file = fs::File::options().write(true).open(top.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000))
            .unwrap();
    }
    assert!(git(top, &["add", "."]) && git(top, &["commit", "-qm", "one"]));
    let runs = format!("touch {}; cat", mark.display());
    for key in ["filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.external"] {
        assert!(git(top, &["config", key, &runs]));
    }
    fs::write(top.join(".gitattributes"), "*.txt filter=x diff=x\n").unwrap();
    // What was changed a moment ago is read anyway, because its times would not tell a change.
    let changed = fs::metadata(top.join("sub/b.txt")).unwrap();
    let changed = std::os::unix::fs::MetadataExt::ctime(&changed);
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    while now().as_secs() < changed.cast_unsigned() + 2 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let requester = scene.session.requester();
    let turn = requester.begin_turn();
    let change = "sed -i 's/line 50$/LINE 50/' a.txt sub/b.txt";
    assert_eq!(scene.call_in(&turn, "shell_command", script(change)).await.error, None);
    let told = turn.diff().await;
    assert_eq!(told.not_shown, [""; 0]);
    assert_eq!(told.unified_diff.matches("-line 50\n+LINE 50\n").count(), 2, "{told:?}");
    assert!(!mark.exists());

    // It really was git that had it.
    fs::remove_dir_all(top.join(".git/objects")).unwrap();
    fs::create_dir(top.join(".git/objects")).unwrap();
    let not_kept =
        ["a.txt", "sub/b.txt"].map(|name| format!("{name}: changed; its old content was not kept"));
    assert_eq!(turn.diff().await.not_shown, not_kept);
}

/// spec TURN.9: A session that is told to follows nothing, and one that can only read looks at nothing
/// before its commands.
#[tokio::test]
async fn nobody_pays_for_a_diff_that_nobody_wants() {
    let off = Scene::with(AskForApproval::OnRequest, SandboxPolicy::workspace_write(), |config| {
        config.turn_diffs = TurnDiffs::Off;
    });
    let mut events = off.events().await;
    let requester = off.session.requester();
    let turn = requester.begin_turn();
    off.call_in(&turn, "shell_command", script("echo new > a.txt")).await;
    off.call_in(&turn, "apply_patch", patch("*** Add File: b.txt\n+b\n")).await;
    assert!(off.path().join("a.txt").exists() && off.path().join("b.txt").exists());
    requester.end_turn(turn).await;
    assert_eq!(diffs(heard(&mut events)), []);

    let reader = Scene::new(AskForApproval::OnRequest, SandboxPolicy::ReadOnly);
    let turn = reader.session.begin_turn();
    reader.call_in(&turn, "shell_command", script("echo new > a.txt")).await;
    // Somebody else made it; nobody had looked before.
    fs::write(reader.path().join("b.txt"), "new\n").unwrap();
    assert_eq!(turn.diff().await.unified_diff, "");
}

#[tokio::test]
async fn what_a_process_changes_that_lives_across_calls_is_told_too() {
    let scene = scene();
    fs::write(scene.path().join("a.txt"), "one\n").unwrap();
    let turn = scene.session.begin_turn();
    let arguments = json!({ "command": "echo two >> a.txt", "login": false });
    let result = scene.call_in(&turn, "exec_command", arguments).await;
    assert_eq!(result.error, None);
    let told = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n";
    assert_eq!(turn.diff().await.unified_diff, told);

    let arguments = json!({ "command": ["sh"], "process_id": "sh", "yield_time_ms": 30000 });
    scene.call_in(&turn, "exec_command", arguments).await;
    let another = scene.session.begin_turn();
    let arguments = json!({ "process_id": "sh", "input": "rm a.txt\n", "yield_time_ms": 30000 });
    scene.call_in(&another, "write_stdin", arguments).await;
    let diff = another.diff().await.unified_diff;
    assert!(diff.contains("deleted file"), "{diff}");
}

/// spec TURN.10: A pipe in the place of a `.gitignore` holds neither a command nor the diff up: its directory
/// is not looked at, and the diff says so.
#[tokio::test]
async fn a_pipe_that_says_what_is_ignored_holds_no_turn_up() {
    let scene = scene();
    fs::create_dir(scene.path().join("sub")).unwrap();
    fs::write(scene.path().join("sub/old"), "old\n").unwrap();
    let requester = scene.session.requester();
    let turn = requester.begin_turn();
    let first = "mkfifo sub/.gitignore; echo new > sub/old; echo new > top";
    assert_eq!(scene.call_in(&turn, "shell_command", script(first)).await.error, None);
    let diff = turn.diff().await;
    assert!(diff.unified_diff.contains("-old\n+new\n"), "{}", diff.unified_diff);
    assert!(diff.unified_diff.contains("+++ b/top\n"), "{}", diff.unified_diff);
    let said = "sub/ was left out: its ignore files are not plain files";
    assert_eq!(diff.not_shown, [said]);
    requester.end_turn(turn).await;

    let turn = requester.begin_turn();
    let second = "rm sub/.gitignore; echo newer > top";
    assert_eq!(scene.call_in(&turn, "shell_command", script(second)).await.error, None);
    let diff = turn.diff().await;
    assert!(diff.unified_diff.contains("-new\n+newer\n"), "{}", diff.unified_diff);
    assert!(!diff.unified_diff.contains("sub/"), "{}", diff.unified_diff);
    assert!(diff.not_shown.contains(&said.to_owned()), "{:?}", diff.not_shown);
}
