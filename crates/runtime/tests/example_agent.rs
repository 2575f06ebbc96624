//! The example agent, run for real, and the page that shows it.

#![cfg(target_os = "linux")]

use sandgate_runtime::enforcement;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../docs/library.md");
const AGENT: &str = include_str!("../examples/agent.rs");

/// Cargo builds examples with the tests, unless it is told to build this one test alone.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/agent")
}

/// Runs it in a directory, with a person who gives this answer, and says what it printed.
#[expect(clippy::disallowed_methods, reason = "it is the program under test")]
fn run(workspace: &Path, answer: &str) -> String {
    let mut agent = Command::new(program())
        .current_dir(workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cargo build --example agent: {error}"));
    agent.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    let ended = agent.wait_with_output().unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{printed}");
    printed
}

/// spec LIBRARY.1: The example agent runs what needs no question, asks the person about what the sandbox
/// blocked, and after a yes has only that opened to it.
#[test]
fn the_agent_does_what_a_person_lets_it_do() {
    if !enforcement().is_full() {
        println!("SKIPPED: this machine has no full sandbox");
        return;
    }
    for (answer, is_made) in [("n\n", false), ("y\n", true)] {
        // Not below `/tmp`, which a confined command may write to.
        let base = tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").unwrap();
        let workspace = base.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        let printed = run(&workspace, answer);
        assert_eq!(std::fs::read_to_string(workspace.join("list.txt")).unwrap(), "milk\n");
        assert!(printed.starts_with("milk\n"), "{printed}");
        assert_eq!(printed.matches("May it? [y/n]").count(), 1, "{printed}");
        assert_eq!(base.path().join("outside").exists(), is_made, "{printed}");
        assert_eq!(printed.contains("\nmade\n"), is_made, "{printed}");
    }
}

/// spec LIBRARY.2: The example agent has at most forty lines of code, and `docs/library.md` shows it as it
/// is.
#[test]
fn the_page_shows_the_agent() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = AGENT.lines().filter(is_code).count();
    assert!(lines <= 40, "{lines} lines");
    assert!(PAGE.contains(AGENT), "put examples/agent.rs into docs/library.md again");
}
