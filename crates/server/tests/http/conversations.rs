//! Conversations: their turns, their events, their ends.

use crate::client::{Stream, frames};
use crate::scene::{Scene, calls, runs, says};
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use serde_json::{Value, json};
use std::fs;

const JSON: (&str, &str) = ("content-type", "application/json");
const ASYNC: (&str, &str) = ("prefer", "respond-async");

/// spec HTTP.16: A turn is answered with its events up to its end, and while one is taken another
/// is refused with 409.
/// spec HTTP.42: What the person said is an event of its turn, which all who listen hear, also later.
#[tokio::test]
async fn a_turn_is_answered_with_its_events() {
    let scene = Scene::free().await;
    scene.says(vec![says("let me look"), runs("c1", "echo hello; echo there > file")]);
    scene.says(vec![says("it is done")]);
    let id = scene.conversation().await;
    let turn = format!("/conversations/{id}/turns");
    let answer = scene.approver.post(&turn, &json!({ "input": "Look around\nand so on" })).await;
    let heard = frames(&answer.text);
    let names: Vec<&str> = heard.iter().map(|frame| frame.name.as_str()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("TaskStarted", "TaskComplete"));
    assert!(names.contains(&"ExecCommandOutputDelta") && names.contains(&"TurnDiff"), "{names:?}");
    for (frame, number) in heard.iter().zip(1..) {
        assert_eq!(frame.id, Some(number));
        assert_eq!(frame.data["seq"], number);
        assert_eq!(frame.data["type"], frame.name.as_str());
    }
    assert_eq!(heard.last().unwrap().data["last_agent_message"], "it is done");
    assert_eq!(fs::read_to_string(scene.path("file")).unwrap(), "there\n");
    let shown = scene.approver.get(&format!("/conversations/{id}")).await.json();
    assert_eq!(
        (shown["state"].as_str(), shown["title"].as_str()),
        (Some("idle"), Some("Look around"))
    );
    assert_eq!(shown["last_event"], heard.last().unwrap().id.unwrap());
    // The next turn has only its own.
    scene.says(vec![says("again")]);
    let parts =
        json!({ "input": [{ "type": "text", "text": "and" }, { "type": "text", "text": "now" }] });
    let next = frames(&scene.approver.post(&turn, &parts).await.text);
    assert_eq!(next[0].name, "TaskStarted");
    assert_eq!(
        (next[1].name.as_str(), &next[1].data["message"]),
        ("UserMessage", &json!("and\nnow"))
    );
    assert_eq!(next[0].id, heard.last().unwrap().id.map(|last| last + 1));
    let items = scene.approver.get(&format!("/conversations/{id}/items")).await.json();
    let said = items["items"].as_array().unwrap().iter().filter(|item| item["role"] == "user");
    let said: Vec<&Value> = said.map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(said, ["Look around\nand so on", "and\nnow"]);
    for wrong in [
        json!({ "input": "" }),
        json!({ "input": [] }),
        json!({ "input": [{ "type": "image", "image_url": "http://evil.example/x.png" }] }),
    ] {
        scene.approver.post(&turn, &wrong).await.problem(422);
    }
}

