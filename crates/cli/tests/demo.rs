//! `sandgate demo`.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use support::{Running, World};
use terminal::Terminal;

/// spec DEMO.1: Without a terminal the tour is told as a transcript of what really happened: a safe command, a
/// denial with its evidence, a narrow grant and what came of it, a shell across calls, a patch and the record.
///
/// spec DEMO.2: Nothing of the person's is touched, and nothing is left.
#[test]
fn without_a_terminal_it_is_a_transcript() {
    let world = World::untouched();
    let temporary = world.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let outcome = Running::start(world.program(["demo"]).env("TMPDIR", &temporary)).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = outcome.stdout();
    for happened in [
        "2 notes.txt",
        "blocked: create outside/x (outside the writable roots)",
        "answer:   yes, but only this: write to anything in outside",
        "It ran again, in its cage, and has written outside/x.",
        "42",
        "M notes.txt",
        "approved with grant, person (demo)",
    ] {
        assert!(told.contains(happened), "{happened}: {told}");
    }
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left");
    assert!(!world.path(".codex").exists(), "the person's settings are not touched");
}

/// spec DEMO.3: At a terminal a step waits for Enter, can be skipped, and the tour can be left.
#[test]
fn at_a_terminal_steps_can_be_skipped_and_left() {
    let world = World::untouched();
    let mut terminal = Terminal::start(&world, &["demo"]);
    terminal.until("quit");
    terminal.press("s\n");
    terminal.until("skipped");
    terminal.until("quit");
    terminal.press("\n");
    terminal.until("blocked: create outside/x");
    terminal.until("quit");
    terminal.press("q\n");
    let (told, code) = terminal.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("write_stdin"), "{told}");
}
