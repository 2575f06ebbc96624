//! What lives on when `sandgate call` has ended: nothing, but what was asked to.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use support::{Running, World, eventually, is_alive};

/// A home whose daemon, if it has one, ends with the test.
struct Home(World);

impl Home {
    fn new() -> Self {
        let home = Self(World::new());
        fs::create_dir(home.0.path("ws")).unwrap();
        fs::create_dir(home.0.path("other")).unwrap();
        home
    }

    /// `sandgate call -` with these options, not told anything yet.
    fn caller(&self, options: &[&str]) -> Running {
        let mut command = self.0.program([&["call", "-"], options].concat());
        Running::start(command.stdin(Stdio::piped()))
    }

    /// Makes one call in a session of its own, and gives back its result.
    #[track_caller]
    fn call(&self, options: &[&str], tool: &str, arguments: &Value) -> Value {
        let mut caller = self.caller(options);
        let result = ask(&mut caller, tool, arguments);
        drop(caller.child.stdin.take());
        caller.wait();
        result
    }

    /// Has a shell kept in the directory `ws`; its id.
    #[track_caller]
    fn keep_shell(&self, options: &[&str]) -> String {
        let options = [&["--cd", "ws"], options].concat();
        let arguments = json!({ "command": ["bash", "--norc"], "keep_alive": true });
        let reply = reply(&self.call(&options, "exec_command", &arguments));
        reply["process_id"].as_str().expect("it lives").to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.0.sandgate(&["session", "stop"]);
    }
}

/// Makes a call, and waits for its result.
#[track_caller]
fn ask(caller: &mut Running, tool: &str, arguments: &Value) -> Value {
    let call = json!({
        "type": "function_call", "name": tool, "call_id": "c", "arguments": arguments.to_string(),
    });
    let stdin = caller.child.stdin.as_mut().unwrap();
    writeln!(stdin, "{call}").unwrap();
    serde_json::from_str(&caller.line()).unwrap()
}

/// What a process answered.
#[track_caller]
fn reply(result: &Value) -> Value {
    let output = result["output"].as_str().unwrap();
    serde_json::from_str(output).unwrap_or_else(|_| panic!("no reply: {result}"))
}

const FULL: [&str; 4] = ["--sandbox", "danger-full-access", "--ask-for-approval", "never"];

/// A process that says its number in the system, and another that it left to itself.
const PAIR: &str = "setsid sleep 1000 & echo at $$ $!; wait";

#[track_caller]
fn numbers(reply: &Value) -> Vec<i32> {
    let output = reply["output"].as_str().unwrap();
    let line = output.lines().find_map(|line| line.strip_prefix("at ")).expect("it has begun");
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// spec KEEP.1: What `exec_command` started ends with `sandgate call`, with all that it started, whether
/// that ends by itself, by SIGTERM, by SIGINT, by SIGHUP or by SIGKILL.
#[test]
fn nothing_lives_on_that_was_not_asked_to() {
    let endings =
        [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP), Some(Signal::KILL)];
    for ending in endings {
        let home = Home::new();
        let mut caller = home.caller(&FULL);
        let arguments = json!({ "command": PAIR, "wait_for": "at [0-9]+ [0-9]+" });
        let pids = numbers(&reply(&ask(&mut caller, "exec_command", &arguments)));
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
        match ending {
            None => drop(caller.child.stdin.take()),
            Some(signal) => caller.signal(signal),
        }
        caller.wait();
        for pid in pids {
            eventually("it is gone", || (!is_alive(pid)).then_some(()));
        }
        assert!(!home.0.path(".codex/daemon").exists(), "nobody needed a daemon");
    }
}

