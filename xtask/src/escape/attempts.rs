//! Which of the project's own attempts are made in anybody's sandbox.
//!
//! The tables are those of the tests. They were written for a cage that holds, so some would do harm where nothing
//! holds them: they send signals to everybody, mount, or take the loopback down. Those are left out here, and so are
//! the ones that show nothing outside. An attempt counts only if it succeeds without a sandbox.

#[expect(dead_code, reason = "what our own cage must answer and report is for the tests")]
#[path = "../../../crates/cli/tests/sandbox/probes/case.rs"]
mod case;
#[path = "../../../crates/cli/tests/sandbox/probes/descriptors.rs"]
mod descriptors;
#[path = "../../../crates/cli/tests/sandbox/probes/entry.rs"]
mod entry;
#[path = "../../../crates/cli/tests/sandbox/probes/kernel.rs"]
mod kernel;
#[path = "../../../crates/cli/tests/sandbox/probes/metadata.rs"]
mod metadata;
#[path = "../../../crates/cli/tests/sandbox/probes/names.rs"]
mod names;
#[path = "../../../crates/cli/tests/sandbox/probes/network.rs"]
mod network;
#[path = "../../../crates/cli/tests/sandbox/probes/paths.rs"]
mod paths;
#[path = "../../../crates/cli/tests/sandbox/probes/processes.rs"]
mod processes;
#[path = "../../../crates/cli/tests/sandbox/probes/stage.rs"]
mod stage;

pub(super) use case::{LEFT_OPEN, SCRIPT};
pub(super) use stage::{Scene, Stage};

use super::cage::{Cage, eventually};
use case::{Case, NAMES, NETWORK, NEVER, OUTSIDE, PROTECTED, SOCKET};

/// What every attempt begins with.
pub(super) const PRELUDE: &str =
    include_str!("../../../crates/cli/tests/sandbox/probes/prelude.py");

/// What an attempt is about, in the order of the table.
pub(super) const KINDS: [&str; 7] = [
    "writing outside by a path",
    "descriptors",
    "modes, owners, times",
    "protected names",
    "network and sockets",
    "other processes",
    SURFACE,
];

/// Not an escape: whether the kernel hears of a call at all.
pub(super) const SURFACE: &str = "kernel calls left open";

/// How an attempt shows that it has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Something outside is not as it was.
    World,
    /// It was answered with `done`: what was read or held leaves nothing behind.
    Answer,
    /// It was answered with anything but a refusal.
    Reached,
}

/// An attempt, as it is made here.
pub(super) struct Attempt {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    pub(super) does: &'static str,
    pub(super) scene: Scene,
    pub(super) proof: Proof,
}

/// Of these tables everything is tried but what is named.
const WHOLE: &[(&str, Scene, &[Case], &[&str])] = &[
    (KINDS[0], Scene::Bare, paths::CASES, &["create-in-the-root"]),
    (KINDS[1], Scene::Bare, descriptors::CASES, &[]),
    (KINDS[2], Scene::Bare, metadata::CASES, &[]),
    (KINDS[3], Scene::Repository, names::REPOSITORY, &["git-mounted-over", "git-unmounted"]),
    (KINDS[3], Scene::Bare, names::ABSENT, &[]),
    (KINDS[3], Scene::Worktree, names::WORKTREE, &[]),
    (KINDS[3], Scene::Linked, names::LINKED, &[]),
];

/// Of these only what is named, by its beginning where the name ends with `-`.
const CHOSEN: &[(&str, &[Case], Proof, &[&str])] = &[
    (KINDS[1], entry::CASES, Proof::World, &["int-80", "descriptors-written-to"]),
    (KINDS[4], network::CASES, Proof::World, &["hosts-", "unix", "unix-"]),
    (
        KINDS[5],
        processes::CASES,
        Proof::World,
        &["kill", "tgkill", "tkill", "sigqueue", "stop", "root-of-another", "limits"],
    ),
    (
        KINDS[5],
        processes::CASES,
        Proof::Answer,
        &["trace", "attach", "memory-call", "environment", "compare"],
    ),
    (
        SURFACE,
        kernel::CASES,
        Proof::Reached,
        &[
            "mount",
            "umount2",
            "chroot",
            "open_tree",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "unshare",
            "setns",
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "fanotify_init",
            "keyctl",
            "add_key",
            "request_key",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_file_load",
            "swapon",
            "swapoff",
            "acct",
            "quotactl",
            "settimeofday",
            "clock_settime",
            "clock_adjtime",
            "adjtimex",
            "syslog",
            "sethostname",
            "setdomainname",
            "iopl",
            "ioperm",
            "modify_ldt",
            "uselib",
            "sysfs",
            "io_uring",
        ],
    ),
];

/// All of them.
pub(super) fn all() -> Vec<Attempt> {
    let of = |kind, scene, proof, case: &Case| Attempt {
        kind,
        name: case.name,
        does: case.does,
        scene,
        proof,
    };
    let mut all = Vec::new();
    for (kind, scene, cases, left_out) in WHOLE {
        let kept = cases.iter().filter(|case| !left_out.contains(&case.name));
        all.extend(kept.map(|case| of(*kind, *scene, Proof::World, case)));
    }
    for (kind, cases, proof, chosen) in CHOSEN {
        let is_chosen = |name: &str| {
            chosen
                .iter()
                .any(|word| name == *word || (word.ends_with('-') && name.starts_with(word)))
        };
        let kept = cases.iter().filter(|case| is_chosen(case.name));
        all.extend(kept.map(|case| of(*kind, Scene::Bare, *proof, case)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What would do harm on a machine where nothing holds it.
    const HARMFUL: [&str; 14] = [
        "kill-everybody",
        "kill-keeper",
        "keeper-without-descriptors",
        "memory-of-keeper",
        "new-interface",
        "git-mounted-over",
        "memory-device",
        "vhangup",
        "reboot",
        "kexec_load",
        "pivot_root",
        "clone-namespaces",
        "new-name-in-dev",
        "control-group-of-its-own",
    ];

    #[test]
    fn nothing_that_does_harm_is_tried() {
        let all = all();
        assert!(all.len() > 200, "{}", all.len());
        assert!(all.iter().all(|attempt| !HARMFUL.contains(&attempt.name)));
        let there =
            [kernel::CASES, processes::CASES, network::CASES, names::REPOSITORY].concat_names();
        let gone: Vec<_> = HARMFUL.iter().filter(|name| !there.contains(name)).collect();
        assert!(gone.is_empty(), "these are called otherwise now: {gone:?}");
    }

    #[test]
    fn every_attempt_has_a_name_of_its_own_in_its_kind() {
        let mut names: Vec<_> = all().iter().map(|a| (a.kind, a.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    trait Names {
        fn concat_names(&self) -> Vec<&'static str>;
    }

    impl Names for [&[Case]; 4] {
        fn concat_names(&self) -> Vec<&'static str> {
            self.iter().flat_map(|cases| cases.iter().map(|case| case.name)).collect()
        }
    }
}
