//! Settings and trust, as the program obeys them.

mod support;
#[cfg(target_os = "linux")]
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use std::path::Path;
use support::{Outcome, World};

/// A project in a home where nothing is set.
struct Place {
    world: World,
}

impl Place {
    fn new() -> Self {
        let place = Self { world: World::untouched() };
        place.write("project/.git/HEAD", "ref: refs/heads/main\n");
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.world.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The program in the project.
    fn sandgate(&self, words: &[&str]) -> Outcome {
        let mut command = self.world.program(words);
        command.current_dir(self.world.path("project")).env_remove("CODEX_HOME");
        support::Running::start(&mut command).wait()
    }

    fn said(&self, words: &[&str]) -> String {
        let outcome = self.sandgate(words);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let home = self.world.home().canonicalize().unwrap();
        outcome.stdout().replace(&home.display().to_string(), "HOME")
    }

    /// What holds in the project.
    fn setting(&self, key: &str, more: &[&str]) -> String {
        let shown = self.said(&[&["config", "show"], more].concat());
        let line = shown.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
        line.unwrap_or_default().to_owned()
    }

    fn own_file(&self) -> String {
        fs::read_to_string(self.world.path(".codex/config.toml")).unwrap_or_default()
    }
}

/// spec CONFIG.40: `sandgate run` obeys the settings: in a directory that is not trusted a command
/// that is not known to be safe needs an answer, and in a trusted one it writes in the workspace and
/// nowhere else.
#[test]
fn a_command_runs_as_trust_and_settings_say() {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: the sandbox of this system is not tried here");
        return;
    }
    let place = Place::new();
    let made = place.world.path("project/made");
    let touch = ["run", "--", "touch", "made"];
    let outcome = place.sandgate(&touch);
    assert_eq!(outcome.code, Some(77), "{}", outcome.stderr);
    assert!(!made.exists());

    // Someone who says yes lets it run, but it can still only read.
    let outcome =
        place.sandgate(&["run", "--decide", "approve", "--json", "--", "cat", "/dev/null"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!made.exists());

    place.said(&["trust"]);
    let outcome = place.sandgate(&touch);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(made.exists());
    let outside = place.world.path("outside");
    let outcome = place.sandgate(&[
        "run",
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
        "-c",
        "sandbox_workspace_write.exclude_tmpdir_env_var=true",
        "--decide",
        "deny",
        "--",
        "touch",
        outside.to_str().unwrap(),
    ]);
    assert_ne!(outcome.code, Some(0));
    assert!(!outside.exists());

    // The person's settings, a profile, -c and an option each have their say.
    place.said(&["config", "set", "sandbox_mode", "read-only"]);
    place.said(&["config", "set", "--profile", "w", "sandbox_mode", "workspace-write"]);
    for (words, makes) in [
        (&[][..], false),
        (&["--profile", "w"], true),
        (&["--profile", "w", "-c", "sandbox_mode=read-only"], false),
        (&["-c", "sandbox_mode=read-only", "--sandbox", "workspace-write"], true),
        (&["--full-auto"], true),
    ] {
        fs::remove_file(&made).unwrap_or_default();
        let words = [&["run", "--decide", "deny"], words, &["--", "touch", "made"]].concat();
        let outcome = place.sandgate(&words);
        assert_eq!(outcome.code == Some(0), makes, "{words:?} {}", outcome.stderr);
        assert_eq!(made.exists(), makes, "{words:?}");
    }
}

/// spec CONFIG.41: `sandgate config show --origin` prints every value that holds and the layer that it
/// came from; with `--json` as one object.
#[test]
fn every_value_is_shown_with_its_origin() {
    let place = Place::new();
    place.world.set("model = \"m\"\n[profiles.p]\nsandbox_mode = \"workspace-write\"\n");
    let words = ["config", "show", "--origin", "--profile", "p", "-c", "audit.fsync=each"];
    insta::assert_snapshot!("config_show", place.said(&words));
    let shown = place.said(&["config", "show", "--json", "-c", "audit.fsync=each"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["trust"], "unknown");
    let of = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["key"] == key).unwrap()
    };
    assert_eq!(of("audit.fsync")["origin"]["layer"], "override");
    assert_eq!(of("model")["value"], "m");
    assert_eq!(of("model")["origin"]["layer"], "user");
    assert_eq!(of("sandbox_mode")["origin"]["name"], "read-only");
}

