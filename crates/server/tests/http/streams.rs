//! Streams of events: cut, resumed, and read by many.

use crate::client::{Frame, Frames, Stream};
use crate::scene::{Scene, calls, runs};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use sandgate_server::http::Limits;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const JSON: (&str, &str) = ("content-type", "application/json");
const ASYNC: (&str, &str) = ("prefer", "respond-async");

/// Prints so many lines of a hundred bytes, some of them slowly, so that they come in many pieces.
fn prints(call_id: &str, lines: u32) -> sandgate_protocol::ResponseItem {
    let script = format!(
        "for i in $(seq {lines}); do printf '%0100d\\n' $i; [ $((i % 50)) = 0 ] && sleep 0.01; done; true"
    );
    runs(call_id, &script)
}

async fn begin(scene: &Scene) -> String {
    let id = scene.conversation().await;
    let turn = format!("/conversations/{id}/turns");
    let begun = scene.approver.request("POST", &turn, &[JSON, ASYNC], r#"{"input":"go"}"#).await;
    assert_eq!(begun.status, 202);
    id
}

/// Everything up to the end of the first turn, in one piece.
async fn whole(scene: &Scene, id: &str) -> Vec<Frame> {
    let path = format!("/conversations/{id}/events");
    let mut stream = Stream::of(scene.approver.open("GET", &path, &[], "").await);
    let mut all = Vec::new();
    while let Some(frame) = stream.next().await {
        let ended = frame.name == "TaskComplete";
        all.push(frame);
        if ended {
            break;
        }
    }
    all
}

/// spec HTTP.49: A stream of events, or of what a process prints, that is asked for from behind its end, as one was heard
/// before the server was started anew, begins at the beginning.
#[tokio::test]
async fn a_number_that_there_has_not_been_is_no_place_to_go_on_from() {
    let scene = Scene::free().await;
    let id = begin(&scene).await;
    let path = format!("/conversations/{id}/events");
    let first = Stream::of(scene.requester.open("GET", &path, &[], "").await).next().await;
    for beyond in ["1000000", "18446744073709551615"] {
        let header = [("last-event-id", beyond)];
        let again = scene.requester.open("GET", &path, &header, "").await;
        assert_eq!(Stream::of(again).next().await, first, "{beyond}");
    }
    let none = [("last-event-id", "18446744073709551616")];
    scene.requester.request("GET", &path, &none, "").await.problem(400);
}

/// spec HTTP.18: Events that are read again from the last one that was heard are neither lost nor
/// doubled, wherever the connection was cut.
#[tokio::test]
async fn a_stream_that_is_cut_and_resumed_loses_and_doubles_nothing() {
    let scene = Scene::free().await;
    scene.says((0..4).map(|call| prints(&format!("c{call}"), 400)).collect());
    let id = begin(&scene).await;
    // Four that are cut at places of their own while it is written, each by another pattern.
    let path = format!("/conversations/{id}/events");
    let cut = |seed: u64| {
        let (scene, path) = (&scene, &path);
        async move {
            let mut heard: Vec<Frame> = Vec::new();
            let (mut state, mut connections, mut stuck) = (seed, 0, false);
            while heard.last().is_none_or(|frame| frame.name != "TaskComplete") {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // An event that did not fit is read whole the next time, so that it comes to an end.
                let limit = match stuck {
                    true => usize::MAX,
                    false => 1 + usize::try_from(state >> 33).unwrap() % 20_000,
                };
                let known = heard.len();
                let last = heard.last().and_then(|frame| frame.id).unwrap_or(0);
                // By the header, which outweighs what stands in the address, or by the address.
                let header = last.to_string();
                let (path, headers) = match connections % 2 {
                    0 => (format!("{path}?after=1"), vec![("last-event-id", header.as_str())]),
                    _ => (format!("{path}?after={last}"), Vec::new()),
                };
                connections += 1;
                let response = scene.requester.open("GET", &path, &headers, "").await;
                let (mut body, mut frames, mut read) = (response.into_body(), Frames::default(), 0);
                while read < limit {
                    let Some(Ok(piece)) = body.frame().await else { break };
                    let bytes = piece.into_data().unwrap();
                    // The cut goes through the middle of what came.
                    let kept = bytes.len().min(limit - read);
                    read += kept;
                    heard.extend(frames.take(&bytes[..kept]));
                    if heard.len() > known
                        && (stuck || heard.last().is_some_and(|frame| frame.name == "TaskComplete"))
                    {
                        break;
                    }
                }
                stuck = heard.len() == known;
            }
            (heard, connections)
        }
    };
    let heard = futures_util::future::join_all((1..5).map(cut)).await;
    let all = whole(&scene, &id).await;
    assert!(all.len() > 30, "{}", all.len());
    for (heard, connections) in heard {
        assert!(connections > 5, "it was cut {connections} times");
        assert_eq!(heard, all);
    }
    scene.requester.request("GET", &path, &[("last-event-id", "x")], "").await.problem(400);
}

/// spec HTTP.19: Two hundred subscribers of one busy conversation hear the same, whether one of
/// them reads or not, and memory does not grow with what they were sent.
#[tokio::test]
async fn two_hundred_subscribers_hear_the_same_and_one_that_does_not_read_costs_nothing() {
    const SUBSCRIBERS: usize = 200;
    let scene = Scene::free().await;
    prints_much(&scene);
    let id = scene.conversation().await;
    let path = format!("/conversations/{id}/events");
    let _silent = silent(&scene, &path).await;
    let mut streams = Vec::new();
    for _ in 0..SUBSCRIBERS - 1 {
        streams.push(scene.requester.open("GET", &path, &[], "").await.into_body());
    }
    let before = resident();
    let turn = format!("/conversations/{id}/turns");
    let begun = scene.approver.request("POST", &turn, &[JSON, ASYNC], r#"{"input":"go"}"#).await;
    assert_eq!(begun.status, 202);
    let heard = futures_util::future::join_all(streams.into_iter().map(digest)).await;
    let grown = resident().saturating_sub(before);
    // One of them is looked at closely, and the others heard the same.
    let all = whole(&scene, &id).await;
    assert!(
        all.iter().zip(1..).all(|(frame, number)| frame.id == Some(number)),
        "no number is missing"
    );
    let printed = all.iter().filter(|frame| frame.name == "ExecCommandOutputDelta");
    let printed: usize = printed.map(|frame| frame.data["chunk"].as_str().unwrap().len()).sum();
    assert_eq!(printed, 8 * 900_000);
    let again = scene.approver.open("GET", &path, &[], "").await.into_body();
    let expected = digest(again).await;
    assert!(heard.iter().all(|one| *one == expected));
    let sent = expected.1 * SUBSCRIBERS;
    eprintln!(
        "{} events, {} MiB in all; memory grew by {} MiB",
        all.len(),
        sent >> 20,
        grown >> 20
    );
    assert!(grown < 256 << 20, "what was sent is not kept");
}

/// spec HTTP.11: A client that reads nothing for a while is let go, and holds nobody up until then.
#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let limits = Limits { reading: Duration::from_secs(1), ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    prints_much(&scene);
    let id = scene.conversation().await;
    let path = format!("/conversations/{id}/events");
    let mut silent = silent(&scene, &path).await;
    let turn = format!("/conversations/{id}/turns");
    let begun = scene.approver.request("POST", &turn, &[JSON, ASYNC], r#"{"input":"go"}"#).await;
    assert_eq!(begun.status, 202);
    Scene::eventually("it is let go", async || {
        let metrics = scene.approver.get("/metrics").await.text;
        let is_idle = metrics.lines().any(|line| line == "sandgate_conversations_working 0");
        is_idle && metrics.lines().any(|line| line == "sandgate_event_subscribers 0")
    })
    .await;
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest).await;
    assert!(rest.starts_with(b"HTTP/1.1 200"));
    assert!(!String::from_utf8_lossy(&rest).contains("TaskComplete"));
}

/// Has the model print more than the buffers between two sides of a connection hold.
fn prints_much(scene: &Scene) {
    let much = "yes 'all work and no play makes one a dull command' | head -c 900000";
    scene.says((0..8).map(|call| runs(&format!("c{call}"), much)).collect());
}

/// A subscriber that reads nothing.
async fn silent(scene: &Scene, path: &str) -> TcpStream {
    let (address, token) = (scene.requester.address, &scene.requester.token);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut silent = socket.connect(address).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n");
    silent.write_all(request.as_bytes()).await.unwrap();
    silent
}

/// What a subscriber hears until the turn has ended: a digest, and how many bytes.
async fn digest(mut body: Incoming) -> (Vec<u8>, usize) {
    const END: &[u8] = b"\nevent: TaskComplete\n";
    let (mut digest, mut bytes, mut tail) = (Sha256::new(), 0, Vec::new());
    let mut heartbeat = Vec::new();
    loop {
        let piece = body.frame().await.expect("it goes on to the end of the turn").unwrap();
        let piece = piece.into_data().unwrap();
        // A heartbeat stands between events, and may come in pieces. A colon elsewhere is part of an event.
        let is_between = bytes == 0 || tail.ends_with(b"\n\n");
        if !heartbeat.is_empty() || (piece.starts_with(b":") && is_between) {
            heartbeat.extend_from_slice(&piece);
            if heartbeat.ends_with(b"\n\n") {
                heartbeat.clear();
            }
            continue;
        }
        digest.update(&piece);
        bytes += piece.len();
        tail.extend_from_slice(&piece[piece.len().saturating_sub(512)..]);
        tail.drain(..tail.len().saturating_sub(512));
        if tail.ends_with(b"\n\n") && tail.windows(END.len()).any(|part| part == END) {
            return (digest.finalize().to_vec(), bytes);
        }
    }
}

/// How much memory this process has, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// spec HTTP.20: Beyond 256 MiB of events pieces of output are left out, which is told once, and of diffs and
/// of what calls are asked to do all but the beginnings; nothing else is.
#[tokio::test]
async fn beyond_a_limit_output_is_left_out_and_nothing_else() {
    let limits = Limits { events: 100_000, ..Limits::default() };
    let scene =
        Scene::limited(AskForApproval::Never, SandboxPolicy::workspace_write(), limits).await;
    assert_eq!(Limits::default().events, 256 << 20);
    let patch = format!(
        "*** Begin Patch\n*** Add File: long.txt\n{}*** End Patch\n",
        "+a line of a long file\n".repeat(2000)
    );
    let patch = calls("p", "apply_patch", &json!({ "input": patch }));
    scene.says((0..3).map(|call| prints(&format!("c{call}"), 500)).chain([patch]).collect());
    let id = begin(&scene).await;
    let all = whole(&scene, &id).await;
    let diff = all.iter().find(|frame| frame.name == "PatchApplyBegin").unwrap();
    let diff = diff.data["changes"][0]["diff"].as_str().unwrap();
    assert!(diff.len() < 1100 && diff.ends_with("too long to be here]\n"), "{diff}");
    assert_eq!(fs::read_to_string(scene.path("long.txt")).unwrap().lines().count(), 2000);
    let count = |name: &str| all.iter().filter(|frame| frame.name == name).count();
    assert_eq!(
        (count("ExecCommandBegin"), count("ExecCommandEnd"), count("ToolCallEnd")),
        (3, 3, 4)
    );
    assert_eq!(count("ExecCommandOutputOmitted"), 1, "it is told once");
    let told = all.iter().position(|frame| frame.name == "ExecCommandOutputOmitted").unwrap();
    assert!(all[..told].iter().any(|frame| frame.name == "ExecCommandOutputDelta"));
    assert!(all[told..].iter().all(|frame| frame.name != "ExecCommandOutputDelta"));
    assert!(all.is_sorted_by(|one, other| one.id < other.id));
    // Also what comes after it can be found by its number.
    let path = format!("/conversations/{id}/events?after={}", all[told].id.unwrap());
    let mut stream = Stream::of(scene.approver.open("GET", &path, &[], "").await);
    assert_eq!(stream.next().await.as_ref(), all.get(told + 1));
}
