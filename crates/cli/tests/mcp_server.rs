//! `sandgate mcp` and `sandgate mcp install`, with the real program and the official clients.
//!
//! `scripts/mcp-clients` installs those that are not in Rust. Where they are not, tests say so and prove nothing.

#![cfg(target_os = "linux")]

mod support;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::{ClientHandler, RoleClient};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use support::{Running, World, eventually, skipped};

/// Where the clients are that are not in Rust.
fn clients() -> PathBuf {
    match std::env::var_os("SANDGATE_MCP_CLIENTS") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("mcp-clients"),
    }
}

/// A number of seconds that nothing else sleeps.
fn mark(test: u32) -> String {
    format!("{test}{:07}", std::process::id())
}

/// How many processes sleep for that long.
fn sleeping(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| *line == format!("sleep\0{mark}\0").into_bytes()).count()
}

fn python_sdk(mode: &str, version: &str, test: u32) {
    let world = World::new();
    let packages = clients().join("python");
    let with_sdk = |command: &mut std::process::Command| {
        command.env("PYTHONPATH", &packages);
    };
    let mut look = world.other("python3");
    with_sdk(look.args(["-c", "import mcp, mcp_types"]));
    if Running::start(&mut look).wait().code != Some(0) {
        skipped("the Python SDK is not here, or not for this Python; run scripts/mcp-clients");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_client.py");
    let program = world.program([""; 0]);
    let sleep = mark(test);
    let mut client = world.other("python3");
    client.args([script, mode]).arg(world.home()).arg(&sleep).arg(program.get_program()).arg("mcp");
    with_sdk(&mut client);
    let ended = Running::start(&mut client).wait();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout(), ended.stderr);
    let said: Value = ended
        .events()
        .into_iter()
        .flat_map(|line| line.as_object().unwrap().clone())
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(said["version"], version);
    for tool in [
        "shell",
        "shell_command",
        "exec_command",
        "write_stdin",
        "list_processes",
        "kill_process",
        "read_output",
        "apply_patch",
    ] {
        assert!(said["tools"].as_array().unwrap().contains(&json!(tool)), "{tool}: {said}");
    }
    assert_eq!(
        (&said["early"], &said["streamed"]["text"]),
        (&json!(true), &json!("early\nlate\n"))
    );
    assert_eq!(said["asked"]["error"], false, "{said}");
    assert_eq!(said["asked"]["facts"]["granted"], json!(["run without the sandbox"]));
    assert_eq!(said["forms"].as_array().unwrap().len(), 1);
    assert!(said["forms"][0].as_str().unwrap().contains("because the test wants it"));
    assert_eq!(fs::read_to_string(world.path("asked")).unwrap(), "x\n");
    assert_eq!((&said["slept"], &said["ended"]), (&json!(true), &json!(true)));
    assert_eq!(said["said"]["facts"]["output"], "hello\n");
    assert_eq!(said["resources"].as_array().unwrap().len(), 1);
    assert_eq!(said["read"], "hello\n");
    assert_eq!(said["patched"]["error"], false);
    assert_eq!(fs::read_to_string(world.path("patched")).unwrap(), "hello\n");
    assert_eq!(sleeping(&sleep), 0);
}

/// spec MCPS.50: The official Python SDK, in both generations, lists the tools, runs a command,
/// sees its output while it runs, answers a question, cancels a sleeping command of which nothing
/// is left, talks to a process and patches a file.
#[test]
fn the_python_sdk_does_it_all_after_a_handshake() {
    python_sdk("legacy", "2025-11-25", 61);
}

/// spec MCPS.50: The official Python SDK, in both generations, lists the tools, runs a command,
/// sees its output while it runs, answers a question, cancels a sleeping command of which nothing
/// is left, talks to a process and patches a file.
#[test]
fn the_python_sdk_does_it_all_without_one() {
    python_sdk("auto", "2026-07-28", 62);
}

/// A client whose person says yes.
struct Client {
    progress: Arc<Mutex<String>>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.elicitation = Some(Default::default());
        ClientConfig::new(can, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let yes = json!({ "decision": "approve" });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(yes))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push_str(&params.message.unwrap_or_default());
    }
}

async fn call(
    client: &RunningService<RoleClient, Client>,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap()
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never happened: {what}");
}

