//! Any bytes as the body of every operation, and any name in its path.

#[path = "../../../../testing/mangled.rs"]
mod mangled;

use crate::scene::Scene;
use mangled::mangled;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Every operation that reads a body, with one that makes sense and does nothing.
const OPERATIONS: [(&str, &str); 11] = [
    ("/conversations", r#"{"cwd":"/none","model":"m","provider":"script:x","ephemeral":true}"#),
    ("/conversations/none/turns", r#"{"input":[{"type":"text","text":"x"}]}"#),
    ("/conversations/none/interrupt", "{}"),
    ("/tools/none", r#"{"arguments":{"command":["touch","made"]},"call_id":"c"}"#),
    ("/tools/apply_patch", r#"{"arguments":"*** Begin Patch\n*** Add File: made\n"}"#),
    ("/tools/write_stdin", r#"{"arguments":{"process_id":"1","input":"touch made\n"}}"#),
    ("/processes/serve.1/input", r#"{"text":"touch made\n"}"#),
    ("/processes/serve.1/resize", r#"{"columns":80,"rows":24}"#),
    ("/approvals/none", r#"{"decision":"approved_with_grant","scope":"session"}"#),
    ("/console/sign-in", r#"{"code":"none"}"#),
    ("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}"#),
];

/// What is sent, and how many bytes of it are said to come.
#[derive(Debug)]
struct Sent {
    path: String,
    body: Vec<u8>,
    announced: usize,
}

fn sent() -> impl Strategy<Value = Sent> {
    let name = prop_oneof![4 => Just(None), 1 => "[a-z0-9%./\\\\;?#-]{0,24}".prop_map(Some)];
    let operation = select(&OPERATIONS[..]);
    let operation = operation.prop_flat_map(|(path, honest)| (Just(path), mangled(honest)));
    (operation, name, 0_usize..3).prop_map(|((path, body), name, missing)| {
        let path = name.map_or_else(|| path.to_owned(), |name| path.replace("none", &name));
        Sent { path, announced: body.len() + missing / 2 * 7, body }
    })
}

/// The status of the answer.
async fn status(scene: &Scene, token: &str, sent: &Sent) -> Option<u16> {
    let address = scene.requester.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         connection: close\r\n\r\n",
        sent.path, sent.announced,
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // It may have had enough before.
    let _ = stream.write_all(&sent.body).await;
    if sent.announced > sent.body.len() {
        let _ = stream.shutdown().await;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

/// spec HTTP.48: A body that makes no sense is never the server's fault: nothing is done, and the next request is
/// answered.
#[test]
fn no_body_is_the_servers_fault() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene =
        runtime.block_on(Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write()));
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&sent(), |sent| {
        for token in [&scene.requester.token, &scene.approver.token] {
            let told = runtime.block_on(status(&scene, token, &sent));
            // One that was cut off may be told nothing.
            prop_assert!(told.is_none_or(|told| told < 500), "{told:?}");
            prop_assert!(
                told.is_some() || sent.announced > sent.body.len() || sent.path.contains('\\')
            );
        }
        prop_assert_eq!(runtime.block_on(scene.requester.get("/healthz")).status, 200);
        Ok(())
    });
    ran.unwrap();
    assert!(!scene.path("made").exists());
    runtime.block_on(scene.end());
}
