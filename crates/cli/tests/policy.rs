//! `sandgate policy`: what the real program says about commands that it does not run.

#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;
use support::{Outcome, Running, World};

impl World {
    fn explain(&self, words: &[&str]) -> Outcome {
        self.sandgate(&[&["policy", "explain"], words].concat())
    }

    fn requirement(&self, words: &[&str]) -> Value {
        let outcome = self.explain(&[&["--json"], words].concat());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        assert_eq!(outcome.stdout().lines().count(), 1);
        let explanation: Value = serde_json::from_str(outcome.stdout()).expect("JSON");
        explanation["requirement"].clone()
    }

    /// Starts `sandgate policy classify` with a pipe to write to.
    fn classify(&self) -> Running {
        let mut command = self.program(["policy", "classify"]);
        Running::start(command.stdin(Stdio::piped()))
    }

    /// All answers to some lines, and the exit code.
    fn classified(&self, lines: String) -> (Vec<Value>, Option<i32>) {
        let mut running = self.classify();
        let mut stdin = running.child.stdin.take().expect("a pipe");
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let outcome = running.wait();
        writer.join().expect("no panic").expect("all is read");
        (outcome.events(), outcome.code)
    }
}

/// spec POLICY.4: No command that is asked about is run.
#[test]
fn nothing_is_run() {
    let world = World::untouched();
    let outcome = world.explain(&["--", "touch made-by-vector"]);
    assert_eq!(outcome.code, Some(0));
    let outcome = world.explain(&["--", "touch", "made-by-vector"]);
    assert_eq!(outcome.code, Some(0));
    let (answers, code) =
        world.classified(r#"{"argv":["bash","-lc","touch made-by-script"]}"#.to_owned());
    assert_eq!((answers.len(), code), (1, Some(0)));
    assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), 0);
}

/// spec POLICY.5: One word is a script for bash, several are a program and its arguments.
#[test]
fn one_word_is_a_script() {
    let world = World::new();
    let argv = |words: &[&str]| {
        let outcome = world.explain(&[&["--json", "--"], words].concat());
        let explanation: Value = serde_json::from_str(outcome.stdout()).expect("JSON");
        explanation["argv"].clone()
    };
    assert_eq!(argv(&["make all"]), json!(["bash", "-lc", "make all"]));
    assert_eq!(argv(&["make", "all"]), json!(["make", "all"]));
}

/// spec POLICY.6: The approval policy, the sandbox mode, what the call asks for and whether there is
/// a sandbox can be chosen, and each changes the answer as the table says.
#[test]
fn the_answer_follows_the_options() {
    let world = World::new();
    let decision = |options: &[&str]| {
        let words = [options, &["--", "./unheard-of", "x"]].concat();
        world.requirement(&words)["decision"].as_str().expect("a word").to_owned()
    };
    let outside = ["--sandbox", "external-sandbox"];
    assert_eq!(decision(&outside), "skip");
    assert_eq!(decision(&[&outside[..], &["--approval", "untrusted"]].concat()), "needs_approval");
    assert_eq!(decision(&[&outside[..], &["--escalated"]].concat()), "needs_approval");
    let never = [&outside[..], &["--escalated", "--approval", "never"]].concat();
    assert_eq!(decision(&never), "forbidden");
    assert_eq!(decision(&["--no-sandbox-available"]), "needs_approval");
    assert_eq!(decision(&["--no-sandbox-available", "--sandbox", "danger-full-access"]), "skip");
    assert_eq!(decision(&["--no-sandbox-available", "--approval", "never"]), "forbidden");
}

#[test]
fn a_model_that_may_not_ask_is_told_what_to_do() {
    let words = ["--escalated", "--approval", "on-failure", "--", "./unheard-of", "x"];
    let requirement = World::new().requirement(&words);
    let reason = requirement["reason"].as_str().expect("a sentence");
    assert!(reason.contains("on-failure") && reason.contains("use_default"), "{reason}");
}

/// spec POLICY.7: An explanation has colours only on a terminal, and not there when `NO_COLOR` is
/// set.
#[test]
fn colours_are_only_where_they_are_wanted() {
    let world = World::new();
    let words = ["policy", "explain", "--", "./unheard-of", "x"];
    let shown = |variables: &[(&str, &str)]| {
        let mut command = world.program(words);
        Running::start(command.envs(variables.iter().copied())).wait().stdout().to_owned()
    };
    let plain = shown(&[]);
    assert!(!plain.contains('\u{1b}') && plain.contains("├─ "), "{plain}");
    // As if it were a terminal.
    assert!(shown(&[("CLICOLOR_FORCE", "1")]).contains("\u{1b}["));
    assert_eq!(shown(&[("NO_COLOR", "1")]), plain);
}

/// spec POLICY.8: A directory that does not exist is an error that names it, with exit code 125.
#[test]
fn a_directory_must_be_there() {
    let outcome = World::new().explain(&["--cd", "nowhere", "--", "ls", "-l"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""));
    assert!(outcome.stderr.contains("nowhere"), "{}", outcome.stderr);
}

#[test]
fn a_command_that_makes_no_sense_is_a_usage_error() {
    let world = World::new();
    for words in [&["explain", "ls"][..], &["explain"], &["check", "--", "ls"], &["bake"]] {
        let outcome = world.sandgate(&[&["policy"], words].concat());
        assert_eq!(outcome.code, Some(2), "{words:?}");
    }
    let outcome = world.explain(&["ls"]);
    assert!(outcome.stderr.contains("sandgate policy explain -- ls"), "{}", outcome.stderr);
}

