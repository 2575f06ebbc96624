//! `sandgate acp`, driven by the official clients of the Agent Client Protocol.
//!
//! `scripts/acp-sdks` installs them. Where they are not, these tests say so and prove nothing.

#![cfg(target_os = "linux")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::{Running, World, eventually, is_alive, skipped};

/// Where the SDKs are.
fn sdks() -> PathBuf {
    match std::env::var_os("SANDGATE_TEST_ACP") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("acp-sdks"),
    }
}

/// An official client.
#[derive(Debug, Clone, Copy)]
enum Sdk {
    Python,
    JavaScript,
}

impl Sdk {
    /// Those that are installed.
    fn all() -> Vec<Self> {
        let (python, javascript) = (
            sdks().join("venv/bin/python"),
            sdks().join("node_modules/@agentclientprotocol/sdk/package.json"),
        );
        let mut found = Vec::new();
        for (sdk, file) in [(Self::Python, python), (Self::JavaScript, javascript)] {
            match file.exists() {
                true => found.push(sdk),
                false => {
                    skipped(&format!("no {} is here; run scripts/acp-sdks", file.display()));
                }
            }
        }
        found
    }

    /// Has the client do something, and gives back what it saw.
    #[track_caller]
    fn drive(self, world: &World, todo: &Value, words: &[&str]) -> Value {
        let mut command = match self {
            Self::Python => {
                let mut python = world.other(sdks().join("venv/bin/python").to_str().unwrap());
                python.args(["-c", include_str!("support/acp_client.py")]);
                python
            }
            Self::JavaScript => {
                let script = world.path("client.mjs");
                fs::write(&script, include_str!("support/acp_client.mjs")).unwrap();
                let mut node = world.other("node");
                node.env("ACP_SDK", sdks().join("node_modules/@agentclientprotocol/sdk"));
                node.arg(script);
                node
            }
        };
        let sandgate = world.program(words);
        command.arg(todo.to_string()).arg(sandgate.get_program()).args(sandgate.get_args());
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.code, Some(0), "{self:?}: {outcome:?}");
        serde_json::from_slice(&outcome.stdout).unwrap()
    }
}

/// A model that does this, one line for each time that it is asked.
fn script(world: &World, turns: &[Value]) -> String {
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    fs::write(world.path("model.jsonl"), lines.join("\n")).unwrap();
    format!("script:{}", world.path("model.jsonl").display())
}

fn says(text: &str) -> Value {
    json!({ "type": "message", "text": text })
}

fn calls(tool: &str, arguments: &Value) -> Value {
    json!({ "type": "call", "name": tool, "arguments": arguments })
}

fn runs(command: &str) -> Value {
    calls("shell_command", &json!({ "command": command, "login": false }))
}

/// The updates of this kind in a step.
fn updates<'a>(step: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = step["updates"].as_array().unwrap();
    all.iter().filter(move |update| update["sessionUpdate"] == kind)
}

/// All that the agent said in a step.
fn said(step: &Value) -> String {
    let chunks = updates(step, "agent_message_chunk");
    chunks.map(|chunk| chunk["content"]["text"].as_str().unwrap()).collect()
}

/// All that was shown below tool calls.
fn shown(step: &Value) -> String {
    updates(step, "tool_call_update").map(|update| update["content"].to_string()).collect()
}

