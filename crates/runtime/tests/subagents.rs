//! Subagents: sessions inside of a session, whose questions its person answers.

#![cfg(unix)]

mod support;

use sandgate_protocol::{
    AgentEvent, ApprovalId, AskForApproval, CodexErr, Event, ReviewDecision, SandboxPolicy,
    SessionSource, SubAgentSource, ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::audit::{CallAsked, Record, SessionStarted};
use sandgate_runtime::{
    ChildTerms, ChildTools, Delivery, Events, Requester, SubAgentLimits, ToolFuture, ToolHandler,
    ToolInvocation, ToolResult, ToolSpec, new_call_id,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use support::scene::{Scene, heard, text};

/// A tool that has subagents do the work: one that runs a script, as deep as it is told.
struct Delegate;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Delegated {
    script: String,
    deeper: u32,
}

impl ToolHandler for Delegate {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<Delegated>("delegate", "Has a subagent run a script.")
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let Delegated { script, deeper } = invocation.arguments()?;
            let child = invocation.child(worker())?;
            let turn = child.begin_turn();
            let call = match deeper {
                0 => shell(&script),
                _ => delegate(&script, deeper - 1),
            };
            let result = child.call(vec![call], &turn).await.remove(0);
            child.end_turn(turn).await;
            match result.error {
                Some(error) => Err(error),
                None => Ok(result.output),
            }
        })
    }
}

fn worker() -> ChildTerms {
    let source = SubAgentSource::Other("worker".to_owned());
    ChildTerms { name: Some("tests".to_owned()), ..ChildTerms::new(source) }
}

fn call(name: &str, arguments: &serde_json::Value) -> ToolCall {
    let payload = ToolPayload::Function { arguments: arguments.to_string() };
    ToolCall { call_id: new_call_id(), name: name.to_owned(), payload }
}

fn shell(script: &str) -> ToolCall {
    call("shell_command", &json!({ "command": script }))
}

fn delegate(script: &str, deeper: u32) -> ToolCall {
    call("delegate", &json!({ "script": script, "deeper": deeper }))
}

async fn run(requester: &Requester, script: &str) -> ToolResult {
    let turn = requester.begin_turn();
    requester.call(vec![shell(script)], &turn).await.remove(0)
}

/// Waits for the next question.
async fn question(events: &mut Events) -> (ApprovalId, Option<String>) {
    loop {
        let event = events.next().await.expect("the session goes on");
        match &event.event {
            Event::ExecApprovalRequest(request) => {
                return (request.approval_id.clone(), request.agent.clone());
            }
            Event::ApplyPatchApprovalRequest(request) => {
                return (request.approval_id.clone(), request.agent.clone());
            }
            _ => {}
        }
    }
}

/// What happened, in a word each, with the name of whom it happened to.
fn in_words(events: &[Event]) -> Vec<String> {
    let word = |event: &Event| match event {
        Event::ExecApprovalRequest(request) => format!("asks {:?}", request.agent),
        Event::ApprovalResponse(_) => "answered".to_owned(),
        Event::ExecCommandBegin(_) => "begins".to_owned(),
        Event::ExecCommandOutputDelta(delta) => format!("writes {}", delta.chunk.trim()),
        Event::ExecCommandEnd(_) => "ends".to_owned(),
        Event::Agent(AgentEvent::AgentMessage { message }) => format!("says {message}"),
        other => format!("{other:?}"),
    };
    let tagged = |event: &Event| match event {
        Event::SubAgent(below) => format!("{}: {}", below.agent, word(&below.event)),
        event => word(event),
    };
    events.iter().map(tagged).collect()
}

/// spec SUB.1: A subagent's question is answered by the person at its parent's front end, and names it.
///
/// spec SUB.5: Everything that happens in a subagent is told in its parent's line, with its name and in
/// its order; its questions and their answers are told as they are.
#[tokio::test]
async fn the_person_of_the_parent_answers_a_subagents_question() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let approver = scene.session.approver("terminal");
    let mut events = scene.events().await;
    let child = scene.session.requester().child(worker()).unwrap();
    let person = async {
        let (id, agent) = question(&mut events).await;
        assert_eq!(agent.as_deref(), Some("tests-1"));
        approver.answer(&id, ReviewDecision::Approved).unwrap();
        id
    };
    let (result, id) = tokio::join!(run(&child, "echo yes > made; echo done"), person);
    assert_eq!(result.error, None);
    assert_eq!(std::fs::read_to_string(scene.path().join("made")).unwrap(), "yes\n");
    child.tell(AgentEvent::AgentMessage { message: "hello".to_owned() }).await;
    let happened = heard(&mut events);
    assert!(matches!(&happened[0], Event::ApprovalResponse(answer) if answer.approval_id == id));
    let expected = [
        "answered",
        "tests-1: begins",
        "tests-1: writes done",
        "tests-1: ends",
        "tests-1: says hello",
    ];
    assert_eq!(in_words(&happened), expected);
}

