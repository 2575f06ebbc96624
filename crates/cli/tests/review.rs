//! `sandgate review`: a subagent that looks at a change, and `sandgate exec` with subagents.

#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::{Outcome, World};

/// A world with a repository that has one commit and one change that is not committed.
fn changed() -> World {
    let world = World::new();
    fs::create_dir(world.path("repo")).unwrap();
    git(&world, &["init", "-q", "-b", "main"]);
    fs::write(world.path("repo/sum.py"), "def sum(a, b):\n    return a + b\n").unwrap();
    git(&world, &["add", "."]);
    git(&world, &["commit", "-q", "-m", "Add sum"]);
    fs::write(world.path("repo/sum.py"), "def sum(a, b):\n    return a - b\n").unwrap();
    fs::write(world.path("repo/new.py"), "import sum\n").unwrap();
    world
}

fn git(world: &World, arguments: &[&str]) {
    let mut command = world.other("git");
    command.current_dir(world.path("repo")).args(arguments);
    for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{who}_NAME"), "T").env(format!("{who}_EMAIL"), "t@example.org");
    }
    assert!(command.env("GIT_CONFIG_NOSYSTEM", "1").status().unwrap().success());
}

/// Runs `sandgate` in the repository with a model that does this, turn after turn.
fn with_model(world: &World, turns: &[Value], arguments: &[&str]) -> Outcome {
    let script: Vec<String> = turns.iter().map(ToString::to_string).collect();
    fs::write(world.path("script.jsonl"), script.join("\n")).unwrap();
    let provider = format!("script:{}", world.path("script.jsonl").display());
    let repo = world.path("repo");
    let mut words = vec![arguments[0], "--provider", &provider];
    if !arguments.contains(&"--cd") {
        words.extend(["--cd", repo.to_str().unwrap()]);
    }
    words.extend(&arguments[1..]);
    world.sandgate(&words)
}

fn says(value: &Value) -> Value {
    json!({ "type": "message", "text": value.to_string() })
}

fn finding(path: &str, line: u64, priority: &str, title: &str) -> Value {
    json!({ "path": path, "line": line, "priority": priority, "title": title, "body": "It is so." })
}

