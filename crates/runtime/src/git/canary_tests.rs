//! What real git starts when it only reads, with every setting that could name a program.
//!
//! Each setting names a canary, a program that leaves a mark. Every command here counts as safe, and
//! gets the environment of those that do.

#![expect(clippy::disallowed_methods, reason = "runs the real git, as nobody confines it here")]

use super::Repositories;
use crate::environment::keep_to_reading;
use proptest::prelude::*;
use sandgate_policy::rules::Rules;
use sandgate_policy::{Class, Surroundings, judge};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What is known about a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Git runs it whatever the environment says.
    Runs,
    /// Nothing that only reads runs it, or the environment overrules it.
    Held,
}
use Known::{Held, Runs};

/// Settings that name a program, with what real git does about each. `CANARY` is the program.
const SETTINGS: &[(&str, Known)] = &[
    ("[filter \"x\"]\nclean = CANARY", Runs),
    ("[filter \"x\"]\nprocess = CANARY", Runs),
    ("[diff \"x\"]\ntextconv = CANARY", Runs),
    ("[diff \"x\"]\ncommand = CANARY", Runs),
    ("[diff]\nexternal = CANARY", Runs),
    ("[include]\npath = included", Runs),
    ("[includeIf \"gitdir:**\"]\npath = included", Runs),
    ("[core]\nfsmonitor = CANARY", Held),
    ("[core]\nhooksPath = HOOKS", Held),
    ("[core]\npager = CANARY\n[pager]\nlog = CANARY\ndiff = CANARY\nstatus = CANARY", Held),
    ("[core]\neditor = CANARY\naskPass = CANARY\nalternateRefsCommand = CANARY", Held),
    ("[core]\nsshCommand = CANARY\ngitProxy = CANARY", Held),
    ("[alias]\nstatus = !CANARY\ndiff = !CANARY\nlog = !CANARY\nshow = !CANARY", Held),
    ("[log]\nshowSignature = true\n[format]\npretty = %G? %s\n[gpg]\nprogram = CANARY", Held),
    ("[format]\npretty = %G? %s\n[gpg \"openpgp\"]\nprogram = CANARY", Held),
    ("[log]\ndiffMerges = remerge\n[merge \"x\"]\ndriver = CANARY", Held),
    ("[trailer \"foo\"]\ncommand = CANARY\ncmd = CANARY", Held),
    ("[interactive]\ndiffFilter = CANARY\n[credential]\nhelper = !CANARY", Held),
    ("[diff]\ntool = x\n[difftool \"x\"]\ncmd = CANARY\n[mergetool \"x\"]\ncmd = CANARY", Held),
    ("[uploadpack]\npackObjectsHook = CANARY\n[tar \"tar.gz\"]\ncommand = CANARY", Held),
];

/// Commands that count as safe and look into files in as many ways as there are.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["diff"],
    &["diff", "--stat", "HEAD"],
    &["diff-files", "-p"],
    &["log", "-p", "-m"],
    &["log", "-1", "--format=%s %(trailers)"],
    &["show"],
    &["blame", "a.txt"],
    &["grep", "one"],
    &["ls-files", "-m"],
    &["stash", "show", "-p"],
];

/// Commands that never look into files, so that they are safe in every repository.
const NEVER_INSIDE: &[&[&str]] = &[
    &["branch", "-vv"],
    &["check-attr", "-a", "a.txt"],
    &["check-ignore", "a.txt"],
    &["config", "--list"],
    &["count-objects"],
    &["for-each-ref"],
    &["merge-base", "HEAD", "HEAD~1"],
    &["name-rev", "HEAD"],
    &["remote", "-v"],
    &["rev-parse", "HEAD"],
    &["show-ref"],
    &["symbolic-ref", "HEAD"],
    &["tag", "-l"],
    &["worktree", "list"],
];

struct World {
    directory: TempDir,
}

impl World {
    fn new() -> Option<Self> {
        let there = Command::new("git").arg("--version").stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            println!("SKIPPED: there is no git");
            return None;
        }
        let world = Self { directory: tempfile::tempdir().unwrap() };
        let canary = format!("#!/bin/sh\necho ran >> {}\ncat\n", world.mark().display());
        fs::create_dir(world.path("hooks")).unwrap();
        for name in ["canary", "hooks/post-index-change", "hooks/reference-transaction"] {
            fs::write(world.path(name), &canary).unwrap();
            fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn mark(&self) -> PathBuf {
        self.path("ran")
    }

    fn env(&self) -> BTreeMap<OsString, OsString> {
        let set = [("HOME", self.directory.path().as_os_str().to_owned())];
        let mut env: BTreeMap<OsString, OsString> =
            set.into_iter().map(|(name, value)| (name.into(), value)).collect();
        env.insert("PATH".into(), std::env::var_os("PATH").unwrap());
        for who in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{who}_NAME").into(), "a".into());
            env.insert(format!("GIT_{who}_EMAIL").into(), "a@b".into());
        }
        env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        env
    }

