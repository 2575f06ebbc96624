//! Our own attempts to get out of the cage.
//!
//! Each attempt is a row of a table: what it does, how the kernel must answer, and what sandgate must
//! report of it. What must be true of the world afterwards is the same for all of them: outside the
//! workspace nothing has changed, nobody was reached, no stranger was touched, and what is protected
//! is as it was. Every attempt runs once with namespaces and once where they are refused.

mod case;
mod descriptors;
mod entry;
mod kernel;
mod metadata;
mod names;
mod network;
mod paths;
mod processes;
mod stage;

use crate::cage::{Cage, has};
use crate::report::Report;
use crate::support::{Outcome, Running, eventually, skipped};
use case::{Alone, Case, LEFT_OPEN, SCRIPT, Who};
use case::{NAMES, NETWORK, NEVER, OUTSIDE, PROTECTED, SOCKET};
use stage::{Scene, Stage};
use std::fmt::Write as _;
use std::process::Command;

const PRELUDE: &str = include_str!("probes/prelude.py");

impl Case {
    /// Makes the attempt where the whole cage can be had, and says what is not as it must be.
    fn try_caged(&self, scene: Scene) -> String {
        let stage = Stage::set(scene);
        let before = stage.fingerprint();
        let command = stage.cage.command(&["--full-auto", "--json"], SCRIPT);
        let outcome = self.run(&stage, &command);
        let report = Report::of(&outcome);
        let mut wrong = differences(&before, &stage.fingerprint());
        assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", self.name);
        // What a machine does not have cannot be tried there.
        if outcome.stdout().contains("missing") {
            return self.named(&wrong);
        }
        self.check_answers(&outcome, &mut wrong);
        if report.has_namespaces() && report.is_supervised() {
            self.check_evidence(&stage, &report, &mut wrong);
        } else {
            wrong += "  this is not the whole cage\n";
        }
        self.named(&wrong)
    }

    /// Makes it where namespaces are refused.
    fn try_without_namespaces(&self, scene: Scene) -> String {
        let stage = Stage::set(scene);
        let before = stage.fingerprint();
        let command = stage.cage.without_namespaces(&["--full-auto", "--json"], SCRIPT);
        let outcome = self.run(&stage, &command.expect("there is a python3"));
        let report = Report::of(&outcome);
        assert!(!report.has_namespaces(), "{report:?}");
        let mut wrong = differences(&before, &stage.fingerprint());
        match self.alone {
            Alone::Hold => {}
            Alone::Let(_) if wrong.is_empty() => {
                wrong = "  this is held, and need not be excused\n".to_owned();
            }
            Alone::Let(_) => wrong.clear(),
        }
        self.named(&wrong)
    }

    /// Makes the attempt with descriptors of the world left open on the way in, and with an
    /// environment that says something else than what is.
    fn run(&self, stage: &Stage, model: &Command) -> Outcome {
        let mut command = crate::cage::again(model, &"/bin/sh".into());
        command.args(["-c", LEFT_OPEN, "sh"]);
        command.arg(model.get_program()).args(model.get_args());
        command.env("ATTEMPT", format!("{PRELUDE}\n{}\n", self.does));
        command.env("CODEX_SANDBOX", "none").env("CODEX_SANDBOX_NETWORK_DISABLED", "0");
        stage.describe(&mut command);
        Running::start(&mut command).wait()
    }

    fn check_answers(&self, outcome: &Outcome, wrong: &mut String) {
        let answers: Vec<_> = outcome.stdout().split_whitespace().collect();
        let expected: Vec<_> = self.answers.split_whitespace().collect();
        let fits =
            |(answer, expected): (&&str, &&str)| expected.split('|').any(|word| word == *answer);
        if answers.len() != expected.len() || !answers.iter().zip(&expected).all(fits) {
            let _ = writeln!(wrong, "  answered {answers:?}, not {expected:?}");
        }
    }

