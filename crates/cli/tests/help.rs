//! What the program says about itself, word for word.

#![cfg(unix)]

mod support;

use support::World;

fn said(arguments: &[&str]) -> String {
    let outcome = World::new().sandgate(arguments);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    outcome.stdout().to_owned()
}

#[test]
fn help_is_short_and_the_same_wherever_it_is_asked_for() {
    insta::assert_snapshot!("help", said(&["--help"]));
    insta::assert_snapshot!("help_tui", said(&["tui", "--help"]));
    insta::assert_snapshot!("help_run", said(&["run", "--help"]));
    insta::assert_snapshot!("help_review", said(&["review", "--help"]));
    insta::assert_snapshot!("help_session", said(&["session", "--help"]));
    insta::assert_snapshot!("help_session_start", said(&["session", "start", "--help"]));
    insta::assert_snapshot!("help_session_send", said(&["session", "send", "--help"]));
    insta::assert_snapshot!("help_attach", said(&["attach", "--help"]));
    insta::assert_snapshot!("help_call", said(&["call", "--help"]));
    insta::assert_snapshot!("help_patch", said(&["patch", "--help"]));
    insta::assert_snapshot!("help_patch_apply", said(&["patch", "apply", "--help"]));
    assert_eq!(said(&["help", "run"]), said(&["run", "--help"]));
    assert_eq!(said(&["help"]), said(&["--help"]));
}

#[test]
fn the_version_is_the_packages_own() {
    assert_eq!(said(&["--version"]), format!("sandgate {}\n", env!("CARGO_PKG_VERSION")));
}