/// spec ACP.1: An official client runs a command, sees its output, answers a question, patches a file,
/// talks to a process that lives on, and loads the conversation again.
#[test]
fn an_editor_has_a_model_work() {
    for sdk in Sdk::all() {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
        let model = script(
            &world,
            &[
                json!([says("let me see"), runs("echo streamed; touch made")]),
                json!([says("done")]),
                json!([calls("apply_patch", &json!({ "input": patch }))]),
                json!([says("patched")]),
                json!([calls("exec_command", &json!({ "cmd": "cat", "yield_time_ms": 300 }))]),
                json!([calls(
                    "write_stdin",
                    &json!({ "process_id": "1000", "chars": "echoed\n", "yield_time_ms": 500 })
                )]),
                json!([says("talked")]),
            ],
        );
        let words = ["acp", "--provider", &model, "--ask-for-approval", "untrusted"];
        let todo = json!({ "cwd": ws, "steps": [
            { "prompt": "go", "option": "approve" },
            { "prompt": "change it", "option": "session" },
            { "prompt": "talk", "option": "approve" },
        ]});
        let saw = sdk.drive(&world, &todo, &words);
        assert_eq!(saw["hello"]["protocolVersion"], 1, "{saw}");
        assert_eq!(saw["hello"]["agentCapabilities"]["loadSession"], true, "{saw}");
        let steps = saw["steps"].as_array().unwrap();
        for step in steps {
            assert_eq!(step["stopReason"], "end_turn", "{sdk:?}: {step:#}");
        }
        // A command, its question and its output.
        assert_eq!(said(&steps[0]), "let me seedone");
        let begun = updates(&steps[0], "tool_call").next().unwrap();
        assert_eq!(begun["kind"], "execute", "{begun}");
        assert_eq!(begun["title"], "echo streamed; touch made", "{begun}");
        let question = &steps[0]["asked"][0];
        assert!(question["call"]["title"].as_str().unwrap().contains("touch made"), "{question}");
        assert_eq!(question["call"]["toolCallId"], begun["toolCallId"]);
        assert!(shown(&steps[0]).contains("streamed"), "{:#}", steps[0]);
        let last = updates(&steps[0], "tool_call_update").last().unwrap();
        assert_eq!(last["status"], "completed", "{last}");
        assert!(ws.join("made").exists());
        // A patch, as a diff.
        let asked = &steps[1]["asked"][0]["call"]["content"];
        let diff = asked.as_array().unwrap().iter().find(|one| one["type"] == "diff").unwrap();
        assert_eq!(diff["newText"], "hello\n", "{diff}");
        assert_eq!(diff["path"], *ws.join("new.txt").to_string_lossy());
        assert_eq!(fs::read_to_string(ws.join("new.txt")).unwrap(), "hello\n");
        // A process that lives on.
        assert_eq!(said(&steps[2]), "talked", "{:#}", steps[2]);
        assert!(shown(&steps[2]).contains("echoed"), "{:#}", steps[2]);
        // The same conversation, in another program.
        let todo = json!({ "cwd": ws, "load": saw["session"], "steps": [] });
        let loaded = sdk.drive(&world, &todo, &words)["loaded"].clone();
        let persons: Vec<_> = updates(&loaded, "user_message_chunk")
            .map(|chunk| chunk["content"]["text"].clone())
            .collect();
        assert_eq!(persons, ["go", "change it", "talk"], "{loaded:#}");
        assert_eq!(said(&loaded), "let me seedonepatchedtalked");
        assert!(shown(&loaded).contains("streamed"), "{loaded:#}");
    }
}

/// spec ACP.2: A turn that the editor calls off ends as cancelled, with a question of it open or a command of
/// it running, and nothing of it runs on.
#[test]
fn an_editor_calls_a_turn_off() {
    for sdk in Sdk::all() {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        let model = script(
            &world,
            &[json!([runs("sleep 1000 & echo $! > pid; wait")]), json!([says("after that")])],
        );
        let words = ["acp", "--provider", &model];
        let full =
            [&words[..], &["--sandbox", "danger-full-access", "--ask-for-approval", "never"]];
        let todo = json!({ "cwd": ws, "steps": [
            { "prompt": "sleep", "cancel_when": ws.join("pid") },
            { "prompt": "go on" },
        ]});
        let saw = sdk.drive(&world, &todo, &full.concat());
        assert_eq!(saw["steps"][0]["stopReason"], "cancelled", "{saw:#}");
        assert_eq!(said(&saw["steps"][1]), "after that", "{saw:#}");
        let pid = fs::read_to_string(ws.join("pid")).unwrap().trim().parse().unwrap();
        eventually("nothing of it runs", || (!is_alive(pid)).then_some(()));

        let model = script(&world, &[json!([runs("touch made")])]);
        let words = ["acp", "--provider", &model, "--ask-for-approval", "untrusted"];
        fs::write(ws.join("now"), "").unwrap();
        let todo = json!({ "cwd": ws, "steps": [
            { "prompt": "ask", "cancel_when": ws.join("now") },
        ]});
        let saw = sdk.drive(&world, &todo, &words);
        assert_eq!(saw["steps"][0]["stopReason"], "cancelled", "{saw:#}");
        assert!(!ws.join("made").exists());
    }
}

