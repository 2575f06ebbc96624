//! Calls of tools.

use crate::scene::Scene;
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use serde_json::json;
use std::fs;

/// spec HTTP.25: A call takes the same way as a model's, and its result has what the model would be
/// given.
#[tokio::test]
async fn a_call_takes_the_same_way_as_a_models() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write()).await;
    let tools = scene.requester.get("/tools").await.json();
    let shell = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "shell");
    assert_eq!(shell.unwrap()["parameters"]["type"], "object");
    let call = json!({ "arguments": { "command": ["bash", "-c", "echo out; exit 3"] }, "call_id": "mine" });
    let result = scene.requester.post("/tools/shell", &call).await.json();
    assert_eq!((&result["call_id"], &result["success"]), (&json!("mine"), &json!(false)));
    assert_eq!(result["ran"]["exit_code"], 3);
    assert!(result["output"].as_str().unwrap().contains("out"));
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+made by a patch\n*** End Patch\n";
    let result = scene.requester.post("/tools/apply_patch", &json!({ "arguments": patch })).await;
    assert_eq!(result.json()["success"], true, "{result:?}");
    assert_eq!(fs::read_to_string(scene.path("new.txt")).unwrap(), "made by a patch\n");
    // What the sandbox does not allow is not done.
    let outside = scene.home.path().join("outside");
    let call = json!({ "arguments": { "command": ["touch", outside] } });
    let result = scene.requester.post("/tools/shell", &call).await.json();
    assert_eq!(result["success"], false, "{result}");
    assert!(!outside.exists());
    scene.requester.post("/tools/none", &json!({ "arguments": {} })).await.problem(404);
    let wrong = json!({ "arguments": {}, "call_id": "" });
    scene.requester.post("/tools/shell", &wrong).await.problem(400);
    let conversation = json!({ "arguments": { "command": ["pwd"] }, "conversation": "none" });
    scene.requester.post("/tools/shell", &conversation).await.problem(404);
    // In a conversation, its subscribers hear of it.
    let id = scene.conversation().await;
    let call = json!({ "arguments": { "command": ["echo", "heard"] }, "conversation": id });
    assert_eq!(scene.requester.post("/tools/shell", &call).await.json()["success"], true);
    assert_eq!(scene.approver.delete(&format!("/conversations/{id}")).await.status, 204);
    let audit = scene.approver.get("/audit?kind=call_asked&q=HEARD").await.json();
    assert_eq!(audit["records"].as_array().map(Vec::len), Some(1), "{audit}");
}

/// spec HTTP.26: A thousand calls, thirty-two at a time, all succeed.
#[tokio::test]
async fn a_thousand_calls_all_succeed() {
    let scene = Scene::free().await;
    let next = std::sync::atomic::AtomicU32::new(0);
    let workers = (0..32).map(|_| async {
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if number >= 1000 {
                return;
            }
            let word = format!("number {number}");
            let call = json!({ "arguments": { "command": ["echo", word] } });
            let answer = scene.requester.post("/tools/shell", &call).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let result = answer.json();
            assert_eq!(
                (result["success"].as_bool(), result["output"].as_str()),
                (Some(true), Some(format!("{word}\n").as_str())),
                "{result}"
            );
        }
    });
    futures_util::future::join_all(workers).await;
    assert_eq!(scene.opened(), 1, "all of them in one session");
}

/// spec HTTP.27: When a client goes, its call is called off, and nothing of it is left running.
#[tokio::test]
async fn a_call_whose_client_goes_is_called_off() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::DangerFullAccess).await;
    let script = "echo $$ > pid; sleep 1000 & wait; touch survived";
    let call = json!({ "arguments": { "command": ["bash", "-c", script] } });
    let requester = scene.requester.clone();
    let mut calling = Box::pin(async move { requester.post("/tools/shell", &call).await });
    let read = || fs::read_to_string(scene.path("pid")).ok().filter(|text| text.ends_with('\n'));
    tokio::select! {
        _ = &mut calling => panic!("it ended by itself"),
        () = Scene::eventually("it runs", async || read().is_some()) => {}
    }
    let pid = read().unwrap().trim().to_owned();
    drop(calling);
    let group = format!("/proc/{pid}/exe");
    Scene::eventually("it is gone", async || fs::read_link(&group).is_err()).await;
    assert!(!scene.path("survived").exists());
}