/// spec SUB.2: What the person denies to a subagent does not run.
#[tokio::test]
async fn what_is_denied_to_a_subagent_does_not_run() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let approver = scene.session.approver("terminal");
    let mut events = scene.events().await;
    let child = scene.session.requester().child(worker()).unwrap();
    let person = async {
        let (id, _) = question(&mut events).await;
        let feedback = Some("not today".to_owned());
        approver.answer(&id, ReviewDecision::Denied { feedback }).unwrap();
    };
    let (result, ()) = tokio::join!(run(&child, "touch made"), person);
    assert!(matches!(result.error, Some(CodexErr::ApprovalDenied { .. })), "{:?}", result.error);
    assert!(text(&result).contains("not today"));
    assert!(!scene.path().join("made").exists());
}

/// spec SUB.3: A yes for the session counts for parent and subagent alike where their policies are the
/// same, and not from one to the other where they differ.
#[tokio::test]
async fn a_yes_for_the_session_is_shared_only_under_the_same_policies() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let approver = scene.session.approver("terminal");
    let mut events = scene.events().await;
    let parent = scene.session.requester();
    let (alike, other) = (parent.child(worker()).unwrap(), parent.child(worker()).unwrap());
    let tighter = ChildTerms { sandbox_policy: Some(SandboxPolicy::ReadOnly), ..worker() };
    let tighter = parent.child(tighter).unwrap();
    let person = async {
        let (id, agent) = question(&mut events).await;
        assert_eq!(agent.as_deref(), Some("tests-1"));
        approver.answer(&id, ReviewDecision::ApprovedForSession).unwrap();
    };
    let (result, ()) = tokio::join!(run(&alike, "touch made"), person);
    assert_eq!(result.error, None);
    heard(&mut events);
    for requester in [&alike, &other, &parent] {
        assert_eq!(run(requester, "touch made").await.error, None);
    }
    let asked = heard(&mut events);
    assert!(!asked.iter().any(|event| matches!(event, Event::ExecApprovalRequest(_))));
    let person = async {
        let (id, agent) = question(&mut events).await;
        assert_eq!(agent.as_deref(), Some("tests-3"));
        approver.answer(&id, ReviewDecision::DENIED).unwrap();
    };
    let (result, ()) = tokio::join!(run(&tighter, "touch made"), person);
    assert!(matches!(result.error, Some(CodexErr::ApprovalDenied { .. })));
}

/// spec SUB.12: A subagent that is to look only has no tool that changes files, and its commands cannot
/// write to the workspace.
#[tokio::test]
async fn a_subagent_that_only_looks_cannot_write() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let looking = ChildTerms { tools: ChildTools::ReadOnly, ..worker() };
    let child = scene.session.requester().child(looking).unwrap();
    let names: Vec<String> = child.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names.join(" "), "grep_files list_dir read_file shell shell_command");
    assert_eq!(child.sandbox_policy(), &SandboxPolicy::ReadOnly);
    let result = run(&child, "echo x > made").await;
    assert!(!scene.path().join("made").exists(), "{}", text(&result));
    assert_eq!(run(&scene.session.requester(), "echo x > made").await.error, None);
    assert!(scene.path().join("made").exists());
}

/// spec SUB.13: What a subagent wants beyond its parent's policies it does not get.
#[tokio::test]
async fn a_subagent_that_wants_more_gets_what_its_parent_has() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly);
    let greedy = ChildTerms {
        approval_policy: Some(AskForApproval::Never),
        sandbox_policy: Some(SandboxPolicy::DangerFullAccess),
        ..worker()
    };
    let child = scene.session.requester().child(greedy).unwrap();
    assert_eq!(child.approval_policy(), AskForApproval::UnlessTrusted);
    assert_eq!(child.sandbox_policy(), &SandboxPolicy::ReadOnly);
}