/// spec KEEP.2: A process that was asked to stay with `keep_alive` outlives the session in whichever way
/// that ends; `list_processes` of a later session and `sandgate session list` have it, marked as kept, and
/// both can end it.
///
/// spec DAEMON.17: Clients need not know each other's ids of calls: the same id from two of them, or of a call whose
/// process lives on, means two calls.
#[test]
fn what_was_asked_to_stay_stays() {
    for (ending, kill) in
        [(None, "tool"), (Some(Signal::TERM), "cli"), (Some(Signal::KILL), "tool")]
    {
        let home = Home::new();
        let mut caller = home.caller(&FULL);
        let arguments =
            json!({ "command": PAIR, "wait_for": "at [0-9]+ [0-9]+", "keep_alive": true });
        let reply = reply(&ask(&mut caller, "exec_command", &arguments));
        let (id, pids) = (reply["process_id"].as_str().unwrap().to_owned(), numbers(&reply));
        match ending {
            None => drop(caller.child.stdin.take()),
            Some(signal) => caller.signal(signal),
        }
        caller.wait();
        let listed = home.call(&[], "list_processes", &json!({}));
        let listed: Value = serde_json::from_str(listed["output"].as_str().unwrap()).unwrap();
        assert_eq!((&listed[0]["process_id"], &listed[0]["kept"]), (&json!(id), &json!(true)));
        let outcome = home.0.sandgate(&["session", "list"]);
        assert!(outcome.stdout().contains("running, kept"), "{outcome:?}");
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
        match kill {
            "tool" => {
                let killed = home.call(&[], "kill_process", &json!({ "process_id": id }));
                assert_eq!(killed["success"], true, "{killed}");
            }
            _ => assert_eq!(home.0.sandgate(&["session", "kill", &id]).code, Some(0)),
        }
        for pid in pids {
            eventually("it is gone", || (!is_alive(pid)).then_some(()));
        }
    }
}

/// spec KEEP.3: A kept process was judged and approved in the session that asked for it, and is confined
/// by that session's policy, with what was opened to it and nothing more.
#[test]
fn a_kept_process_is_judged_and_confined_as_any_other() {
    let home = Home::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let made = outside.path().join("made");
    let arguments = json!({ "command": ["touch", "ws/made"], "keep_alive": true });
    let careful = ["--ask-for-approval", "untrusted"];
    let denied =
        home.call(&[&careful[..], &["--decide", "deny"]].concat(), "exec_command", &arguments);
    assert_eq!(denied["error"], "approval_denied", "{denied}");
    assert!(!home.0.path(".codex/daemon").exists(), "it was not even asked for");
    let script = format!("echo x > {}; echo inside > inside", made.display());
    let arguments = json!({ "command": script, "keep_alive": true });
    let blocked = home.call(&["--cd", "ws", "--decide", "deny"], "exec_command", &arguments);
    let blocked = reply(&blocked);
    assert!(blocked["blocked"][0].as_str().unwrap().contains("made"), "{blocked}");
    assert!(!made.exists() && home.0.path("ws/inside").exists());
    // Only what was blocked is opened, for the second attempt.
    fs::write(&made, "").unwrap();
    let answers = home.0.path("answers");
    fs::write(&answers, "grant\n").unwrap();
    let script = format!("echo x > {} && touch {}2 || exit 9", made.display(), made.display());
    let arguments = json!({ "command": script, "keep_alive": true });
    let options = ["--cd", "ws", "--decide", answers.to_str().unwrap()];
    let granted = reply(&home.call(&options, "exec_command", &arguments));
    assert_eq!(granted["exit_code"], 9, "{granted}");
    assert_eq!(fs::read_to_string(&made).unwrap(), "x\n");
    assert!(!outside.path().join("made2").exists());
    assert_eq!(home.0.sandgate(&["audit", "verify"]).code, Some(0));
}