#[test]
fn help_is_word_for_word() {
    let world = World::new();
    for verb in ["explain", "check", "list", "classify"] {
        let outcome = world.sandgate(&["policy", verb, "--help"]);
        assert_eq!(outcome.code, Some(0));
        insta::assert_snapshot!(format!("help_policy_{verb}"), outcome.stdout());
    }
    insta::assert_snapshot!("help_policy", world.sandgate(&["policy", "--help"]).stdout());
}

/// spec POLICY.20: Each line of standard input is answered with one line, in order, however many
/// there are.
#[test]
fn every_line_has_its_answer_in_its_place() {
    let numbers = 0..30_000;
    let lines: String =
        numbers.clone().map(|n| format!("{{\"argv\":[\"./unheard-of\",\"{n}\"]}}\n")).collect();
    let (answers, code) = World::new().classified(lines);
    assert_eq!((answers.len(), code), (30_000, Some(0)));
    for (number, answer) in numbers.zip(answers) {
        assert_eq!(answer["class"], "unknown");
        assert!(answer["reason"].is_string());
        assert_eq!(answer["commands"], json!([["./unheard-of", number.to_string()]]));
    }
}

/// spec POLICY.21: A line that makes no sense is answered with an error and stops nothing; the exit
/// code is 1 at the end.
#[test]
fn nonsense_is_answered_and_stops_nothing() {
    let sense = r#"{"argv":["./unheard-of"],"cwd":"/ws","roots":["/ws"],"more":1}"#;
    for nonsense in [
        "",
        "ls",
        "[]",
        "{}",
        r#"{"argv":"ls"}"#,
        r#"{"argv":[1]}"#,
        r#"{"argv":["ls"],"cwd":"here"}"#,
        r#"{"argv":["ls"],"roots":["here"]}"#,
        r#"{"argv":["ls"]} {"argv":["ls"]}"#,
        "\u{0}",
    ] {
        let (answers, code) = World::new().classified(format!("{sense}\n{nonsense}\n{sense}"));
        assert_eq!((answers.len(), code), (3, Some(1)), "{nonsense}");
        assert!(answers[1]["error"].is_string() && answers[1]["class"].is_null(), "{nonsense}");
        assert!(answers[0]["class"] == "unknown" && answers[0] == answers[2]);
    }
}

/// spec POLICY.25: A command of no words is not safe, and no error.
#[test]
fn nothing_is_not_known_to_be_safe() {
    let (answers, code) = World::new().classified(r#"{"argv":[]}"#.to_owned());
    assert_eq!((answers.len(), code), (1, Some(0)));
    assert_eq!(answers[0]["class"], "unknown");
}

/// spec POLICY.22: Somebody who writes a line and waits gets the answer.
#[test]
fn an_answer_does_not_wait_for_more_questions() {
    let mut running = World::new().classify();
    let mut stdin = running.child.stdin.take().expect("a pipe");
    for word in ["./one", "./two"] {
        writeln!(stdin, "{{\"argv\":[\"{word}\"]}}").expect("it reads");
        assert!(running.line().contains(word));
    }
    drop(stdin);
    assert_eq!(running.wait().code, Some(0));
}

/// spec POLICY.23: A line of more than 1 MiB is an error, and is not kept.
#[test]
fn a_line_has_a_limit() {
    let line = |length: usize| {
        let frame = r#"{"argv":["./unheard-of",""]}"#.len();
        format!("{{\"argv\":[\"./unheard-of\",\"{}\"]}}\n", "x".repeat(length - frame))
    };
    let (answers, code) =
        World::new().classified(line(1 << 20) + &line((1 << 20) + 1) + &line(5 << 20) + &line(100));
    assert_eq!((answers.len(), code), (4, Some(1)));
    assert!(answers[0]["class"].is_string() && answers[3]["class"].is_string());
    for answer in &answers[1..3] {
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("1048576")));
    }
}

/// spec POLICY.24: When nobody reads the answers any more classifying ends without a word, with exit
/// code 141.
#[test]
fn a_reader_may_go() {
    let mut running = World::new().classify();
    drop(running.child.stdout.take());
    let mut stdin = running.child.stdin.take().expect("a pipe");
    writeln!(stdin, "{{\"argv\":[\"ls\"]}}").expect("it reads");
    let outcome = running.wait();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(141), ""));
}

/// spec POLICY.9: `explain` takes the options of a session: `--ask-for-approval`, `--sandbox`,
/// `--writable` and `--network`, and says what they open.
#[test]
fn a_decision_is_explained_for_the_session_that_it_is_asked_about() {
    let world = World::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let script = format!("rm -rf {}/cache", outside.display());
    let explained = |options: &[&str]| {
        let words = [&["policy", "explain"], options, &["--", &script]].concat();
        world.sandgate(&words).stdout().to_owned()
    };
    assert!(explained(&[]).contains("class: dangerous"), "{}", explained(&[]));
    let writable = ["--writable", outside.to_str().unwrap(), "--network"];
    let said = explained(&writable);
    assert!(said.contains("class: unknown"), "{said}");
    assert!(said.contains(&format!("writable too: {}", outside.display())), "{said}");
    assert!(said.contains("the network can be reached"), "{said}");
    for option in ["--ask-for-approval", "--approval"] {
        let said = explained(&[&writable[..], &[option, "untrusted"]].concat());
        assert!(said.contains("a person is asked"), "{said}");
    }
    let wrong = ["policy", "explain", "--sandbox", "read-only", "--network", "--", "ls"];
    assert_eq!(world.sandgate(&wrong).code, Some(2));
}