/// spec ACP.3: A question of the editor's session lies on the desk too; whoever answers first counts.
#[test]
fn a_question_can_be_answered_elsewhere() {
    for sdk in Sdk::all() {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        let model = script(&world, &[json!([runs("touch made")]), json!([says("done")])]);
        let words = ["acp", "--provider", &model, "--ask-for-approval", "untrusted"];
        let todo = json!({ "cwd": ws, "steps": [{ "prompt": "ask" }] });
        let saw = std::thread::scope(|scope| {
            let driving = scope.spawn(|| sdk.drive(&world, &todo, &words));
            let question = eventually("it is on the desk", || {
                let listed = world.sandgate(&["approvals", "list", "--json"]);
                let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
                listed.into_iter().next()
            });
            assert_eq!(question["front_end"], "acp", "{question}");
            let id = question["id"].as_str().unwrap();
            let answered = world.sandgate(&["approvals", "answer", id, "approve"]);
            assert_eq!(answered.code, Some(0), "{answered:?}");
            driving.join().unwrap()
        });
        assert_eq!(saw["steps"][0]["stopReason"], "end_turn", "{saw:#}");
        assert!(ws.join("made").exists());
    }
}

/// The program, talked to line by line.
struct Wire {
    running: Running,
    stdin: std::process::ChildStdin,
    last: u64,
}

impl Wire {
    fn start(world: &World, words: &[&str]) -> Self {
        let mut command = world.program(words);
        command.stdin(Stdio::piped());
        let mut running = Running::start(&mut command);
        let stdin = running.child.stdin.take().unwrap();
        let mut wire = Self { running, stdin, last: 0 };
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        let answer = wire.ask("initialize", &hello);
        assert_eq!(answer["result"]["agentInfo"]["name"], "sandgate", "{answer}");
        wire
    }

    fn say(&mut self, method: &str, params: &Value) {
        self.last += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.send(&message);
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Prompts, and tells what was asked until the turn ended. Each question is answered by `answer`, which may
    /// call the turn off instead.
    fn turn(&mut self, session: &Value, mut answer: impl FnMut(&mut Self, &Value)) -> Turn {
        self.say("session/prompt", &prompt(session, "go"));
        let (prompted, mut turn) = (self.last, Turn::default());
        loop {
            let said: Value = serde_json::from_str(&self.running.line()).unwrap();
            if said["method"] == "session/request_permission" {
                turn.asked +=
                    usize::from(said.to_string().contains("MCP server Small-one of your"));
                answer(self, &said["id"]);
            } else if said["id"] == prompted && said["method"].is_null() {
                said["result"]["stopReason"].as_str().unwrap().clone_into(&mut turn.end);
                return turn;
            } else {
                turn.told += &said.to_string();
            }
        }
    }

    /// A turn in this mode. Whatever is asked is answered by this: a mode may ask about the tool, too.
    fn turn_in(&mut self, mode: &Value, session: &Value, said: &str) -> Turn {
        let mode = json!({ "sessionId": session, "modeId": mode });
        let chosen = self.ask("session/set_mode", &mode);
        assert!(chosen["error"].is_null(), "{chosen}");
        self.turn(session, |wire, question| wire.choose(question, &option(said)))
    }

    fn choose(&mut self, question: &Value, outcome: &Value) {
        let result = json!({ "outcome": outcome });
        self.send(&json!({ "jsonrpc": "2.0", "id": question, "result": result }));
    }

    fn cancel(&mut self, session: &Value) {
        let params = json!({ "sessionId": session });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
    }

    /// Asks something, and waits for the answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(method, params);
        loop {
            let said: Value = serde_json::from_str(&self.running.line()).unwrap();
            if said["id"] == self.last && said["method"].is_null() {
                return said;
            }
        }
    }

