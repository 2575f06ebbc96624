//! How the server answers, what it remembers, and what can be written in a script.

use crate::raw::{ask, hello, send};
use sandgate_model_server::{
    AnswerEnd, Delivery, Fault, LineEnd, ModelServer, Script, ScriptError, Split, Turn, Wire,
};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;

/// More than anything here takes: to run into it is to fail.
const PATIENCE: Duration = Duration::from_secs(60);
const TEXT: &str = "Grüße, 世界!";

fn answer(wire: Wire, turn: Turn) -> crate::raw::Raw {
    let server = ModelServer::start(Script::new().turn(turn));
    let answer = ask(&server, wire, &hello(wire)).expect("an answer");
    assert_eq!(server.violations(), []);
    answer
}

fn says() -> Turn {
    Turn::new().message(TEXT)
}

/// The text that the events of a stream make.
fn said(wire: Wire, events: &[Value]) -> String {
    let delta = |event: &Value| match wire {
        Wire::Responses if event["type"] == "response.output_text.delta" => event["delta"].clone(),
        Wire::Chat => event["choices"][0]["delta"]["content"].clone(),
        Wire::Messages => event["delta"]["text"].clone(),
        Wire::Responses => Value::Null,
    };
    events.iter().filter_map(|event| delta(event).as_str().map(str::to_owned)).collect()
}

/// spec SCRIPTED.20: A stream is cut where the script says: at events, every so many bytes, or wherever
/// a reader could trip.
#[test]
fn a_stream_is_cut_where_the_script_says() {
    for wire in Wire::ALL {
        let plain = answer(wire, says());
        assert!(plain.complete && plain.head.contains("content-type: text/event-stream"));
        assert!(plain.chunks.iter().all(|chunk| chunk.ends_with(b"\n\n")), "{plain:?}");
        assert_eq!(said(wire, &plain.events()), TEXT);
        let cut = |split| {
            let delivery = Delivery { split, ..Delivery::default() };
            let cut = answer(wire, says().delivery(delivery));
            assert_eq!(cut.text(), plain.text(), "{split:?}");
            cut.chunks
        };
        assert_eq!(cut(Split::Whole).len(), 1);
        assert!(cut(Split::Bytes(1)).iter().all(|chunk| chunk.len() == 1));
        let awkward = cut(Split::Awkward);
        assert!(awkward.iter().any(|chunk| std::str::from_utf8(chunk).is_err()));
        assert!(awkward.contains(&b"\n".to_vec()));
    }
}

#[test]
fn line_ends_marks_comments_and_unknown_things_are_as_the_script_says() {
    for wire in Wire::ALL {
        let delivery = Delivery {
            line_end: LineEnd::CrLf,
            byte_order_mark: true,
            keep_alives: true,
            unknown: true,
            tight: true,
            ..Delivery::default()
        };
        let text = answer(wire, says().delivery(delivery)).text();
        assert!(text.starts_with("\u{feff}: keep-alive\r\n\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n") && !text.replace("\r\n", "").contains(['\r', '\n']));
        assert!(text.contains("retry:10\r\nweather:fine\r\ndata:{"), "{text}");
        assert_eq!(text.contains("event:ping"), wire == Wire::Messages);
        let delivery = Delivery { line_end: LineEnd::Cr, spread: true, ..Delivery::default() };
        let text = answer(wire, says().delivery(delivery)).text();
        assert!(!text.contains('\n') && text.contains("data: {\rdata:   \""), "{text}");
    }
}

/// spec SCRIPTED.21: A stream breaks as the script says: cut between events or inside of a character,
/// silent, with an error, with garbage, or with an event of any size.
#[test]
fn a_stream_breaks_as_the_script_says() {
    for wire in Wire::ALL {
        let whole = answer(wire, says()).chunks;
        let cut = answer(wire, says().fault(Fault::Cut { after: 3 }));
        assert_eq!((cut.chunks.len(), cut.complete), (3, false));
        let cut = answer(wire, says().fault(Fault::CutInCharacter));
        assert!(!cut.complete);
        assert_eq!(cut.bytes().last(), Some(&"ü".as_bytes()[0]));
        let (code, message) = ("overloaded".to_owned(), "too many".to_owned());
        let error = answer(wire, says().fault(Fault::Error { after: 2, code, message }));
        let events = error.events();
        assert!(error.complete && events.len() == 3, "{events:?}");
        assert!(events[2].to_string().contains("too many"), "{events:?}");
        let garbage = answer(wire, says().fault(Fault::Garbage { after: 1 }));
        assert_eq!(garbage.chunks.len(), whole.len() + 1);
        assert!(std::str::from_utf8(&garbage.chunks[1]).is_err());
        let huge = answer(wire, says().fault(Fault::Huge { after: 1, bytes: 1 << 20 }));
        assert!(huge.chunks[1].len() > 1 << 20 && huge.complete);
    }
    let failed = Fault::Failed { after: 2, code: "server_error".into(), message: "no".into() };
    let events = answer(Wire::Responses, says().fault(failed)).events();
    assert_eq!(events[2]["type"], "response.failed");
    assert_eq!(events[2]["response"]["error"]["message"], "no");
}