/// spec MCPS.51: So does the official Rust SDK with the program.
#[tokio::test]
async fn the_rust_sdk_does_it_all() {
    for (test, lifecycle) in [
        (63, ClientLifecycleMode::Initialize),
        (
            64,
            ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        ),
    ] {
        let world = World::new();
        let mut program = tokio::process::Command::from(world.program(["mcp"]));
        program.stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut server = program.spawn().unwrap();
        let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let progress = Arc::default();
        let client = Client { progress: Arc::clone(&progress) };
        let client = client.serve_with_lifecycle(pipes, lifecycle).await.unwrap();
        assert!(client.list_all_tools().await.unwrap().len() >= 8);
        let waits = "echo early; while [ ! -e go ]; do sleep 0.02; done; echo late";
        let streaming =
            call(&client, "shell", json!({ "command": ["sh", "-c", waits], "timeout_ms": 60_000 }));
        let going = async {
            until("early", || progress.lock().unwrap().contains("early")).await;
            fs::write(world.path("go"), "").unwrap();
        };
        let (streamed, ()) = tokio::join!(streaming, going);
        assert_eq!(streamed.is_error, Some(false));
        let escape = json!({ "command": ["sh", "-c", "echo x > asked"],
            "sandbox_permissions": "require_escalated", "justification": "for the test" });
        assert_eq!(call(&client, "shell", escape).await.is_error, Some(false));
        assert!(world.path("asked").exists());
        let sleep = mark(test);
        let script = format!("setsid sleep {sleep} & sleep {sleep}; :");
        tokio::select! {
            done = call(&client, "shell", json!({ "command": ["sh", "-c", script], "timeout_ms": 60_000 })) => {
                panic!("{done:?}")
            }
            () = until("it sleeps", || sleeping(&sleep) >= 2) => {}
        }
        until("nothing sleeps", || sleeping(&sleep) == 0).await;
        let cat = json!({ "command": ["cat"], "tty": false, "yield_time_ms": 250 });
        let started = call(&client, "exec_command", cat).await;
        let process = started.structured_content.unwrap()["process_id"].clone();
        let hello = json!({ "process_id": process, "input": "hello\n", "wait_for": "hello" });
        let said = call(&client, "write_stdin", hello).await;
        assert_eq!(said.structured_content.unwrap()["output"], "hello\n");
        let patch = "*** Begin Patch\n*** Add File: patched\n+hello\n*** End Patch\n";
        assert_eq!(
            call(&client, "apply_patch", json!({ "input": patch })).await.is_error,
            Some(false)
        );
        assert_eq!(fs::read_to_string(world.path("patched")).unwrap(), "hello\n");
        client.cancel().await.unwrap();
        assert_eq!(server.wait().await.unwrap().code(), Some(0));
    }
}

/// spec MCPS.52: The inspector lists the tools and calls them.
#[test]
fn the_inspector_lists_and_calls() {
    let world = World::new();
    let inspector = clients().join("node/node_modules/.bin/mcp-inspector");
    let has_node = world.other("node").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !inspector.exists() || !has_node {
        skipped("the inspector is not here; run scripts/mcp-clients");
        return;
    }
    let inspect = |words: &[&str]| -> Value {
        let program = world.program([""; 0]);
        let mut command = world.other("node");
        command.arg(&inspector).arg("--cli").arg(program.get_program()).arg("mcp").args(words);
        let ended = Running::start(&mut command).wait();
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout(), ended.stderr);
        serde_json::from_str(ended.stdout()).expect("JSON")
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "shell"));
    let called =
        ["--method", "tools/call", "--tool-name", "shell_command", "--tool-arg", "command=echo hi"];
    let called = inspect(&called);
    assert_eq!(called["content"][0]["text"], "hi\n", "{called}");
    assert_eq!(called["structuredContent"]["exit_code"], 0);
    let resources = inspect(&["--method", "resources/templates/list"]);
    assert_eq!(resources["resourceTemplates"].as_array().unwrap().len(), 1);
}

/// A client that writes lines by hand.
struct ByHand {
    server: std::process::Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl ByHand {
    fn start(world: &World, options: &[&str]) -> Self {
        let mut program = world.program(["mcp"].iter().chain(options));
        let mut server = program.stdin(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self { server, lines };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "by hand", "version": "1" } });
        client.send(json!({ "id": 0, "method": "initialize", "params": hello }));
        assert_eq!(client.answer(0)["result"]["serverInfo"]["name"], "sandgate");
        client
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let stdin = self.server.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn call(&mut self, id: u32, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(json!({ "id": id, "method": "tools/call", "params": params }));
    }

    /// The answer to a request. Every line before it is a message too.
    fn answer(&mut self, id: u32) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).expect("only messages are written");
            assert_eq!(message["jsonrpc"], "2.0");
            if message["id"] == json!(id) {
                return message;
            }
        }
    }
}