/// spec HTTP.16: A turn is answered with its events up to its end, and while one is taken another
/// is refused with 409.
///
/// spec HTTP.17: With `Prefer: respond-async` a turn is answered at once, with the number of the
/// last event before it.
///
/// spec HTTP.21: To interrupt a conversation ends its turn and the commands in it.
#[tokio::test]
async fn one_turn_is_taken_at_a_time_and_can_be_called_off() {
    let scene = Scene::free().await;
    scene.says(vec![runs("c1", "echo $$ > pid; echo begun; sleep 1000")]);
    let id = scene.conversation().await;
    let (place, turn) = (format!("/conversations/{id}"), format!("/conversations/{id}/turns"));
    let begun = scene.approver.request("POST", &turn, &[JSON, ASYNC], r#"{"input":"go"}"#).await;
    assert_eq!((begun.status, begun.json()), (202, json!({ "conversation": id, "after": 0 })));
    let events = scene.approver.open("GET", &format!("{place}/events?after=0"), &[], "").await;
    let mut events = Stream::of(events);
    events.until("ExecCommandOutputDelta").await;
    assert_eq!(scene.approver.get(&place).await.json()["state"], "working");
    scene.approver.post(&turn, &json!({ "input": "more" })).await.problem(409);
    let metrics = scene.approver.get("/metrics").await.text;
    for line in ["from_elsewhere 1", "sandgate_conversations 1", "sandgate_conversations_working 1"]
    {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
    assert_eq!(
        scene.approver.request("POST", &format!("{place}/interrupt"), &[], "").await.status,
        202
    );
    let end = events.until("TurnAborted").await;
    Scene::eventually("it is idle", async || {
        scene.approver.get(&place).await.json()["state"] == "idle"
    })
    .await;
    // Another one can be taken then, and its events follow.
    let begun = scene.approver.request("POST", &turn, &[JSON, ASYNC], r#"{"input":"on"}"#).await;
    assert_eq!(begun.json()["after"], end.id.unwrap());
    events.until("TaskComplete").await;
}

/// spec HTTP.22: A conversation that is closed ends its streams and its processes, its record
/// stays, and a turn opens it again.
#[tokio::test]
async fn a_closed_conversation_ends_its_streams_and_can_be_opened_again() {
    let scene = Scene::free().await;
    let shell = json!({ "cmd": "echo $$ > pid; exec sleep 1000", "yield_time_ms": 250 });
    scene.says(vec![calls("c1", "exec_command", &shell)]);
    let id = scene.conversation().await;
    let (place, turn) = (format!("/conversations/{id}"), format!("/conversations/{id}/turns"));
    let first = scene.approver.post(&turn, &json!({ "input": "begin" })).await;
    assert_eq!(frames(&first.text).last().unwrap().name, "TaskComplete");
    let processes = scene.approver.get("/processes").await.json();
    let process = processes["processes"][0].clone();
    assert_eq!(
        (process["conversation"].as_str(), process["state"].as_str()),
        (Some(id.as_str()), Some("running")),
        "{processes}"
    );
    let output = format!("/processes/{}/output", process["id"].as_str().unwrap());
    let mut output = Stream::of(scene.approver.open("GET", &output, &[], "").await);
    let events = scene.approver.open("GET", &format!("{place}/events"), &[], "").await;
    let mut events = Stream::of(events);
    assert_eq!(scene.approver.delete(&place).await.status, 204);
    while events.next().await.is_some() {}
    output.until("exit").await;
    assert_eq!(scene.approver.get("/processes").await.json()["processes"], json!([]));
    assert_eq!(scene.approver.get(&place).await.json()["state"], "recorded");
    scene.approver.get(&format!("{place}/events")).await.problem(409);
    scene.approver.delete(&place).await.problem(409);
    let listed = scene.approver.get("/conversations").await.json();
    assert_eq!(listed["conversations"][0]["title"], "begin");
    // A turn opens it again.
    scene.says(vec![says("I remember")]);
    let again = scene.approver.post(&turn, &json!({ "input": "go on" })).await;
    assert_eq!(frames(&again.text).last().unwrap().data["last_agent_message"], "I remember");
    assert_eq!(scene.approver.get(&place).await.json()["state"], "idle");
    let missing = "01900000-0000-7000-8000-000000000000";
    for path in [missing, "x", "%2e%2e", "..%2f..%2fsecret", &id[..8]] {
        scene.approver.get(&format!("/conversations/{path}")).await.problem(404);
    }
}

/// spec HTTP.22: A conversation that is closed ends its streams and its processes, its record
/// stays, and a turn opens it again.
#[tokio::test]
async fn old_conversations_are_listed_in_pages() {
    let scene = Scene::free().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let id = scene.conversation().await;
        let turn = format!("/conversations/{id}/turns");
        scene.approver.post(&turn, &json!({ "input": format!("number {number}") })).await;
        scene.approver.delete(&format!("/conversations/{id}")).await;
        ids.insert(0, id);
    }
    let page = async |query: &str| -> Vec<String> {
        let page = scene.approver.get(&format!("/conversations{query}")).await.json();
        let all = page["conversations"].as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(page("?limit=2").await, ids[..2]);
    assert_eq!(page(&format!("?limit=2&before={}", ids[1])).await, ids[2..4]);
    assert_eq!(page(&format!("?before={}", ids[4])).await, [] as [String; 0]);
    let ephemeral =
        scene.approver.post("/conversations", &json!({ "ephemeral": true })).await.json();
    let id = ephemeral["id"].as_str().unwrap();
    assert_eq!(page("?limit=1").await, [id, &ids[0]]);
    let turn = format!("/conversations/{id}/turns");
    scene.approver.post(&turn, &json!({ "input": "not kept" })).await;
    let items = scene.approver.get(&format!("/conversations/{id}/items")).await;
    assert!(items.text.contains("not kept"));
    scene.approver.delete(&format!("/conversations/{id}")).await;
    scene.approver.get(&format!("/conversations/{id}")).await.problem(404);
}

/// spec HTTP.23: What a client wants of a session can make its policies stricter and never looser.
#[tokio::test]
async fn a_client_can_only_be_stricter() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write()).await;
    for (wanted, approval, sandbox) in [
        (json!({}), "on-request", "workspace-write"),
        (json!({ "sandbox_mode": "read-only" }), "on-request", "read-only"),
        (json!({ "sandbox_mode": "danger-full-access" }), "on-request", "workspace-write"),
        (json!({ "approval_policy": "untrusted" }), "untrusted", "workspace-write"),
    ] {
        let begun = scene.approver.post("/conversations", &wanted).await.json();
        assert_eq!(
            (begun["approval_policy"].as_str(), begun["sandbox"].as_str()),
            (Some(approval), Some(sandbox)),
            "{wanted}"
        );
        // What it asked for and did not get it is told.
        let notes = begun["notes"].as_array().map(Vec::len).unwrap_or_default();
        let is_looser = wanted["sandbox_mode"] == "danger-full-access";
        assert_eq!(notes, usize::from(is_looser), "{begun}");
    }
    scene.approver.post("/conversations", &json!({ "sandbox_mode": "none" })).await.problem(400);
}

/// spec HTTP.14: When it is ended, all that it started ends, and its token file and socket are
/// gone.
#[tokio::test]
async fn the_end_of_the_server_ends_what_it_started() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::DangerFullAccess).await;
    scene.says(vec![runs("c1", "echo $$ > turn; exec sleep 1000")]);
    let id = scene.conversation().await;
    let turn = format!("/conversations/{id}/turns");
    let turn = scene.approver.open("POST", &turn, &[JSON], r#"{"input":"go"}"#).await;
    let mut turn = Stream::of(turn);
    let kept =
        json!({ "arguments": { "cmd": "echo $$ > kept; exec sleep 1000", "yield_time_ms": 250 } });
    assert_eq!(scene.requester.post("/tools/exec_command", &kept).await.status, 200);
    let call =
        json!({ "arguments": { "command": ["bash", "-c", "echo $$ > call; exec sleep 1000"] } });
    let requester = scene.requester.clone();
    let calling = tokio::spawn(async move { requester.post("/tools/shell", &call).await });
    let mut pids = Vec::new();
    for file in ["turn", "kept", "call"] {
        let path = scene.path(file);
        let read = || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        Scene::eventually(file, async || read().is_some()).await;
        pids.push(read().unwrap().trim().to_owned());
    }
    let alive = |pid: &String| {
        fs::exists(format!("/proc/{pid}/cwd")).unwrap_or_default()
            && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
    };
    assert!(pids.iter().all(alive), "{pids:?}");
    let scene = scene.end().await;
    assert!(!pids.iter().any(alive), "{pids:?}");
    // Those who waited were told.
    turn.until("TurnAborted").await;
    assert_eq!(calling.await.unwrap().json()["success"], false);
    drop(scene);
}