#[test]
fn an_answer_in_one_piece_breaks_in_its_middle() {
    for wire in Wire::ALL {
        let server = ModelServer::start(
            Script::new().turn(says()).turn(says().fault(Fault::Cut { after: 1 })),
        );
        let mut body = hello(wire);
        body["stream"] = json!(false);
        let whole = ask(&server, wire, &body).unwrap();
        assert!(whole.head.contains("content-length:") && whole.text().contains(TEXT));
        let cut = ask(&server, wire, &body).unwrap();
        assert!(!cut.complete && cut.bytes().len() < whole.bytes().len());
    }
}

/// spec SCRIPTED.22: A request is refused, left without an answer or dropped as the script says.
#[test]
fn a_request_is_refused_or_dropped_as_the_script_says() {
    for wire in Wire::ALL {
        let status = Fault::Status {
            status: 529,
            retry_after: Some("7".into()),
            code: Some("busy".into()),
            message: Some("come again".into()),
        };
        let refused = answer(wire, Turn::new().fault(status));
        assert_eq!(refused.status, 529);
        assert!(refused.head.contains("retry-after: 7"), "{}", refused.head);
        let name = if wire == Wire::Messages { "type" } else { "code" };
        assert_eq!(refused.json()["error"][name], "busy");
        assert_eq!(refused.json()["error"]["message"], "come again");
        let server = ModelServer::start(Script::new().turn(Turn::new().fault(Fault::Disconnect)));
        assert!(ask(&server, wire, &hello(wire)).is_none());
        assert_eq!(server.requests()[0].answer.end, AnswerEnd::Ended);
    }
}

/// spec SCRIPTED.23: The pieces of calls come by turns where the wire format allows it and the script
/// says so.
#[test]
fn the_pieces_of_calls_come_by_turns() {
    let turn = || {
        let arguments = json!({"command": "something long enough for several pieces"});
        Turn::new().call("a", arguments.clone()).call("b", arguments)
    };
    let places = |wire, turn: Turn| -> Vec<u64> {
        let place = |event: &Value| match wire {
            Wire::Responses => event["delta"].as_str().and(event["output_index"].as_u64()),
            Wire::Chat => event["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64(),
            Wire::Messages => event["delta"]["partial_json"].as_str().and(event["index"].as_u64()),
        };
        let mut places: Vec<u64> = answer(wire, turn).events().iter().filter_map(place).collect();
        places.dedup();
        places
    };
    for wire in Wire::ALL {
        assert_eq!(places(wire, turn()), [0, 1]);
        let by_turns = places(wire, turn().interleaved());
        assert_eq!(by_turns.starts_with(&[0, 1, 0, 1, 0, 1]), wire != Wire::Messages);
    }
}

/// spec SCRIPTED.24: Conversations at the same time can have turns of their own, by what stands in
/// their requests.
///
/// spec SCRIPTED.25: A turn can be made from the request that it answers.
#[test]
fn a_turn_is_chosen_and_made_by_the_request() {
    let echo = |request: &sandgate_model_server::Request| {
        Turn::new().message(&format!("you are {}", request.header("x-test").unwrap_or("nobody")))
    };
    let server = ModelServer::start(
        Script::new()
            .turn(Turn::new().message("for anybody"))
            .turn(Turn::new().when("magic").message("for the magician"))
            .turn_with(echo),
    );
    let asked = |content: &str| {
        let mut body = hello(Wire::Chat);
        body["messages"][0]["content"] = json!(content);
        said(Wire::Chat, &ask(&server, Wire::Chat, &body).unwrap().events())
    };
    assert_eq!(asked("the magic word"), "for the magician");
    assert_eq!(asked("hello"), "for anybody");
    assert_eq!(asked("the magic word"), "you are yes");
    assert_eq!(server.turns_left(), 0);
}

/// spec SCRIPTED.30: Every request is kept with its headers, its body and the times of its bytes and
/// those of its answer.
#[test]
fn requests_are_kept_with_their_times() {
    let server = ModelServer::start(Script::new().turn(says()).turn(says()));
    for wire in [Wire::Responses, Wire::Messages] {
        ask(&server, wire, &hello(wire)).unwrap();
    }
    let [first, second] = server.requests().try_into().unwrap();
    assert_eq!((first.wire, &first.body), (Wire::Responses, &hello(Wire::Responses)));
    assert_eq!(second.header("x-test"), Some("yes"));
    let times = [&first, &second].map(|request| {
        let answer = request.answer;
        assert_eq!((answer.status, answer.end), (Some(200), AnswerEnd::Ended));
        [
            request.first_byte,
            request.last_byte,
            answer.first_byte.unwrap(),
            answer.last_byte.unwrap(),
        ]
    });
    assert!(times.concat().is_sorted(), "{times:?}");
}

#[test]
fn the_outputs_of_tools_are_found_in_every_format() {
    let script = || Script::new().turn(Turn::new().expect("forty-two").message("right"));
    let bodies = [
        (
            Wire::Responses,
            json!({"model": "m", "input": [
            {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "it is forty-two"}]}),
        ),
        (
            Wire::Chat,
            json!({"model": "m", "messages": [
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "it is forty-two"}]}),
        ),
        (
            Wire::Messages,
            json!({"model": "m", "max_tokens": 99,
            "tools": [{"name": "t", "input_schema": {"type": "object"}}], "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1",
                "content": [{"type": "text", "text": "it is forty-two"}]}]}]}),
        ),
    ];
    for (wire, body) in bodies {
        let server = ModelServer::start(script());
        assert_eq!(ask(&server, wire, &body).unwrap().status, 200, "{:?}", server.violations());
        let outputs = server.requests()[0].tool_outputs();
        assert_eq!(outputs.len(), 1);
        assert_eq!((&*outputs[0].call_id, &*outputs[0].text), ("c1", "it is forty-two"));
    }
}