/// spec MCPS.42: Nothing but messages of the protocol is on standard output.
#[test]
fn only_messages_are_on_standard_output() {
    let world = World::new();
    // What is no setting is warned of, and that must go elsewhere.
    let mut client = ByHand::start(&world, &["--tools", "shell"]);
    client.call(1, "shell", &json!({ "command": ["sh", "-c", "echo out; echo err >&2"] }));
    assert_eq!(client.answer(1)["result"]["isError"], false);
    client.send(json!({ "id": 2, "method": "no/such" }));
    assert_eq!(client.answer(2)["error"]["code"], -32601);
    drop(client.server.stdin.take());
    let mut rest = String::new();
    client.lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert_eq!(client.server.wait().unwrap().code(), Some(0));
}

/// spec MCPS.16: When the client or the server is killed, nothing that the server started lives on.
#[test]
fn a_kill_leaves_nothing_behind() {
    for (test, signal) in [(65, Signal::KILL), (66, Signal::TERM), (67, Signal::INT)] {
        let world = World::new();
        let sleep = mark(test);
        let mut client = ByHand::start(&world, &[]);
        let live = json!({ "command": ["sleep", sleep], "yield_time_ms": 250 });
        client.call(1, "exec_command", &live);
        client.answer(1);
        let script = format!("setsid sleep {sleep} & sleep {sleep}; :");
        client.call(2, "shell", &json!({ "command": ["sh", "-c", script], "timeout_ms": 60_000 }));
        eventually("they sleep", || (sleeping(&sleep) >= 3).then_some(()));
        let pid = rustix::process::Pid::from_child(&client.server);
        rustix::process::kill_process(pid, signal).unwrap();
        client.server.wait().unwrap();
        eventually("nothing sleeps", || (sleeping(&sleep) == 0).then_some(()));
    }
}

/// spec MCPS.16: When the client or the server is killed, nothing that the server started lives on.
#[test]
fn a_client_that_is_killed_leaves_nothing_behind() {
    let world = World::new();
    let sleep = mark(68);
    // The shell has our end of the pipe, and is killed with it.
    let program = world.program([""; 0]);
    let program = program.get_program().to_str().unwrap().to_owned();
    let script = format!(
        "( echo '{}'; echo '{}'; exec sleep 3600 ) | {program} mcp > out",
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "shell", "arguments": { "command": ["sleep", sleep], "timeout_ms": 60_000 } } }),
    );
    let mut client = world.other("setsid");
    client.args(["sh", "-c", &script]);
    let client = client.spawn().unwrap();
    eventually("it sleeps", || (sleeping(&sleep) == 1).then_some(()));
    let group = rustix::process::Pid::from_child(&client);
    let mut client = client;
    // Only those who feed the server: it is to notice by itself.
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let session =
            stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(3)).map(str::to_owned);
        if line == b"sleep\x003600\0" && session == Some(group.as_raw_nonzero().to_string()) {
            let pid = entry.file_name().to_str().unwrap().parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
    }
    eventually("nothing sleeps", || (sleeping(&sleep) == 0).then_some(()));
    client.wait().unwrap();
}

/// spec MCPS.29: `sandgate approvals` answers the questions of `sandgate mcp`.
#[test]
fn questions_are_answered_in_another_terminal() {
    let world = World::new();
    let mut client = ByHand::start(&world, &["--ask-for-approval", "untrusted"]);
    client.call(1, "shell", &json!({ "command": ["sh", "-c", "echo x > made"] }));
    let id = eventually("it is asked", || {
        let listed = world.sandgate(&["approvals", "list", "--json"]);
        let listed: Value = serde_json::from_str(listed.stdout()).ok()?;
        let first = listed.as_array().or_else(|| listed["approvals"].as_array())?.first()?.clone();
        Some(first["id"].as_str()?.to_owned())
    });
    let answered = world.sandgate(&["approvals", "answer", &id, "approve"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    assert_eq!(client.answer(1)["result"]["isError"], false);
    assert!(world.path("made").exists());
}

/// spec MCPS.27: A client that cannot show forms is told where to answer, and after the time the
/// call comes to nothing with the same words.
#[test]
fn a_question_that_nobody_answers_is_a_no_that_says_where() {
    let world = World::new();
    let options = ["--ask-for-approval", "untrusted", "--approval-timeout", "1"];
    let mut client = ByHand::start(&world, &options);
    client.call(1, "shell", &json!({ "command": ["sh", "-c", "echo x > made"] }));
    let answer = client.answer(1);
    assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "approval_timeout");
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("sandgate approvals")
    );
    assert!(!world.path("made").exists());
}

