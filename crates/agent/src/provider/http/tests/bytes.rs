//! Streams as bytes: cut anywhere, of every kind, and more than there may be.

use super::super::events::{Events, Limits, Stopped};
use crate::provider::wire::chat::{Chat, ChatServer};
use crate::provider::wire::messages::Messages;
use crate::provider::wire::responses::Responses;
use crate::provider::wire::{Fault, KnownIds, Wire};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use proptest::prelude::*;
use std::time::Duration;

const LIMITS: Limits = Limits { idle: Duration::from_secs(60), event: 4096, response: 65_536 };

fn events_of(pieces: Vec<Vec<u8>>) -> Events {
    Events::of(stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece)))), LIMITS)
}

/// Reads to the end, as text that can be compared.
async fn all(mut events: Events) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(match event {
            Ok(data) => data,
            Err(error) => format!("error: {error}"),
        });
    }
    told
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Bytes in pieces that end at these places.
fn pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
}

/// spec MODEL.14: Events are found whatever ends their lines, behind a byte order mark, between
/// comments and over several lines, wherever the bytes are cut.
#[test]
fn events_in_every_dress() {
    let plain = ": hello\n\ndata: {\"a\": \"é\"}\n\n: ping\n\nevent: x\nid: 7\nretry: 9\ndata:1\ndata: 2\n\n\
                 event: none\n\ndata\n\ndata: [DONE]\n\ndata: never ended\n";
    let expected = ["{\"a\": \"é\"}", "1\n2", "[DONE]"];
    for ending in ["\n", "\r\n", "\r"] {
        for mark in ["", "\u{feff}"] {
            let bytes = format!("{mark}{}", plain.replace('\n', ending)).into_bytes();
            for cut in 0..bytes.len() {
                let told = wait(all(events_of(pieces(&bytes, &[cut]))));
                assert_eq!(told, expected, "{ending:?} {mark:?} {cut}");
            }
            let single = bytes.iter().map(|byte| vec![*byte]).collect();
            assert_eq!(wait(all(events_of(single))), expected);
        }
    }
}

/// spec MODEL.15: An event, and a response, of more bytes than there may be end the response.
#[test]
fn too_much_is_too_much() {
    let one_line = vec![vec![b'x'; 1000]; 5];
    let many_lines = vec![b"data: more\n".repeat(50); 10];
    for pieces in [one_line, many_lines] {
        assert_eq!(wait(all(events_of(pieces))), ["error: an event has more than 4096 bytes"]);
    }
    let told = wait(all(events_of(vec![b"data: x\n\n".repeat(100); 100])));
    assert_eq!(told.last().unwrap(), "error: the response has more than 65536 bytes");
    assert!(told.len() < 65_536 / 9 + 2);
}

/// spec MODEL.16: Signs of life count as life for six times as long as silence may last, unless the
/// response goes on.
#[tokio::test(start_paused = true)]
async fn life_without_work_is_not_enough() {
    let alive = |event: &'static str| {
        stream::unfold((), move |()| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Some((Ok(Bytes::from_static(event.as_bytes())), ()))
        })
    };
    let mut events = Events::of(alive(": still here\n\n").boxed(), LIMITS);
    let stopped = events.next().await;
    assert!(
        matches!(stopped, Some(Err(Stopped::Silent(most))) if most == Duration::from_secs(360))
    );

    let mut events = Events::of(alive("data: work\n\n").boxed(), LIMITS);
    for _ in 0..100 {
        assert!(matches!(events.next().await, Some(Ok(_))));
        events.works();
    }
}

/// What is heard of bytes.
fn heard(wire: &dyn Wire, bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    wait(async {
        let mut decoder = wire.decoder(KnownIds::default());
        let mut events = events_of(pieces(bytes, cuts));
        let mut heard = Vec::new();
        let ended = loop {
            match events.next().await {
                Some(Ok(data)) => {
                    if let Err(fault) = decoder.event(&data, &mut heard) {
                        break Err(fault);
                    }
                }
                Some(Err(error)) => break Err(Fault::Malformed(error.to_string())),
                None => break decoder.end_of_stream(&mut heard),
            }
        };
        let told = heard.iter().map(|event| format!("{event:?}"));
        told.chain([format!("{:?}", ended.err())]).collect()
    })
}

/// Pieces that streams are made of, so that chance comes upon something.
const FRAGMENTS: &[&str] = &[
    "data: ",
    "event: x\n",
    "\n\n",
    "\r\n\r\n",
    ": ping\n\n",
    "[DONE]",
    "{",
    "}",
    "null",
    "é",
    "\u{feff}",
    "{\"type\":\"response.output_text.delta\",\"delta\":\"é\"}\n\n",
    "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\"}}\n\n",
    "{\"type\":\"response.completed\",\"response\":{}}\n\n",
    "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]}}]}\n\n",
    "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"n\"}}\n\n",
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
    "{\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n",
    "{\"type\":\"message_stop\"}\n\n",
];

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        6 => proptest::sample::select(FRAGMENTS).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(fragment, 0..30).prop_map(|all| all.concat())
}

proptest! {
    /// spec MODEL.17: Whatever bytes come, in whatever pieces, no form fails to read them otherwise
    /// than with an error, and what is heard does not depend on the pieces.
    #[test]
    fn whatever_comes_is_read_alike(bytes in some_bytes(), cuts in proptest::collection::vec(any::<usize>(), 0..20)) {
        let chat = Chat { server: ChatServer::Other };
        let forms: [&dyn Wire; 3] = [&Responses, &chat, &Messages];
        for wire in forms {
            let whole = heard(wire, &bytes, &[]);
            let cut = heard(wire, &bytes, &cuts);
            // Ids that we give ourselves are never the same.
            let plain = |told: Vec<String>| -> Vec<String> {
                told.into_iter().map(|event| match event.find("CallId(\"call_0") {
                    Some(at) => event[..at].to_owned(),
                    None => event,
                }).collect()
            };
            prop_assert_eq!(plain(whole), plain(cut));
        }
    }
}
