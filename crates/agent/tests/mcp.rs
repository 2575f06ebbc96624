//! MCP servers: started through the gate, their tools called, their failures borne.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "a server over HTTP is started by nobody but the test"
)]

mod http_server;

use http_server::{HttpServer, Reply};
use sandgate_agent::{McpServers, Settled, server_programs};
use sandgate_config::{McpServer, McpServerSettings, ServerName};
use sandgate_protocol::{
    AskForApproval, CallId, ContentItem, Event, ReviewDecision, SandboxPolicy, ToolCall,
    ToolOutput, ToolPayload,
};
use sandgate_runtime::audit::{AuditOptions, Record, audit_directory, entries};
use sandgate_runtime::{Delivery, Events, Runtime, Session, SessionConfig, ToolResult, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The server that tests talk with, which is built with them.
fn test_server() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/mcp_server")
}

/// A server of settings.
fn server(name: &str, settings: Value) -> McpServer {
    let settings: McpServerSettings = serde_json::from_value(settings).unwrap();
    McpServer::new(&ServerName::try_from(name.to_owned()).unwrap(), &settings).unwrap()
}

/// The test server, with these settings beside its command.
fn local(more: &Value) -> McpServer {
    let mut settings = json!({"command": test_server(), "startup_timeout_sec": 60});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server("test", settings)
}

/// A session whose model has the tools of servers.
struct Scene {
    workspace: tempfile::TempDir,
    home: tempfile::TempDir,
    session: Option<Session>,
    servers: McpServers,
    events: Events,
    decision: ReviewDecision,
    /// All that came until now.
    warnings: Vec<String>,
}

/// What came of a call.
struct Outcome {
    text: String,
    result: ToolResult,
    questions: Vec<String>,
}

