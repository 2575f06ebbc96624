//! Whole scripts, each part of them given by hand: what is known about one part is decided elsewhere.

use super::*;
use crate::Surroundings;
use crate::command::{Connective, Redirection, RedirectionKind, Word};
use crate::rules::writes_of;
use crate::script::ShellKind;
use Decision::{Allow, Forbid, Prompt};
use RuleSandbox::{Bypass, Keep};

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/ws".into()),
        roots: vec!["/ws".into()],
        home: Some("/home/me".into()),
        ..Surroundings::default()
    }
}

fn rules(text: &str) -> Rules {
    Rules::parse(text, "rules/mine.toml").unwrap().into_iter().collect()
}

/// A rule of a few words.
fn rule(prefix: &str, rest: &str) -> String {
    let words: Vec<String> = prefix.split(' ').map(|word| format!("{word:?}")).collect();
    format!("[[rule]]\nprefix = [{}]\n{rest}\n", words.join(", "))
}

fn allowing(prefixes: &[&str]) -> Rules {
    let each = prefixes.iter().map(|prefix| rule(prefix, "decision = \"allow\""));
    rules(&each.collect::<String>())
}

/// One part of a script: words, with `> FILE` at their end if it is redirected.
fn command(text: &str) -> SimpleCommand {
    let (words, target) = match text.split_once(" > ") {
        Some((words, target)) => (words, Some(target)),
        None => (text, None),
    };
    let redirections = target
        .map(|target| Redirection {
            descriptor: None,
            kind: RedirectionKind::Write,
            target: Word::literal(target),
        })
        .into_iter()
        .collect();
    let words = words.split(' ').map(Word::literal).collect();
    SimpleCommand { connective: Connective::Then, words, redirections, ..SimpleCommand::default() }
}

/// A script of parts, of which those that begin with `pwd`, `ls` or `cd` are safe, and those that say
/// `--force` or write to `.bashrc` are dangerous.
struct Script {
    reading: Reading,
}

fn danger_in(reading: &Reading) -> Option<Danger> {
    let dangerous = |command: &SimpleCommand| {
        command.words.iter().any(|word| word.text == "--force")
            || command.redirections.iter().any(|to| to.target.text.ends_with(".bashrc"))
    };
    let command = reading.commands.iter().position(dangerous)?;
    Some(Danger { reason: "rewrites history".to_owned(), command })
}

fn script(parts: &[&str]) -> Script {
    let commands = parts.iter().map(|part| command(part)).collect();
    let reader = Reader::Shell(ShellKind::Bash);
    Script { reading: Reading { reader, commands, opaque: None } }
}

impl Script {
    fn opaque(mut self) -> Self {
        self.reading.opaque = Some(Opacity("it uses command substitution".to_owned()));
        self
    }

    fn parts(&self, rules: &Rules) -> Vec<Part> {
        let moved = crate::rules::moves(&self.reading);
        let part = |command: &SimpleCommand| Part {
            safety: match command.program() {
                Some("ls" | "pwd" | "cd") if command.redirections.is_empty() => Ok(()),
                _ => Err(NotSafe("it is not known".to_owned())),
            },
            rules: rules.matching(command).cloned().collect(),
            held_back: None,
            writes: writes_of(command, &around(), moved),
            in_repository: Ok(()),
        };
        self.reading.commands.iter().map(part).collect()
    }

    fn ruled(&self, rules: &Rules) -> (Option<Ruling>, Option<Withheld>) {
        let danger = danger_in(&self.reading);
        rule_on(&self.reading, &self.parts(rules), danger.as_ref(), danger_in, rules, &around())
    }

    /// What is decided, and whether the sandbox stays.
    fn decided(&self, rules: &Rules) -> Option<(Decision, RuleSandbox)> {
        self.ruled(rules).0.map(|ruling| (ruling.decision, ruling.sandbox))
    }

    fn withheld(&self, rules: &Rules) -> Withheld {
        let (ruling, withheld) = self.ruled(rules);
        assert_eq!(ruling, None);
        withheld.unwrap()
    }
}

#[test]
fn the_table_is_sorted() {
    assert!(CHANGES_THE_SHELL.is_sorted());
}

