//! The page for authors of agents, held to its word: its example drives the real program.

#![cfg(target_os = "linux")]

mod support;

use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use support::{Running, World, skipped};

const PAGE: &str = include_str!("../../../docs/agents.md");
const EXAMPLE: &str = include_str!("../../../docs/examples/agent.py");

#[test]
fn the_page_shows_the_example_that_is_tested() {
    let shown = PAGE.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(shown, EXAMPLE);
}

/// spec CALL.18: A program can drive a session through a pipe, with the example of docs/agents.md: it makes
/// calls, answers questions by granting what was blocked or saying no, and reads how each command ran.
#[test]
fn the_example_of_the_page_makes_calls_and_answers_questions() {
    let world = World::new();
    if Running::start(world.other("python3").arg("--version")).wait().code != Some(0) {
        return skipped("there is no python3");
    }
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "").unwrap();
    fs::create_dir(world.path("work")).unwrap();
    fs::create_dir(world.path("bin")).unwrap();
    let sandgate = world.program(Vec::<String>::new()).get_program().to_owned();
    std::os::unix::fs::symlink(sandgate, world.path("bin/sandgate")).unwrap();
    fs::write(world.path("agent.py"), EXAMPLE).unwrap();
    let calls = json!([
        ["shell_command", {"command": "echo in > made; cat made"}],
        ["shell_command", {"command": format!("echo x >> {}", file.display())}],
        ["shell", {"command": ["git", "clean", "-fdx"]}],
        ["read_file", {"path": "made"}],
    ]);
    let mut command = world.other("python3");
    command.args(["agent.py", "work"]).stdin(Stdio::piped());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", world.path("bin").display()));
    let mut running = Running::start(&mut command);
    running.child.stdin.take().unwrap().write_all(calls.to_string().as_bytes()).unwrap();
    let outcome = running.wait();
    let lines: Vec<&str> = outcome.stdout().lines().collect();
    let granted = format!("0 {{'writable': ['{}']}} ", file.display());
    let denied = "None {} User denied approval for this command, and says: stay in the workspace";
    assert_eq!(lines, ["0 {} in", &granted, denied, "None {} L1: in"], "{}", outcome.stderr);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "x\n");
    assert!(world.path("work/made").exists());
}
