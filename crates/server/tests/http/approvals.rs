//! Questions, and who answers them first.

use crate::client::Stream;
use crate::scene::{Scene, runs};
use sandgate_protocol::{AskForApproval, SandboxPolicy, ShownQuestion};
use serde_json::{Value, json};

/// spec HTTP.24: The first answer to a question counts; a second is answered with 409, one to no
/// question with 404, and one that the question does not offer with 422.
#[tokio::test]
async fn the_first_answer_counts() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write()).await;
    let watching = scene.requester.open("GET", "/approvals/events", &[], "").await;
    let mut watching = Stream::of(watching);
    assert_eq!(watching.until("approvals").await.data, json!({ "approvals": [] }));
    scene.says(vec![runs("c1", "touch one"), runs("c2", "touch two")]);
    let id = scene.conversation().await;
    let turn = format!("/conversations/{id}/turns");
    let approver = scene.approver.clone();
    let taken = tokio::spawn(async move { approver.post(&turn, &json!({ "input": "go" })).await });
    let question = open_question(&mut watching).await;
    assert_eq!(question["front_end"], "serve");
    assert_eq!(question["conversation"], id.as_str());
    assert_eq!(question["question"]["command_text"], "touch one");
    let answer = format!("/approvals/{}", question["id"].as_str().unwrap());
    for (wrong, status) in [
        (json!({ "decision": "approved_with_grant", "scope": "call" }), 422),
        (json!({ "decision": "approved_with_grant" }), 400),
        (json!({ "decision": "approved", "scope": "call" }), 400),
        (json!({ "decision": "approved", "feedback": "fine" }), 400),
        (json!({ "decision": "denied", "feedback": "x".repeat(20_000) }), 400),
        (json!({ "decision": "yes" }), 400),
        (json!({ "decision": "approved", "by": "me" }), 400),
        (json!({}), 400),
    ] {
        scene.approver.post(&answer, &wrong).await.problem(status);
    }
    assert_eq!(scene.approver.post(&answer, &json!({ "decision": "approved" })).await.status, 204);
    let late = scene.approver.post(&answer, &json!({ "decision": "denied" })).await;
    assert!(late.problem(409).contains("console"), "{late:?}");
    let question = open_question(&mut watching).await;
    assert_eq!(question["question"]["command_text"], "touch two");
    let answer = format!("/approvals/{}", question["id"].as_str().unwrap());
    let no = json!({ "decision": "denied", "feedback": "not this one" });
    assert_eq!(scene.approver.post(&answer, &no).await.status, 204);
    let taken = taken.await.unwrap().text;
    assert!(taken.contains("not this one") && taken.contains("TaskComplete"), "{taken}");
    assert!(scene.path("one").exists() && !scene.path("two").exists());
    for missing in ["/approvals/none", "/approvals/x-1", "/approvals/%00"] {
        scene.approver.post(missing, &json!({ "decision": "approved" })).await.problem(404);
    }
    assert_eq!(
        watching.until("approvals").await.data["approvals"].as_array().map(Vec::len),
        Some(0)
    );
}

/// spec HTTP.44: An open question has what is asked also in words: the facts and the answers that every front
/// end shows, each answer with what is to be sent for it.
#[tokio::test]
async fn a_question_is_told_in_words() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write()).await;
    let watching = scene.requester.open("GET", "/approvals/events", &[], "").await;
    let mut watching = Stream::of(watching);
    scene.says(vec![runs("c1", "touch one")]);
    let turn = format!("/conversations/{}/turns", scene.conversation().await);
    let approver = scene.approver.clone();
    let taken = tokio::spawn(async move { approver.post(&turn, &json!({ "input": "go" })).await });
    let question = open_question(&mut watching).await;
    let asked = serde_json::from_value(question["question"].clone()).unwrap();
    let words = ShownQuestion::of(&asked).unwrap();
    assert_eq!(question["shown"], serde_json::to_value(words).unwrap());
    assert_eq!(question["shown"]["title"], "May this run?");
    assert_eq!(question["shown"]["subject"], json!(["touch one"]));
    let choices = question["shown"]["choices"].as_array().unwrap();
    let yes = choices.iter().find(|choice| choice["key"] == "y").unwrap();
    let path = format!("/approvals/{}", question["id"].as_str().unwrap());
    assert_eq!(scene.approver.post(&path, &yes["answer"]).await.status, 204);
    taken.await.unwrap();
    assert!(scene.path("one").exists());
}

/// spec HTTP.43: Lists of questions have no more than 32 KiB of the diffs of each, and say so; a question by
/// itself has all of them.
#[tokio::test]
async fn a_list_has_the_beginnings_of_long_diffs() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write()).await;
    let watching = scene.requester.open("GET", "/approvals/events", &[], "").await;
    let mut watching = Stream::of(watching);
    let place = scene.home.path().join("long.txt");
    let line = "+a line of a long file\n";
    let patch = format!(
        "*** Begin Patch\n*** Add File: {}\n{}*** Add File: other.txt\n+x\n*** End Patch\n",
        place.display(),
        line.repeat(100_000)
    );
    let requester = scene.requester.clone();
    let body = json!({ "arguments": patch });
    let made = tokio::spawn(async move { requester.post("/tools/apply_patch", &body).await });
    let question = open_question(&mut watching).await;
    assert_eq!(question["cut"], true);
    let listed = scene.requester.get("/approvals").await;
    assert!(listed.text.len() < 40_000, "{}", listed.text.len());
    assert_eq!(listed.json()["approvals"][0], question);
    let changes = question["question"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2);
    let cut = changes[0]["diff"].as_str().unwrap();
    assert!(cut.ends_with(&format!("{line}[the rest of it is too long to be here]\n")), "{cut}");
    let one = format!("/approvals/{}", question["id"].as_str().unwrap());
    let whole = scene.requester.get(&one).await.json();
    assert_eq!(whole.get("cut"), None);
    let diff = whole["question"]["changes"][0]["diff"].as_str().unwrap();
    assert_eq!(diff.matches(line).count(), 100_000);
    assert_eq!((&whole["id"], &whole["asked"]), (&question["id"], &question["asked"]));
    assert_eq!(scene.approver.post(&one, &json!({ "decision": "denied" })).await.status, 204);
    assert_eq!(made.await.unwrap().json()["success"], false);
    assert!(!place.exists());
    scene.requester.get(&one).await.problem(404);
    scene.requester.get("/approvals/none").await.problem(404);
}

/// The next list that has a question in it.
async fn open_question(watching: &mut Stream) -> Value {
    loop {
        let listed = watching.until("approvals").await.data;
        if let Some(question) = listed["approvals"].get(0) {
            return question.clone();
        }
    }
}
