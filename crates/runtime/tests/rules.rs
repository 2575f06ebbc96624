//! Rules in real files: found, read, refused, and added to.

#![cfg(unix)]

use sandgate_policy::rules::{
    Author, Decision, MAX_RULES_BYTES, ProposedRule, RuleSandbox, Rules, propose,
};
use sandgate_policy::{Surroundings, judge};
use sandgate_runtime::rules::{Loaded, ProjectRules, RulesFileError, append_rule, load, load_file};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A person's settings, and a project.
struct Place {
    base: TempDir,
}

fn place() -> Place {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir(base.path().join("project")).unwrap();
    Place { base }
}

impl Place {
    fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.base.path().join("project")
    }

    /// Writes a file below the base, and the directories above it.
    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.base.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn load(&self) -> Loaded {
        load(&self.home(), ProjectRules::Trusted(&self.project()))
    }

    fn default_file(&self) -> PathBuf {
        self.home().join("rules/default.toml")
    }
}

fn rule(program: &str) -> String {
    format!("[[rule]]\nprefix = [\"{program}\"]\ndecision = \"forbid\"\n")
}

/// The rules that were loaded, as they are written, when nothing was broken.
fn all(loaded: &Loaded) -> Vec<String> {
    assert!(loaded.broken.is_empty(), "{:?}", loaded.broken);
    shown(&loaded.rules)
}

fn shown(rules: &Rules) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

