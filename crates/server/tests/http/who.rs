//! Who is let in, and to what.

use crate::client::Client;
use crate::scene::{Scene, runs};
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use serde_json::json;
use std::fs;

/// A scene in which a question is open, and its id.
async fn with_question() -> (Scene, String) {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write()).await;
    scene.says(vec![runs("c1", "touch done")]);
    let id = scene.conversation().await;
    let turn = format!("/conversations/{id}/turns");
    let sent = [("content-type", "application/json"), ("prefer", "respond-async")];
    let begun = scene.approver.request("POST", &turn, &sent, r#"{"input":"do it"}"#).await;
    assert_eq!(begun.status, 202);
    let mut question = None;
    Scene::eventually("the question is open", async || {
        let open = scene.approver.get("/approvals").await.json();
        question = open["approvals"][0]["id"].as_str().map(str::to_owned);
        question.is_some()
    })
    .await;
    (scene, question.unwrap())
}

/// spec HTTP.4: A request without a token, or with anything else than one of the two, is answered
/// with 401 and logged, and nothing is done.
#[tokio::test]
async fn without_one_of_the_two_tokens_nothing_is_done() {
    let scene = Scene::free().await;
    let touch = json!({ "arguments": { "command": ["touch", "made"] } }).to_string();
    let token = &scene.requester.token;
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {token}"),
        format!("Bearer {}", &token[..42]),
        format!("Bearer {token}x"),
        format!("Bearer {}", token.to_uppercase()),
        token.clone(),
    ];
    for authorization in &wrong {
        let sent =
            [("authorization", authorization.as_str()), ("content-type", "application/json")];
        let answer = scene.requester.request("POST", "/tools/shell", &sent, &touch).await;
        answer.problem(401);
        assert!(answer.headers.contains_key("www-authenticate"), "{authorization:?}");
        assert!(!answer.text.contains(token.as_str()));
    }
    for path in
        ["/conversations", "/approvals", "/audit", "/openapi.json", "/metrics", "/settings/me"]
    {
        scene.requester.request("GET", path, &[("authorization", "")], "").await.problem(401);
    }
    assert!(!scene.path("made").exists());
    assert_eq!(scene.opened(), 0, "not even a session was opened");
    let notes = scene.notes();
    assert!(notes[0].contains("POST /tools/shell"), "{notes:?}");
    assert_eq!(notes.len(), 11, "ten and that there are more: {notes:?}");
    assert!(notes.iter().all(|note| !note.contains(token.as_str())));
    // The token itself is good.
    assert_eq!(scene.requester.get("/settings/me").await.json()["role"], "requester");
    assert_eq!(scene.approver.get("/settings/me").await.json()["role"], "approver");
    assert_eq!(
        scene.requester.request("GET", "/healthz", &[("authorization", "")], "").await.status,
        200
    );
}

/// spec HTTP.5: A request that names a host other than loopback, the address it listens on or one
/// that `--allow-host` names is refused.
///
/// spec HTTP.6: A request of a page is refused unless the page is of the same origin.
#[tokio::test]
async fn what_was_not_meant_for_this_server_is_refused_whoever_sends_it() {
    let scene = Scene::free().await;
    let touch = json!({ "arguments": { "command": ["touch", "made"] } }).to_string();
    let json = ("content-type", "application/json");
    for (header, status) in [
        (("host", "evil.example"), 421),
        (("host", "127.0.0.1.evil.example:80"), 421),
        (("origin", "http://evil.example"), 403),
        (("origin", "null"), 403),
        (("sec-fetch-site", "cross-site"), 403),
    ] {
        let sent = [header, json];
        scene.approver.request("POST", "/tools/shell", &sent, &touch).await.problem(status);
        // The console is no exception, nor is what asks before a page of another origin may send.
        scene.approver.request("GET", "/", &[header], "").await.problem(status);
        let asked = scene.approver.request("OPTIONS", "/tools/shell", &[header], "").await;
        asked.problem(status);
        assert!(!asked.headers.contains_key("access-control-allow-origin"));
    }
    assert!(!scene.path("made").exists());
    assert_eq!((scene.opened(), scene.notes().is_empty()), (0, false));
    let own = format!("http://{}", scene.approver.address);
    let answer = scene.approver.request("GET", "/approvals", &[("origin", &own)], "").await;
    assert_eq!(answer.status, 200);
}

/// spec HTTP.7: With the requester's token no question is answered, nothing is typed as the person
/// and nothing of the audit log is shown: the answer is 403, it is logged, and the question stays
/// open.
#[tokio::test]
async fn whoever_requests_cannot_approve() {
    let (scene, question) = with_question().await;
    let (path, yes) = (format!("/approvals/{question}"), json!({ "decision": "approved" }));
    scene.requester.post(&path, &yes).await.problem(403);
    scene.requester.get("/audit").await.problem(403);
    scene.requester.get("/audit/stats").await.problem(403);
    // Both tokens at once are one too many.
    let both = [("authorization", "Bearer x"), ("authorization", "Bearer y")];
    scene.requester.request("GET", "/approvals", &both, "").await.problem(400);
    let open = scene.requester.get("/approvals").await.json();
    assert_eq!(open["approvals"][0]["id"], question.as_str(), "it is shown, and still open");
    assert!(!scene.path("done").exists());
    assert!(scene.notes().iter().any(|note| note.contains(&format!("POST {path}"))));
    assert_eq!(scene.approver.post(&path, &yes).await.status, 204);
    Scene::eventually("what was approved is done", async || scene.path("done").exists()).await;
}