/// spec KEEP.4: A later session can read a kept process. What it types is judged by nobody only if the
/// process is confined by the same terms as that session; otherwise it is judged as a command that asks to
/// leave the sandbox.
#[test]
fn what_a_later_session_types_is_judged_by_its_own_terms() {
    let home = Home::new();
    let id = home.keep_shell(&[]);
    let typed = |line: &str| json!({ "process_id": id, "input": format!("{line}\n") });
    let same = home.call(&["--cd", "ws"], "write_stdin", &typed("echo made > here && cat here"));
    assert_eq!(reply(&same)["output"], "made\n", "{same}");
    assert!(home.0.path("ws/here").exists());
    for strict in ["untrusted", "never"] {
        let options = ["--cd", "ws", "--ask-for-approval", strict, "--decide", "approve"];
        let result = home.call(&options, "write_stdin", &typed("touch not-here"));
        assert_eq!(result["error"], "forbidden", "{result}");
    }
    for other in [&["--cd", "other"][..], &["--cd", "ws", "--sandbox", "read-only"]] {
        let denied = [other, &["--decide", "deny"]].concat();
        let result = home.call(&denied, "write_stdin", &typed("touch not-here"));
        assert_eq!(result["error"], "approval_denied", "{other:?}: {result}");
        assert!(!home.0.path("ws/not-here").exists());
        let read = home.call(other, "read_output", &json!({ "id": id }));
        assert!(read["output"].as_str().unwrap().contains("made"), "{read}");
        let approved = [other, &["--decide", "approve"]].concat();
        let result = home.call(&approved, "write_stdin", &typed("echo yes"));
        assert_eq!(reply(&result)["output"], "yes\n", "{result}");
    }
}

/// spec KEEP.5: What was typed of a line counts, whoever typed it, when the rest of the line is judged.
#[test]
fn a_line_is_judged_as_a_whole_whoever_began_it() {
    let home = Home::new();
    let id = home.keep_shell(&FULL);
    let half = ["session", "send", &id, "touch no", "--no-newline", "--decide", "approve"];
    assert_eq!(home.0.sandgate(&half).code, Some(0));
    let rest = json!({ "process_id": id, "input": "t-here\n" });
    let asks = ["--cd", "ws", "--decide", "deny", "--events"];
    let mut command = home.0.program([&["call", "-"], &asks[..]].concat());
    let mut caller = Running::start(command.stdin(Stdio::piped()));
    let result = ask(&mut caller, "write_stdin", &rest);
    assert_eq!(result["error"], "approval_denied", "{result}");
    drop(caller.child.stdin.take());
    let outcome = caller.wait();
    assert!(outcome.stderr.contains("touch not-here"), "{}", outcome.stderr);
    assert!(!home.0.path("ws/not-here").exists());
}

/// spec KEEP.6: Where the daemon cannot be had, the process is not started and the reason is said.
#[test]
fn what_cannot_be_kept_is_not_started() {
    let home = Home::new();
    fs::create_dir_all(home.0.path(".codex")).unwrap();
    fs::write(home.0.path(".codex/daemon"), "in the way").unwrap();
    let arguments = json!({ "command": "touch ws/made", "keep_alive": true });
    let result = home.call(&FULL, "exec_command", &arguments);
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("the process cannot be kept alive: "), "{result}");
    assert!(output.contains(".codex/daemon"), "{result}");
    assert_eq!(result["error"], "tool_execution_failed");
    assert!(!home.0.path("ws/made").exists());
    fs::remove_file(home.0.path(".codex/daemon")).unwrap();
}

/// What a person started for themselves is no business of a session's.
#[test]
fn sessions_see_only_what_is_kept_for_them() {
    let home = Home::new();
    let started = home.0.sandgate(&["session", "start", "--id", "mine", "--", "cat"]);
    assert_eq!(started.code, Some(0));
    let listed = home.call(&[], "list_processes", &json!({}));
    assert_eq!(listed["output"], "[]");
    for (tool, arguments) in [
        ("kill_process", json!({ "process_id": "mine" })),
        ("read_output", json!({ "id": "mine" })),
        ("write_stdin", json!({ "process_id": "mine", "input": "x" })),
    ] {
        let result = home.call(&[], tool, &arguments);
        assert!(result["output"].as_str().unwrap().contains("there is no process"), "{result}");
    }
}
