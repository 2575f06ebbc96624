//! Live processes: what they print, and who types.

use crate::client::Stream;
use crate::scene::Scene;
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use sandgate_runtime::audit::audit_directory;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;

async fn start(scene: &Scene, command: &str) -> String {
    let call = json!({ "arguments": { "cmd": command, "yield_time_ms": 250, "tty": true } });
    let started = scene.approver.post("/tools/exec_command", &call).await;
    assert_eq!(started.json()["success"], true, "{started:?}");
    let listed = scene.requester.get("/processes").await.json();
    let last = listed["processes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["id"], format!("serve.{}", last["process_id"].as_str().unwrap()));
    last["id"].as_str().unwrap().to_owned()
}

/// Reads until what was printed has this in it; how many bytes that were.
async fn until(stream: &mut Stream, text: &str) -> (String, u64) {
    let mut shown = String::new();
    loop {
        let frame = stream.until("output").await;
        assert_eq!(frame.data["encoding"], "utf-8");
        shown += frame.data["chunk"].as_str().unwrap();
        if shown.contains(text) {
            return (shown, frame.id.unwrap());
        }
    }
}

/// spec HTTP.28: What a process printed can be read from any byte on; with the approver's token the
/// person types, with the requester's it is a call of `write_stdin`.
#[tokio::test]
async fn a_person_types_and_everybody_reads() {
    let scene = Scene::free().await;
    let id =
        start(&scene, "stty -echo; echo ready; while read line; do echo got $line; done; exit 7")
            .await;
    let (output, input) = (format!("/processes/{id}/output"), format!("/processes/{id}/input"));
    let mut stream = Stream::of(scene.requester.open("GET", &output, &[], "").await);
    let (_, at) = until(&mut stream, "ready").await;
    let typed = scene.approver.post(&input, &json!({ "text": "by a person\n" })).await;
    assert_eq!(typed.status, 204, "{typed:?}");
    let (_, after) = until(&mut stream, "got by a person").await;
    // "once more", in base64.
    let bytes = json!({ "bytes": "b25jZSBtb3JlCg==" });
    assert_eq!(scene.approver.post(&input, &bytes).await.status, 204);
    scene.requester.post(&input, &bytes).await.problem(403);
    until(&mut stream, "got once more").await;
    let by_model = scene.requester.post(&input, &json!({ "text": "by a model\n" })).await;
    assert_eq!(by_model.status, 204, "{by_model:?}");
    let (_, end) = until(&mut stream, "got by a model").await;
    let asked = scene.approver.get("/audit?kind=call_asked&q=write_stdin").await.json();
    let records = asked["records"].as_array().unwrap();
    assert_eq!(records.len(), 1, "only the model's is a call: {asked}");
    // From a byte on, and from another by what the browser repeats.
    let from = scene.requester.open("GET", &format!("{output}?after={at}"), &[], "").await;
    let (text, _) = until(&mut Stream::of(from), "got by a model").await;
    assert!(text.contains("by a person") && !text.contains("ready"), "{text}");
    let header = [("last-event-id", after.to_string())];
    let header: Vec<(&str, &str)> =
        header.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let from = scene.requester.open("GET", &format!("{output}?after=0"), &header, "").await;
    let (text, again) = until(&mut Stream::of(from), "got by a model").await;
    assert!(!text.contains("by a person"), "{text}");
    assert_eq!(again, end);
    // From behind what it has printed: another of that name did, so that all of this is new.
    for beyond in [end + 1, u64::MAX] {
        let path = format!("{output}?after={beyond}");
        let from = scene.requester.open("GET", &path, &[], "").await;
        let (text, _) = until(&mut Stream::of(from), "got by a model").await;
        assert!(text.contains("ready"), "{beyond}: {text}");
    }
    let size = json!({ "columns": 100, "rows": 30 });
    assert_eq!(scene.requester.post(&format!("/processes/{id}/resize"), &size).await.status, 204);
    for wrong in [json!({ "columns": 0, "rows": 30 }), json!({ "columns": 10, "rows": 501 })] {
        scene.requester.post(&format!("/processes/{id}/resize"), &wrong).await.problem(400);
    }
    for wrong in [json!({}), json!({ "text": "a", "bytes": "YQ==" }), json!({ "bytes": "?" })] {
        scene.approver.post(&input, &wrong).await.problem(422);
    }
    assert_eq!(scene.approver.post(&input, &json!({ "text": "\u{4}" })).await.status, 204);
    assert_eq!(stream.until("exit").await.data, json!({ "exit_code": 7 }));
    assert!(stream.next().await.is_none());
    scene.approver.post(&input, &json!({ "text": "late" })).await.problem(409);
}

/// spec HTTP.28: What a process printed can be read from any byte on; with the approver's token the
/// person types, with the requester's it is a call of `write_stdin`.
#[tokio::test]
async fn what_a_model_types_outside_a_cage_is_judged() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::DangerFullAccess).await;
    let approver = scene.approver.clone();
    let answering = tokio::spawn(async move {
        let mut watching = Stream::of(approver.open("GET", "/approvals/events", &[], "").await);
        let mut asked = Vec::new();
        while asked.len() < 2 {
            let listed: Value = watching.until("approvals").await.data;
            let Some(question) = listed["approvals"].get(0) else { continue };
            let id = question["id"].as_str().unwrap().to_owned();
            let decision = if asked.is_empty() { "approved" } else { "denied" };
            let path = format!("/approvals/{id}");
            if approver.post(&path, &json!({ "decision": decision })).await.status == 204 {
                asked.push(question["question"]["command_text"].as_str().unwrap().to_owned());
            }
        }
        asked
    });
    let id = start(&scene, "bash").await;
    let input = format!("/processes/{id}/input");
    let typed = scene.requester.post(&input, &json!({ "text": "touch made\n" })).await;
    typed.problem(409);
    let asked = answering.await.unwrap();
    assert!(asked[1].contains("touch made"), "{asked:?}");
    assert!(!scene.path("made").exists());
    assert_eq!(scene.requester.delete(&format!("/processes/{id}")).await.status, 204);
    for missing in ["serve.none", "none", "01900000-0000-7000-8000-000000000000.p1"] {
        scene.requester.get(&format!("/processes/{missing}/output")).await.problem(404);
    }
}