/// spec SUB.70: A review prints its findings with file and line, the worst first, and marks what the change
/// does not touch; it ends with 1 if there are any and with 0 if there are none.
#[test]
fn a_review_prints_what_was_found() {
    let world = changed();
    let findings = [
        finding("new.py", 1, "P2", "The module shadows a builtin"),
        finding("elsewhere.py", 7, "P3", "Odd\u{1b}[2J"),
        finding("sum.py", 2, "P0", "It subtracts"),
    ];
    let answer = says(&json!({ "summary": "It breaks sum.", "findings": findings }));
    let outcome = with_model(&world, &[answer], &["review"]);
    let expected = "\
sum.py:2: [P0] It subtracts
    It is so.
new.py:1: [P2] The module shadows a builtin
    It is so.
elsewhere.py:7: [P3] Odd\\u{1b}[2J
    (the change does not touch this file)
    It is so.
";
    assert_eq!((outcome.code, outcome.stdout()), (Some(1), expected), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("It breaks sum."), "{}", outcome.stderr);
    let fine = says(&json!({ "summary": "Fine.", "findings": [] }));
    let outcome = with_model(&world, &[fine], &["review", "--uncommitted"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""), "{}", outcome.stderr);
}

/// spec SUB.71: A program gets the findings of a review as one object.
#[test]
fn a_program_gets_the_findings_as_json() {
    let world = changed();
    git(&world, &["checkout", "-q", "-b", "work"]);
    git(&world, &["commit", "-q", "-a", "-m", "Subtract"]);
    for subject in [["--base", "main"], ["--commit", "HEAD"]] {
        let answer = json!({ "summary": "s", "findings": [finding("sum.py", 2, "P1", "t")] });
        let outcome =
            with_model(&world, &[says(&answer)], &["review", "--json", subject[0], subject[1]]);
        assert_eq!(outcome.code, Some(1), "{subject:?} {}", outcome.stderr);
        let printed: Value = serde_json::from_str(outcome.stdout()).unwrap();
        assert_eq!(printed, answer, "{subject:?}");
    }
}

/// spec SUB.72: What reviews a change cannot change anything, nor ask anybody for that.
#[test]
fn a_reviewer_can_change_nothing() {
    let world = changed();
    let command = json!({ "command": "echo x > made" });
    let patch = json!({ "input": "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n" });
    let outside = json!({
        "command": "echo x > made",
        "sandbox_permissions": "require_escalated",
        "justification": "please",
    });
    let turns = [
        json!([{ "type": "call", "name": "shell_command", "arguments": command }]),
        json!([{ "type": "call", "name": "shell_command", "arguments": outside }]),
        json!([{ "type": "call", "name": "apply_patch", "arguments": patch }]),
        json!([{ "type": "call", "name": "spawn_agent", "arguments": { "task": "write" } }]),
        says(&json!({ "summary": "s", "findings": [] })),
    ];
    let outcome = with_model(&world, &turns, &["review", "--decide", "approve"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!world.path("repo/made").exists(), "{}", outcome.stderr);
}

/// spec SUB.73: A review without a change, a model, a repository or an answer says so.
#[test]
fn a_review_that_cannot_be_had_says_why() {
    let world = changed();
    let outcome = with_model(&world, &[json!({ "type": "message", "text": "LGTM" })], &["review"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""));
    assert!(outcome.stderr.contains("LGTM"), "{}", outcome.stderr);
    let outcome = with_model(&world, &[], &["review", "--base", "no-such-branch"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("git cannot show the change"), "{}", outcome.stderr);
    let outcome = with_model(&world, &[], &["review", "--base=--output=made"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let elsewhere = format!("script:{}", world.path("script.jsonl").display());
    let outcome = world.sandgate(&["review", "--provider", &elsewhere]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("git cannot show the change"), "{}", outcome.stderr);
    let repo = world.path("repo");
    let outcome = world.sandgate(&["review", "--cd", repo.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("needs a model"), "{}", outcome.stderr);
    git(&world, &["add", "."]);
    git(&world, &["commit", "-q", "-m", "All"]);
    let outcome = with_model(&world, &[], &["review"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nothing to review"), "{}", outcome.stderr);
}

/// spec SUB.74: What a repository's settings have git run in a review can change nothing, whatever the
/// session's own policy is.
#[test]
fn what_a_repository_has_git_run_can_change_nothing() {
    let world = changed();
    let made = world.path("made");
    let run = format!("touch {}; cat", made.display());
    git(&world, &["config", "diff.external", &run]);
    git(&world, &["config", "core.fsmonitor", &run]);
    git(&world, &["config", "diff.odd.textconv", &run]);
    fs::write(world.path("repo/.git/info/attributes"), "*.py diff=odd\n").unwrap();
    let answer = says(&json!({ "summary": "s", "findings": [] }));
    let arguments = ["review", "--sandbox", "danger-full-access"];
    let outcome = with_model(&world, &[answer], &arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!made.exists());
}

/// spec SUB.75: A review of what is not committed sees all of the repository from wherever in it, and works
/// before the first commit.
#[test]
fn a_review_sees_the_whole_repository_and_one_without_commits() {
    let answer = says(&json!({
        "summary": "s",
        "findings": [finding("new.py", 1, "P1", "new"), finding("sum.py", 2, "P1", "changed")],
    }));
    let world = changed();
    fs::create_dir(world.path("repo/deep")).unwrap();
    let deep = world.path("repo/deep");
    let arguments = ["review", "--cd", deep.to_str().unwrap()];
    let outcome = with_model(&world, std::slice::from_ref(&answer), &arguments);
    let untouched = outcome.stdout().matches("does not touch").count();
    assert_eq!((outcome.code, untouched), (Some(1), 0), "{}{}", outcome.stdout(), outcome.stderr);
    let world = World::new();
    fs::create_dir(world.path("repo")).unwrap();
    git(&world, &["init", "-q", "-b", "main"]);
    fs::write(world.path("repo/sum.py"), "def sum(a, b):\n    return a + b\n").unwrap();
    git(&world, &["add", "."]);
    fs::write(world.path("repo/new.py"), "import sum\n").unwrap();
    let outcome = with_model(&world, &[answer], &["review"]);
    let untouched = outcome.stdout().matches("does not touch").count();
    assert_eq!((outcome.code, untouched), (Some(1), 0), "{}{}", outcome.stdout(), outcome.stderr);
}

/// spec SUB.55: The model of `sandgate exec` can have subagents, whose work is shown with their names.
#[test]
fn exec_can_have_subagents() {
    let world = changed();
    let task = json!({ "task": "look", "name": "looker", "tools": "read_only" });
    let turns = [
        json!([{ "type": "call", "name": "spawn_agent", "arguments": task }]),
        json!([{ "type": "call", "name": "shell_command", "arguments": { "command": "cat new.py" } }]),
        json!({ "type": "message", "text": "seen" }),
        json!({ "type": "message", "text": "all done" }),
    ];
    let outcome = with_model(&world, &turns, &["exec", "go"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "all done\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("[looker-1] $ cat new.py"), "{}", outcome.stderr);
    let audit = world.sandgate(&["audit", "show", "--json"]);
    assert!(audit.stdout().contains("\"agent\":\"looker-1\""), "{}", audit.stdout());
}