#[test]
fn a_part_is_shown_on_one_short_line() {
    let argv = ["a".to_owned(), "\u{1b}[31m\n".to_owned(), "x".repeat(5000)];
    let shown = shown(&SimpleCommand::from_argv(&argv));
    assert!(shown.starts_with("a \u{fffd}[31m\u{fffd} xxx") && shown.ends_with('…'), "{shown}");
    assert_eq!(shown.chars().count(), 61);
}

/// spec RULES.50: No rule allows what cmd runs, as it looks for programs in the working directory
/// first; rules that ask or forbid count there too.
#[test]
fn a_program_that_cmd_finds_may_be_another() {
    let mut script = script(&["npm test"]);
    script.reading.reader = Reader::Shell(ShellKind::Cmd);
    let withheld = script.withheld(&allowing(&["npm test"]));
    assert!(withheld.to_string().contains("working directory"), "{withheld}");
    let forbid = rules(&rule("npm test", "decision = \"forbid\""));
    assert_eq!(script.decided(&forbid), Some((Forbid, Keep)));
}

/// spec RULES.30: The strictest decision wins: one part that a rule forbids or asks about decides
/// for the whole, whatever else is allowed, and also in a script that was not understood.
#[test]
fn the_strictest_decision_wins() {
    let allow = rule("git", "decision = \"allow\"");
    let ask = rule("git push", "decision = \"prompt\"");
    let forbid = rule("git push --force", "decision = \"forbid\"");
    let all = rules(&format!("{allow}{ask}{forbid}"));
    let decided = |parts: &[&str]| script(parts).decided(&all).map(|(decision, _)| decision);
    assert_eq!(decided(&["git pull"]), Some(Allow));
    assert_eq!(decided(&["git pull", "git push"]), Some(Prompt));
    assert_eq!(decided(&["git push --force", "git push", "git pull"]), Some(Forbid));
    assert_eq!(script(&["x", "git push"]).opaque().decided(&all), Some((Prompt, Keep)));

    let ruling = script(&["git push --force", "git push"]).ruled(&all).0.unwrap();
    let behind: Vec<String> = ruling.rules.iter().map(|rule| rule.origin.to_string()).collect();
    assert_eq!(behind, ["rules/mine.toml:7"], "only the rules behind the decision are named");
}

/// spec RULES.31: A script is allowed only if each of its parts is allowed by a rule or known to be
/// safe, and one at least by a rule.
#[test]
fn every_part_has_to_be_allowed() {
    let rules = allowing(&["cargo test", "cargo build"]);
    let decided = |parts: &[&str]| script(parts).decided(&rules);
    assert_eq!(decided(&["cargo build", "cargo test -q"]), Some((Allow, Keep)));
    assert_eq!(decided(&["ls src", "cargo test"]), Some((Allow, Keep)));
    assert_eq!(decided(&["cargo test", "make all"]), None);
    assert_eq!(decided(&["ls src", "pwd"]), None, "that is safe, and no rule speaks of it");
    let withheld = script(&["cargo test", "make all"]).withheld(&rules);
    assert!(matches!(withheld, Withheld::Part { command: 1, .. }));
    let said = "no rule allows `make all`, and it is not known to be safe: it is not known";
    assert_eq!(withheld.to_string(), said);
}

/// spec RULES.32: No rule allows a script that was not understood.
#[test]
fn what_was_not_understood_is_not_allowed() {
    let rules = allowing(&["cargo test"]);
    let withheld = script(&["cargo test"]).opaque().withheld(&rules);
    assert!(matches!(withheld, Withheld::Opaque(_)));
}

/// spec RULES.33: A redirection to `/dev/null` or to another descriptor does not keep a rule from
/// allowing; one that writes a file does, unless the path is known to lie in a directory that the
/// session may write to.
#[test]
fn redirections_are_writes_of_their_own() {
    let rules = allowing(&["cargo test"]);
    let decided = |part: &str| script(&[part]).decided(&rules);
    assert_eq!(decided("cargo test > /dev/null"), Some((Allow, Keep)));
    assert_eq!(decided("cargo test > out/log.txt"), Some((Allow, Keep)));
    assert_eq!(decided("cargo test > /ws/log.txt"), Some((Allow, Keep)));
    for elsewhere in ["/etc/hosts", "../log", "/ws/../etc/hosts", ".git/hooks/pre-commit"] {
        let script = script(&[&format!("cargo test > {elsewhere}")]);
        assert!(matches!(script.withheld(&rules), Withheld::Writes { command: 0, .. }));
    }
}

