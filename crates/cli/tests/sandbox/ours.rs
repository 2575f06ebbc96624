//! What sandgate writes and trusts later is kept from every command, whoever confines it.

use crate::cage::Cage;
use crate::support::{Outcome, Running};
use std::fs;
use std::process::Command;

/// Starts it with the workspace for a home.
fn at_home(cage: &Cage, mut command: Command) -> Outcome {
    Running::start(command.env("HOME", cage.ws(""))).wait()
}

const CACHE_IS_WRITABLE: &str = "\
    w() { if \"$@\" 2>/dev/null; then echo \"done: $*\"; fi; }; own=.cache/sandgate; \
    w touch $own/x .codex/x; w mkdir -p $own/snapshots .codex/snapshots; w mv $own away; w mv .cache away; \
    w mv .codex away; w rm -rf $own; w ln -s / $own; : > .cache/other";

/// spec SANDBOX.200: What sandgate writes and trusts later, the settings and its own directory in the cache, is
/// read-only to every command that it confines, whatever is writable around it; what is not there of it cannot
/// be made.
#[test]
fn what_is_trusted_later_is_read_only() {
    for is_there in [true, false] {
        let cage = Cage::new();
        let there = ["home/.cache/sandgate/sessions/kept", "home/.codex/kept"];
        cage.files(&[".cache/kept", "home/.cache/kept"]);
        if is_there {
            cage.files(&[".cache/sandgate/sessions/kept", ".codex/kept"]);
            cage.files(&there);
        }
        let policy = r#"{"mode":"workspace-write"}"#;
        let mut beside = cage.command(&["--full-auto", "--writable", ".cache"], CACHE_IS_WRITABLE);
        beside.env("HOME", cage.ws("home"));
        let beside = beside.current_dir(cage.ws("home"));
        for outcome in [
            at_home(&cage, cage.command(&["--full-auto"], CACHE_IS_WRITABLE)),
            at_home(&cage, cage.by_policy(policy, CACHE_IS_WRITABLE)),
            Running::start(beside).wait(),
        ] {
            assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""), "{is_there} {outcome:?}");
        }
        assert!(cage.ws(".cache/other").exists(), "the rest of the cache is writable");
        let left = ["", "home/"]
            .map(|home| fs::read_dir(cage.ws(home).join(".cache/sandgate")).unwrap().count());
        assert_eq!(left, [usize::from(is_there); 2]);
    }
}

/// spec SANDBOX.201: A command whose workspace or another root lies in there is refused, and nothing runs.
#[test]
fn nobody_may_write_there_by_naming_it() {
    let cage = Cage::new();
    cage.files(&[".cache/sandgate/sessions/kept", ".codex/rules/kept"]);
    for place in [".cache/sandgate", ".cache/sandgate/sessions", ".codex", ".codex/rules"] {
        let policy = format!(r#"{{"mode":"workspace-write","writable_roots":["{place}"]}}"#);
        for outcome in [
            at_home(&cage, cage.command(&["--full-auto", "--cd", place], "echo ran")),
            at_home(&cage, cage.command(&["--full-auto", "--writable", place], "echo ran")),
            at_home(&cage, cage.by_policy(&policy, "echo ran")),
        ] {
            assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{place} {outcome:?}");
            assert!(outcome.stderr.contains("nothing may work or write"), "{outcome:?}");
        }
    }
}