/// spec MCPS.58: Without `--write` nothing is written.
#[test]
fn installing_prints_and_writes_only_on_request() {
    let world = World::new();
    let install = |words: &[&str]| {
        let words: Vec<&str> =
            ["mcp", "install", "--client"].into_iter().chain(words.iter().copied()).collect();
        world.sandgate(&words)
    };
    let files = [
        ("claude", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("zed", ".config/zed/settings.json"),
        ("vscode", ".vscode/mcp.json"),
    ];
    for (client, file) in files {
        let told = install(&[client]);
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        assert!(told.stdout().contains(file.rsplit('/').next().unwrap()), "{}", told.stdout());
        assert!(!world.path(file).exists(), "{client}");
        let written = install(&[client, "--write", "--", "--sandbox", "read-only"]);
        assert_eq!(written.code, Some(0), "{}", written.stderr);
        assert!(written.stdout().contains("+"), "{}", written.stdout());
        let text = fs::read_to_string(world.path(file)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let servers = value.as_object().unwrap().values().next().unwrap();
        assert_eq!(servers["sandgate"]["args"], json!(["mcp", "--sandbox", "read-only"]), "{text}");
        let again = install(&[client, "--write", "--", "--sandbox", "read-only"]);
        assert!(again.stdout().contains("already"), "{}", again.stdout());
        assert_eq!(fs::read_to_string(world.path(file)).unwrap(), text);
    }
    let before = fs::read_to_string(world.path(".codex/config.toml")).unwrap();
    let written = install(&["codex", "--write"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let after = fs::read_to_string(world.path(".codex/config.toml")).unwrap();
    assert!(after.starts_with(&before), "{after}");
    assert!(after.contains("[mcp_servers.sandgate]"), "{after}");
    assert_eq!(world.sandgate(&["config", "validate"]).code, Some(0));
}

/// spec MCPS.59: A client's file in a project is not changed through a link, neither one in its place nor one
/// above it.
#[test]
fn links_of_a_repository_are_not_followed() {
    let world = World::new();
    let target = world.path("elsewhere");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("mcp.json"), "{}").unwrap();
    std::os::unix::fs::symlink(target.join("mcp.json"), world.path(".mcp.json")).unwrap();
    std::os::unix::fs::symlink(&target, world.path(".vscode")).unwrap();
    for (client, link) in [("claude", ".mcp.json"), ("vscode", ".vscode")] {
        let refused = world.sandgate(&["mcp", "install", "--client", client, "--write"]);
        assert_eq!(refused.code, Some(125), "{}", refused.stderr);
        assert!(refused.stderr.contains("is a link"), "{}", refused.stderr);
        assert!(world.path(link).is_symlink());
    }
    assert_eq!(fs::read_to_string(target.join("mcp.json")).unwrap(), "{}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "nothing else was made there");
    // One in the directory that the client's file is in is not followed either.
    fs::remove_file(world.path(".vscode")).unwrap();
    fs::create_dir(world.path(".vscode")).unwrap();
    std::os::unix::fs::symlink(target.join("new"), world.path(".vscode/mcp.json")).unwrap();
    let refused = world.sandgate(&["mcp", "install", "--client", "vscode", "--write"]);
    assert_eq!(refused.code, Some(125), "{}", refused.stderr);
    assert!(!target.join("new").exists());
}

/// spec MCPS.60: What is shown of a client's file that was changed is visible, and moves no cursor.
#[test]
fn a_change_is_shown_without_what_would_move_the_cursor() {
    let world = World::new();
    let text = "{\n  // \u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{202e}mine\n  \"a\": 1\n}\n";
    fs::write(world.path(".mcp.json"), text).unwrap();
    let written = world.sandgate(&["mcp", "install", "--client", "claude", "--write"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let shown = written.stdout();
    assert!(
        shown.contains("mine") && !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
    let after = fs::read_to_string(world.path(".mcp.json")).unwrap();
    assert!(after.contains("\u{1b}[2J"), "in the file it stays as it is");
}

/// spec MCPS.57: A file that is not in order is left as it is.
#[test]
fn a_broken_file_is_left_as_it_is() {
    let world = World::new();
    fs::write(world.path(".mcp.json"), "{ broken").unwrap();
    let refused = world.sandgate(&["mcp", "install", "--client", "claude", "--write"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("left as it is"), "{}", refused.stderr);
    assert!(refused.stderr.contains("mcpServers"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(world.path(".mcp.json")).unwrap(), "{ broken");
}