/// spec HTTP.29: The audit log is shown in pages, by number, kind, session and text, and counted by
/// hour or day.
#[tokio::test]
async fn the_audit_log_is_shown_in_pages() {
    let scene = Scene::free().await;
    for word in ["one", "two", "three"] {
        let call = json!({ "arguments": { "command": ["echo", word] } });
        assert_eq!(scene.requester.post("/tools/shell", &call).await.status, 200);
    }
    let page = async |query: &str| scene.approver.get(&format!("/audit{query}")).await.json();
    let numbers = |page: &Value| -> Vec<u64> {
        page["records"].as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()).collect()
    };
    let all = page("?limit=500").await;
    let newest_first = numbers(&all);
    assert!(newest_first.len() > 6 && newest_first.is_sorted_by(|one, other| one > other));
    assert_eq!(all["next"], Value::Null, "{newest_first:?}");
    let mut seen = Vec::new();
    let mut query = "?limit=3".to_owned();
    loop {
        let some = page(&query).await;
        seen.extend(numbers(&some));
        let Some(next) = some["next"].as_u64() else { break };
        query = format!("?limit=3&before={next}");
    }
    assert_eq!(seen, newest_first);
    let (mut seen, mut query) = (Vec::new(), "?limit=3&after=0".to_owned());
    loop {
        let some = page(&query).await;
        seen.extend(numbers(&some));
        let Some(next) = some["next"].as_u64() else { break };
        query = format!("?limit=3&after={next}");
    }
    seen.reverse();
    assert_eq!(seen, newest_first);
    assert_eq!(numbers(&page("?kind=began").await).len(), 3);
    assert_eq!(numbers(&page("?kind=call_asked&q=TWO").await).len(), 1);
    assert_eq!(numbers(&page("?session=none").await), [] as [u64; 0]);
    let stats = scene.approver.get("/audit/stats?bucket=day").await.json();
    let commands = stats["buckets"].as_array().unwrap().iter();
    assert_eq!(commands.map(|one| one["commands"].as_u64().unwrap()).sum::<u64>(), 3, "{stats}");
    for wrong in
        ["?limit=501", "?after=x", "?since=1", "/stats?since=yesterday", "/stats?bucket=year"]
    {
        scene.approver.get(&format!("/audit{wrong}")).await.problem(400);
    }
}

/// spec HTTP.37: What cannot be read of the audit log is told: a line that is no record is counted,
/// and a file that cannot be read is an error.
#[tokio::test]
async fn what_cannot_be_read_of_the_audit_log_is_told() {
    let scene = Scene::free().await;
    let call = json!({ "arguments": { "command": ["echo", "one"] } });
    assert_eq!(scene.requester.post("/tools/shell", &call).await.status, 200);
    let paths = ["/audit", "/audit/stats"];
    for path in paths {
        assert_eq!(scene.approver.get(path).await.json()["unreadable"], 0);
    }
    let directory = audit_directory(scene.home.path());
    let mut days = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let day = days.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let mut day = fs::OpenOptions::new().append(true).open(day).unwrap();
    day.write_all(b"{}\n").unwrap();
    for path in paths {
        let read = scene.approver.get(path).await.json();
        assert_eq!(read["unreadable"], 1, "{read}");
    }
    fs::create_dir(directory.join("2999-01-01.jsonl")).unwrap();
    for path in paths {
        let why = scene.approver.get(path).await.problem(500);
        assert!(why.contains("2999-01-01"), "{why}");
    }
}
