//! The escape attempts that lie beside this project, when they are there.

#![expect(clippy::disallowed_methods, reason = "the attempts have a program of their own")]

use crate::cage::Cage;
use crate::support::skipped;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Runs the attempts with a command of the cage as their wrapper, up to its `--`. Gives back those
/// that escaped.
fn escaped(cage: &Cage, wrapper: &Command) -> Option<BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let suite = root.join("../shared/escape/run_escape.sh");
    if !suite.is_file() {
        skipped("the escape attempts are not here");
        return None;
    }
    let results = cage.base().join("results.json");
    let words = wrapper.get_args().take_while(|word| *word != "--");
    let output = Command::new(suite)
        .args(["-q", "-j"])
        .arg(&results)
        .arg(wrapper.get_program())
        .args(words)
        .arg("--")
        .env("ESC_BASE", cage.base())
        .env("HOME", cage.base().join("home"))
        .current_dir(cage.base())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(", 0 broken"), "the controls work: {text}");
    let lines = text.lines().filter(|line| line.split_whitespace().nth(2) == Some("ESCAPED"));
    let names = lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    let names: BTreeSet<_> = names.collect();
    let total = format!("{} escaped, ", names.len());
    assert!(text.lines().any(|line| line.starts_with(&total)), "{text}");
    Some(names)
}

/// spec SANDBOX.80: None of the escape attempts that the project knows succeeds.
#[test]
fn nothing_escapes() {
    let cage = Cage::new();
    let wrapper = cage.command(&["--sandbox", "workspace-write"], "");
    if let Some(escaped) = escaped(&cage, &wrapper) {
        assert!(escaped.is_empty(), "{escaped:?}");
    }
}

/// spec SANDBOX.81: Where namespaces are refused, the escape attempts that succeed are those that
/// docs/platforms.md lists, and no other.
#[test]
fn without_namespaces_only_the_listed_escape() {
    let cage = Cage::new();
    let Some(wrapper) = cage.without_namespaces(&["--sandbox", "workspace-write"], "") else {
        return;
    };
    let platforms = include_str!("../../../../docs/platforms.md");
    let (_, section) = platforms.split_once("## Linux without namespaces").expect("the section");
    let listed: BTreeSet<String> = section
        .split('`')
        .filter(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    assert!(listed.len() > 5, "the list is there: {listed:?}");
    if let Some(escaped) = escaped(&cage, &wrapper) {
        let unlisted: Vec<_> = escaped.difference(&listed).collect();
        assert!(unlisted.is_empty(), "{unlisted:?}");
        let held: Vec<_> = listed.difference(&escaped).collect();
        assert!(held.is_empty(), "these are held and need not be listed: {held:?}");
    }
}
