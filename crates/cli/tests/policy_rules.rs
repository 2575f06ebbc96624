//! `sandgate policy` with rules files.

#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::{Outcome, World};

const RULES: &str = r#"
[[rule]]
prefix = ["deploy-it", ["to-test", "to-stage"]]
decision = "allow"
sandbox = "bypass"
match = [["deploy-it", "to-test", "now"]]
not_match = [["deploy-it", "to-production"]]

[[rule]]
prefix = ["deploy-it", "to-production"]
decision = "prompt"
justification = "this goes live"

[[rule]]
prefix = ["deploy-it", "--wipe"]
decision = "forbid"
"#;

impl World {
    fn with_rules(text: &str) -> Self {
        let world = Self::new();
        fs::write(world.path("team.toml"), text).unwrap();
        world
    }

    fn policy(&self, words: &[&str]) -> Outcome {
        self.sandgate(&[&["policy"], words].concat())
    }

    fn check(&self, command: &[&str]) -> Outcome {
        self.policy(&[&["check", "--rules", "team.toml", "--"], command].concat())
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(self.policy(words).stdout()).expect("JSON")
    }
}

/// spec POLICY.10: The exit code of a check is 0 for allow, 10 for prompt, 20 for forbid and 30 if no
/// rule decides.
#[test]
fn a_check_ends_with_the_decision() {
    let world = World::with_rules(RULES);
    for (command, code, said) in [
        (&["deploy-it", "to-stage", "x"][..], 0, "allow, without the sandbox\n"),
        (&["deploy-it", "to-production"], 10, "prompt\n"),
        (&["deploy-it", "--wipe"], 20, "forbid\n"),
        (&["deploy-it", "elsewhere"], 30, "no rule decides\n"),
        (&["deploy-it to-test x && deploy-it --wipe"], 20, "forbid\n"),
    ] {
        let outcome = world.check(command);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{command:?}");
        assert!(outcome.stdout().starts_with(said), "{}", outcome.stdout());
    }
    let asked = world.check(&["deploy-it", "to-production"]);
    insta::assert_snapshot!("check_prompt", asked.stdout());
}

#[test]
fn a_check_for_programs_is_json() {
    let world = World::with_rules(RULES);
    let check = |command: &[&str]| {
        world.json(&[&["check", "--json", "--rules", "team.toml", "--"], command].concat())
    };
    let asked = check(&["deploy-it", "to-production"]);
    assert_eq!(asked["decision"], "prompt");
    assert_eq!(
        asked["rules"],
        json!([{
            "prefix": ["deploy-it", "to-production"],
            "decision": "prompt",
            "sandbox": "keep",
            "justification": "this goes live",
            "file": "team.toml",
            "line": 9,
        }])
    );
    let undecided = json!({ "decision": null, "sandbox": null, "rules": [] });
    assert_eq!(check(&["deploy-it", "elsewhere"]), undecided);
    let in_order = world.json(&["check", "--json", "--rules", "team.toml"]);
    assert_eq!(in_order, json!({ "files": 1, "rules": 3 }));
}

/// spec POLICY.11: Without a command a check only says whether the files, and the examples in them,
/// are in order.
#[test]
fn rules_can_be_checked_alone() {
    let world = World::with_rules(RULES);
    let outcome = world.policy(&["check", "--rules", "team.toml"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "3 rules in 1 file: all in order.\n"));
    let wrong_example = RULES.replace("\"now\"", "\"now\"], [\"to-test\"");
    let outcome = World::with_rules(&wrong_example).policy(&["check", "--rules", "team.toml"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(1), ""));
    assert!(outcome.stderr.contains("team.toml:6:"), "{}", outcome.stderr);
}

