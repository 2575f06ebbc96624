//! The examples of `docs/extending.md`, compiled and run, and the places that the page names.

#![cfg(unix)]

#[expect(unreachable_pub, reason = "it stands on the page, for a crate of its own")]
mod count_words;
#[expect(unreachable_pub, reason = "it stands on the page, for a crate of its own")]
mod file_ticket;

use count_words::CountWords;
use file_ticket::FileTicket;
use sandgate_protocol::{
    AskForApproval, CallId, Event, ReviewDecision, ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::audit::{AuditOptions, Record, audit_directory, entries, verify};
use sandgate_runtime::{Delivery, Runtime, Session, SessionConfig, ToolHandler, ToolResult};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PAGE: &str = include_str!("../../../../docs/extending.md");

/// A session with both tools.
struct Scene {
    workspace: tempfile::TempDir,
    home: tempfile::TempDir,
    tickets: Arc<FileTicket>,
    session: Session,
}

impl Scene {
    fn new(approval: AskForApproval) -> Self {
        let runtime = Arc::new(Runtime::start().unwrap());
        let (workspace, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tickets = Arc::new(FileTicket::default());
        let mut config = SessionConfig::new(workspace.path().to_owned());
        config.approval_policy = approval;
        config.own_env = std::env::vars_os().collect();
        config.config_home = Some(home.path().to_owned());
        config.audit = Some(AuditOptions::default());
        let ticket_tool: Arc<dyn ToolHandler> = tickets.clone();
        config.tools = vec![ticket_tool, Arc::new(CountWords)];
        let session = Session::start(runtime, config).unwrap();
        Self { workspace, home, tickets, session }
    }

    /// Makes a call. Questions are answered with `decision`, and given back as they were put.
    async fn call(
        &self,
        name: &str,
        arguments: Value,
        decision: ReviewDecision,
    ) -> (ToolResult, Vec<String>) {
        let approver = self.session.approver("test");
        let mut events = self.session.events(Delivery::Complete).await;
        let call = ToolCall {
            call_id: CallId::new("call"),
            name: name.to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        let requester = self.session.requester();
        let turn = requester.begin_turn();
        let calling = requester.call(vec![call], &turn);
        tokio::pin!(calling);
        let mut questions = Vec::new();
        loop {
            tokio::select! {
                biased;
                event = events.next() => {
                    if let Event::ExecApprovalRequest(request) = &event.unwrap().event {
                        questions.push(format!("{} ({})", request.command_text, request.reason));
                        approver.answer(&request.approval_id, decision.clone()).unwrap();
                    }
                }
                mut results = &mut calling => return (results.remove(0), questions),
            }
        }
    }

    fn filed(&self) -> Vec<String> {
        self.tickets.tickets.lock().unwrap().clone()
    }
}

fn text(result: &ToolResult) -> &str {
    let ToolOutput::Function { content, .. } = &result.output else { panic!("not a function") };
    content
}

/// spec EXTENDING.1: A tool that another crate brings is known to a session by its name and schema, is
/// asked about as it wants, and runs only after a yes.
#[tokio::test]
async fn a_tool_of_another_crate_is_approved_like_any_other() {
    let scene = Scene::new(AskForApproval::OnRequest);
    let specs = scene.session.requester().tools();
    let spec = specs.iter().find(|spec| spec.name == "file_ticket").unwrap();
    assert_eq!(spec.parameters["required"], json!(["title"]));
    let ticket = || json!({"title": "It fails\u{202e}"});

    let no = ReviewDecision::Denied { feedback: Some("it is known".to_owned()) };
    let (result, questions) = scene.call("file_ticket", ticket(), no).await;
    assert_eq!(questions, ["file a ticket: It fails\\u{202e} (others see the ticket)"]);
    assert_eq!(text(&result), "User denied approval for this command, and says: it is known");
    assert_eq!(scene.filed(), Vec::<String>::new());

    let yes = ReviewDecision::ApprovedForSession;
    let (result, _) = scene.call("file_ticket", ticket(), yes.clone()).await;
    assert_eq!(text(&result), "Filed as ticket 1.\n");
    let (_, questions) = scene.call("file_ticket", ticket(), yes).await;
    assert_eq!(questions, Vec::<String>::new(), "it was approved for the session");
    assert_eq!(scene.filed().len(), 2);

    let (result, _) = scene.call("file_ticket", json!({}), ReviewDecision::Abort).await;
    assert!(text(&result).starts_with("invalid arguments for file_ticket: missing field `title`"));
}

/// spec EXTENDING.2: What such a tool is asked to do, what was decided and what it notes is in the audit
/// log.
#[tokio::test]
async fn a_tool_of_another_crate_is_recorded() {
    let scene = Scene::new(AskForApproval::OnRequest);
    scene.call("file_ticket", json!({"title": "One"}), ReviewDecision::Approved).await;
    let directory = audit_directory(scene.home.path());
    assert!(verify(&directory).unwrap().is_intact());
    let records = entries(&directory, None).unwrap().map(|entry| entry.unwrap().record);
    let names: Vec<String> = records
        .map(|record| serde_json::to_value(&record).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["session_started", "call_asked", "judged", "decided", "note"]);
    let noted = entries(&directory, None).unwrap().last().unwrap().unwrap().record;
    assert_eq!(noted, Record::Note { text: "filed ticket 1".to_owned() });
}

/// spec EXTENDING.3: Under never such a tool is refused where it would have to ask.
#[tokio::test]
async fn a_tool_of_another_crate_asks_nobody_under_never() {
    let scene = Scene::new(AskForApproval::Never);
    let ticket = json!({"title": "One"});
    let (result, questions) = scene.call("file_ticket", ticket, ReviewDecision::Approved).await;
    assert!(text(&result).starts_with("Tickets are filed only when a person agrees"));
    assert_eq!((questions.len(), scene.filed().len()), (0, 0));
}

/// spec EXTENDING.4: A program that such a tool runs is judged, confined and recorded like a command.
#[tokio::test]
async fn a_program_of_a_tool_takes_the_way_of_commands() {
    let scene = Scene::new(AskForApproval::OnRequest);
    fs::write(scene.workspace.path().join("text"), "one two three\n").unwrap();
    let arguments = json!({"path": "text"});
    let (result, _) = scene.call("count_words", arguments, ReviewDecision::Abort).await;
    assert_eq!(text(&result), "3 text\n");
    let secret = json!({"path": "/root/.ssh/id_ed25519"});
    let (result, questions) = scene.call("count_words", secret, ReviewDecision::DENIED).await;
    assert!(questions[0].contains("dangerous: "), "{questions:?}");
    assert_eq!(text(&result), "User denied approval for this command");
    let directory = audit_directory(scene.home.path());
    let mut records = entries(&directory, None).unwrap().map(|entry| entry.unwrap().record);
    assert!(records.any(|record| matches!(record, Record::Ended(_))));
}

/// spec EXTENDING.5: The tools on the page are those that are tested.
#[test]
fn the_page_shows_what_is_tested() {
    let page = PAGE.replace("\r\n", "\n");
    for file in [include_str!("file_ticket.rs"), include_str!("count_words.rs")] {
        let block = format!("```rust\n{}```\n", file.replace("\r\n", "\n"));
        let name = file.lines().next().unwrap();
        assert!(
            page.contains(&block),
            "docs/extending.md does not have this file as it is: {name}"
        );
    }
}

/// spec EXTENDING.6: Every place that the page names is there, and has what the page says it has.
#[test]
fn the_places_on_the_page_are_there() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let crates: PathBuf = Path::new(&package).join("..");
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `crates/")).collect();
    assert!(rows.len() > 10, "the tables are there");
    for row in rows {
        let mut quoted = row.split('`').skip(1).step_by(2);
        let file = quoted.next().unwrap().strip_prefix("crates/").unwrap();
        let text =
            fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let missing: Vec<&str> = quoted.filter(|name| !text.contains(name)).collect();
        assert!(missing.is_empty(), "{file} has no {missing:?}");
    }
}
