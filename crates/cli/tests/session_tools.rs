//! Processes that live across calls, through `sandgate call`.

#![cfg(target_os = "linux")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use support::{Running, World};

fn call(name: &str, id: &str, arguments: &Value) -> Value {
    json!({
        "type": "function_call",
        "name": name,
        "call_id": id,
        "arguments": arguments.to_string(),
    })
}

/// Serves lines from a file; what each call was answered with.
fn serve(world: &World, options: &[&str], lines: &[Value]) -> Vec<Value> {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let file = world.path("calls.jsonl");
    fs::write(&file, text.join("\n")).unwrap();
    let outcome = world.sandgate(&[&["call"], options, &[file.to_str().unwrap()]].concat());
    assert_eq!(outcome.code, Some(0), "{} {}", outcome.stdout(), outcome.stderr);
    outcome.events().iter().map(reply).collect()
}

fn reply(event: &Value) -> Value {
    let text = event["output"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no reply but {text}"))
}

/// spec SESSION.60: A shell that was started in one call keeps its state for the next: the worked example
/// of an interactive session is answered as it says.
#[test]
fn the_worked_interactive_example_is_answered_as_it_says() {
    let world = World::new();
    let start =
        r#"{"command": ["bash", "-i"], "process_id": "1001", "yield_time_ms": 2500, "tty": true}"#;
    let export = r#"{"process_id": "1001", "input": "export FOO=bar\n", "yield_time_ms": 1000}"#;
    let echo = r#"{"process_id": "1001", "input": "echo $FOO\n", "yield_time_ms": 1000}"#;
    let calls = [("exec_command", start), ("write_stdin", export), ("write_stdin", echo)];
    let lines: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(number, (name, arguments))| {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            call(name, &format!("c{number}"), &arguments)
        })
        .collect();
    let replies = serve(&world, &[], &lines);
    assert_eq!(replies[0]["process_id"], "1001");
    assert_eq!(replies[1]["output"], "");
    let third = &replies[2];
    let expected = json!({"output": "bar\n", "process_id": "1001", "exit_code": null});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(third.get(name), Some(value), "{third}");
    }
    // Each of them came when the shell was ready, not when its time was over.
    assert!(replies.iter().all(|reply| reply["returned"] == "waiting_for_input"), "{replies:?}");
}

/// spec SESSION.61: When `sandgate call` ends, by itself or by SIGKILL, so do the processes that it
/// started.
#[test]
fn live_processes_end_with_the_program() {
    let world = World::new();
    for killed in [false, true] {
        // Whoever holds this open is alive.
        let fifo = world.fifo(&format!("alive{killed}"));
        let hold = format!("exec 7> {}; (exec setsid sleep 300) & exec sleep 300", fifo.display());
        let mut command = world.program(["call", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let mut say = running.child.stdin.take().unwrap();
        let arguments = json!({"command": ["bash", "-c", hold], "yield_time_ms": 250});
        writeln!(say, "{}", call("exec_command", "c", &arguments)).unwrap();
        let alive = fs::File::open(&fifo).unwrap();
        let answer: Value = serde_json::from_str(&running.line()).unwrap();
        assert_eq!(reply(&answer)["returned"], "yield_elapsed");
        if killed {
            running.child.kill().unwrap();
        }
        drop(say);
        running.child.wait().unwrap();
        // Ends only when nobody has it open any more.
        assert_eq!(std::io::Read::read(&mut &alive, &mut [0]).unwrap(), 0);
    }
}

/// spec SESSION.62: The list shows each process with its command, what it does and its last line; one
/// that was killed has ended.
#[test]
fn processes_are_listed_and_killed() {
    let world = World::new();
    let command = json!(["bash", "-c", "echo ready; cat"]);
    let lines = [
        call("exec_command", "a", &json!({"command": command, "process_id": "reader"})),
        call("list_processes", "b", &json!({})),
        call("kill_process", "c", &json!({"process_id": "reader"})),
        call("list_processes", "d", &json!({})),
    ];
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(world.path("calls.jsonl"), text.join("\n")).unwrap();
    let outcome = world.sandgate(&["call", world.path("calls.jsonl").to_str().unwrap()]);
    let events = outcome.events();
    let list = reply(&events[1]);
    let shown = |name: &str| list[0][name].clone();
    assert_eq!(
        [shown("process_id"), shown("command"), shown("state"), shown("last_line")],
        [json!("reader"), command, json!("waiting_for_input"), json!("ready")]
    );
    assert_eq!(events[2]["output"], "process reader was ended");
    assert_eq!(reply(&events[3])[0]["state"], "exited");
}