/// spec CONFIG.42: `sandgate config validate` names what is wrong in the person's file and in that of
/// the project, or in the file that is named, and ends with 1 if one is not in order.
#[test]
fn files_are_validated() {
    let place = Place::new();
    assert!(place.said(&["config", "validate"]).starts_with("There is no config.toml"));
    place.world.set("modle = \"x\"\n");
    place.write("project/.codex/config.toml", "sandbox_mode = \"none\"\n");
    place.write("other.toml", "model = 1\n");
    let outcome = place.sandgate(&["config", "validate"]);
    assert_eq!(outcome.code, Some(1));
    let home = place.world.home();
    let told =
        outcome.stdout().replace(&home.canonicalize().unwrap().display().to_string(), "HOME");
    insta::assert_snapshot!("config_validate", told.replace(&home.display().to_string(), "HOME"));
    let other = place.world.path("other.toml");
    let outcome = place.sandgate(&["config", "validate", other.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stdout().contains("other.toml:1:9: model cannot be 1"), "{}", outcome.stdout());
    fs::remove_file(place.world.path("project/.codex/config.toml")).unwrap();
    assert_eq!(place.sandgate(&["config", "validate"]).code, Some(0));
}

/// spec CONFIG.43: A person's file that is not in order stops what needs settings, and nothing runs.
#[test]
fn a_broken_file_of_the_persons_stops_the_command() {
    let place = Place::new();
    place.world.set("sandbox_mode = \"none\"\n");
    for words in [
        &["run", "--sandbox", "workspace-write", "--", "touch", "made"][..],
        &["sandbox", "--full-auto", "--", "touch", "made"],
        &["call", "-"],
        &["policy", "explain", "--", "ls"],
        &["policy", "list"],
        &["config", "show"],
    ] {
        let outcome = place.sandgate(words);
        assert_eq!(outcome.code, Some(125), "{words:?}");
        assert!(outcome.stderr.contains("config.toml:1:16: sandbox_mode"), "{}", outcome.stderr);
    }
    assert!(!place.world.path("project/made").exists());
    // What was written on the command line is told like everything that is wrong there.
    fs::remove_file(place.world.path(".codex/config.toml")).unwrap();
    for words in [&["-c", "modle=x"][..], &["-c", "x"], &["--profile", "x"], &["--network"]] {
        let words = [&["run"], words, &["--", "touch", "made"]].concat();
        let outcome = place.sandgate(&words);
        assert_eq!(outcome.code, Some(2), "{words:?} {}", outcome.stderr);
    }
    assert!(!place.world.path("project/made").exists());
}

/// spec CONFIG.44: `sandgate config set` changes one setting in the person's file, or in a profile of
/// it, and refuses a value that the setting cannot have.
#[test]
fn a_setting_is_changed() {
    let place = Place::new();
    place.world.set("# mine\nmodel = \"a\" # why\n");
    place.said(&["config", "set", "model", "b"]);
    place.said(&["config", "set", "--profile", "ci", "approval_policy", "never"]);
    let expected = "# mine\nmodel = \"b\" # why\n\n[profiles.ci]\napproval_policy = \"never\"\n";
    assert_eq!(place.own_file(), expected);
    let outcome = place.sandgate(&["config", "set", "sandbox_mode", "none"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("it can be \"read-only\""), "{}", outcome.stderr);
    assert_eq!(place.own_file(), expected);
}

/// spec CONFIG.57: What is wrong with a setting of the command line is said in a line, with what can be written
/// instead, and without a place in a file.
#[test]
fn a_wrong_setting_of_the_command_line_is_told_in_a_line() {
    let world = World::new();
    let before = fs::read_to_string(world.path(".codex/config.toml")).unwrap();
    let mode = "sandgate: sandbox_mode cannot be \"foo\": it can be \"read-only\", \
                \"workspace-write\" or \"danger-full-access\"\n";
    let name = "sandgate: there is no setting called modle: did you mean model?\n";
    for (words, told) in [
        (["config", "set", "sandbox_mode", "foo"].as_slice(), mode),
        (&["config", "set", "modle", "foo"], name),
        (&["run", "-c", "sandbox_mode=foo", "--", "true"], mode),
    ] {
        let outcome = world.sandgate(words);
        assert_eq!(outcome.stderr, told);
        assert_ne!(outcome.code, Some(0));
    }
    assert_eq!(fs::read_to_string(world.path(".codex/config.toml")).unwrap(), before);
}

/// spec CONFIG.45: `sandgate trust` shows what a project loosens and needs a yes for it, `--status`
/// says whether it is trusted, and `--revoke` takes trust back.
#[test]
fn trust_is_given_seen_and_taken_back() {
    let place = Place::new();
    let status = |code| {
        let outcome = place.sandgate(&["trust", "--status"]);
        assert_eq!(outcome.code, Some(code), "{}", outcome.stdout());
        outcome.stdout().to_owned()
    };
    assert!(status(1).contains("you have not been asked"));
    place.said(&["trust"]);
    assert!(status(0).ends_with("project: trusted\n"));

    place.write("project/.codex/config.toml", "approval_policy = \"never\"\n");
    place.write(
        "project/.codex/rules/r.toml",
        "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\
         [[rule]]\nprefix = [\"npm\"]\ndecision = \"forbid\"\n",
    );
    assert!(status(0).contains("you are never asked (approval_policy)"));
    assert_eq!(place.setting("approval_policy", &[]), "\"on-request\"");
    let before = place.own_file();
    let outcome = place.sandgate(&["trust"]);
    assert_eq!(outcome.code, Some(77));
    assert!(outcome.stderr.contains("you are never asked"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("no question where this rule holds: [\"make\"]"),
        "{}",
        outcome.stderr
    );
    assert_eq!(place.own_file(), before);

    place.said(&["trust", "--yes"]);
    assert_eq!(place.setting("approval_policy", &[]), "\"never\"");
    place.said(&["trust", "--revoke"]);
    assert!(status(1).ends_with("project: not trusted\n"));
    assert_eq!(place.setting("approval_policy", &[]), "\"untrusted\"");
    assert_eq!(place.sandgate(&["trust", "nowhere"]).code, Some(125));
}

/// spec CONFIG.46: Rules of a project count when it is trusted; of a file that the person has not seen
/// as it is, those that allow do not.
#[test]
fn rules_of_a_project_count_when_they_were_seen() {
    let place = Place::new();
    place.write(
        "project/.codex/rules/r.toml",
        "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n",
    );
    let listed = || place.said(&["policy", "list"]);
    assert!(listed().starts_with("There are no rules"), "{}", listed());
    place.said(&["trust", "--yes"]);
    assert!(listed().contains("make"), "{}", listed());
    place.write(
        "project/.codex/rules/r.toml",
        "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\
         [[rule]]\nprefix = [\"npm\"]\ndecision = \"forbid\"\n",
    );
    assert!(listed().contains("npm") && !listed().contains("make"), "{}", listed());
    let told = place.sandgate(&["policy", "list"]).stderr;
    assert!(told.contains("does not count until you have seen it"), "{told}");
}

/// spec CONFIG.56: What a rules file allows that the settings name does not count if commands may write
/// where it is; what it asks about and forbids does.
#[test]
fn a_rules_file_that_commands_can_write_allows_nothing() {
    let place = Place::new();
    let rules = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\
                 [[rule]]\nprefix = [\"npm\"]\ndecision = \"forbid\"\n";
    for name in ["project/team.toml", ".codex/team.toml"] {
        place.write(name, rules);
        // Whatever the umask is, nobody else can write it.
        #[cfg(unix)]
        fs::set_permissions(
            place.world.path(name),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
    }
    place.write("project/.codex/config.toml", "rules = [\"team.toml\"]\n");
    place.said(&["trust", "--yes"]);
    let listed = || place.said(&["policy", "list"]);
    // What a project names is no rules file.
    assert!(listed().starts_with("There are no rules"), "{}", listed());

    let own = place.world.path("project/team.toml");
    place.said(&["config", "set", "rules", &format!("[{own:?}]")]);
    assert!(listed().contains("npm") && !listed().contains("make"), "{}", listed());
    let told = place.sandgate(&["policy", "list"]).stderr;
    assert!(told.contains("commands may write where it is"), "{told}");

    place.said(&["config", "set", "rules", "[\"team.toml\"]"]);
    assert!(listed().contains("npm") && listed().contains("make"), "{}", listed());
}

/// spec CONFIG.58: Where a link leads from the person's file out of their settings, to where commands may write,
/// only what it makes stricter counts, whatever is in it, and a line says so; elsewhere, and where the whole of
/// the directory is a link, all of it counts.
#[cfg(unix)]
#[test]
fn a_linked_file_that_commands_can_write_loosens_nothing() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place { world: World::elsewhere() };
    let path = |name: &str| place.world.path(name);
    let rules = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\
                 [[rule]]\nprefix = [\"npm\"]\ndecision = \"forbid\"\n";
    let settings = format!(
        "sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\nsandbox_require_full = true\n\
         rules = [{:?}]\n[projects.{:?}]\ntrust_level = \"trusted\"\n\
         [profiles.work]\nsandbox_mode = \"danger-full-access\"\nmodel = \"small\"\n",
        path("other/team.toml"),
        path("dotfiles"),
    );
    place.write("dotfiles/codex/config.toml", &settings);
    place.write("other/team.toml", rules);
    for name in ["dotfiles/codex/config.toml", "other/team.toml"] {
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    for directory in ["tmp", ".codex", "project"] {
        fs::create_dir(path(directory)).unwrap();
    }
    symlink("../dotfiles/codex/config.toml", path(".codex/config.toml")).unwrap();
    let sandgate = |directory: &str, words: &[&str]| {
        let mut command = place.world.program(words);
        command.current_dir(path(directory)).env("TMPDIR", path("tmp"));
        support::Running::start(&mut command).wait()
    };
    let holds = |directory: &str, expected: [&str; 2], told: bool| {
        let shown = sandgate(directory, &["config", "show"]);
        for line in expected.into_iter().chain(["sandbox_require_full = true"]) {
            let has_line = shown.stdout().lines().any(|shown| shown == line);
            assert!(has_line, "{directory}: {line}: {shown:?}");
        }
        let listed = sandgate(directory, &["policy", "list"]);
        assert!(listed.stdout().contains("npm"), "{directory}: {listed:?}");
        assert_eq!(listed.stdout().contains("make"), !told, "{directory}: {listed:?}");
        assert_eq!(
            listed.stderr.contains("only what it makes stricter counts"),
            told,
            "{listed:?}"
        );
    };
    let strict = ["sandbox_mode = \"read-only\"", "approval_policy = \"untrusted\""];
    let loose = ["sandbox_mode = \"danger-full-access\"", "approval_policy = \"never\""];
    for directory in ["dotfiles", "dotfiles/codex", ""] {
        holds(directory, strict, true);
    }
    for words in [
        &["run", "--", "touch ../written"][..],
        &["run", "--profile", "work", "--", "touch ../written"],
    ] {
        let outcome = sandgate("dotfiles", words);
        assert!(outcome.code != Some(0) && !path("written").exists(), "{outcome:?}");
        assert!(!outcome.stderr.contains("no profile"), "{outcome:?}");
    }
    holds("project", loose, false);

    fs::rename(path(".codex"), path("codex-before")).unwrap();
    symlink("dotfiles/codex", path(".codex")).unwrap();
    holds("dotfiles", loose, false);
}

/// spec CONFIG.47: `sandgate sandbox` may only read unless an option, `-c` or a profile says otherwise,
/// and what `workspace-write` means is in the settings.
#[test]
fn the_sandbox_verb_obeys_the_settings() {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: the sandbox of this system is not tried here");
        return;
    }
    let place = Place::new();
    let extra = place.world.path("extra");
    fs::create_dir(&extra).unwrap();
    let settings = format!(
        "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = [{extra:?}]\n\
         exclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    );
    place.world.set(&settings);
    let touch = |words: &[&str], file: &Path| {
        let words = [&["sandbox"], words, &["--", "touch", file.to_str().unwrap()]].concat();
        place.sandgate(&words);
        let made = file.exists();
        fs::remove_file(file).unwrap_or_default();
        made
    };
    let here = place.world.path("project/made");
    assert!(!touch(&[], &here));
    assert!(touch(&["--full-auto"], &here));
    assert!(touch(&["-c", "sandbox_mode=workspace-write"], &here));
    assert!(touch(&["--full-auto"], &extra.join("made")));
    assert!(!touch(&["--full-auto"], &place.world.path("elsewhere")));
}

/// spec CONFIG.48: The first command in a directory that the person has not been asked about asks them
/// at their terminal, shows what the project would loosen, and keeps the answer; where trust changes
/// nothing, and without a terminal, nobody is asked.
#[test]
#[cfg(target_os = "linux")]
fn a_person_is_asked_once() {
    use terminal::Terminal;
    let place = Place::new();
    place.write("project/.codex/config.toml", "[sandbox_workspace_write]\nnetwork_access = true\n");
    let project = place.world.path("project");
    let run = |more: &[&str], command: &str| -> Vec<String> {
        let words =
            [&["run", "--cd", project.to_str().unwrap()], more, &["--", "echo", command]].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    let start = |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Terminal::start(&place.world, &words)
    };
    let mut asked = start(run(&[], "first-word"));
    let question = asked.answer("y");
    assert!(question.contains("[l] ask me later"), "{question}");
    assert!(question.contains("commands can reach the network"), "{question}");
    let (shown, code) = asked.end();
    assert!(shown.contains("first-word") && code == Some(0), "{shown}");
    assert!(place.own_file().contains("trust_level = \"trusted\""), "{}", place.own_file());
    assert_eq!(place.setting("sandbox_workspace_write.network_access", &[]), "true");

    // Not again, until it loosens something else.
    let (shown, code) = start(run(&[], "second-word")).end();
    assert!(!shown.contains("trust") && code == Some(0), "{shown}");
    place.write("project/.codex/config.toml", "approval_policy = \"never\"\n");
    let mut again = start(run(&[], "third-word"));
    let question = again.answer("l");
    assert!(question.contains("you are never asked"), "{question}");
    let (shown, code) = again.end();
    assert!(shown.contains("third-word") && code == Some(0), "{shown}");
    assert_eq!(place.setting("approval_policy", &[]), "\"on-request\"");

    // Where everything is settled there is nothing to ask.
    place.said(&["trust", "--yes"]);
    fs::remove_file(place.world.path(".codex/config.toml")).unwrap();
    fs::remove_dir_all(place.world.path("project/.codex")).unwrap();
    let settled = ["--sandbox", "read-only", "--ask-for-approval", "untrusted"];
    let (shown, code) = start(run(&settled, "fourth-word")).end();
    assert!(!shown.contains("trust it") && code == Some(0), "{shown}");
}

/// spec CONFIG.32: Changes that are made at the same time are all kept, and whoever reads meanwhile
/// finds a whole file.
#[test]
fn programs_that_write_at_the_same_time_lose_nothing() {
    const CHANGES: usize = 50;
    let place = Place::new();
    place.said(&["config", "set", "model", "first"]);
    std::thread::scope(|scope| {
        for writer in ["a", "b"] {
            let place = &place;
            scope.spawn(move || {
                for change in 0..CHANGES {
                    let key = format!("shell_environment_policy.set.{writer}{change}");
                    place.said(&["config", "set", &key, &change.to_string()]);
                    // Whoever reads finds what was just written, whole.
                    assert!(place.own_file().contains(&format!("{writer}{change} = ")));
                }
            });
        }
    });
    let set = place.own_file().parse::<toml::Table>().unwrap();
    let set = set["shell_environment_policy"]["set"].as_table().unwrap();
    assert_eq!(set.len(), 2 * CHANGES);
    assert!(place.own_file().starts_with("model = \"first\"\n"));
    let left =
        fs::read_dir(place.world.path(".codex")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: std::collections::BTreeSet<_> = left.collect();
    assert_eq!(left, [".config.lock", "config.toml"].map(Into::into).into());
}