    fn git_with(&self, env: &BTreeMap<OsString, OsString>, at: &Path, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(words).current_dir(at).env_clear().envs(env);
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn git(&self, at: &Path, words: &[&str]) -> String {
        self.git_with(&self.env(), at, words)
    }

    /// A repository with a history, a merge, a signature, a stash and changes in the work tree, all of
    /// them to files with attributes.
    fn repository(&self, name: &str) -> PathBuf {
        let at = self.path(name);
        fs::create_dir(&at).unwrap();
        let git = |words: &[&str]| self.git(&at, words);
        let write = |text: &str| fs::write(at.join("a.txt"), text).unwrap();
        git(&["init", "-q"]);
        fs::write(at.join(".gitattributes"), "*.txt filter=x diff=x merge=x\n").unwrap();
        write("one\n");
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        git(&["branch", "side"]);
        write("two\n");
        git(&["commit", "-qam", "two\n\nFoo: bar"]);
        git(&["checkout", "-q", "side"]);
        write("three\n");
        git(&["commit", "-qam", "three"]);
        git(&["checkout", "-q", "-"]);
        git(&["merge", "-q", "-s", "ours", "-m", "merged", "side"]);
        let head = git(&["cat-file", "commit", "HEAD"]);
        let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
        let signed = head.replacen("\n\n", &format!("\n{signature}\n\n"), 1);
        fs::write(self.path("signed"), format!("{signed}\n")).unwrap();
        let signed = self.path("signed");
        let commit = git(&["hash-object", "-t", "commit", "-w", signed.to_str().unwrap()]);
        git(&["reset", "-q", "--soft", &commit]);
        write("stashed\n");
        git(&["stash", "-q"]);
        // As many bytes as there were, so that git has to look inside to see the change.
        write("owt\n");
        at
    }

    fn set(&self, config: &Path, settings: &str) {
        let canary = self.path("canary");
        let set = settings.replace("CANARY", canary.to_str().unwrap());
        let set = set.replace("HOOKS", self.path("hooks").to_str().unwrap());
        let before = fs::read_to_string(config).unwrap_or_default();
        fs::write(config, format!("{before}\n{set}\n")).unwrap();
    }

    /// Which of the commands start the canary.
    fn start_canary(&self, at: &Path, commands: &[&[&str]]) -> Vec<String> {
        let mut env = self.env();
        keep_to_reading(&mut env);
        let mut started = Vec::new();
        for words in commands {
            let _ = fs::remove_file(self.mark());
            self.git_with(&env, at, words);
            if self.mark().exists() {
                started.push(words.join(" "));
            }
        }
        started
    }

    fn runs(&self, at: &Path) -> Vec<String> {
        Repositories::default().runs(at, &self.env())
    }
}

fn class(words: &[&str], git_runs: &[String]) -> Class {
    let argv: Vec<String> = [&["git"], words].concat().iter().map(ToString::to_string).collect();
    let around = Surroundings { git_runs: git_runs.to_vec(), ..Surroundings::default() };
    judge(&argv, &around, &Rules::default()).class
}

/// spec REPO.1: Of all settings that name a program, git starts those of filters, converters, external
/// diffs and included files although it was told to only read, and no other.
/// spec REPO.2: Where git would start a program of the repository's, commands that look into files are
/// not safe, and the reason names the setting.
#[test]
fn what_git_starts_in_spite_of_its_environment_is_asked_about() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    let config = at.join(".git/config");
    let plain = fs::read_to_string(&config).unwrap();
    world.set(&at.join(".git/included"), "[diff]\nexternal = CANARY");
    assert_eq!(world.runs(&at), [""; 0]);
    for words in COMMANDS {
        assert_eq!(class(words, &[]), Class::Safe, "{words:?}");
    }
    for (settings, known) in SETTINGS {
        fs::write(&config, &plain).unwrap();
        world.set(&config, settings);
        let (started, runs) = (world.start_canary(&at, COMMANDS), world.runs(&at));
        assert_eq!(started.is_empty(), *known == Held, "{settings}: {started:?}");
        assert_eq!(runs.is_empty(), *known == Held, "{settings}: {runs:?}");
        if *known == Runs {
            for words in COMMANDS {
                let Class::Unknown { reason } = class(words, &runs) else {
                    panic!("{words:?} is safe with {settings}");
                };
                let said = format!("this repository's configuration runs programs: {}", runs[0]);
                assert_eq!(reason, said);
            }
        }
    }
}