/// spec SUB.6: The name of a subagent below another begins with that one's.
///
/// spec SUB.30: The audit log says of a subagent's session what it is for, whose it is and what it is
/// called, and of each of its calls that it is its.
#[tokio::test]
async fn names_and_the_log_show_the_whole_way_down() {
    let scene = Scene::with(AskForApproval::Never, SandboxPolicy::workspace_write(), |config| {
        config.tools.push(Arc::new(Delegate));
        config.source = Some(SessionSource::Exec);
    });
    let mut events = scene.events().await;
    let turn = scene.session.begin_turn();
    let calls = vec![delegate("echo deep", 1)];
    let result = scene.session.requester().call(calls, &turn).await.remove(0);
    assert_eq!(result.error, None);
    let expected = ["begins", "writes deep", "ends"].map(|word| format!("tests-1/tests-1: {word}"));
    assert_eq!(in_words(&heard(&mut events)), expected);
    let recorded = scene.recorded();
    let started: Vec<&SessionStarted> = recorded
        .iter()
        .filter_map(|record| match record {
            Record::SessionStarted(started) => Some(started),
            _ => None,
        })
        .collect();
    let names: Vec<Option<&str>> = started.iter().map(|one| one.agent.as_deref()).collect();
    assert_eq!(names, [None, Some("tests-1"), Some("tests-1/tests-1")]);
    assert_eq!(started[0].source, Some(SessionSource::Exec));
    let worker = SessionSource::SubAgent(SubAgentSource::Other("worker".to_owned()));
    assert_eq!(started[2].source, Some(worker));
    assert!(started[0].parent.is_none() && started[1].parent.is_some());
    assert_ne!(started[1].parent, started[2].parent);
    let asked: Vec<&CallAsked> = recorded
        .iter()
        .filter_map(|record| match record {
            Record::CallAsked(asked) => Some(asked),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].agent.as_deref(), Some("tests-1/tests-1"));
    let ended = recorded.iter().filter(|record| matches!(record, Record::SessionEnded(_)));
    assert_eq!(ended.count(), 2, "both subagents have ended, and the session has not");
}

/// spec SUB.20: Subagents lie only so deep in each other, and there are only so many at once; who wants
/// more is told so.
#[tokio::test]
async fn there_are_only_so_many_subagents() {
    let scene = Scene::with(AskForApproval::Never, SandboxPolicy::workspace_write(), |config| {
        config.subagents = SubAgentLimits { depth: 2, at_once: 3 };
    });
    let parent = scene.session.requester();
    let first = parent.child(worker()).unwrap();
    let second = first.child(worker()).unwrap();
    let deep = second.child(worker()).err().unwrap().for_model();
    assert!(deep.contains("at most 2 deep"), "{deep}");
    let third = parent.child(worker()).unwrap();
    let many = first.child(worker()).err().unwrap().for_model();
    assert!(many.contains("3 at work"), "{many}");
    drop(third);
    let fourth = parent.child(worker()).unwrap();
    assert_eq!(fourth.agent().as_deref(), Some("tests-3"), "no name comes twice");
}

/// spec SUB.21: A subagent's name is a short plain word.
#[tokio::test]
async fn a_name_that_could_deceive_is_refused() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let parent = scene.session.requester();
    for name in ["", "a/b", "A", "-a", "1", "a b", "a\u{202e}", "é", &"a".repeat(33)] {
        let terms = ChildTerms { name: Some(name.to_owned()), ..worker() };
        let refused = parent.child(terms).err();
        assert!(refused.is_some_and(|error| error.for_model().contains("name")), "{name:?}");
    }
    let source = SubAgentSource::Other("a\nb".to_owned());
    assert!(parent.child(ChildTerms::new(source)).is_err());
    assert_eq!(parent.child(worker()).unwrap().agent().as_deref(), Some("tests-1"));
}

/// The processes with this in their arguments.
fn processes_with(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark) && !line.contains("subagents")).collect()
}

