//! Finds protected names beneath a root, within limits.
//!
//! Those near to the root come first, so what a limit cuts off is what lies deepest. No link is
//! followed, and no directory is left out by its name: a repository can lie in `node_modules` too.

#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod linux;
// Linux has it in tests, where the two must find the same.
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

#[cfg(target_os = "linux")]
pub(super) use linux::walk;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::walk;

use std::path::PathBuf;

/// How far a walk goes. There is no limit on time: what is found must not depend on how busy the
/// machine is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many levels of directories beneath the root are looked into.
    pub(super) depth: usize,
    /// How many directories are looked into. Those that hold no others need not count.
    pub(super) directories: usize,
    /// How many entries of those directories are looked at.
    pub(super) entries: usize,
}

impl Limits {
    /// For a root that was named: all of it, if it is not enormous.
    pub(super) const ROOT: Self =
        Self { depth: usize::MAX, directories: 200_000, entries: 20_000_000 };

    /// For directories that hold everybody's temporary files.
    pub(super) const SCRATCH: Self = Self { depth: 3, directories: 5_000, entries: 500_000 };
}

/// What a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// The protected names that are there.
    pub(super) protected: Vec<PathBuf>,
    /// Directories that this user may not look into now, and that are its own or can be passed by others. A command could
    /// change that, or knows a name in there, so what is in there counts as protected.
    pub(super) closed: Vec<PathBuf>,
    /// Directories that a limit left out, the depth aside, or that could not be read. Nobody knows what is in them.
    pub(super) unread: Vec<PathBuf>,
    /// Whether the limits, the depth aside, left nothing out.
    pub(super) complete: bool,
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    type Walk = fn(&Path, Limits, &BTreeSet<PathBuf>) -> Walked;

    #[cfg(target_os = "linux")]
    const BOTH: [Walk; 2] = [linux::walk, portable::walk];
    #[cfg(not(target_os = "linux"))]
    const BOTH: [Walk; 1] = [portable::walk];

    fn tree(directories: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for directory in directories {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        (home, root)
    }

    fn found(walk: Walk, root: &Path, limits: Limits) -> (Vec<String>, bool) {
        let Walked { protected, complete, .. } = walk(root, limits, &BTreeSet::new());
        let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        let mut names: Vec<_> = protected.iter().map(relative).collect();
        names.sort();
        (names, complete)
    }

    /// spec DECISIONS.30: Protected names are found in every directory, whatever it is called, and none
    /// is looked for behind a link or inside another.
    #[test]
    fn names_are_found_in_every_directory() {
        let (_home, root) = tree(&[
            ".git/modules/.git",
            "a/b/c/d/e/f/.git",
            "node_modules/x/.GIT",
            "target/.agents",
            ".hidden/.codex",
            "a/.github",
            "elsewhere",
        ]);
        fs::write(root.join("a/b/.git"), "gitdir: elsewhere").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("elsewhere/.git")).unwrap();
        for walk in BOTH {
            let (names, complete) = found(walk, &root, Limits::ROOT);
            let expected = [
                ".git",
                ".hidden/.codex",
                "a/b/.git",
                "a/b/c/d/e/f/.git",
                "elsewhere/.git",
                "node_modules/x/.GIT",
                "target/.agents",
            ];
            assert_eq!(names, expected);
            assert!(complete);
        }
    }

    /// spec DECISIONS.31: A walk that reaches a limit has looked at what is near to the root, and says that
    /// it is not complete.
    #[test]
    fn a_walk_ends_at_its_limits_and_says_so() {
        let (_home, root) = tree(&["a/a/.git", "b/b/.git", "c/.git", "d/.git"]);
        let near = ["c/.git".to_owned(), "d/.git".to_owned()];
        for walk in BOTH {
            let of = |limits| found(walk, &root, limits);
            assert_eq!(of(Limits { directories: 5, ..Limits::ROOT }), (near.to_vec(), false));
            assert_eq!(of(Limits { depth: 1, ..Limits::ROOT }), (near.to_vec(), true));
            assert_eq!(of(Limits { directories: 7, ..Limits::ROOT }).0.len(), 4);
            assert!(of(Limits { directories: 7, ..Limits::ROOT }).1);
            assert!(!of(Limits { entries: 3, ..Limits::ROOT }).1);
            assert!(!of(Limits { entries: 9, ..Limits::ROOT }).1);
            assert!(of(Limits { entries: 10, ..Limits::ROOT }).1);
        }
    }

    #[test]
    fn directories_without_others_are_searched_too() {
        let (_home, root) = tree(&["a/leaf", "a/empty", "b", "deep/er/leaf"]);
        for path in ["a/leaf/.git", "b/.codex", "deep/er/leaf/.agents", "deep/er/leaf/.git"] {
            fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", root.join("b/.agents")).unwrap();
        let all =
            ["a/leaf/.git", "b/.agents", "b/.codex", "deep/er/leaf/.agents", "deep/er/leaf/.git"];
        for walk in BOTH {
            assert_eq!(found(walk, &root, Limits::ROOT), (all.map(str::to_owned).to_vec(), true));
            let (near, _) = found(walk, &root, Limits { depth: 1, ..Limits::ROOT });
            assert_eq!(near, ["b/.agents", "b/.codex"]);
        }
    }

    #[test]
    fn so_many_directories_without_others_are_not_all_searched() {
        let (_home, root) = tree(&[]);
        for number in 0..30 {
            fs::create_dir(root.join(number.to_string())).unwrap();
            fs::write(root.join(number.to_string()).join(".git"), "").unwrap();
        }
        for walk in BOTH {
            let (names, complete) = found(walk, &root, Limits { directories: 2, ..Limits::ROOT });
            assert!(!complete && names.len() < 30, "{}", names.len());
            let (names, complete) = found(walk, &root, Limits { directories: 31, ..Limits::ROOT });
            assert!(complete && names.len() == 30, "{}", names.len());
        }
    }

    #[test]
    fn what_a_limit_leaves_out_lies_in_what_is_named() {
        let (_home, root) = tree(&[]);
        for number in 0..12 {
            let deep = root.join(format!("{number}/a/b"));
            fs::create_dir_all(deep.join(["../.git", ".git", "c/.git"][number % 3])).unwrap();
            fs::create_dir_all(root.join(format!("{number}/wide/{number}"))).unwrap();
        }
        for walk in BOTH {
            let all = walk(&root, Limits::ROOT, &BTreeSet::new());
            assert!(all.complete && all.unread.is_empty() && all.protected.len() == 12, "{all:?}");
            for directories in 0..60 {
                for entries in [0, 5, 13, 30, 50, 1000] {
                    let limits = Limits { directories, entries, ..Limits::ROOT };
                    let walked = walk(&root, limits, &BTreeSet::new());
                    assert_eq!(walked.complete, walked.unread.is_empty(), "{limits:?}");
                    let is_unread =
                        |path: &Path| walked.unread.iter().any(|unread| path.starts_with(unread));
                    let mut lost = all.protected.iter();
                    let lost = lost.find(|p| !walked.protected.contains(p) && !is_unread(p));
                    assert_eq!(lost, None, "{limits:?}");
                }
            }
        }
    }

    /// With enough directories in each level to be shared among threads, and limits that are reached
    /// anywhere.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_found_does_not_depend_on_how_many_look() {
        let (_home, root) = tree(&[]);
        for number in 0..250 {
            let deep = root.join(format!("{number}/a/b"));
            fs::create_dir_all(&deep).unwrap();
            let name = ["../.git", "../../.codex", ".agents", "c/.git"][number % 4];
            fs::create_dir_all(deep.join(name)).unwrap();
        }
        let walk = |limits, threads: fn() -> usize| {
            linux::walk_by(threads, &root, limits, &BTreeSet::new())
        };
        for directories in [0, 1, 20, 250, 251, 400, 501, 563, 1000] {
            for entries in [10, 249, 250, 400, 562, 700, 10_000] {
                let limits = Limits { directories, entries, ..Limits::ROOT };
                assert_eq!(walk(limits, || 3), walk(limits, || 1), "{limits:?}");
            }
        }
        let all = walk(Limits::ROOT, || 3);
        assert!(all.complete && all.protected.len() == 250, "{all:?}");
    }

    /// The same for many directories in one that hold no others.
    #[cfg(target_os = "linux")]
    #[test]
    fn leaves_hold_the_same_however_many_threads_ask_them() {
        let (_home, root) = tree(&["deep/er/.git"]);
        for number in 0..300 {
            let leaf = root.join(number.to_string());
            fs::create_dir(&leaf).unwrap();
            if number % 3 == 0 {
                fs::write(leaf.join(".git"), "gitdir: elsewhere").unwrap();
            }
        }
        let walk = |limits, threads: fn() -> usize| {
            linux::walk_by(threads, &root, limits, &BTreeSet::new())
        };
        for directories in [0, 1, 29, 30, 31, 40, 1000] {
            for entries in [10, 299, 300, 301, 10_000] {
                for depth in [1, 3] {
                    let limits = Limits { directories, entries, depth };
                    assert_eq!(walk(limits, || 3), walk(limits, || 1), "{limits:?}");
                }
            }
        }
        let all = walk(Limits::SCRATCH, || 3);
        assert!(all.complete && all.protected.len() == 101, "{all:?}");
    }

    /// spec SANDBOX.189: Whoever fills a directory for temporary files does not hide from the search what lies right in it,
    /// up to 50,000 directories.
    #[cfg(target_os = "linux")]
    #[test]
    fn names_right_below_a_root_are_found_whatever_else_is_there() {
        let (_home, root) = tree(&[]);
        for number in 0..80 {
            fs::create_dir_all(root.join(format!("{number}/b/c"))).unwrap();
            fs::create_dir_all(root.join(format!("{number}/.git"))).unwrap();
        }
        for directories in [10, 40, 81] {
            let limits = Limits { directories, entries: 80, ..Limits::SCRATCH };
            let (names, complete) = found(linux::walk, &root, limits);
            assert!(!complete);
            assert_eq!(names.len(), 80, "{directories}");
        }
    }

    /// spec SANDBOX.187: What cannot be read is read-only, whoever owns it, if its user or others can go through it to a
    /// name that they know.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_others_may_pass_is_closed() {
        use std::os::unix::fs::PermissionsExt as _;
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can make a directory of somebody else's");
            return;
        }
        let (_home, root) = tree(&["passed/repository/.git", "shut/repository/.git", "a/group/in"]);
        for (name, mode) in [("", 0o755), ("passed", 0o711), ("shut", 0o700), ("a/group", 0o710)] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let somebody = rustix::process::Uid::from_raw(65534);
        // Of this thread alone.
        let walk = || {
            rustix::thread::set_thread_res_uid(somebody, somebody, somebody).unwrap();
            linux::walk_by(|| 1, &root, Limits::ROOT, &BTreeSet::new())
        };
        let mut walked = std::thread::scope(|scope| scope.spawn(walk).join().unwrap());
        walked.closed.sort();
        assert_eq!(walked.closed, [root.join("a/group"), root.join("passed")]);
        assert_eq!(walked.unread, Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_walked_by_itself_is_left_out() {
        let (_home, root) = tree(&["a/root/x/.git", "b/.git"]);
        let elsewhere = BTreeSet::from([root.join("a/root"), root.clone()]);
        for walk in BOTH {
            let walked = walk(&root, Limits::ROOT, &elsewhere);
            assert_eq!(walked.protected, [root.join("b/.git")]);
        }
    }

    #[test]
    fn a_root_that_is_gone_is_not_complete() {
        let (_home, root) = tree(&[]);
        for walk in BOTH {
            let walked = walk(&root.join("gone"), Limits::ROOT, &BTreeSet::new());
            assert_eq!(walked, Walked::default());
        }
    }

    #[test]
    fn names_that_are_no_text_are_walked_too() {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = std::ffi::OsStr::from_bytes(b"odd \n\xff name");
        let (_home, root) = tree(&[]);
        fs::create_dir_all(root.join(odd).join(odd).join(".git")).unwrap();
        for walk in BOTH {
            let walked = walk(&root, Limits::ROOT, &BTreeSet::new());
            assert_eq!(walked.protected, [root.join(odd).join(odd).join(".git")]);
        }
    }
}