/// spec REPO.3: Commands that look at references, names and settings only are safe in every
/// repository.
#[test]
fn what_never_looks_inside_starts_nothing_and_stays_safe() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    world.set(&at.join(".git/included"), "[diff]\nexternal = CANARY");
    for (settings, _) in SETTINGS {
        world.set(&at.join(".git/config"), settings);
    }
    assert_eq!(world.start_canary(&at, NEVER_INSIDE), [""; 0]);
    let runs = world.runs(&at);
    assert!(runs.contains(&"filter.x.clean".to_owned()), "{runs:?}");
    for words in NEVER_INSIDE {
        assert_eq!(class(words, &runs), Class::Safe, "{words:?}");
    }
}

/// spec REPO.4: A repository inside the repository counts with its own settings, also where the outer
/// one has git enter it against the environment.
#[test]
fn the_settings_of_a_submodule_count() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    let inner = world.repository("inner");
    let inner = inner.to_str().unwrap();
    world.git(&at, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "sub"]);
    world.git(&at, &["config", "-f", ".gitmodules", "submodule.sub.ignore", "none"]);
    world.git(&at, &["commit", "-qam", "sub"]);
    fs::write(at.join("sub/a.txt"), "owt\n").unwrap();
    assert_eq!(world.runs(&at), [""; 0]);
    let config = at.join(".git/modules/sub/config");
    let plain = fs::read_to_string(&config).unwrap();
    for (settings, known) in SETTINGS {
        fs::write(&config, &plain).unwrap();
        world.set(&config, settings);
        let (started, runs) = (world.start_canary(&at, COMMANDS), world.runs(&at));
        assert!(started.is_empty() || !runs.is_empty(), "{settings}: {started:?}");
        assert_eq!(runs.is_empty(), *known == Held, "{settings}: {runs:?}");
    }
    fs::write(&config, &plain).unwrap();
    world.set(&config, "[filter \"x\"]\nclean = CANARY");
    assert!(!world.start_canary(&at, &[&["status"]]).is_empty(), "git does enter it");

    // What the outer repository says about how submodules are shown has git enter them, but for the
    // environment.
    fs::write(&config, &plain).unwrap();
    world.set(&config, "[diff]\nexternal = CANARY");
    let outer =
        "[diff]\nsubmodule = diff\n[status]\nsubmoduleSummary = true\n[submodule]\nrecurse = true";
    world.set(&at.join(".git/config"), outer);
    assert_eq!(world.start_canary(&at, COMMANDS), [""; 0]);
}

/// spec REPO.9: A repository inside another is found in an index of every version and of both lengths of
/// object names; an index that is split over two files counts as unreadable.
#[test]
fn inner_repositories_are_found_in_every_index() {
    let Some(world) = World::new() else { return };
    let object = |length: usize| "1".repeat(length);
    for (name, init, version, length) in [
        ("two", &["init", "-q"][..], "2", 40),
        ("three", &["init", "-q"], "3", 40),
        ("four", &["init", "-q"], "4", 40),
        ("sha256", &["init", "-q", "--object-format=sha256"], "2", 64),
    ] {
        let at = world.path(name);
        fs::create_dir(&at).unwrap();
        world.git(&at, init);
        for file in ["a", "b/c", "b/d", "z"] {
            fs::create_dir_all(at.join("b")).unwrap();
            fs::write(at.join(file), file).unwrap();
        }
        world.git(&at, &["add", "a", "b"]);
        // What is only intended to be added needs version 3.
        world.git(&at, &["add", "-N", "z"]);
        let link = format!("160000,{},b/inner", object(length));
        world.git(&at, &["update-index", "--add", "--cacheinfo", &link]);
        world.git(&at, &["update-index", "--index-version", version]);
        assert!(world.git(&at, &["ls-files", "-s"]).contains("160000"), "{name}");
        assert_eq!(world.runs(&at), [""; 0], "{name}");
        fs::create_dir(at.join("b/inner")).unwrap();
        world.git(&at.join("b/inner"), &["init", "-q"]);
        world.set(&at.join("b/inner/.git/config"), "[filter \"x\"]\nclean = CANARY");
        assert_eq!(world.runs(&at), ["filter.x.clean"], "{name}");
    }
    let at = world.path("four");
    world.git(&at, &["update-index", "--split-index"]);
    let index = at.join(".git/index");
    assert!(world.runs(&at).contains(&format!("{} cannot be read", index.display())));
}

