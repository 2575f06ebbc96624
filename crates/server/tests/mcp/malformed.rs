//! Lines that are no messages, or none that anybody would send.

use crate::support::{LIMIT, World};
use proptest::prelude::*;
use sandgate_server::mcp::serve;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

/// Sends lines, and gives the answer to a ping after them.
async fn survives(world: &World, greeted: bool, lines: &[Vec<u8>]) -> Value {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(serve(world.options.clone(), read, write, CancellationToken::new()));
    let (read, mut write) = tokio::io::split(ours);
    let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let ping = json!({ "jsonrpc": "2.0", "id": "the end", "method": "ping" });
    let mut all: Vec<Vec<u8>> = Vec::new();
    if greeted {
        all.push(hello.to_string().into_bytes());
    }
    all.extend(lines.iter().cloned());
    all.push(ping.to_string().into_bytes());
    let sending = async {
        for line in all {
            write.write_all(&line).await.unwrap();
            write.write_all(b"\n").await.unwrap();
        }
        write.flush().await.unwrap();
    };
    let reading = async {
        let mut answers = BufReader::new(read).lines();
        loop {
            let line = answers.next_line().await.unwrap().expect("the server is there");
            let answer: Value = serde_json::from_str(&line).expect("only messages are written");
            if answer["id"] == "the end" {
                return answer;
            }
        }
    };
    let both = async { tokio::join!(sending, reading).1 };
    tokio::time::timeout(LIMIT, both).await.expect("it answers")
}

/// spec MCPS.40: No line, however malformed, long or deep, ends the server.
#[tokio::test]
async fn nothing_that_is_sent_ends_the_server() {
    let world = World::usual();
    let deep = |open: &str| open.repeat(100_000).into_bytes();
    let huge =
        [b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".as_slice(), &vec![b'x'; 20 << 20], b"\"}"];
    let call = |params: Value| {
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
            .to_string()
            .into_bytes()
    };
    let lines = [
        b"".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"{\"jsonrpc\":\"2.0\"}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no/such\",\"params\":[1]}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":9}}".to_vec(),
        deep("["),
        deep("{\"a\":"),
        huge.concat(),
        call(json!(null)),
        call(json!({ "name": "shell" })),
        call(json!({ "name": "shell", "arguments": [] })),
        call(json!({ "name": "shell", "arguments": { "command": 5 } })),
        call(json!({ "name": "\u{0}", "arguments": {} })),
        call(json!({ "name": "shell", "arguments": {}, "requestState": "rs1.x.y" })),
    ];
    let answer = survives(&world, true, &lines).await;
    assert_eq!(answer["result"], json!({}));
    // Before it is greeted too, whatever is no request.
    let before = [&lines[..6], &lines[8..13]].concat();
    assert_eq!(survives(&world, false, &before).await["result"], json!({}));
}

/// Something like a message.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(|number| json!(number)),
        ".{0,20}".prop_map(|text| json!(text)),
        Just(json!({})),
        Just(json!([{}])),
        Just(json!({ "name": "read_file", "arguments": { "file_path": "x" } })),
        Just(
            json!({ "uri": "sandgate://process/1/output", "level": "debug", "progressToken": {} })
        ),
    ];
    let method = prop::sample::select(vec![
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
        "logging/setLevel",
        "completion/complete",
        "server/discover",
        "subscriptions/listen",
        "tasks/get",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "initialize",
        "x",
    ]);
    let like =
        (value.clone(), method, value.clone(), value).prop_map(|(id, method, params, meta)| {
            let mut message =
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            if let Some(params) = message["params"].as_object_mut() {
                params.insert("_meta".to_owned(), meta);
            }
            message.to_string().into_bytes()
        });
    let line = |bytes: Vec<u8>| bytes.into_iter().filter(|byte| *byte != b'\n').collect();
    prop_oneof![4 => like, 1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(line)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 50, ..ProptestConfig::default() })]

    /// spec MCPS.40: No line, however malformed, long or deep, ends the server.
    #[test]
    fn whatever_is_sent_the_server_goes_on(lines in prop::collection::vec(message(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::usual();
            let answer = survives(&world, true, &lines).await;
            assert!(answer.get("result").is_some(), "{answer}");
        });
    }
}