    fn session(&mut self, cwd: &Path) -> Value {
        self.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] }))
    }

    /// Closes standard input, and waits for the end. All that was written must be messages.
    fn end(self) -> support::Outcome {
        drop(self.stdin);
        let outcome = self.running.wait();
        for line in outcome.stdout().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
        outcome
    }
}

/// What an editor saw of a turn.
#[derive(Debug, Default)]
struct Turn {
    /// How often it was asked about the server.
    asked: usize,
    told: String,
    end: String,
}

fn prompt(session: &Value, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// spec ACP.4: The end of standard input ends the program and all that it started, and nothing but messages
/// is on standard output.
#[test]
fn the_end_of_input_ends_everything() {
    let world = World::new();
    fs::create_dir(world.path("ws")).unwrap();
    let pid = world.path("ws/pid");
    let model = script(&world, &[json!([runs("sleep 1000 & echo $! > pid; wait")])]);
    let words = ["acp", "--provider", &model, "--sandbox", "danger-full-access"];
    let mut wire = Wire::start(&world, &[&words[..], &["--ask-for-approval", "never"]].concat());
    let session = wire.session(&world.path("ws"))["result"]["sessionId"].clone();
    wire.say("session/prompt", &prompt(&session, "go"));
    let written = eventually("it sleeps", || {
        fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse::<i32>().ok())
    });
    let outcome = wire.end();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!is_alive(written));
    assert!(!world.path(".codex/desk").exists(), "nothing is left");
}