/// spec SCRIPTED.31: A client that goes away before the end of an answer is noticed.
#[test]
fn a_client_that_goes_away_is_noticed() {
    for fault in [Fault::NoAnswer, Fault::Silence { after: 2 }] {
        let server = ModelServer::start(Script::new().turn(says().fault(fault.clone())));
        let wire = Wire::Responses;
        let stream = send(&server, wire.path(), &hello(wire).to_string());
        assert!(server.wait_until(PATIENCE, |requests| requests.len() == 1));
        assert_eq!(server.requests()[0].answer.end, AnswerEnd::Open);
        drop(stream);
        let gone =
            server.wait_until(PATIENCE, |requests| requests[0].answer.end == AnswerEnd::Abandoned);
        assert!(gone, "{fault:?}");
    }
}

/// It has a thread of its own, so a runtime that has only one is not held up.
#[tokio::test(flavor = "current_thread")]
async fn it_works_beside_a_runtime_with_one_thread() {
    use tokio::io::AsyncWriteExt as _;
    let server = ModelServer::start(Script::new().turn(says()));
    let address = server.url();
    let address = address.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = hello(Wire::Chat).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let ended = server.until(|requests| {
        requests.first().is_some_and(|request| request.answer.end == AnswerEnd::Ended)
    });
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

/// spec SCRIPTED.32: A server that is dropped has ended: nobody listens at its port.
#[test]
fn a_server_that_is_dropped_has_ended() {
    let server = ModelServer::start(Script::new().turn(says().fault(Fault::NoAnswer)));
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let _asking = send(&server, Wire::Chat.path(), &hello(Wire::Chat).to_string());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

/// spec SCRIPTED.40: A script can be written as JSON Lines; a line that cannot be read is named.
#[test]
fn a_script_can_be_written_as_lines() {
    let script = Script::parse(
        r#"
        [{"type": "reasoning", "text": "hm"}, {"type": "message", "text": ["o", "ne"]}, {"type": "usage", "input_tokens": 5}]
        {"type": "call", "name": "t", "arguments": {"a": 1}}
        [{"type": "when", "body": "hello"}, {"type": "call", "name": "t", "raw_arguments": "{oops"}, {"type": "stop", "reason": "length"}, {"type": "delivery", "split": {"bytes": 3}, "line_end": "cr_lf"}]
        [{"type": "fault", "kind": "status", "status": 418}]
        "#,
    );
    let server = ModelServer::start(script.unwrap());
    let body = |wire| {
        let mut body = hello(wire);
        body["stream"] = json!(false);
        body
    };
    let first = ask(&server, Wire::Chat, &body(Wire::Chat)).unwrap().json();
    assert_eq!(first["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{oops");
    assert_eq!(first["choices"][0]["finish_reason"], "length");
    let second = ask(&server, Wire::Chat, &body(Wire::Chat)).unwrap().json();
    assert_eq!(second["choices"][0]["message"]["content"], "one");
    assert_eq!(second["choices"][0]["message"]["reasoning_content"], "hm");
    assert_eq!(second["usage"]["prompt_tokens"], 5);
    let third = ask(&server, Wire::Messages, &body(Wire::Messages)).unwrap().json();
    assert_eq!(third["content"][0]["input"], json!({"a": 1}));
    assert_eq!(ask(&server, Wire::Chat, &body(Wire::Chat)).unwrap().status, 418);

    for (line, reason) in [
        ("{\"type\": \"dance\"}", "dance"),
        ("{\"type\": \"message\", \"txt\": \"x\"}", "txt"),
        ("[", "EOF"),
    ] {
        let error = Script::parse(&format!("{{\"type\": \"interleaved\"}}\n{line}")).unwrap_err();
        assert!(matches!(error, ScriptError::Line { line: 2, .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}
