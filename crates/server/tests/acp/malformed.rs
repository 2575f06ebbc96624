//! What no editor should send: any bytes, messages with something changed in them, and too many.

#[path = "../../../../testing/mangled.rs"]
mod mangled;

use mangled::mangled;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use sandgate_runtime::{Desk, Session};
use sandgate_server::{
    AcpDoor, ClientApprover, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
    serve_acp,
};
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::io::{DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// Messages that make sense.
const HONEST: [&str; 7] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s","modeId":"auto"}}"#,
    r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":6,"result":{"outcome":{"outcome":"selected","optionId":"approve"}}}"#,
];

/// Opens nothing, once it is let.
#[derive(Default)]
struct Nothing {
    asked: AtomicUsize,
    is_held: Mutex<bool>,
    let_go: Condvar,
}

impl Opener for Nothing {
    fn session(&self, _: WantedSession) -> Result<Session, OpenError> {
        Err(OpenError::Refused("nothing is opened".to_owned()))
    }

    fn conversation(
        &self,
        _: WantedSession,
        _: WantedAgent,
    ) -> Result<OpenedConversation, OpenError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let held = self.is_held.lock().unwrap();
        drop(self.let_go.wait_while(held, |held| *held).unwrap());
        Err(OpenError::Refused("nothing is opened".to_owned()))
    }
}

/// A line, and whatever is done to it.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let deep = (1_usize..200_000, select(&["[", "{\"a\":"][..]))
        .prop_map(|(depth, open)| open.repeat(depth).into_bytes());
    prop_oneof![13 => select(&HONEST[..]).prop_flat_map(mangled), 1 => deep]
}

type Told = Lines<BufReader<ReadHalf<DuplexStream>>>;

/// Begins to talk with a door.
async fn begin(
    opener: Arc<Nothing>,
) -> (JoinHandle<io::Result<()>>, Told, WriteHalf<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let door = AcpDoor {
        opener,
        desk: Arc::new(Desk::default()).place(),
        person: Arc::new(|session| ClientApprover::new(session.approver("acp"))),
    };
    let serving = tokio::spawn(serve_acp(door, read, write));
    let (read, mut write) = tokio::io::split(ours);
    let mut told = BufReader::new(read).lines();
    write.write_all(format!("{}\n", HONEST[0]).as_bytes()).await.unwrap();
    assert_eq!(next(&mut told).await["id"], 1);
    (serving, told, write)
}

/// The next message.
async fn next(told: &mut Told) -> Value {
    let line = told.next_line().await.unwrap().expect("the door is still open");
    serde_json::from_str(&line).unwrap()
}

/// Begins, sends lines, then a message that makes sense, and waits for the answer to that: that there is no such session.
/// Gives back all errors up to this one.
async fn answered_after(lines: Vec<Vec<u8>>) -> Vec<Value> {
    let (serving, mut told, mut write) = begin(Arc::default()).await;
    let sending = tokio::spawn(async move {
        for line in lines {
            write.write_all(&line).await.unwrap();
            write.write_all(b"\n").await.unwrap();
        }
        let honest = HONEST[3].replace("\"id\":4", "\"id\":\"honest\"");
        write.write_all(format!("{honest}\n").as_bytes()).await.unwrap();
        write
    });
    let mut errors = Vec::new();
    loop {
        let message = next(&mut told).await;
        errors.extend(message.get("error").cloned());
        if message["id"] == "honest" {
            break;
        }
    }
    drop(sending.await.unwrap());
    drop(told);
    let _ = serving.await.unwrap();
    let last = errors.last().unwrap().to_string();
    assert!(last.contains("there is no such session"), "{errors:?}");
    errors
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// spec ACP.16: What an editor sends that makes no sense is answered or passed over, and runs nothing; a message
    /// that makes sense is answered after that.
    #[test]
    fn the_next_message_is_answered_whatever_came_before(lines in prop::collection::vec(line(), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(answered_after(lines));
    }
}

/// spec ACP.15: A line that is too long, no text or no message is answered by an error, also in pieces, and the next one
/// as if it had not been there; what the end of the input cuts off is no message.
#[tokio::test]
async fn a_line_that_is_too_long_is_passed_over() {
    let lines = vec![vec![b' '; (64 << 20) + 1], b"{\"id\":1,\xff}".to_vec()];
    let errors = answered_after(lines).await;
    assert_eq!(errors.len(), 3, "{errors:?}");
    for (error, why) in errors.iter().zip(["is longer than", "is no text"]) {
        assert!(error.to_string().contains(why), "{errors:?}");
    }
}

/// spec ACP.17: At most 64 sessions are open or being opened, and no conversation is opened twice.
#[tokio::test]
async fn only_so_many_are_being_opened() {
    let opener = Arc::new(Nothing { is_held: Mutex::new(true), ..Nothing::default() });
    let (serving, mut told, mut write) = begin(Arc::clone(&opener)).await;
    let message = |id: usize, method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        format!("{message}\n")
    };
    let mut all = String::new();
    let load = json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] });
    all += &message(100, "session/load", load.clone());
    all += &message(101, "session/load", load);
    for id in 102..170 {
        all += &message(id, "session/new", json!({ "cwd": "/", "mcpServers": [] }));
    }
    write.write_all(all.as_bytes()).await.unwrap();
    let mut refused = Vec::new();
    // What was not let in is said while all others still wait.
    while refused.len() < 6 {
        let answer = next(&mut told).await;
        if answer.get("error").is_some() {
            refused.push(answer.to_string());
        }
    }
    let count = |text: &str| refused.iter().filter(|why| why.contains(text)).count();
    assert_eq!((count("open already"), count("which is the most")), (1, 5), "{refused:?}");
    assert!(opener.asked.load(Ordering::SeqCst) <= 64);
    *opener.is_held.lock().unwrap() = false;
    opener.let_go.notify_all();
    write.shutdown().await.unwrap();
    let mut rest = Vec::new();
    told.into_inner().read_to_end(&mut rest).await.unwrap();
    let _ = serving.await.unwrap();
}