/// spec ACP.5: What cannot be is answered by an error that says why: a session that is not there, a directory
/// in the settings, a provider without a key.
#[test]
fn what_cannot_be_is_answered_by_an_error() {
    let world = World::new();
    fs::create_dir(world.path("ws")).unwrap();
    let mut wire = Wire::start(&world, &["acp"]);
    let load = json!({ "sessionId": "01a1", "cwd": world.home(), "mcpServers": [] });
    let answers = [
        (wire.ask("session/prompt", &prompt(&json!("none"), "go")), "there is no such session"),
        (wire.session(&world.path(".codex")), "lies in your settings"),
        (wire.session(Path::new("ws")), "whole path"),
        (wire.ask("session/load", &load), "01a1"),
        (wire.ask("no/such", &json!({})), ""),
    ];
    for (answer, why) in answers {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"].is_object() && message.contains(why), "{answer}");
    }
    assert_eq!(wire.end().code, Some(0));
    let mut wire = Wire::start(&world, &["acp", "--provider", "openai"]);
    let answer = wire.session(&world.path("ws"));
    assert!(answer["error"]["message"].to_string().contains("OPENAI_API_KEY"), "{answer}");
    assert_eq!(wire.end().code, Some(0));
    let outcome = world.sandgate(&["acp", "--decide", "approve"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
}

/// spec ACP.6: An editor that shows output as a terminal is sent it as the command writes it, and is never
/// asked to run one.
#[test]
fn output_goes_to_a_terminal_that_is_only_looked_at() {
    let world = World::new();
    fs::create_dir(world.path("ws")).unwrap();
    let model = script(&world, &[json!([runs("echo shown; exit 3")]), json!([says("done")])]);
    let mut command = world.program(["acp", "--provider", &model]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    let stdin = running.child.stdin.take().unwrap();
    let mut wire = Wire { running, stdin, last: 0 };
    let capabilities = json!({ "terminal": true, "_meta": { "terminal_output": true } });
    wire.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    let session = wire.session(&world.path("ws"))["result"]["sessionId"].clone();
    let answer = wire.ask("session/prompt", &prompt(&session, "go"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let outcome = wire.end();
    let messages = outcome.events();
    let meta = |name: &str| {
        let found = messages.iter().find_map(|message| {
            let meta = &message["params"]["update"]["_meta"][name];
            (!meta.is_null()).then(|| meta.clone())
        });
        found.unwrap_or_else(|| panic!("{name} in {messages:#?}"))
    };
    let id = meta("terminal_info")["terminal_id"].clone();
    assert_eq!(meta("terminal_output"), json!({ "terminal_id": id, "data": "shown\n" }));
    assert_eq!(meta("terminal_exit")["exit_code"], 3);
    assert!(messages.iter().all(|message| message["method"] != "terminal/create"));
}

/// The modes that a session said it has.
fn modes(saw: &Value) -> Vec<&str> {
    let all = saw["modes"]["availableModes"].as_array().unwrap();
    all.iter().map(|mode| mode["id"].as_str().unwrap()).collect()
}

/// spec ACP.11: A session goes on in the mode that the editor chooses, as the same conversation, and the editor is
/// told; a mode that there is not is refused.
#[test]
fn an_editor_chooses_a_mode() {
    for sdk in Sdk::all() {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        // Each time that a session is opened the model begins from the beginning.
        let model = script(&world, &[json!([runs("touch made")]), json!([says("done")])]);
        let words = ["acp", "--provider", &model];
        let todo = json!({ "cwd": ws, "steps": [
            { "mode": "read-only" },
            { "prompt": "one", "option": "deny" },
            { "mode": "danger-full-access" },
            { "mode": "unattended" },
            { "prompt": "two" },
        ]});
        let saw = sdk.drive(&world, &todo, &words);
        assert_eq!(modes(&saw), ["settings", "ask", "unattended", "read-only"], "{saw:#}");
        assert_eq!(saw["modes"]["currentModeId"], "settings");
        let steps = saw["steps"].as_array().unwrap();
        let told = |step: usize| {
            let update = updates(&steps[step], "current_mode_update").next();
            update.map(|update| update["currentModeId"].as_str().unwrap().to_owned())
        };
        assert_eq!(told(0).as_deref(), Some("read-only"), "{saw:#}");
        // Nothing but what is known to be safe runs there without a yes.
        assert_eq!(steps[1]["asked"].as_array().unwrap().len(), 1, "{:#}", steps[1]);
        assert!(steps[2]["message"].to_string().contains("no such mode"), "{:#}", steps[2]);
        assert_eq!(told(2), None);
        assert_eq!(told(3).as_deref(), Some("unattended"));
        assert_eq!(said(&steps[4]), "done", "{:#}", steps[4]);
        assert_eq!(steps[4]["asked"], json!([]));
        assert!(ws.join("made").exists());
        let todo = json!({ "cwd": ws, "load": saw["session"], "steps": [] });
        let loaded = sdk.drive(&world, &todo, &words);
        assert_eq!(loaded["modes"]["currentModeId"], "settings", "{loaded:#}");
        let persons = updates(&loaded["loaded"], "user_message_chunk");
        let persons: Vec<_> = persons.map(|chunk| chunk["content"]["text"].clone()).collect();
        assert_eq!(persons, ["one", "two"], "{loaded:#}");
    }
}

/// spec ACP.10: A session has a mode for each usual pair of policies that is no looser than the settings, and
/// begins in that of the settings.
#[test]
fn a_directory_that_is_not_trusted_has_no_looser_mode() {
    for sdk in Sdk::all() {
        let world = World::untouched();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        let model = script(&world, &[json!([runs("touch made")]), json!([says("done")])]);
        let words = ["acp", "--provider", &model];
        let todo = json!({ "cwd": ws, "steps": [
            { "mode": "auto" }, { "mode": "unattended" }, { "prompt": "go", "option": "deny" },
        ]});
        let saw = sdk.drive(&world, &todo, &words);
        assert_eq!(modes(&saw), ["settings"], "{saw:#}");
        let words = saw["modes"]["availableModes"][0]["description"].as_str().unwrap();
        assert!(words.starts_with("Commands write nowhere. You are asked before"), "{words}");
        for step in [0, 1] {
            assert!(saw["steps"][step]["message"].to_string().contains("no such mode"), "{saw:#}");
        }
        assert_eq!(saw["steps"][2]["asked"].as_array().unwrap().len(), 1, "{saw:#}");
        assert!(!ws.join("made").exists());
    }
}

/// spec ACP.12: What runs under the policies of one mode ends when another is chosen, which is refused while a turn
/// goes on.
#[test]
fn a_mode_is_chosen_between_turns_and_ends_what_runs() {
    let world = World::new();
    fs::create_dir(world.path("ws")).unwrap();
    let ws = world.path("ws");
    let kept = json!({ "cmd": "echo $$ > pid; exec sleep 1000", "yield_time_ms": 300 });
    let model = script(
        &world,
        &[
            json!([calls("exec_command", &kept)]),
            json!([says("it runs")]),
            json!([runs("id > made")]),
        ],
    );
    let words = ["acp", "--provider", &model, "--sandbox", "danger-full-access"];
    let mut wire = Wire::start(&world, &words);
    let session = wire.session(&ws)["result"]["sessionId"].clone();
    let choose = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    let answer = wire.ask("session/prompt", &prompt(&session, "go"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let pid = fs::read_to_string(ws.join("pid")).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid));
    let answer = wire.ask("session/set_mode", &choose("ask"));
    assert!(answer["result"].is_object(), "{answer}");
    assert!(!is_alive(pid));
    // The model begins from the beginning, and this is asked about.
    wire.say("session/prompt", &prompt(&session, "go"));
    while !wire.running.line().contains("session/request_permission") {}
    let answer = wire.ask("session/set_mode", &choose("settings"));
    assert!(answer["error"]["message"].to_string().contains("at work"), "{answer}");
    assert_eq!(wire.end().code, Some(0));
}

/// A server with one tool, which tries to leave something behind.
const SERVER: &str = r#"
import json, sys
try:
    open("left", "w")
except OSError:
    pass
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

/// spec ACP.14: A program that the editor names as an MCP server is started through the gate, in a cage that only
/// reads, and never without the person having said yes.
#[test]
fn a_server_that_the_editor_names_is_asked_about() {
    for sdk in Sdk::all() {
        let world = World::new();
        fs::create_dir(world.path("ws")).unwrap();
        let ws = world.path("ws");
        let greet = calls("Small-one__greet", &json!({}));
        let model = script(&world, &[json!([greet]), json!([says("done")])]);
        let servers = json!([
            { "name": "Small one", "command": "python3", "args": ["-c", SERVER], "env": [] },
            { "type": "http", "name": "far", "url": "http://127.0.0.1:1/mcp", "headers": [] },
        ]);
        let words = ["acp", "--provider", &model];
        let todo = |option: &str| {
            let steps = json!([{ "prompt": "greet", "option": option }]);
            json!({ "cwd": ws, "servers": servers, "steps": steps })
        };
        let thought = |saw: &Value| {
            let chunks = updates(&saw["steps"][0], "agent_thought_chunk");
            chunks.map(|chunk| chunk["content"]["text"].to_string()).collect::<String>()
        };
        let saw = sdk.drive(&world, &todo("approve"), &words);
        assert_eq!(saw["loaded"]["asked"], json!([]), "it is asked in a turn: {saw:#}");
        let asked = saw["steps"][0]["asked"].as_array().unwrap();
        assert_eq!(asked.len(), 1, "{saw:#}");
        let question = asked[0]["call"].to_string();
        assert!(question.contains("MCP server Small-one of your editor"), "{question}");
        assert!(question.contains("python3"), "{question}");
        assert!(shown(&saw["steps"][0]).contains("good morning"), "{saw:#}");
        let notes = thought(&saw);
        assert!(notes.contains("MCP server far is not used: only programs are"), "{notes}");

        let saw = sdk.drive(&world, &todo("deny"), &words);
        assert_eq!(saw["steps"][0]["asked"].as_array().unwrap().len(), 1, "{saw:#}");
        assert!(!shown(&saw["steps"][0]).contains("good morning"), "{saw:#}");
        assert!(thought(&saw).contains("MCP server Small-one: "), "{saw:#}");

        let never = [&words[..], &["--ask-for-approval", "never"]].concat();
        let saw = sdk.drive(&world, &todo("approve"), &never);
        assert_eq!(saw["steps"][0]["asked"], json!([]), "{saw:#}");
        assert!(!shown(&saw["steps"][0]).contains("good morning"), "{saw:#}");
        assert!(thought(&saw).contains("you have to be asked about it"), "{saw:#}");
        assert!(!ws.join("left").exists());
    }
}

/// A session of an editor that names the small server, whose tool the model calls in each turn.
fn with_server(world: &World, command: &str, arguments: &[&str]) -> (Wire, Value) {
    fs::create_dir(world.path("ws")).unwrap();
    fs::write(world.path("ws/server.py"), SERVER).unwrap();
    let greet = json!([calls("Small-one__greet", &json!({}))]);
    // The first may be for a turn that is called off.
    let model = script(world, &[greet.clone(), greet, json!([says("done")])]);
    let mut wire = Wire::start(world, &["acp", "--provider", &model]);
    let server = json!({ "name": "Small one", "command": command, "args": arguments, "env": [] });
    let begun = json!({ "cwd": world.path("ws"), "mcpServers": [server] });
    let begun = wire.ask("session/new", &begun);
    (wire, begun["result"].clone())
}

fn option(id: &str) -> Value {
    json!({ "outcome": "selected", "optionId": id })
}

/// spec ACP.18: A question about a server of the editor is taken back with the turn that is called off, and asked
/// again in the next.
#[test]
fn a_question_about_a_server_goes_with_its_turn() {
    // Editors should answer what they called off, and some do not.
    for answers in [true, false] {
        let world = World::new();
        let (mut wire, begun) = with_server(&world, "python3", &["server.py"]);
        let session = begun["sessionId"].clone();
        let turn = wire.turn(&session, |wire, question| {
            wire.cancel(&session);
            if answers {
                wire.choose(question, &json!({ "outcome": "cancelled" }));
            }
        });
        assert_eq!((turn.asked, &*turn.end), (1, "cancelled"), "{turn:?}");
        eventually("nothing is asked any more", || {
            let listed = world.sandgate(&["approvals", "list", "--json"]);
            (listed.stdout() == "[]\n").then_some(())
        });
        let turn = wire.turn(&session, |wire, question| wire.choose(question, &option("approve")));
        assert_eq!((turn.asked, &*turn.end), (1, "end_turn"), "{turn:?}");
        assert!(turn.told.contains("good morning"), "{turn:?}");
        assert_eq!(wire.end().code, Some(0));
    }
}

/// spec ACP.19: What the person said of a server of the editor holds for the session, whatever its mode, as long as
/// it is known to be the same server: they are asked once.
#[test]
fn a_server_is_asked_about_once() {
    for (said, works) in [("approve", true), ("deny", false)] {
        let world = World::new();
        let (mut wire, begun) = with_server(&world, "python3", &["server.py"]);
        let session = begun["sessionId"].clone();
        let (first, other) = (&begun["modes"]["currentModeId"], json!("read-only"));
        for (mode, asked) in [(first, 1), (&other, 0), (first, 0)] {
            let turn = wire.turn_in(mode, &session, said);
            let greeted = turn.told.contains("good morning");
            assert_eq!((turn.asked, greeted), (asked, works), "in {mode}: {turn:?}");
        }
        // Another program under the same name is another server.
        fs::write(world.path("ws/server.py"), format!("{SERVER}\n# changed\n")).unwrap();
        assert_eq!(wire.turn_in(&other, &session, said).asked, 1);
        assert_eq!(wire.end().code, Some(0));
    }
}

/// spec ACP.19: What the person said of a server of the editor holds for the session, whatever its mode, as long as
/// it is known to be the same server: they are asked once.
#[test]
fn a_server_that_may_be_another_is_asked_about_again() {
    let world = World::new();
    let (mut wire, begun) = with_server(&world, "bash", &["-c", "exec python3 serv*.py"]);
    let session = begun["sessionId"].clone();
    for mode in [&begun["modes"]["currentModeId"], &json!("read-only")] {
        let turn = wire.turn_in(mode, &session, "approve");
        let greeted = turn.told.contains("good morning");
        assert_eq!((turn.asked, greeted), (1, true), "in {mode}: {turn:?}");
    }
    assert_eq!(wire.end().code, Some(0));
}
