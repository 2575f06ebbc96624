//! Questions, and who answers them first.

use crate::client::Stream;
use crate::scene::{Scene, runs};
use sandgate_protocol::{AskForApproval, SandboxPolicy};
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

/// The next list that has a question in it.
async fn open_question(watching: &mut Stream) -> Value {
    loop {
        let listed = watching.until("approvals").await.data;
        if let Some(question) = listed["approvals"].get(0) {
            return question.clone();
        }
    }
}
