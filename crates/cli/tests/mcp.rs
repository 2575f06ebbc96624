//! MCP servers of a person's settings, with the real program.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::Signal;
use serde_json::json;
use std::fs;
use support::{Running, World, eventually};

/// A server with one tool, in as few lines as the protocol lets it have.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"},
        },
        "tools/list": {"tools": [{
            "name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True},
        }]},
        "tools/call": {"content": [{"type": "text", "text": "good morning"}]},
    }
    result = answers.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// A world whose settings have a server of this command beside those of everybody.
fn world_with(command: &[&str]) -> World {
    let world = World::new();
    let (program, arguments) = command.split_first().unwrap();
    world.set(&format!(
        "{}[mcp_servers.small]\ncommand = {program:?}\nargs = {arguments:?}\nstartup_timeout_sec = 60\n",
        support::AS_TRUSTED
    ));
    world
}

fn script(world: &World, turns: &[serde_json::Value]) -> String {
    let lines: Vec<String> = turns.iter().map(ToString::to_string).collect();
    let file = world.path("model.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    format!("script:{}", file.display())
}

/// spec MCP.22: `sandgate exec` gives its model the tools of the servers of the settings.
#[test]
fn exec_gives_its_model_the_tools_of_servers() {
    let world = world_with(&["python3", "-c", SERVER]);
    let model = script(
        &world,
        &[
            json!([{ "type": "call", "name": "small__greet", "arguments": {} }]),
            json!([{ "type": "message", "text": "done" }]),
        ],
    );
    let ended = world.sandgate(&["exec", "--provider", &model, "--json", "greet"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let events = ended.events();
    let end = events.iter().find(|event| event["type"] == "ToolCallEnd").expect("a call");
    assert_eq!(end["output"], "good morning", "{events:?}");
    let verified = world.sandgate(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{}{}", verified.stdout(), verified.stderr);
}

/// spec MCP.25: Who is asked about a server and wants the work to stop stops the turn, and is asked again in the next.
#[test]
fn an_abort_at_the_question_of_a_server_stops_the_turn() {
    let world = world_with(&["python3", "-c", SERVER]);
    let model = script(&world, &[json!([{ "type": "message", "text": "done" }])]);
    fs::write(world.path("answers"), "abort\n").unwrap();
    let answers = world.path("answers");
    let words = ["exec", "--provider", &model, "--json", "--ask-for-approval", "untrusted"];
    let words = [&words[..], &["--decide", answers.to_str().unwrap(), "greet"]].concat();
    let ended = world.sandgate(&words);
    let events = ended.events();
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(types.contains(&"ExecApprovalRequest"), "{types:?}");
    assert!(types.contains(&"TurnAborted"), "{types:?} {}", ended.stderr);
    assert!(!ended.stdout().contains("done"), "{}", ended.stdout());
    assert_ne!(ended.code, Some(0));
}

/// spec MCP.24: A server that is `sandgate mcp` itself is not started, which is told, and stops nothing.
#[test]
fn this_program_is_no_server_of_itself() {
    let program = World::new().program([""; 0]);
    let world = world_with(&[program.get_program().to_str().unwrap(), "mcp"]);
    let model = script(&world, &[json!([{ "type": "message", "text": "done" }])]);
    let ended = world.sandgate(&["exec", "--provider", &model, "--json", "greet"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = "mcp_servers.small is this program";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
}

/// spec MCP.23: A server of a program that was killed does not live on.
#[test]
fn a_kill_leaves_no_server_behind() {
    let mark = format!("31{:08}", std::process::id());
    let world = world_with(&["sh", "-c", &format!("sleep {mark}; :")]);
    let model = script(&world, &[json!([{ "type": "message", "text": "done" }])]);
    let running = Running::start(&mut world.program(["exec", "--provider", &model, "wait"]));
    eventually("the server runs", || (running_with(&mark) > 0).then_some(()));
    running.signal(Signal::KILL);
    running.wait();
    eventually("the server is gone", || (running_with(&mark) == 0).then_some(()));
}

/// How many processes sleep for so long.
fn running_with(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let words = processes.flat_map(|process| fs::read(process.path().join("cmdline")));
    words.filter(|words| words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
}
