//! What clients send badly.

use crate::scene::Scene;
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use sandgate_server::http::Limits;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const JSON: (&str, &str) = ("content-type", "application/json");

/// spec HTTP.9: A body that is too large, cut off, not JSON, of another shape or with unknown
/// fields is refused and logged, and nothing is done.
#[tokio::test]
async fn a_body_that_makes_no_sense_does_nothing() {
    let scene = Scene::free().await;
    let touch = r#"{"arguments":{"command":["touch","made"]}}"#;
    let shell = "/tools/shell";
    for (kind, body, status) in [
        ("text/plain", touch, 415),
        ("", touch, 415),
        ("application/x-www-form-urlencoded", touch, 415),
        ("application/json", "", 400),
        ("application/json", &touch[..touch.len() - 1], 400),
        ("application/json", r#"{"arguments":{"command":["touch","made"]},"as":"root"}"#, 400),
        ("application/json", r#"{"arguments":7}"#, 400),
        ("application/json", r#"[]"#, 400),
        ("application/json", "{\"arguments\":\"\u{0}", 400),
    ] {
        let answer = scene.requester.request("POST", shell, &[("content-type", kind)], body).await;
        answer.problem(status);
    }
    let deep = format!("{{\"arguments\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    scene.requester.request("POST", shell, &[JSON], &deep).await.problem(400);
    assert!(!scene.path("made").exists());
    assert_eq!(scene.opened(), 0);
    assert!(scene.notes()[0].contains("POST /tools/shell"), "{:?}", scene.notes());
    scene.requester.post("/conversations", &json!({ "unknown": 1 })).await.problem(400);
    scene.requester.get("/conversations?limit=0").await.problem(400);
    scene.requester.get("/conversations?unknown=0").await.problem(400);
}

/// spec HTTP.9: A body that is too large, cut off, not JSON, of another shape or with unknown
/// fields is refused and logged, and nothing is done.
#[tokio::test]
async fn a_body_that_is_too_large_is_not_read_to_its_end() {
    let scene = Scene::free().await;
    let large = "x".repeat((1 << 20) + 1);
    let body = json!({ "model": large });
    scene.requester.post("/conversations", &body).await.problem(413);
    let larger = json!({ "arguments": { "command": ["echo", "x".repeat(16 << 20)] } });
    scene.requester.post("/tools/shell", &larger).await.problem(413);
    // One that does not say how long it is, and never ends.
    let mut stream = TcpStream::connect(scene.requester.address).await.unwrap();
    let head = head(&scene, "transfer-encoding: chunked");
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut sent = 0;
    // Until the server has had enough.
    while sent < 64 << 20 && stream.write_all(piece.as_bytes()).await.is_ok() {
        sent += 0x10000;
    }
    assert!(sent < 64 << 20, "it read all of {sent}");
    assert_eq!(scene.opened(), 0);
}

/// spec HTTP.9: A body that is too large, cut off, not JSON, of another shape or with unknown
/// fields is refused and logged, and nothing is done.
///
/// spec HTTP.10: A connection whose head or body does not come in time is let go.
#[tokio::test]
async fn a_body_that_is_cut_off_does_nothing() {
    let limits = Limits { body: Duration::from_millis(300), ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    let body = r#"{"arguments":{"command":["touch","made"]}}"#;
    // The client goes before the end, and one that stays but sends no more.
    for goes in [true, false] {
        let mut stream = TcpStream::connect(scene.requester.address).await.unwrap();
        let head = head(&scene, &format!("content-length: {}", body.len() + 1));
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        if goes {
            stream.shutdown().await.unwrap();
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        let status = answer.split(' ').nth(1).unwrap_or("none");
        assert!(["none", "400", "408"].contains(&status), "{answer}");
        assert_eq!(status == "408", !goes, "{answer}");
    }
    Scene::eventually("both are told of", async || scene.notes().len() == 2).await;
    assert!(!scene.path("made").exists());
    assert_eq!(scene.opened(), 0);
}

/// spec HTTP.10: A connection whose head or body does not come in time is let go.
#[tokio::test]
async fn a_body_for_mcp_has_its_time_too() {
    let limits = Limits { body: Duration::from_millis(300), ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    let mut stream = TcpStream::connect(scene.requester.address).await.unwrap();
    let head = head(&scene, "accept: application/json, text/event-stream\r\ncontent-length: 100");
    let head = head.replace("/tools/shell", "/mcp");
    stream.write_all(format!("{head}{{").as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(scene.notes()[0].contains("POST /mcp"), "{:?}", scene.notes());
    assert_eq!(scene.opened(), 0);
}

/// spec HTTP.10: A connection whose head or body does not come in time is let go.
#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let limits = Limits { head: Duration::from_millis(300), connections: 3, ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    let mut slow = Vec::new();
    for begun in ["", "GET /healthz HTTP/1.1\r\nhost: ", "GET / HTTP/1.1\r\nhost: localhost\r\na:"]
    {
        let mut stream = TcpStream::connect(scene.requester.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for mut stream in slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    assert_eq!(scene.requester.get("/healthz").await.status, 200);
    // A head that never ends is cut off too.
    let mut endless = TcpStream::connect(scene.requester.address).await.unwrap();
    endless.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let line = format!("x: {}\r\n", "y".repeat(1000));
    let mut sent = 0;
    while sent < 16 << 20 && endless.write_all(line.as_bytes()).await.is_ok() {
        sent += line.len();
    }
    assert!(sent < 16 << 20);
}

/// spec HTTP.47: However many connections others hold, with the requester's token or without one, the person is
/// answered.
#[tokio::test]
async fn nobody_locks_the_person_out() {
    let limits = Limits { connections: 16, ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    let mut streams = Vec::new();
    for _ in 0..14 {
        let stream = scene.requester.open("GET", "/approvals/events", &[], "").await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    scene.requester.get("/approvals").await.problem(503);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(scene.requester.address).await.unwrap());
        assert_eq!(scene.approver.get("/settings/me").await.status, 200);
    }
    // The first of them had to make room.
    assert_eq!(silent[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    drop(streams);
    Scene::eventually("requesters find a place again", async || {
        scene.requester.get("/approvals").await.status == 200
    })
    .await;
}

/// spec HTTP.46: What requesters send takes no more than 256 MiB of memory at once.
#[tokio::test]
async fn many_large_bodies_are_too_much() {
    assert_eq!(Limits::default().bodies, 256 << 20);
    let limits = Limits { bodies: 1 << 20, ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    let large = json!({ "arguments": { "command": ["true", "x".repeat(700 << 10)] } });
    let text = large.to_string();
    let head = head(&scene, &format!("content-length: {}", text.len() + 1));
    // Of two at once either may be the one that is too much; then there is room again.
    let waiting = loop {
        let mut waiting = TcpStream::connect(scene.requester.address).await.unwrap();
        let _ = waiting.write_all(head.as_bytes()).await;
        let _ = waiting.write_all(text.as_bytes()).await;
        if scene.requester.post("/tools/none", &large).await.status == 503 {
            break waiting;
        }
    };
    scene.approver.post("/tools/none", &large).await.problem(404);
    drop(waiting);
    Scene::eventually("there is room again", async || {
        scene.requester.post("/tools/none", &large).await.status == 404
    })
    .await;
    let code = json!({ "code": "x".repeat(5000) });
    scene.requester.post("/console/sign-in", &code).await.problem(413);
}

fn head(scene: &Scene, more: &str) -> String {
    let (address, token) = (scene.requester.address, &scene.requester.token);
    format!(
        "POST /tools/shell HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\n{more}\r\n\r\n"
    )
}
