//! `sandgate exec`, `sandgate resume` and `sandgate sessions`, with models that say what a file says.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use support::{Outcome, Running, World, eventually, is_alive};
use terminal::Terminal;

/// A model that does this, one line for each time that it is asked.
fn script(world: &World, turns: &[Value]) -> String {
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    let file = world.path("model.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    format!("script:{}", file.display())
}

fn says(text: &str) -> Value {
    json!({ "type": "message", "text": text })
}

fn runs(command: &str) -> Value {
    let arguments = json!({ "command": command, "login": false });
    json!({ "type": "call", "name": "shell_command", "arguments": arguments })
}

fn exec(world: &World, model: &str, more: &[&str]) -> Outcome {
    let arguments = [&["exec", "--provider", model], more].concat();
    world.sandgate(&arguments)
}

/// The id of the only conversation there is.
fn only_id(world: &World) -> String {
    let listed = world.sandgate(&["sessions", "list", "--json"]);
    let line: Value = serde_json::from_str(listed.stdout().trim()).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// spec AGENT.13: `sandgate exec` shows what happens on standard error and prints the last answer
/// alone to standard output; with `--json` standard output is the events of the session, one a
/// line, and nothing else.
#[test]
fn the_answer_is_on_standard_output_and_the_rest_beside_it() {
    let world = World::new();
    let turns = [
        json!([says("let me look"), runs("echo made > made.txt; cat made.txt")]),
        json!([says("it is made")]),
    ];
    let model = script(&world, &turns);
    let ended = exec(&world, &model, &["make it", "-o", "last.txt"]);
    assert_eq!((ended.code, ended.stdout()), (Some(0), "it is made\n"), "{}", ended.stderr);
    for told in ["let me look", "$ echo made > made.txt", "ok"] {
        assert!(ended.stderr.contains(told), "{told}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("it is made"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(world.path("last.txt")).unwrap(), "it is made");
    let model = script(&world, &turns);
    let ended = exec(&world, &model, &["make it", "--json"]);
    let events = ended.events();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert_eq!(events.last().unwrap()["type"], "TaskComplete");
    assert_eq!(events.last().unwrap()["last_agent_message"], "it is made");
}

#[test]
fn of_a_command_that_failed_its_own_words_are_shown() {
    let world = World::new();
    let model = script(&world, &[runs("echo trouble; exit 3"), says("done")]);
    let ended = exec(&world, &model, &["go"]);
    let shown = ended.stderr.lines().map(str::trim).filter(|line| line.starts_with('│'));
    assert_eq!(shown.collect::<Vec<_>>(), ["│ trouble"], "{}", ended.stderr);
    assert!(ended.stderr.contains("exit code 3 in"), "{}", ended.stderr);
}

/// spec AGENT.27: The file for the last answer is opened before the model does anything, and never
/// through a link: what a command puts in its place meanwhile is not written to.
#[test]
fn the_answer_goes_nowhere_else_than_the_person_said() {
    let world = World::new();
    fs::write(world.path("victim"), "mine").unwrap();
    let link = format!("rm -f out.md; ln -s {} out.md", world.path("victim").display());
    let model = script(&world, &[runs(&link), says("evil")]);
    let ended = exec(&world, &model, &["go", "-o", "out.md"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(world.path("out.md").is_symlink());
    assert_eq!(fs::read_to_string(world.path("victim")).unwrap(), "mine");
    world.fifo("pipe");
    for name in ["out.md", "pipe", "missing/x"] {
        let model = script(&world, &[says("never said")]);
        let ended = exec(&world, &model, &["go", "-o", name]);
        assert_eq!((ended.code, ended.stdout()), (Some(125), ""), "{name}: {}", ended.stderr);
    }
}

/// spec AGENT.14: Without a provider it says that there is no model, and proposes the commands, the
/// shell blocks and the patches of the prompt, each of which is judged, confined and asked about
/// like any other.
#[test]
fn without_a_model_the_gate_can_be_seen_at_work() {
    let world = World::new();
    let ended = world.sandgate(&["exec", "what is this?"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout().contains("There is no model behind this"), "{}", ended.stdout());
    let prompt = "please\n$ echo one > one.txt\n```sh\ntouch /etc/sandgate-was-here\n```\n\
                  *** Begin Patch\n*** Add File: two.txt\n+two\n*** End Patch\n";
    let ended = world.sandgate(&["exec", "--decide", "deny", prompt]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout().contains("2 of 3 done"), "{}", ended.stdout());
    assert!(ended.stdout().contains("denied"), "{}", ended.stdout());
    assert_eq!(fs::read_to_string(world.path("one.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(world.path("two.txt")).unwrap(), "two\n");
    assert!(!fs::exists("/etc/sandgate-was-here").unwrap());
}

/// spec AGENT.17: A decision that nobody can give is a no for the model and exit code 77.
#[test]
fn what_nobody_decides_is_a_no() {
    let world = World::new();
    let model = script(&world, &[runs("touch /etc/sandgate-was-here"), says("I could not")]);
    let ended = exec(&world, &model, &["do it"]);
    assert_eq!((ended.code, ended.stdout()), (Some(77), "I could not\n"), "{}", ended.stderr);
}

/// spec AGENT.15: `sandgate resume` goes on with a conversation where it worked and with its
/// provider, also after a `kill -9` in the middle of a command, of which nothing is left.
#[test]
fn a_conversation_goes_on_after_its_program_was_killed() {
    let world = World::new();
    fs::create_dir(world.path("work")).unwrap();
    let turns = [runs("echo $$ > pid; exec sleep 1000"), says("where were we?"), says("unused")];
    let model = script(&world, &turns);
    let mut killed = world.program(["exec", "--cd", "work", "--provider", &model, "wait a while"]);
    killed.args(["--sandbox", "danger-full-access", "--ask-for-approval", "never"]);
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid: i32 = eventually("the command runs", || {
        fs::read_to_string(world.path("work/pid")).ok()?.trim().parse().ok()
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    eventually("the command is gone", || (!is_alive(pid)).then_some(()));
    let id = only_id(&world);
    let model = script(&world, &[json!([says("I go on"), runs("pwd > where")]), says("gone on")]);
    assert!(model.ends_with("model.jsonl"));
    let ended = world.sandgate(&["resume", &id[..20], "go on"]);
    assert_eq!((ended.code, ended.stdout()), (Some(0), "gone on\n"), "{}", ended.stderr);
    let place = fs::read_to_string(world.path("work/where")).unwrap();
    assert!(place.trim_end().ends_with("/work"), "{place}");
    let shown = world.sandgate(&["sessions", "show", &id]);
    assert!(shown.stdout().contains("there is no result"), "{}", shown.stdout());
    let last = script(&world, &[says("the last word")]);
    let ended = world.sandgate(&["resume", "--last", "--provider", &last, "and?"]);
    assert_eq!(ended.stdout(), "the last word\n", "{}", ended.stderr);
}

/// spec AGENT.16: Ctrl-C ends the turn with everything that it started, exit code 130, and says how
/// to go on.
#[test]
fn an_interrupt_ends_the_turn_and_all_that_it_started() {
    let world = World::new();
    let model = script(&world, &[runs("echo $$ > pid; sleep 1000 & wait"), says("never said")]);
    let mut program = world.program(["exec", "--provider", &model, "wait"]);
    program.args(["--sandbox", "danger-full-access", "--ask-for-approval", "never"]);
    let running = Running::start(&mut program);
    let pid: i32 = eventually("the command runs", || {
        fs::read_to_string(world.path("pid")).ok()?.trim().parse().ok()
    });
    running.signal(rustix::process::Signal::INT);
    let ended = running.wait();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("sandgate resume"), "{}", ended.stderr);
    assert!(!is_alive(pid));
}

/// spec AGENT.28: A program that does not read the events of `--json` keeps nobody from ending it:
/// Ctrl-C is obeyed all the same.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending_it() {
    let world = World::new();
    let model = script(&world, &[runs("echo $$ > pid; exec yes"), says("never said")]);
    let mut program = world.program(["exec", "--json", "--provider", &model, "wait"]);
    program.args(["--sandbox", "danger-full-access", "--ask-for-approval", "never"]);
    let mut running = Running::start(&mut program);
    let pid: i32 = eventually("the command runs", || {
        fs::read_to_string(world.path("pid")).ok()?.trim().parse().ok()
    });
    // A pipe takes 64 KiB, less what its pages have left at their ends. Much more is on its way: whoever writes to
    // it stands still.
    let stdout = running.child.stdout.as_ref().unwrap();
    eventually("the pipe is full", || {
        (rustix::io::ioctl_fionread(stdout).unwrap() > 48_000).then_some(())
    });
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    eventually("the command is gone", || (!is_alive(pid)).then_some(()));
}

/// spec AGENT.30: `sandgate sessions list` has the first line of each prompt that says something, cut where it is
/// too long.
#[test]
fn a_list_has_first_lines() {
    let world = World::new();
    for prompt in ["\n  echo hi\nand more\n", &"long ".repeat(20)] {
        let model = script(&world, &[says("done")]);
        exec(&world, &model, &[prompt]);
    }
    let list = world.sandgate(&["sessions", "list"]);
    let prompts = list.stdout().lines().map(|line| line.rsplit("  ").next().unwrap());
    let cut = format!("{}…", "long ".repeat(12));
    assert_eq!(prompts.collect::<Vec<_>>(), [&cut, "echo hi"], "{}", list.stdout());
}

/// spec ASKING.14: Ctrl-C at a question on a terminal is recorded as the person's abort; a question that goes
/// because its work was called off in another way is recorded as called off, and not as the policy's.
#[test]
fn an_interrupt_at_a_question_is_the_persons() {
    let world = World::new();
    let model = script(&world, &[runs("touch made"), says("never said")]);
    let words = ["exec", "--provider", &model, "--ask-for-approval", "untrusted", "go"];
    let mut terminal = Terminal::start(&world, &words);
    terminal.until("\n> ");
    terminal.press("\x03");
    assert_eq!(terminal.end().1, Some(130));
    let record = world.sandgate(&["audit", "show", "--json"]);
    let person = r#""decision":"aborted","by":{"who":"person","front_end":"terminal"}"#;
    assert!(record.stdout().contains(person), "{}", record.stdout());
}

/// spec AGENT.18: `sandgate sessions` lists, shows and exports conversations; whatever a model or a
/// command wrote, what is shown cannot move the cursor or hide anything.
#[test]
fn conversations_are_listed_shown_and_exported_without_tricks() {
    let world = World::new();
    let trick = "\u{1b}[2J\u{202e}hidden";
    let model = script(&world, &[json!([says(trick), runs("printf '\\033[2Jx'")]), says(trick)]);
    let ended = exec(&world, &model, &[&format!("prompt {trick}")]);
    let id = only_id(&world);
    let show = world.sandgate(&["sessions", "show", &id[..13]]);
    let list = world.sandgate(&["sessions", "list"]);
    let export = world.sandgate(&["sessions", "export", &id, "-o", "out.md"]);
    assert_eq!(export.code, Some(0), "{}", export.stderr);
    let exported = fs::read_to_string(world.path("out.md")).unwrap();
    for text in [ended.stdout(), &ended.stderr, show.stdout(), list.stdout(), &exported] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.contains("hidden"), "{text:?}");
    }
    let json = world.sandgate(&["sessions", "export", &id, "--format", "json"]);
    let items: Value = serde_json::from_str(json.stdout()).unwrap();
    assert!(items.as_array().unwrap().len() >= 4);
    let missing = world.sandgate(&["sessions", "show", "zzz"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}