/// spec POLICY.12: A rules file that is not in order is an error with its line and column, and exit
/// code 1.
#[test]
fn a_broken_file_is_an_error_with_its_place() {
    let world = World::with_rules(&RULES.replace("\"prompt\"", "\"maybe\""));
    for words in [
        &["check", "--rules", "team.toml"][..],
        &["check", "--rules", "team.toml", "--", "deploy-it", "to-test"],
        &["explain", "--rules", "team.toml", "--", "deploy-it", "to-test"],
        &["list", "--rules", "team.toml"],
    ] {
        let outcome = world.policy(words);
        assert_eq!((outcome.code, outcome.stdout()), (Some(1), ""), "{words:?}");
        assert!(outcome.stderr.contains("team.toml:11:12"), "{}", outcome.stderr);
    }
    let outcome = world.policy(&["check", "--rules", "missing.toml"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("missing.toml"), "{}", outcome.stderr);
}

/// spec POLICY.14: A rule that lets a program out of the sandbox which obeys files is shown with what
/// that means.
#[test]
fn a_list_says_what_a_rule_for_a_build_tool_means() {
    let world = World::new();
    let directory = world.path(".codex/rules");
    fs::create_dir_all(&directory).unwrap();
    let says = |prefix: &str, sandbox: &str| {
        let text =
            format!("[[rule]]\nprefix = [{prefix}]\ndecision = \"allow\"\nsandbox = {sandbox:?}\n");
        fs::write(directory.join("a.toml"), text).unwrap();
        world.policy(&["list"]).stdout().contains("whoever can write them can leave it")
    };
    assert!(says(r#""make", "test""#, "bypass"));
    assert!(says(r#"["x", "git"], "fetch""#, "bypass"));
    assert!(!says(r#""make", "test""#, "keep"));
    assert!(!says(r#""gh", "pr", "view""#, "bypass"));
}

/// spec POLICY.13: A list has every rule in effect with its file and line.
#[test]
fn a_list_has_all_rules_in_effect() {
    let world = World::new();
    assert!(world.policy(&["list"]).stdout().starts_with("There are no rules."));
    let directory = world.path(".codex/rules");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("a.toml"), RULES).unwrap();
    fs::write(
        directory.join("b.toml"),
        "[[rule]]\nprefix = [\"x\", \"*\"]\ndecision = \"allow\"\n",
    )
    .unwrap();
    fs::write(directory.join("c.toml"), "nonsense").unwrap();
    let outcome = world.policy(&["list"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("c.toml:1:"), "{}", outcome.stderr);
    let home = world.home().to_str().unwrap();
    insta::assert_snapshot!("list", outcome.stdout().replace(home, "~"));

    let listed = world.json(&["list", "--json"]);
    let places: Vec<(&str, u64)> = listed["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (rule["file"].as_str().unwrap(), rule["line"].as_u64().unwrap()))
        .collect();
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (a, b) = (file("a.toml"), file("b.toml"));
    assert_eq!(places, [(a.as_str(), 2), (a.as_str(), 9), (a.as_str(), 14), (b.as_str(), 1)]);
}

#[test]
fn the_settings_can_be_elsewhere() {
    let world = World::new();
    fs::create_dir_all(world.path("mine/rules")).unwrap();
    fs::write(world.path("mine/rules/a.toml"), RULES).unwrap();
    let mut command = world.program(["policy", "list"]);
    let outcome = support::Running::start(command.env("CODEX_HOME", world.path("mine"))).wait();
    assert!(outcome.stdout().contains("to-production"), "{}", outcome.stdout());
}

#[test]
fn an_explanation_uses_the_rules_in_effect_or_those_that_are_named() {
    let world = World::with_rules(RULES);
    let explain = ["explain", "--sandbox", "external-sandbox", "--json"];
    let command = ["--", "deploy-it", "to-production"];
    let decision = |explanation: &Value| explanation["requirement"]["decision"].clone();
    assert_eq!(decision(&world.json(&[&explain[..], &command].concat())), "skip");
    let named = world.json(&[&explain[..], &["--rules", "team.toml"], &command].concat());
    assert_eq!(decision(&named), "needs_approval");
    fs::create_dir_all(world.path(".codex/rules")).unwrap();
    fs::rename(world.path("team.toml"), world.path(".codex/rules/team.toml")).unwrap();
    let in_effect = world.json(&[&explain[..], &command].concat());
    assert_eq!(decision(&in_effect), "needs_approval");
    let reason = in_effect["requirement"]["reason"].as_str().unwrap();
    assert!(reason.contains("team.toml:9: this goes live"), "{reason}");
}