    fn check_evidence(&self, stage: &Stage, report: &Report, wrong: &mut String) {
        let base = stage.cage.base().canonicalize().unwrap().display().to_string();
        let place = |target: &str| {
            let target = target.replace("{out}", "{base}/outside").replace("{ws}", "{base}/ws");
            target.replace("{base}", &base)
        };
        let is_excused = self.refused_to == Who::Root && !rustix::process::geteuid().is_root();
        let listed = if is_excused { &[] } else { self.evidence };
        let expected: Vec<_> =
            listed.iter().map(|(what, on, why)| format!("{what} {} ({why})", place(on))).collect();
        let found = report.denials.iter();
        let found: Vec<_> = found
            .map(|seen| format!("{} {} ({})", seen.operation, seen.target, seen.rule))
            .collect();
        if expected != found {
            let _ = writeln!(wrong, "  reported {found:#?}, not {expected:#?}");
        }
    }

    fn named(&self, wrong: &str) -> String {
        if wrong.is_empty() { String::new() } else { format!("{}:\n{wrong}", self.name) }
    }
}

type World = std::collections::BTreeMap<String, String>;

fn differences(before: &World, after: &World) -> String {
    let mut wrong = String::new();
    for name in before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))) {
        let (was, is) = (before.get(name), after.get(name));
        if was != is {
            let _ = writeln!(wrong, "  the world changed: {name} was {was:?}, is {is:?}");
        }
    }
    wrong
}

/// Makes every attempt of some tables, in both kinds of cage, and reports all that is wrong at once.
#[track_caller]
fn try_all(tables: &[(Scene, &[Case])]) {
    if !has("python3") {
        return;
    }
    let platforms = include_str!("../../../../docs/platforms.md").replace('\n', " ");
    let mut wrong = String::new();
    for (scene, cases) in tables {
        for case in *cases {
            wrong += &case.try_caged(*scene);
            let alone = case.try_without_namespaces(*scene);
            if !alone.is_empty() {
                let _ = write!(wrong, "without namespaces, {alone}");
            }
            if let Alone::Let(reason) = case.alone {
                assert!(platforms.contains(reason), "docs/platforms.md does not say: {reason}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// spec PROBES.1: No way of writing, creating, removing, renaming or linking by a path, by a
/// directory or through a link changes anything outside the roots, and each is reported.
#[test]
fn nothing_outside_is_written_by_any_path() {
    try_all(&[(Scene::Bare, paths::CASES)]);
}

/// spec PROBES.2: A descriptor that was opened for reading gives no way to write.
#[test]
fn descriptors_give_no_more_than_they_were_opened_for() {
    try_all(&[(Scene::Bare, descriptors::CASES)]);
}

/// spec PROBES.3: Modes, owners, times and attributes outside the roots cannot be changed by any
/// call, and each attempt is reported.
#[test]
fn nothing_about_a_file_outside_is_changed() {
    try_all(&[(Scene::Bare, metadata::CASES)]);
}

/// spec PROBES.4: Protected names are held in every form that a repository can have, whether they
/// are there or not, and each attempt on them is reported.
#[test]
fn protected_names_are_held_in_every_form() {
    try_all(&[
        (Scene::Repository, names::REPOSITORY),
        (Scene::Bare, names::ABSENT),
        (Scene::Worktree, names::WORKTREE),
        (Scene::Linked, names::LINKED),
    ]);
}

/// spec PROBES.5: No socket of any family reaches anything outside the cage, and attempts on the
/// network and on sockets of others are reported.
#[test]
fn nothing_outside_is_reached() {
    try_all(&[(Scene::Bare, network::CASES)]);
}

/// spec PROBES.6: No process outside can be signalled, traced, read, written to, limited or
/// rescheduled, and neither can the cage's own keeper be turned against it.
#[test]
fn no_stranger_is_touched() {
    try_all(&[(Scene::Bare, processes::CASES)]);
}

/// spec PROBES.7: The kernel's own interfaces, switches and devices are closed, and attempts on
/// them are reported.
#[test]
fn the_kernel_is_closed() {
    try_all(&[(Scene::Bare, kernel::CASES)]);
}

/// spec PROBES.8: Other ways into the kernel, arguments that look different to a filter, inherited
/// descriptors and the environment open nothing.
#[test]
fn there_is_no_other_door() {
    try_all(&[(Scene::Bare, entry::CASES)]);
    if !cfg!(target_arch = "x86_64") {
        skipped("other numberings of system calls are known for x86-64 only");
    }
}