/// spec SUB.40: When the turn of the parent is called off, everything that its subagents run has ended
/// before the call that began them has its result, at whatever depth and whatever it ignores.
#[tokio::test]
async fn the_end_of_the_parents_turn_is_the_end_of_the_whole_tree() {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: processes are looked for in /proc");
        return;
    }
    for sandbox in [SandboxPolicy::workspace_write(), SandboxPolicy::DangerFullAccess] {
        let scene = Scene::with(AskForApproval::Never, sandbox.clone(), |config| {
            config.tools.push(Arc::new(Delegate));
        });
        let mut events = scene.events().await;
        let mark = format!("100000.{}", uuid::Uuid::now_v7().as_u128() % 1_000_000_000);
        let script = format!("trap '' TERM INT HUP; echo ready; while :; do sleep {mark}; done");
        let turn = scene.session.begin_turn();
        let calls = vec![delegate(&script, 0), delegate(&script, 0), delegate(&script, 1)];
        let requester = scene.session.requester();
        let ready = async {
            let mut ready = BTreeSet::new();
            while ready.len() < 3 {
                let event = events.next().await.expect("the session goes on");
                if let Event::SubAgent(below) = &event.event
                    && let Event::ExecCommandOutputDelta(delta) = &*below.event
                    && delta.chunk.contains("ready")
                {
                    ready.insert(below.agent.clone());
                }
            }
            while processes_with(&mark).len() < 3 {
                tokio::task::yield_now().await;
            }
            turn.cancel();
            (ready, Instant::now())
        };
        let (results, (ready, cancelled)) = tokio::join!(requester.call(calls, &turn), ready);
        let took = cancelled.elapsed();
        assert_eq!(processes_with(&mark), Vec::<String>::new(), "{sandbox:?}");
        assert!(ready.contains("tests-3/tests-1"), "{ready:?}");
        assert_eq!(results.len(), 3);
        println!("the tree of {} was ended after {took:?} ({sandbox:?})", ready.len());
    }
}

/// spec SUB.41: The live processes of a subagent are its own, and end with it.
#[tokio::test]
async fn a_subagents_live_processes_end_with_it() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let parent = scene.session.requester();
    let child = parent.child(worker()).unwrap();
    let mark = format!("100000.{}", uuid::Uuid::now_v7().as_u128() % 1_000_000_000);
    let start = json!({ "cmd": format!("sleep {mark}"), "yield_time_ms": 250 });
    let turn = child.begin_turn();
    let started = child.call(vec![call("exec_command", &start)], &turn).await.remove(0);
    assert_eq!(started.error, None, "{}", text(&started));
    let list = || vec![call("list_processes", &json!({}))];
    let own = child.call(list(), &turn).await.remove(0);
    let parents = parent.call(list(), &parent.begin_turn()).await.remove(0);
    assert!(text(&own).contains(&mark), "{}", text(&own));
    assert!(!text(&parents).contains(&mark), "{}", text(&parents));
    drop((child, turn));
    while cfg!(target_os = "linux") && !processes_with(&mark).is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// spec SUB.7: What a subagent changes for a call is part of what the turn of that call changed, and is
/// told once.
#[tokio::test]
async fn what_a_subagent_changes_is_told_once_at_the_end_of_the_turn() {
    let scene = Scene::with(AskForApproval::Never, SandboxPolicy::workspace_write(), |config| {
        config.tools.push(Arc::new(Delegate));
    });
    let mut events = scene.events().await;
    let (requester, turn) = (scene.session.requester(), scene.session.begin_turn());
    let result = requester.call(vec![delegate("echo new > made", 1)], &turn).await.remove(0);
    assert!(matches!(result.output, ToolOutput::Function { success: Some(true), .. }));
    requester.end_turn(turn).await;
    let heard = heard(&mut events);
    let diffs = heard.iter().filter(|event| match event {
        Event::SubAgent(below) => matches!(*below.event, Event::TurnDiff(_)),
        event => matches!(event, Event::TurnDiff(_)),
    });
    let diffs: Vec<&Event> = diffs.collect();
    assert!(
        matches!(diffs[..], [Event::TurnDiff(diff)] if diff.unified_diff.contains("+new")),
        "{diffs:?}"
    );
}

/// spec SUB.8: A front end that wants no output hears none of a subagent's.
#[tokio::test]
async fn who_wants_no_output_hears_none_of_a_subagents() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let mut events = scene.session.events(Delivery::WithoutOutput).await;
    let child = scene.session.requester().child(worker()).unwrap();
    assert_eq!(run(&child, "echo loud").await.error, None);
    assert_eq!(in_words(&heard(&mut events)), ["tests-1: begins", "tests-1: ends"]);
}