fn proposal(text: &str) -> ProposedRule {
    let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
    propose(&judge(&argv, &Surroundings::default(), &Rules::default()), None).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// spec RULES.60: The rules of a session are those of `rules/*.toml` in the person's settings, in the
/// order of the files' names, and then those of `.codex/rules/*.toml` in a trusted project.
#[test]
fn rules_come_from_the_person_and_from_a_trusted_project() {
    let place = place();
    assert_eq!(all(&place.load()), [""; 0], "there need be none");
    place.write("home/rules/b.toml", &rule("b"));
    place.write("home/rules/a.toml", &rule("a"));
    place.write("home/rules/notes.md", "no rules");
    place.write("home/rules/.hidden.toml", "no rules");
    place.write("project/.codex/rules/team.toml", &rule("team"));
    let loaded = place.load();
    let authors: Vec<Author> = loaded.rules.iter().map(|rule| rule.origin.author).collect();
    assert_eq!(authors, [Author::Person, Author::Person, Author::Project]);
    let last = loaded.rules.iter().last().unwrap().origin.to_string();
    assert_eq!(last, format!("{}/.codex/rules/team.toml:1", place.project().display()));
    assert_eq!(all(&loaded), [r#"["a"]"#, r#"["b"]"#, r#"["team"]"#]);
}

/// spec RULES.61: Nothing of a project that is not trusted is looked at.
#[test]
fn a_project_that_is_not_trusted_has_no_say() {
    let place = place();
    place.write("project/.codex/rules/team.toml", "broken");
    assert_eq!(all(&load(&place.home(), ProjectRules::None)), [""; 0]);
}

#[test]
fn whoever_works_in_their_home_directory_has_their_own_rules_once() {
    let place = place();
    let bypass =
        "[[rule]]\nprefix = [\"git\", \"fetch\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";
    place.write("me/.codex/rules/a.toml", bypass);
    let me = place.base.path().join("me");
    let loaded = load(&me.join(".codex"), ProjectRules::Trusted(&me));
    assert_eq!(all(&loaded).len(), 1);
}

/// spec RULES.62: A broken file takes its own rules with it and no others, and is reported with its
/// path, line and column.
#[test]
fn a_broken_file_is_reported_and_the_others_hold() {
    let place = place();
    place.write("home/rules/a.toml", &rule("a"));
    let broken = place.write("home/rules/b.toml", &format!("{}decision = 1\n", rule("b")));
    place.write("home/rules/c.toml", &rule("c"));
    let bypass = "[[rule]]\nprefix = [\"x\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";
    place.write("project/.codex/rules/team.toml", bypass);
    let loaded = place.load();
    assert_eq!(shown(&loaded.rules), [r#"["a"]"#, r#"["c"]"#]);
    let said: Vec<String> = loaded.broken.iter().map(ToString::to_string).collect();
    assert!(said[0].starts_with(&format!("{}:4:1: ", broken.display())), "{}", said[0]);
    assert!(said[1].contains("team.toml:4:11: a project's rule cannot"), "{}", said[1]);
    assert_eq!(said.len(), 2);
}

/// spec RULES.63: Links, directories, pipes, files of more than 1 MiB and files that are not text are
/// not read as rules, and each is reported.
#[test]
fn only_regular_files_of_text_are_read() {
    let place = place();
    let outside = place.write("outside/secret.toml", &rule("secret"));
    let rules = place.home().join("rules");
    place.write("home/rules/large.toml", &"#".repeat(MAX_RULES_BYTES + 1));
    fs::write(rules.join("bytes.toml"), b"\xff\xfe").unwrap();
    fs::create_dir(rules.join("directory.toml")).unwrap();
    symlink(&outside, rules.join("link.toml")).unwrap();
    let fifo = rules.join("pipe.toml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    symlink(place.base.path().join("outside"), place.project().join(".codex")).unwrap();

    let loaded = place.load();
    assert!(loaded.rules.is_empty());
    let [bytes, directory, large, link, pipe, project] = loaded.broken.as_slice() else {
        panic!("{:?}", loaded.broken);
    };
    assert!(matches!(bytes, RulesFileError::NotText { .. }));
    assert!(matches!(directory, RulesFileError::WrongKind { wanted: "file", .. }));
    assert!(matches!(large, RulesFileError::TooLarge { .. }));
    assert!(matches!(link, RulesFileError::Link { path } if path.ends_with("link.toml")));
    assert!(matches!(pipe, RulesFileError::WrongKind { path, .. } if *path == fifo));
    assert!(matches!(project, RulesFileError::Link { path } if path.ends_with(".codex")));
}

#[test]
fn a_directory_of_very_many_files_is_read_in_part_and_reported() {
    let place = place();
    for number in 0..101 {
        place.write(&format!("project/.codex/rules/{number:03}.toml"), &rule("x"));
    }
    let loaded = place.load();
    assert_eq!(loaded.rules.iter().count(), 100);
    assert!(matches!(loaded.broken.as_slice(), [RulesFileError::TooManyFiles { max: 100, .. }]));
}

/// spec RULES.71: A single file that a person names is read by the same rules, also through a link.
#[test]
fn one_file_can_be_read_by_its_name() {
    let place = place();
    let file = place.write("elsewhere/team.txt", &rule("a"));
    let link = place.base.path().join("link");
    symlink(&file, &link).unwrap();
    assert_eq!(shown(&load_file(&link).unwrap()), [r#"["a"]"#]);
    fs::write(&file, "prefix = 1\n").unwrap();
    assert!(load_file(&file).unwrap_err().to_string().contains("team.txt:1:1: "));
    fs::remove_file(&file).unwrap();
    let error = load_file(&file).unwrap_err().to_string();
    assert!(error.starts_with("cannot open ") && error.contains("team.txt"), "{error}");
}

/// spec RULES.64: An approved rule is written to `rules/default.toml` in the person's settings, which
/// only they can read if it is new, and holds at once and in later sessions.
#[test]
fn an_approved_rule_is_kept() {
    let place = place();
    let argv = ["gh", "pr", "view", "12"].map(str::to_owned);
    let around = Surroundings::default();
    let mut rules = Rules::default();
    assert_eq!(judge(&argv, &around, &rules).ruling, None);

    let out = proposal("gh pr view").leaving_the_sandbox().unwrap();
    let written = append_rule(&place.home(), &out.with_justification("asked for")).unwrap();
    assert_eq!(written.origin.file, place.default_file().display().to_string());
    rules.extend([written.clone()]);
    let later = place.load();
    assert_eq!(later.rules.iter().collect::<Vec<_>>(), [&written]);
    for rules in [&rules, &later.rules] {
        let ruling = judge(&argv, &around, rules).ruling.unwrap();
        assert_eq!((ruling.decision, ruling.sandbox), (Decision::Allow, RuleSandbox::Bypass));
    }
    assert_eq!(mode(&place.default_file()), 0o600);
    assert_eq!((mode(&place.home()), mode(&place.home().join("rules"))), (0o700, 0o700));
}

/// spec RULES.65: What was in the file stays as it was, with its mode, and a rule that is there
/// already is not written again.
#[test]
fn the_rest_of_the_file_is_kept() {
    let place = place();
    let text = "# mine\n[[rule]] # first\nprefix = ['make']\ndecision = 'prompt'";
    let file = place.write("home/rules/default.toml", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    append_rule(&place.home(), &proposal("git pull")).unwrap();
    let longer = fs::read_to_string(&file).unwrap();
    assert!(longer.starts_with(text) && longer.len() > text.len());
    assert_eq!(mode(&file), 0o640);

    let before = fs::metadata(&file).unwrap().ino();
    let again = append_rule(&place.home(), &proposal("git pull")).unwrap();
    assert_eq!(again.origin.line, 6);
    assert_eq!(fs::metadata(&file).unwrap().ino(), before, "it was not replaced");
    assert_eq!(all(&place.load()).len(), 2);
}

/// spec RULES.66: Rules that are approved at the same time are all kept, and whoever reads meanwhile
/// finds whole files.
#[test]
fn writers_wait_for_each_other() {
    let place = place();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let home = place.home();
                scope.spawn(move || {
                    for number in 0..10 {
                        append_rule(&home, &proposal(&format!("make target-{writer}-{number}")))
                            .unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Acquire) {
                let found = all(&place.load()).len();
                assert!(found >= most);
                most = found;
            }
        });
        let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Release);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_eq!(all(&place.load()).len(), 40);
}

/// spec RULES.67: A rules file, or a directory of rules, that is a link is not written through.
#[test]
fn a_link_is_not_written_through() {
    let place = place();
    let target = place.write("outside/target.toml", "# theirs\n");
    fs::create_dir_all(place.home().join("rules")).unwrap();
    symlink(&target, place.default_file()).unwrap();
    let error = append_rule(&place.home(), &proposal("git pull")).unwrap_err();
    assert!(matches!(&error, RulesFileError::Link { path } if *path == place.default_file()));
    assert!(error.to_string().contains("default.toml is a link"), "{error}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "# theirs\n");

    fs::remove_dir_all(place.home().join("rules")).unwrap();
    symlink(place.base.path().join("outside"), place.home().join("rules")).unwrap();
    let error = append_rule(&place.home(), &proposal("git pull")).unwrap_err();
    assert!(matches!(error, RulesFileError::Link { .. }));
    assert_eq!(fs::read_dir(place.base.path().join("outside")).unwrap().count(), 1);
}

/// spec RULES.68: A broken file is not added to.
#[test]
fn a_broken_file_is_left_as_it_is() {
    let place = place();
    let file = place.write("home/rules/default.toml", "[[rule]]\n");
    let error = append_rule(&place.home(), &proposal("git pull")).unwrap_err();
    assert!(matches!(&error, RulesFileError::Broken(error) if error.line == 1));
    assert_eq!(fs::read_to_string(file).unwrap(), "[[rule]]\n");
}

/// spec RULES.69: What a crash left half written counts for nothing, and is gone with the next rule.
#[test]
fn leftovers_of_a_crash_are_swept() {
    let place = place();
    let half = place.write("home/rules/.default.toml.new", "[[rule]]\nprefix = [\"half");
    assert_eq!(all(&place.load()), [""; 0]);
    append_rule(&place.home(), &proposal("git pull")).unwrap();
    assert!(!half.exists());
    assert_eq!(all(&place.load()), [r#"["git", "pull"]"#]);
    let mut names: Vec<_> =
        fs::read_dir(place.home().join("rules")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "default.toml"]);
}

/// spec RULES.70: Where nothing can be written the error names the path and the reason.
#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let place = place();
    place.write("home", "a file in the way");
    let error = append_rule(&place.home(), &proposal("git pull")).unwrap_err().to_string();
    assert!(error.contains(&format!("{} is not a directory", place.home().display())), "{error}");

    if rustix::process::geteuid().is_root() {
        println!("SKIPPED: root writes to read-only directories");
        return;
    }
    fs::remove_file(place.home()).unwrap();
    let rules = place.home().join("rules");
    fs::create_dir_all(&rules).unwrap();
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o500)).unwrap();
    let error = append_rule(&place.home(), &proposal("git pull")).unwrap_err().to_string();
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(error.contains(rules.to_str().unwrap()) && error.contains("ermission"), "{error}");
}
