//! What becomes of a command, for every policy, sandbox and kind of command: told by small files, each
//! of which is one scenario, and played with real commands.
//!
//! The files lie beside this one, in `matrix` (before a command runs), `denied` (after its sandbox
//! blocked something) and `other`. A scenario whose keys have several values is played once for each
//! combination of them. `scenario.rs` says what the keys mean.

#![cfg(target_os = "linux")]

mod coverage;
mod machine;
mod program;
mod scenario;
mod stage;
mod story;
#[path = "../support/mod.rs"]
mod support;

use sandgate_runtime::Runtime;
use scenario::{Case, DIRECTORIES, Machine, Scenario, scenarios_in};
use std::sync::Arc;

/// Plays the cases of some directories for a machine in one runtime, and tells of all that came out
/// otherwise.
fn play_all(directories: &[&str], machine: Machine) {
    let runtime = Arc::new(Runtime::start().unwrap().with_shell("bash").unwrap());
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut wrong, mut left) = (Vec::new(), Vec::new());
    for scenario in scenarios_in(directories) {
        for case in scenario.cases().filter(|case| case.machine == machine) {
            let (seen, places) = asynchronous.block_on(stage::play(&runtime, &case));
            wrong.extend(case.differences(&seen));
            left.push(places);
        }
    }
    drop(runtime);
    let played = left.len();
    assert!(played > 50, "the scenarios are there: {played}");
    for places in left {
        let placeholders = places.placeholders();
        assert!(placeholders.is_empty(), "left behind: {placeholders:?}");
    }
    assert!(wrong.is_empty(), "{} of {played} differ\n\n{}", wrong.len(), wrong.join("\n"));
}

/// spec SCENARIO.1: What becomes of a command in a session with a sandbox is as its scenario tells it:
/// who was asked, why and what was offered, how often it ran and in what, what the model was told,
/// what was decided according to the audit log, and which files there are afterwards that were not
/// there before.
#[test]
fn with_a_sandbox_every_command_begins_as_written() {
    if !machine::has_full_sandbox() {
        return support::skipped("this machine has no full sandbox");
    }
    play_all(&["matrix"], Machine::There);
}

#[test]
fn with_a_sandbox_every_denial_and_answer_comes_out_as_written() {
    if !machine::has_full_sandbox() {
        return support::skipped("this machine has no full sandbox");
    }
    play_all(&["denied", "other"], Machine::There);
}

/// spec SCENARIO.2: The same holds on a machine that has no sandbox.
#[test]
fn without_a_sandbox_everything_comes_out_as_written() {
    machine::without_sandbox(|| play_all(&DIRECTORIES, Machine::Missing));
}

/// spec SCENARIO.3: Every cell of the approval matrix, and every answer to every question after a
/// denial, is played by a scenario.
#[test]
fn every_cell_is_played() {
    let scenarios = scenarios_in(&DIRECTORIES);
    let cases: Vec<Case<'_>> = scenarios.iter().flat_map(Scenario::cases).collect();
    let missing = coverage::missing(&cases);
    assert!(missing.is_empty(), "no scenario plays:\n{}", missing.join("\n"));
}

/// spec SCENARIO.4: `sandgate call --decide stdin` plays the same scenarios to the same end.
#[test]
fn the_program_plays_them_too() {
    if !machine::has_full_sandbox() {
        return support::skipped("this machine has no full sandbox");
    }
    let mut wrong = Vec::new();
    let mut played = 0;
    for scenario in scenarios_in(&DIRECTORIES) {
        let Some(case) = scenario.cases().find(program::can_play) else { continue };
        wrong.extend(case.differences(&program::play(&case)));
        played += 1;
    }
    assert!(played > 20, "the scenarios are there: {played}");
    assert!(wrong.is_empty(), "{} of {played} differ\n\n{}", wrong.len(), wrong.join("\n"));
}