/// spec REPO.5: The settings of a linked work tree, of the repository it belongs to, and of a `.git`
/// that is a file or a link count as well.
#[test]
fn settings_are_found_wherever_git_keeps_them() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    let linked = world.path("linked");
    world.git(&at, &["worktree", "add", "-q", linked.to_str().unwrap()]);
    fs::create_dir(linked.join("below")).unwrap();
    std::os::unix::fs::symlink(at.join(".git"), world.path("hooks/.git")).unwrap();
    let everywhere = [at.clone(), linked.clone(), linked.join("below"), world.path("hooks")];
    for at in &everywhere {
        assert_eq!(world.runs(at), [""; 0]);
    }
    let filter = "[filter \"x\"]\nclean = CANARY";
    let own = at.join(".git/worktrees/linked/config.worktree");
    world.set(&own, filter);
    assert_eq!(world.runs(&linked.join("below")), ["filter.x.clean"]);
    fs::remove_file(own).unwrap();
    world.set(&at.join(".git/config"), filter);
    for at in everywhere.iter().chain([&at.join(".git"), &at.join(".git/refs")]) {
        assert_eq!(world.runs(at), ["filter.x.clean"], "{at:?}");
    }
    assert_eq!(world.runs(world.directory.path()), [""; 0]);
}

/// spec REPO.6: Settings or an index that cannot be read to the end, and a variable that names another
/// repository, count as settings that run programs.
#[test]
fn what_cannot_be_read_counts_as_the_worst() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    let (config, index) = (at.join(".git/config"), at.join(".git/index"));
    let (plain, files) = (fs::read(&config).unwrap(), fs::read(&index).unwrap());
    let cannot_be_read = |path: &Path| [format!("{} cannot be read", path.display())];
    for odd in [&b"[a"[..], b"@", b"[a]\nb = \"", &vec![b'#'; 2 << 20]] {
        fs::write(&config, odd).unwrap();
        assert_eq!(world.runs(&at), cannot_be_read(&config));
    }
    fs::remove_file(&config).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(world.runs(&at), cannot_be_read(&config));
    fs::remove_file(&config).unwrap();
    fs::write(&config, &plain).unwrap();
    // Two files of 72 bytes each follow the head of 12; behind them nothing tells where it ends.
    for end in 0..12 + 2 * 72 {
        fs::write(&index, &files[..end]).unwrap();
        assert_eq!(world.runs(&at), cannot_be_read(&index), "cut after {end}");
    }
    fs::write(&index, &files).unwrap();
    let mut env = world.env();
    env.insert("GIT_DIR".into(), "elsewhere".into());
    let runs = Repositories::default().runs(&at, &env);
    assert_eq!(runs, ["GIT_DIR names another repository"]);
}

/// What is remembered of a file is forgotten when the file changes.
#[test]
fn a_changed_configuration_is_read_again() {
    let Some(world) = World::new() else { return };
    let at = world.repository("repository");
    let repositories = Repositories::default();
    let runs = || repositories.runs(&at, &world.env());
    assert_eq!(runs(), [""; 0]);
    assert_eq!(runs(), [""; 0]);
    let config = at.join(".git/config");
    world.set(&config, "[filter \"x\"]\nclean = CANARY");
    assert_eq!(runs(), ["filter.x.clean"]);
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("clean", "other")).unwrap();
    assert_eq!(runs(), [""; 0], "a change that leaves the size as it was");
}

/// A text that is often a configuration and often not quite.
fn nearly_a_configuration() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("[a]\n".to_owned()),
        Just("[filter \"x\"]".to_owned()),
        Just("[A.b]\n".to_owned()),
        Just("clean = run\n".to_owned()),
        Just("key".to_owned()),
        Just("\"q\"".to_owned()),
        Just("\\\n".to_owned()),
        Just("\r\n".to_owned()),
        "[\\[\\]a-cA-C\"\\\\ \t\n;#=.0-9-]{0,6}",
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// spec REPO.7: Every setting that git finds in a file is found, with its value, or the whole file
    /// counts as unreadable.
    #[test]
    fn git_sees_no_setting_that_we_do_not(text in nearly_a_configuration()) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        fs::write(&file, &text).unwrap();
        let listing = Command::new("git")
            .args(["config", "--list", "-z", "-f"])
            .arg(&file)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stderr(Stdio::null())
            .output();
        let Ok(listed) = listing else { return Ok(()) };
        match super::config::settings(text.as_bytes()) {
            Err(_) => prop_assert!(!listed.status.success(), "git reads {text:?}"),
            Ok(ours) => {
                let mut expected = Vec::new();
                for setting in ours {
                    expected.extend(setting.name);
                    if let Some(value) = setting.value {
                        expected.push(b'\n');
                        expected.extend(value);
                    }
                    expected.push(0);
                }
                if listed.status.success() {
                    let (ours, gits) = (String::from_utf8_lossy(&expected), String::from_utf8_lossy(&listed.stdout));
                    prop_assert_eq!(ours, gits);
                }
            }
        }
    }
}