impl Scene {
    async fn new(servers: Vec<McpServer>, change: impl FnOnce(&mut SessionConfig)) -> Self {
        let (workspace, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut config = SessionConfig::new(workspace.path().to_owned());
        config.approval_policy = AskForApproval::OnRequest;
        config.own_env = std::env::vars_os().collect();
        config.own_env.insert("TEST_TOKEN".into(), "s3cret".into());
        config.config_home = Some(home.path().to_owned());
        config.audit = Some(AuditOptions::default());
        change(&mut config);
        let own_env: BTreeMap<OsString, OsString> = config.own_env.clone();
        config.servers = server_programs(&servers, "your settings", &own_env);
        let session = Session::start(Arc::new(Runtime::start().unwrap()), config).unwrap();
        let events = session.events(Delivery::Complete).await;
        let servers = McpServers::start(&session.requester(), servers, &own_env);
        let decision = ReviewDecision::Approved;
        let (session, warnings) = (Some(session), Vec::new());
        Self { workspace, home, session, servers, events, decision, warnings }
    }

    /// One with these servers, all of which have started or failed.
    async fn settled(servers: Vec<McpServer>) -> Self {
        let mut scene = Self::new(servers, |_| {}).await;
        scene.servers.settled().await;
        scene
    }

    fn session(&self) -> &Session {
        self.session.as_ref().unwrap()
    }

    fn tools(&self) -> Vec<String> {
        let tools = self.session().requester().tools().into_iter().map(|spec| spec.name);
        tools.filter(|name| name.contains("__")).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Outcome {
        let turn = self.session().begin_turn();
        self.call_in(name, arguments, &turn).await
    }

    async fn call_in(&mut self, name: &str, arguments: Value, turn: &Turn) -> Outcome {
        let call = ToolCall {
            call_id: CallId::new("call"),
            name: name.to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        let approver = self.session().approver("test");
        let requester = self.session().requester();
        let calling = requester.call(vec![call], turn);
        tokio::pin!(calling);
        let mut questions = Vec::new();
        let result = loop {
            tokio::select! {
                biased;
                event = self.events.next() => match &event.unwrap().event {
                    Event::ExecApprovalRequest(request) => {
                        questions.push(format!("{} ({})", request.command_text, request.reason));
                        approver.answer(&request.approval_id, self.decision.clone()).unwrap();
                    }
                    Event::Warning(notice) => self.warnings.push(notice.message.clone()),
                    _ => {}
                },
                mut results = &mut calling => break results.remove(0),
            }
        };
        let ToolOutput::Function { content, .. } = &result.output else { panic!("no function") };
        Outcome { text: content.clone(), result, questions }
    }

    /// The first warning, which comes.
    async fn warning(&mut self) -> String {
        while self.warnings.is_empty() {
            if let Event::Warning(notice) = &self.events.next().await.unwrap().event {
                self.warnings.push(notice.message.clone());
            }
        }
        self.warnings[0].clone()
    }

    fn recorded(&self) -> Vec<Record> {
        let read = entries(&audit_directory(self.home.path()), None).unwrap();
        read.map(|entry| entry.unwrap().record).collect()
    }
}

fn succeeded(outcome: &Outcome) -> bool {
    matches!(outcome.result.output, ToolOutput::Function { success: Some(true), .. })
}

/// spec MCP.1: The tools of a server are tools of the session, and their answers reach the model.
#[tokio::test]
async fn a_server_is_started_listed_and_called() {
    let mut scene = Scene::settled(vec![local(&json!({}))]).await;
    let names = scene.tools();
    assert!(names.contains(&"test__echo".to_owned()), "{names:?}");
    let outcome = scene.call("test__echo", json!({"text": "hello"})).await;
    assert_eq!((outcome.text.as_str(), succeeded(&outcome)), ("hello", true));
    assert_eq!(outcome.questions, Vec::<String>::new(), "it says that it changes nothing");

    let outcome = scene.call("test__picture", json!({})).await;
    let ToolOutput::Function { content_items, .. } = outcome.result.output else { panic!() };
    let image_url = "data:image/png;base64,aGk=".to_owned();
    assert_eq!(content_items, Some(vec![ContentItem::InputImage { image_url }]));

    let outcome = scene.call("test__fail", json!({})).await;
    assert_eq!((outcome.text.as_str(), succeeded(&outcome)), ("it did not work", false));
}

/// spec MCP.2: Only the tools that the settings let be used are there.
#[tokio::test]
async fn settings_say_which_tools_there_are() {
    let few = json!({"enabled_tools": ["echo", "write"], "disabled_tools": ["write"]});
    let scene = Scene::settled(vec![local(&few)]).await;
    assert_eq!(scene.tools(), ["test__echo"]);
}

/// spec MCP.3: A server that is a program has the policy of its own entry, whatever the session's is.
#[tokio::test]
async fn a_server_is_confined_by_its_own_entry() {
    let mut scene = Scene::settled(vec![local(&json!({}))]).await;
    let file = scene.file("here");
    let outcome = scene.call("test__lie", json!({"path": file})).await;
    assert!(outcome.text.starts_with("refused: "), "{}", outcome.text);
    assert!(!file.exists(), "its own entry lets it read");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let outcome = scene.call("test__connect", json!({"to": to})).await;
    assert!(outcome.text.starts_with("refused: "), "{}", outcome.text);

    let writes = local(&json!({"sandbox_mode": "workspace-write"}));
    let read_only = |config: &mut SessionConfig| config.sandbox_policy = SandboxPolicy::ReadOnly;
    let mut scene = Scene::new(vec![writes], read_only).await;
    scene.servers.settled().await;
    let file = scene.file("here");
    let outcome = scene.call("test__lie", json!({"path": file})).await;
    assert_eq!(outcome.text, "done");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "written");
}

/// spec MCP.4: A server is given the variables that its entry names, and no other secrets.
#[tokio::test]
async fn a_server_is_given_the_variables_of_its_entry() {
    let given = json!({"env": {"COLOUR": "blue"}, "env_vars": ["TEST_TOKEN"]});
    let mut scene = Scene::settled(vec![local(&given)]).await;
    let mut variable =
        async |name: &str| scene.call("test__variable", json!({"name": name})).await.text;
    assert_eq!(variable("COLOUR").await, "blue");
    assert_eq!(variable("TEST_TOKEN").await, "s3cret");

    let mut scene = Scene::settled(vec![local(&json!({}))]).await;
    let text = scene.call("test__variable", json!({"name": "TEST_TOKEN"})).await.text;
    assert_eq!(text, "unset");
}

/// spec MCP.5: The start of a server is judged and asked about like a command, and recorded.
#[tokio::test]
async fn the_start_of_a_server_is_asked_about() {
    let asks = |config: &mut SessionConfig| config.approval_policy = AskForApproval::UnlessTrusted;
    for (decision, starts) in
        [(ReviewDecision::Denied { feedback: None }, false), (ReviewDecision::Approved, true)]
    {
        let mut scene = Scene::new(vec![local(&json!({}))], asks).await;
        let approver = scene.session().approver("test");
        let question = loop {
            let event = scene.events.next().await.unwrap();
            if let Event::ExecApprovalRequest(request) = &event.event {
                break request.clone();
            }
        };
        assert!(question.reason.starts_with("MCP server test of your settings: "), "{question:?}");
        assert_eq!(question.command, [test_server().to_str().unwrap()]);
        assert_eq!(scene.tools(), Vec::<String>::new());
        approver.answer(&question.approval_id, decision).unwrap();
        scene.servers.settled().await;
        assert_eq!(!scene.tools().is_empty(), starts);
        if !starts {
            let warning = scene.warning().await;
            assert!(warning.contains("User denied approval"), "{warning}");
        }
        let began = scene.recorded().iter().any(|record| matches!(record, Record::Began(_)));
        assert_eq!(began, starts);
        let asked = scene.recorded().iter().any(|record| match record {
            Record::CallAsked(asked) => asked.tool == "mcp_server",
            _ => false,
        });
        assert!(asked);
    }
}

/// spec MCP.6: A tool that may change something is asked about, with all of its arguments, and only the
/// same call again is covered by a yes for the session.
#[tokio::test]
async fn a_tool_that_may_change_something_is_asked_about() {
    let mut scene = Scene::settled(vec![local(&json!({"sandbox_mode": "workspace-write"}))]).await;
    let file = scene.file("here\u{202e}");
    let write = |file: &Path| json!({"path": file});

    scene.decision = ReviewDecision::Denied { feedback: Some("not there".to_owned()) };
    let outcome = scene.call("test__write", write(&file)).await;
    assert!(outcome.text.contains("not there"), "{}", outcome.text);
    assert!(!file.exists());
    let [question] = outcome.questions.as_slice() else { panic!("{:?}", outcome.questions) };
    assert!(question.starts_with("MCP server test, tool write: {\n  \"path\": "), "{question}");
    assert!(question.contains("here\\u{202e}\""), "{question}");

    scene.decision = ReviewDecision::ApprovedForSession;
    assert_eq!(scene.call("test__write", write(&file)).await.text, "done");
    assert!(file.exists());
    assert_eq!(scene.call("test__write", write(&file)).await.questions, Vec::<String>::new());
    let other = scene.file("other");
    assert_eq!(scene.call("test__write", write(&other)).await.questions.len(), 1);

    let records = scene.recorded();
    let asked = records.iter().filter_map(|record| match record {
        Record::CallAsked(asked) if asked.tool == "test__write" => Some(&asked.argv),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[0][..2], ["test".to_owned(), "write".to_owned()]);
}

/// spec MCP.7: Where nobody may be asked, what may change something is refused unless nothing is confined;
/// where everything is asked about, what a server says of its tools is not believed.
#[tokio::test]
async fn policies_say_who_is_asked_about_tools() {
    let never = |config: &mut SessionConfig| config.approval_policy = AskForApproval::Never;
    let mut scene = Scene::new(vec![local(&json!({}))], never).await;
    scene.servers.settled().await;
    let outcome = scene.call("test__write", json!({"path": "x"})).await;
    assert!(outcome.text.contains("nobody may be asked"), "{}", outcome.text);
    assert_eq!(scene.call("test__echo", json!({"text": "a"})).await.text, "a");

    let free = |config: &mut SessionConfig| {
        config.approval_policy = AskForApproval::Never;
        config.sandbox_policy = SandboxPolicy::DangerFullAccess;
    };
    let mut scene = Scene::new(vec![local(&json!({}))], free).await;
    scene.servers.settled().await;
    let file = scene.file("x");
    let outcome = scene.call("test__write", json!({"path": file})).await;
    assert!(outcome.text.starts_with("refused: "), "its own entry confines it: {}", outcome.text);

    let rule = |config: &mut SessionConfig| config.approval_policy = AskForApproval::UnlessTrusted;
    let mut scene = Scene::new(vec![local(&json!({}))], rule).await;
    let approver = scene.session().approver("test");
    loop {
        let event = scene.events.next().await.unwrap();
        if let Event::ExecApprovalRequest(request) = &event.event {
            approver.answer(&request.approval_id, ReviewDecision::Approved).unwrap();
            break;
        }
    }
    scene.servers.settled().await;
    assert_eq!(scene.call("test__echo", json!({"text": "a"})).await.questions.len(), 1);
}

/// spec MCP.25: Who is asked about a server and wants the work to stop stops the turn, and is asked again in the
/// next.
#[tokio::test]
async fn an_abort_says_nothing_about_the_server() {
    let rule = |config: &mut SessionConfig| config.approval_policy = AskForApproval::UnlessTrusted;
    let mut scene = Scene::new(vec![local(&json!({}))], rule).await;
    let approver = scene.session().approver("test");
    for (decision, expected) in [
        (ReviewDecision::Abort, Settled::Aborted),
        (ReviewDecision::Abort, Settled::Aborted),
        (ReviewDecision::Approved, Settled::All),
    ] {
        let Scene { servers, events, .. } = &mut scene;
        let answering = async {
            loop {
                if let Event::ExecApprovalRequest(request) = &events.next().await.unwrap().event {
                    return approver.answer(&request.approval_id, decision).unwrap();
                }
            }
        };
        let (settled, ()) = tokio::join!(servers.settled(), answering);
        assert_eq!(settled, expected);
    }
    assert!(scene.tools().contains(&"test__echo".to_owned()));
}

/// spec MCP.8: A list that changes is asked for again, and holds from the next request on.
#[tokio::test]
async fn a_changed_list_is_asked_for_again() {
    let mut scene = Scene::settled(vec![local(&json!({}))]).await;
    assert!(!scene.tools().contains(&"test__grown".to_owned()));
    scene.call("test__grow", json!({})).await;
    while !scene.tools().contains(&"test__grown".to_owned()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(scene.call("test__grown", json!({"text": "b"})).await.text, "b");
}

/// spec MCP.11: A call that takes too long is given up, and the server hears of it; so it does of a turn
/// that is called off.
#[tokio::test]
async fn slow_calls_are_given_up() {
    let slow = json!({"tool_timeout_sec": 0.3, "sandbox_mode": "workspace-write"});
    let mut scene = Scene::settled(vec![local(&slow)]).await;
    let file = scene.file("first");
    let outcome = scene.call("test__slow", json!({"when_cancelled": file})).await;
    assert_eq!(outcome.text, "MCP server test: no answer within 0.3 seconds");
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let mut scene = Scene::settled(vec![local(&json!({"sandbox_mode": "workspace-write"}))]).await;
    let (file, turn) = (scene.file("second"), scene.session().begin_turn());
    let cancel = turn.cancellation().clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    });
    let outcome = scene.call_in("test__slow", json!({"when_cancelled": file}), &turn).await;
    assert!(outcome.result.ends_turn());
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// spec MCP.13: A server that crashes in a call is told of once, with its last words; its tools are gone,
/// and the others work on.
#[tokio::test]
async fn a_server_that_crashes_takes_only_its_own_tools_along() {
    let other = server("other", json!({"command": test_server(), "startup_timeout_sec": 60}));
    let mut scene = Scene::settled(vec![local(&json!({})), other]).await;
    let outcome = scene.call("test__crash", json!({})).await;
    assert!(outcome.text.contains("it has ended with code 3"), "{}", outcome.text);
    assert!(outcome.text.contains("out of cheese"), "{}", outcome.text);
    assert!(!outcome.text.contains('\u{1b}'));
    while scene.tools().iter().any(|name| name.starts_with("test__")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let warning = scene.warning().await;
    assert!(warning.starts_with("MCP server test: it has ended with code 3"), "{warning}");
    assert_eq!(scene.call("other__echo", json!({"text": "here"})).await.text, "here");
    assert_eq!(scene.warnings.len(), 1, "{:?}", scene.warnings);
}

/// spec MCP.15: What is no message is passed over, and a message that is too large is none.
#[tokio::test]
async fn garbage_and_huge_messages_are_no_answers() {
    let mut scene = Scene::settled(vec![local(&json!({"tool_timeout_sec": 20}))]).await;
    assert_eq!(scene.call("test__garbage", json!({})).await.text, "said");
    assert_eq!(scene.call("test__echo", json!({"text": "still here"})).await.text, "still here");
    let mut scene = Scene::settled(vec![local(&json!({"tool_timeout_sec": 5}))]).await;
    let outcome = scene.call("test__huge", json!({})).await;
    assert!(
        outcome.text.contains("no answer within"),
        "{}",
        &outcome.text[..200.min(outcome.text.len())]
    );
    assert_eq!(scene.call("test__echo", json!({"text": "still here"})).await.text, "still here");
}

/// spec MCP.16: A server that does not start is told of once, and stops nothing.
#[tokio::test]
async fn a_server_that_does_not_start_is_told_of() {
    for (settings, said) in [
        (json!({"command": "/there/is/no/such"}), "/there/is/no/such"),
        (json!({"command": test_server(), "args": ["ends-at-once"]}), "there is no database"),
        (
            json!({"command": test_server(), "args": ["says-nothing"], "startup_timeout_sec": 0.2}),
            "it did not answer within 0.2 seconds",
        ),
        (json!({"url": "http://example.com/mcp"}), "without https"),
        (
            json!({"url": "http://127.0.0.1:1/", "bearer_token_env_var": "NOT_THERE"}),
            "the variable NOT_THERE is not set",
        ),
        (json!({"url": "http://127.0.0.1:1/"}), "MCP server bad: "),
    ] {
        let good = local(&json!({}));
        let mut scene = Scene::settled(vec![server("bad", settings), good]).await;
        let warning = scene.warning().await;
        assert!(warning.starts_with("MCP server bad: ") && warning.contains(said), "{warning}");
        assert!(warning.ends_with("; its tools are missing"), "{warning}");
        assert_eq!(scene.call("test__echo", json!({"text": "a"})).await.text, "a");
    }
}

/// spec MCP.17: A server ends with the session.
#[tokio::test]
async fn a_server_ends_with_the_session() {
    let mark = format!("mark-{}", uuid::Uuid::now_v7().simple());
    let mut scene = Scene::settled(vec![local(&json!({"args": [mark]}))]).await;
    assert_eq!(running(&mark), 1);
    assert_eq!(scene.call("test__echo", json!({"text": "a"})).await.text, "a");
    let Scene { session, servers, .. } = &mut scene;
    *servers = McpServers::default();
    drop(session.take());
    while running(&mark) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many processes have this word among their arguments.
fn running(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let words = processes.flat_map(|process| std::fs::read(process.path().join("cmdline")));
    words.filter(|words| words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
}

/// A server at an address, with these settings beside it.
fn remote(http: &HttpServer, more: &Value) -> McpServer {
    let mut settings = json!({"url": http.url()});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server("far", settings)
}

/// spec MCP.18: A server at an address is talked with over HTTP, as JSON or as events, with the token and
/// the headers of its entry.
#[tokio::test]
async fn a_server_at_an_address_is_talked_with() {
    for reply in [Reply::json as fn(&Value) -> Reply, Reply::events] {
        let http = HttpServer::start(move |request| match request.method() {
            "tools/call" => reply(&request.answer(&json!({
                "content": [{"type": "text", "text": request.arguments()["text"]}]
            }))),
            _ => request.usual(),
        })
        .await;
        let settings = json!({
            "bearer_token_env_var": "TEST_TOKEN",
            "http_headers": {"X-Team": "tools"},
            "env_http_headers": {"X-Key": "TEST_TOKEN"},
        });
        let mut scene = Scene::settled(vec![remote(&http, &settings)]).await;
        assert_eq!(scene.tools(), ["far__echo"]);
        assert_eq!(scene.call("far__echo", json!({"text": "over there"})).await.text, "over there");
        for request in http.requests() {
            assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
            assert_eq!(request.header("x-team"), Some("tools"));
            assert_eq!(request.header("x-key"), Some("s3cret"));
        }
    }
}

/// spec MCP.19: An answer over HTTP that is too large is none, and a redirect is not followed.
#[tokio::test]
async fn large_answers_and_redirects_are_refused() {
    for reply in [Reply::json as fn(&Value) -> Reply, Reply::events] {
        let http = HttpServer::start(move |request| match request.method() {
            "tools/call" => {
                let text = "x".repeat(17 << 20);
                reply(&request.answer(&json!({"content": [{"type": "text", "text": text}]})))
            }
            _ => request.usual(),
        })
        .await;
        let mut scene = Scene::settled(vec![remote(&http, &json!({"tool_timeout_sec": 20}))]).await;
        let outcome = scene.call("far__echo", json!({"text": "a"})).await;
        assert!(!succeeded(&outcome), "{} bytes came through", outcome.text.len());
    }

    let elsewhere = HttpServer::start(http_server::Request::usual).await;
    let to = elsewhere.url();
    let http = HttpServer::start(move |_| Reply::redirect(&to)).await;
    let token = json!({"bearer_token_env_var": "TEST_TOKEN"});
    let mut scene = Scene::settled(vec![remote(&http, &token)]).await;
    assert!(scene.warning().await.starts_with("MCP server far: "));
    assert!(elsewhere.requests().is_empty());
}

/// A Python with the SDK that the protocol's makers keep, made once for all tests.
fn python_with_sdk() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python");
    let python = home.join("bin/python");
    let has_sdk = |python: &Path| {
        Command::new(python)
            .args(["-c", "import mcp.server.fastmcp"])
            .output()
            .is_ok_and(|ran| ran.status.success())
    };
    if !has_sdk(&python) {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&home).output();
        let made = made.is_ok_and(|ran| ran.status.success());
        let install = ["-m", "pip", "install", "--quiet", "mcp"];
        if !made
            || !Command::new(&python).args(install).output().is_ok_and(|ran| ran.status.success())
        {
            return None;
        }
    }
    has_sdk(&python).then_some(python)
}

const PYTHON_SERVER: &str = r#"
import sys
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations
server = FastMCP("python", port=int(sys.argv[2]))
@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
server.run(sys.argv[1])
"#;

/// spec MCP.20: Servers written with the Python SDK are understood, on pipes and over HTTP.
#[tokio::test]
async fn servers_of_the_python_sdk_are_understood() {
    let Some(python) = python_with_sdk() else {
        println!("SKIPPED: there is no Python with the mcp package, and it cannot be installed");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("server.py");
    std::fs::write(&script, PYTHON_SERVER).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let start = |kind: &str| {
        let mut command = Command::new(&python);
        command.arg(&script).arg(kind).arg(port.to_string());
        command
    };
    let mut running = start("streamable-http").spawn().unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(running.try_wait().unwrap().is_none(), "the server has ended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let near = json!({
        "command": python, "args": [script, "stdio", "0"], "startup_timeout_sec": 60,
    });
    let far = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "startup_timeout_sec": 60});
    let mut scene = Scene::settled(vec![server("near", near), server("far", far)]).await;
    assert_eq!(scene.tools(), ["far__add", "near__add"]);
    for name in ["near__add", "far__add"] {
        let outcome = scene.call(name, json!({"a": 2, "b": 3})).await;
        assert_eq!(outcome.text, "5", "{name}");
        let outcome = scene.call(name, json!({"a": "two"})).await;
        assert!(!succeeded(&outcome), "{name}: {}", outcome.text);
    }
    let spec =
        scene.session().requester().tools().into_iter().find(|spec| spec.name == "near__add");
    assert_eq!(spec.unwrap().description, "Adds two numbers.");
    running.kill().unwrap();
    running.wait().unwrap();
}
