//! The directory that holds the output of commands that write much, while sandgate lives.

#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::{Running, World, eventually, let_go, run_words};

/// A run that has written more than is kept in memory, and waits.
fn spilling(world: &World) -> (Running, PathBuf) {
    let script = "head -c 3000000 /dev/zero >&2; read word < go; head -c 1000000 /dev/zero >&2";
    // The events go nowhere; this is about files.
    let mut command = world.program(run_words(&["--json", "--shell", "sh", "--", script]));
    let running = Running::start(command.stdout(Stdio::null()));
    let spill = eventually("the output is spilled", || {
        let sessions = world.sessions();
        assert!(sessions.len() <= 1, "{sessions:?}");
        let entries = fs::read_dir(sessions.first()?).ok()?.flatten();
        let mut files = entries.map(|entry| entry.path());
        files.find(|file| file.file_name().is_some_and(|name| name != "lock"))
    });
    (running, spill)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// spec RUN.70: Output of a `--json` command past what is kept in memory goes to a file that only its
/// owner can read, in a directory of the session; both are gone when sandgate ends.
#[test]
fn spilled_output_is_private_and_goes_with_its_session() {
    let world = World::new();
    let go = world.fifo("go");
    let (running, spill) = spilling(&world);
    let session = spill.parent().unwrap();
    assert_eq!((mode(&spill), mode(session)), (0o600, 0o700));
    assert_eq!(mode(&world.path(".cache/sandgate")), 0o700);
    let_go(&go);
    assert_eq!(running.wait().code, Some(0));
    assert!(!spill.exists() && world.sessions().is_empty());
}

/// spec RUN.71: The directory of a sandgate that was killed is removed by the next one that makes its
/// own; that of a living one is left alone.
#[test]
fn the_directory_of_a_killed_session_is_swept() {
    let world = World::new();
    let go = world.fifo("go");
    let (mut killed, spill) = spilling(&world);
    killed.child.kill().unwrap();
    killed.wait();
    assert!(spill.exists());

    let json = ["--json", "--", "head", "-c", "3000000", "/dev/zero"];
    assert_eq!(world.run(&json).code, Some(0));
    assert!(!spill.exists() && world.sessions().is_empty());

    let (living, spill) = spilling(&world);
    assert_eq!(world.run(&json).code, Some(0));
    assert!(spill.exists());
    let_go(&go);
    assert_eq!(living.wait().code, Some(0));
}

/// spec RUN.72: A command that writes no more than is kept in memory makes no directory, and neither
/// does one whose output is passed through.
#[test]
fn little_output_leaves_the_file_system_alone() {
    let world = World::new();
    world.run(&["--json", "--", "echo", "a little"]);
    world.run(&["--", "head", "-c", "3000000", "/dev/zero"]);
    assert!(!world.path(".cache").exists());
}
