//! A patch whose program is killed in the middle, and the session after that.

#![cfg(target_os = "linux")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Outcome, Running, World};

/// So many files that nobody is done with them at once.
const FILES: usize = 400;

fn file(world: &World, number: usize) -> PathBuf {
    world.path("work").join(number.to_string()).join("file")
}

/// A workspace of many directories, and the call that changes a file in each.
fn world() -> World {
    let world = World::new();
    let mut patch = String::from("*** Begin Patch\n");
    for number in 0..FILES {
        fs::create_dir_all(file(&world, number).parent().unwrap()).unwrap();
        fs::write(file(&world, number), "old\n").unwrap();
        patch.push_str(&format!("*** Update File: {number}/file\n@@\n-old\n+new\n"));
    }
    patch.push_str("*** End Patch\n");
    fs::write(world.path("patch.jsonl"), line("apply_patch", &json!({ "input": patch }))).unwrap();
    fs::write(world.path("next.jsonl"), line("shell", &json!({"command": ["true"]}))).unwrap();
    world
}

fn line(name: &str, arguments: &Value) -> String {
    let arguments = arguments.to_string();
    let call =
        json!({"type": "function_call", "name": name, "call_id": "c", "arguments": arguments});
    format!("{call}\n")
}

fn journals(world: &World) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(world.path(".codex/patches")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "journal")).collect()
}

/// Every name in the workspace, and which contents there are.
fn workspace(world: &World) -> (usize, Vec<String>) {
    let mut contents = Vec::new();
    let mut names = 0;
    for number in 0..FILES {
        names += fs::read_dir(file(world, number).parent().unwrap()).unwrap().count();
        contents.push(fs::read_to_string(file(world, number)).unwrap());
    }
    contents.sort();
    contents.dedup();
    (names, contents)
}

/// Starts the patch and kills its program when something has come to pass.
fn killed_when(world: &World, reached: impl Fn() -> bool) {
    let (work, calls) = (world.path("work"), world.path("patch.jsonl"));
    let words = ["call", "--cd", work.to_str().unwrap(), calls.to_str().unwrap()];
    let mut running = Running::start(&mut world.program(words));
    let limit = Instant::now() + Duration::from_secs(60);
    while !reached() && running.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < limit, "it takes too long");
    }
    let _ = running.child.kill();
    running.child.wait().unwrap();
}

/// Makes the call after it.
fn next(world: &World) -> Outcome {
    let (work, calls) = (world.path("work"), world.path("next.jsonl"));
    world.sandgate(&["call", "--cd", work.to_str().unwrap(), calls.to_str().unwrap()])
}

/// spec PATCH.61: When a session begins it settles the patches whose program was killed, warns of each
/// and records it.
#[test]
fn the_next_session_settles_a_patch_that_was_killed() {
    type Reached = fn(&World) -> bool;
    let being_written: Reached = |world| !journals(world).is_empty();
    let being_changed: Reached =
        |world| fs::read_to_string(file(world, 0)).is_ok_and(|text| text == "new\n");
    for reached in [being_written, being_changed] {
        // A program that was done before it was killed shows nothing, and one that had not written its
        // journal to the end had not begun.
        let left = (0..50).find_map(|_| {
            let world = world();
            killed_when(&world, || reached(&world));
            if journals(&world).is_empty() {
                return None;
            }
            let outcome = next(&world);
            (!outcome.stderr.is_empty()).then_some((world, outcome))
        });
        let (world, outcome) = left.expect("a patch is broken off in one of fifty times");
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.events().len(), 1, "results are all that is on standard output");
        let warned = "sandgate: warning: a patch that was broken off ha";
        assert!(outcome.stderr.starts_with(warned), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("/work/0/file, "), "{}", outcome.stderr);

        assert!(journals(&world).is_empty());
        let (names, contents) = workspace(&world);
        assert_eq!((names, contents.len()), (FILES, 1), "all or nothing: {contents:?}");
        let log = world.sandgate(&["audit", "show", "--json"]);
        assert!(log.stdout().contains("a patch that was broken off ha"), "{}", log.stdout());
        assert_eq!(world.sandgate(&["audit", "verify"]).code, Some(0));

        let again = next(&world);
        assert_eq!(again.stderr, "", "it is told once");
    }
}