/// spec HTTP.15: A requester's conversations work in the directories that the server was started
/// for and nowhere else, also when an old one is opened again.
#[tokio::test]
async fn a_requester_works_where_the_server_was_started_for() {
    let scene = Scene::free().await;
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(scene.path("inside")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), scene.path("link")).unwrap();
    std::os::unix::fs::symlink(scene.path("inside"), scene.path("also-inside")).unwrap();
    let begin = async |client: &Client, cwd: std::path::PathBuf| {
        client.post("/conversations", &json!({ "cwd": cwd })).await
    };
    assert_eq!(begin(&scene.requester, scene.path("inside")).await.status, 201);
    // The directory itself is opened, and not whatever the link will lead to.
    let linked = begin(&scene.requester, scene.path("also-inside")).await;
    let inside = scene.path("inside").canonicalize().unwrap();
    assert_eq!(linked.json()["cwd"].as_str(), inside.to_str(), "{linked:?}");
    for outside in [
        elsewhere.path().to_owned(),
        scene.path("link"),
        scene.path("inside/../.."),
        "/".into(),
        scene.path("missing"),
    ] {
        begin(&scene.requester, outside).await.problem(422);
    }
    begin(&scene.approver, "relative".into()).await.problem(422);
    let script = json!({ "provider": "script:/etc/passwd" });
    scene.requester.post("/conversations", &script).await.problem(403);
    // What a person began elsewhere a requester does not go on with.
    let begun = begin(&scene.approver, elsewhere.path().to_owned()).await;
    assert_eq!(begun.status, 201);
    let place = begun.headers["location"].to_str().unwrap().to_owned();
    let turn = json!({ "input": "hello" });
    assert_eq!(scene.approver.post(&format!("{place}/turns"), &turn).await.status, 200);
    assert_eq!(scene.approver.delete(&place).await.status, 204);
    scene.requester.post(&format!("{place}/turns"), &turn).await.problem(403);
    scene.requester.get(&format!("{place}/items")).await.problem(403);
    assert_eq!(scene.approver.post(&format!("{place}/turns"), &turn).await.status, 200);
}

/// spec HTTP.15: A requester's conversations work in the directories that the server was started
/// for and nowhere else, also when an old one is opened again.
#[tokio::test]
async fn what_the_person_opened_elsewhere_is_not_the_requesters() {
    let scene = Scene::free().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let begun = scene.approver.post("/conversations", &json!({ "cwd": elsewhere.path() })).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let begun = begun.json();
    let id = begun["id"].as_str().unwrap();
    let place = format!("/conversations/{id}");
    let touch = json!({ "conversation": id, "arguments": { "command": ["touch", "made"] } });
    scene.requester.post("/tools/shell", &touch).await.problem(403);
    scene.requester.post(&format!("{place}/turns"), &json!({ "input": "go" })).await.problem(403);
    for path in ["", "/items", "/events"] {
        scene.requester.get(&format!("{place}{path}")).await.problem(403);
    }
    scene.requester.post(&format!("{place}/interrupt"), &json!({})).await.problem(403);
    scene.requester.delete(&place).await.problem(403);
    let kept = json!({ "cmd": "cat", "yield_time_ms": 250, "tty": true });
    let kept = json!({ "conversation": id, "arguments": kept });
    let started = scene.approver.post("/tools/exec_command", &kept).await;
    assert_eq!(started.json()["success"], true, "{started:?}");
    let list = async |client: &Client| client.get("/processes").await.json()["processes"].clone();
    assert_eq!(list(&scene.requester).await, json!([]));
    let process = list(&scene.approver).await[0]["id"].as_str().unwrap().to_owned();
    let process = format!("/processes/{process}");
    scene.requester.get(&format!("{process}/output")).await.problem(404);
    let typed = json!({ "text": "hello\n" });
    scene.requester.post(&format!("{process}/input"), &typed).await.problem(404);
    scene.requester.delete(&process).await.problem(404);
    let listed = async |client: &Client| {
        let listed = client.get("/conversations").await;
        assert_eq!(listed.status, 200, "{listed:?}");
        listed.text.contains(id)
    };
    assert!(!listed(&scene.requester).await && listed(&scene.approver).await);
    assert!(!elsewhere.path().join("made").exists());
    // All of it can be done by whoever opened it.
    assert_eq!(scene.approver.delete(&process).await.status, 204);
    assert_eq!(scene.approver.post("/tools/shell", &touch).await.json()["success"], true);
    assert!(elsewhere.path().join("made").exists());
}

/// spec HTTP.32: Every answer forbids browsers to load, frame, guess or keep what it does not
/// allow.
/// spec WEB.8: A browser that can is told to refuse text wherever it would become markup or code.
#[tokio::test]
async fn browsers_are_told_what_they_may_not_do() {
    let scene = Scene::free().await;
    for path in ["/", "/approvals", "/nothing", "/healthz"] {
        let headers = scene.approver.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{path}: {policy}");
        for part in [
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {part}");
        }
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        let kept = if path == "/" { "no-cache" } else { "no-store" };
        assert_eq!(headers["cache-control"], kept, "{path}");
    }
    assert_eq!(scene.approver.get("/").await.headers["content-type"], "text/html; charset=utf-8");
    scene.approver.get("/../Cargo.toml").await.problem(404);
}