/// spec RULES.34: In a script that changes its directory, a relative path is not known to lie
/// anywhere.
#[test]
fn a_relative_write_after_a_change_of_directory_is_unknown() {
    let rules = allowing(&["cargo test"]);
    let decided = |parts: &[&str]| script(parts).decided(&rules);
    assert_eq!(decided(&["cd /etc", "cargo test > log"]), None);
    assert_eq!(decided(&["cd /etc", "cargo test > /ws/log"]), Some((Allow, Keep)));
    assert_eq!(decided(&["cd sub", "cargo test"]), Some((Allow, Keep)));
}

/// spec RULES.35: The sandbox is left only if each part that is not merely safe is let out by a rule,
/// and no redirection writes a file.
#[test]
fn the_sandbox_is_left_only_if_every_part_is_let_out() {
    let out = rule("git fetch", "decision = \"allow\"\nsandbox = \"bypass\"");
    let rules = rules(&format!("{out}{}", rule("cargo test", "decision = \"allow\"")));
    let decided = |parts: &[&str]| script(parts).decided(&rules);
    assert_eq!(decided(&["git fetch"]), Some((Allow, Bypass)));
    assert_eq!(decided(&["ls src", "git fetch > /dev/null"]), Some((Allow, Bypass)));
    assert_eq!(decided(&["git fetch", "cargo test"]), Some((Allow, Keep)));
    assert_eq!(decided(&["git fetch > log"]), Some((Allow, Keep)));
    assert_eq!(decided(&["cargo test"]), Some((Allow, Keep)));
}

/// spec RULES.36: A person's rule outweighs a danger if it allows the dangerous part and its own
/// words, two or more and without a star, spell out what is dangerous about it.
#[test]
fn a_rule_outweighs_the_danger_that_it_names() {
    let push = |prefix: &str, part: &str| {
        script(&[part, "cargo test"]).ruled(&allowing(&["cargo test", prefix]))
    };
    let allowed = push("git push --force", "git push --force origin").0.unwrap();
    assert_eq!(allowed.decision, Allow);
    for (prefix, part) in [
        ("git", "git push --force"),
        ("git push", "git push --force"),
        ("git push", "git push origin --force"),
        ("git * --force", "git push --force"),
    ] {
        let (ruling, withheld) = push(prefix, part);
        assert_eq!(ruling, None, "{prefix}");
        assert!(matches!(withheld, Some(Withheld::Danger(danger)) if danger.command == 0));
    }
    assert!(push("git push", "git push origin").0.is_some());
}

/// spec RULES.37: A project's rule outweighs no danger, and a person's neither one in another part nor
/// one in a redirection.
#[test]
fn every_danger_needs_a_rule_of_its_own() {
    let text = rule("git push --force", "decision = \"allow\"");
    let of_project = Rules::parse_of_project(&text, "p").unwrap().into_iter().collect();
    let withheld = script(&["git push --force"]).withheld(&of_project);
    assert!(matches!(withheld, Withheld::Danger(_)));

    let rules = allowing(&["git push --force", "npm publish"]);
    let second = script(&["git push --force", "npm publish --force"]).withheld(&rules);
    assert!(matches!(second, Withheld::Danger(danger) if danger.command == 1));
    let redirected = script(&["git push --force > /ws/.bashrc"]).withheld(&rules);
    assert!(matches!(redirected, Withheld::Danger(danger) if danger.command == 0));
}

/// spec RULES.38: An allowed builtin that changes what later words mean allows nothing that comes
/// after it.
#[test]
fn what_changes_the_shell_is_allowed_only_as_the_last_part() {
    let rules = allowing(&["export", "cargo test"]);
    let withheld = script(&["export PATH=/ws/bin", "cargo test"]).withheld(&rules);
    assert!(matches!(withheld, Withheld::ChangesTheShell { command: 0, .. }));
    assert!(script(&["cargo test", "export A=b"]).decided(&rules).is_some());
}

#[test]
fn a_script_without_matching_rules_has_no_ruling() {
    assert_eq!(script(&["ls"]).ruled(&Rules::default()), (None, None));
    assert_eq!(script(&["ls"]).ruled(&allowing(&["cargo test"])), (None, None));
}
