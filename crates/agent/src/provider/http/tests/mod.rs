//! Providers over real connections, to a server that misbehaves as it is told.

mod bytes;
mod keys;
mod server;
mod tls;

use crate::provider::choose::{Surroundings, provider};
use crate::provider::{ModelError, ModelEvent, ModelRequest, Provider, StopReason};
use futures_util::StreamExt as _;
use sandgate_config::ModelProviderSettings;
use sandgate_protocol::{ResponseItem, Role, SessionSource, SubAgentSource};
use serde_json::{Value, json};
use server::{Answer, OPEN_STREAM, Server, cut, status, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const WIRES: [&str; 3] = ["responses", "chat", "anthropic"];

/// A short answer in each form.
fn answer(wire: &str) -> String {
    let events = match wire {
        "responses" => vec![
            json!({"type": "response.output_text.delta", "delta": "Yes."}),
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 3}}}),
        ],
        "chat" => vec![
            json!({"choices": [{"delta": {"content": "Yes."}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!("[DONE]"),
        ],
        _ => vec![
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
    };
    let written = events.iter().map(|event| match event {
        Value::String(text) => format!("data: {text}\n\n"),
        event => format!("event: x\ndata: {event}\n\n"),
    });
    written.collect()
}

/// The provider `own`, with these settings in TOML beside its address and its form.
fn made(url: &str, wire: &str, lines: &str) -> Result<Arc<dyn Provider>, ModelError> {
    let key = if lines.contains("key_") { "" } else { "env_key = \"KEY\"\n" };
    let text = format!("base_url = \"{url}\"\nwire_api = \"{wire}\"\n{key}{lines}");
    let settings: ModelProviderSettings = toml::from_str(&text).unwrap();
    let variable = |name: &str| match name {
        "KEY" => Some("sk-very-secret-1".to_owned()),
        "OTHER_KEY" => Some("Bearer other/secret+2".to_owned()),
        _ => None,
    };
    let surroundings = Surroundings { variable: &variable, key_command: None };
    provider("own", &BTreeMap::from([("own".to_owned(), settings)]), surroundings)
}

fn own(server: &Server, wire: &str, lines: &str) -> Arc<dyn Provider> {
    made(&server.url, wire, lines).unwrap()
}

const INTERACTIVE: SessionSource = SessionSource::Interactive;

fn request<'a>(items: &'a [ResponseItem], source: &'a SessionSource) -> ModelRequest<'a> {
    ModelRequest {
        model: "some-model",
        instructions: "",
        items,
        tools: &[],
        parallel_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        reasoning_effort: None,
        output_schema: None,
        conversation_id: "conversation-1",
        source,
    }
}

type Heard = Vec<Result<ModelEvent, ModelError>>;

async fn ask(provider: &Arc<dyn Provider>) -> Heard {
    let items = [ResponseItem::message(Role::User, "Is it?")];
    provider.stream(request(&items, &INTERACTIVE)).collect().await
}

/// The errors after which it was tried again, and how it ended.
fn outcome(heard: Heard) -> (Vec<ModelError>, Result<StopReason, ModelError>) {
    let mut retried = Vec::new();
    let mut end = None;
    for event in heard {
        assert!(end.is_none(), "nothing follows the end: {event:?}");
        match event {
            Ok(ModelEvent::Retrying { error, attempt, .. }) => {
                retried.push(error);
                assert_eq!(attempt as usize, retried.len() + 1);
            }
            Ok(ModelEvent::End(reason)) => end = Some(Ok(reason)),
            Ok(_) => {}
            Err(error) => end = Some(Err(error)),
        }
    }
    (retried, end.unwrap())
}

/// spec MODEL.1: A provider is asked in its own form, at its own place, with its own headers, and the
/// answer is told piece by piece.
#[tokio::test]
async fn each_form_is_asked_and_answers() {
    for (wire, path, key) in [
        ("responses", "/v1/responses?v=2", "authorization: bearer sk-very-secret-1"),
        ("chat", "/v1/chat/completions?v=2", "authorization: bearer sk-very-secret-1"),
        ("anthropic", "/v1/messages?v=2", "x-api-key: sk-very-secret-1"),
    ] {
        let server = Server::start(vec![stream(&answer(wire))]).await;
        let lines = "query_params = { v = \"2\" }\nhttp_headers = { X-Team = \"tools\" }\n\
                     env_http_headers = { X-Key = \"OTHER_KEY\", X-None = \"UNSET\" }\n";
        let own = own(&server, wire, lines);
        let items = [ResponseItem::message(Role::User, "Is it?")];
        let source = SessionSource::SubAgent(SubAgentSource::Other("looker é\n".to_owned()));
        let heard: Heard = own.stream(request(&items, &source)).collect().await;
        let text = ModelEvent::TextDelta("Yes.".to_owned());
        let item = ModelEvent::Item(ResponseItem::message(Role::Assistant, "Yes."));
        assert_eq!(heard[0], Ok(text));
        assert!(heard.contains(&Ok(item)), "{heard:?}");
        assert_eq!(heard.last(), Some(&Ok(ModelEvent::End(StopReason::Done))));

        let received = server.received();
        let head = &received[0].head;
        assert!(head.starts_with(&format!("post {path} http/1.1")), "{head}");
        for line in
            [key, "x-team: tools", "x-key: bearer other/secret+2", "x-openai-subagent: looker\r"]
        {
            assert!(head.contains(line), "{line}: {head}");
        }
        assert!(!head.contains("x-none"));
        assert_eq!(head.contains("anthropic-version: 2023-06-01"), wire == "anthropic");
        let body: Value = serde_json::from_str(&received[0].body).unwrap();
        assert_eq!((&body["stream"], &body["model"]), (&json!(true), &json!("some-model")));
    }
}

/// spec MODEL.2: A connection is used again.
#[tokio::test]
async fn a_connection_is_used_again() {
    let answers = (0..3).map(|_| stream(&answer("responses"))).collect();
    let server = Server::start(answers).await;
    let own = own(&server, "responses", "");
    for _ in 0..3 {
        let (retried, end) = outcome(ask(&own).await);
        assert_eq!((retried, end), (vec![], Ok(StopReason::Done)));
        // What is left of a response is read by the way.
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let connections: Vec<usize> = server.received().iter().map(|one| one.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

/// spec MODEL.3: To drop the stream closes the connection.
#[tokio::test]
async fn whoever_stops_listening_hangs_up() {
    for wire in WIRES {
        let answer = answer(wire);
        let beginning = answer.split_inclusive("\n\n").next().unwrap();
        let open = format!("{OPEN_STREAM}{beginning}");
        let mut server = Server::start(vec![Answer::Hang(open.into_bytes())]).await;
        let own = own(&server, wire, "");
        let items = [ResponseItem::message(Role::User, "Is it?")];
        let mut stream = own.stream(request(&items, &INTERACTIVE));
        assert!(matches!(stream.next().await, Some(Ok(ModelEvent::TextDelta(_)))));
        drop(stream);
        server.closed().await;
    }
}

/// spec MODEL.4: A request that fails before anything came is made again, as often as
/// `request_max_retries` says, and each time is told.
#[tokio::test]
async fn failed_requests_are_made_again() {
    let busy = || status(503, "retry-after-ms: 1\r\n", r#"{"error": {"message": "busy"}}"#);
    let asked = || status(429, "Retry-After: 0\r\n", r#"{"error": {"message": "slowly"}}"#);
    let server =
        Server::start(vec![busy(), asked(), Answer::Cut(vec![]), stream(&answer("chat"))]).await;
    let own_of = |lines: &str| own(&server, "chat", lines);
    let (retried, end) = outcome(ask(&own_of("request_max_retries = 3")).await);
    assert_eq!(end, Ok(StopReason::Done));
    let told: Vec<String> = retried.iter().map(ToString::to_string).collect();
    assert_eq!(told[..2], ["own answered 503: busy", "own answered 429: slowly"]);
    assert!(told[2].starts_with("cannot reach own: "), "{}", told[2]);

    let server = Server::start(vec![busy(), busy(), busy()]).await;
    let (retried, end) = outcome(ask(&own(&server, "chat", "request_max_retries = 1")).await);
    assert_eq!(
        (retried.len(), end.unwrap_err().to_string().as_str()),
        (1, "own answered 503: busy")
    );
    assert_eq!(server.received().len(), 2);
}

/// spec MODEL.5: A response that breaks off is begun again, as often as `stream_max_retries` says, and
/// what it brought is forgotten.
#[tokio::test]
async fn broken_responses_are_begun_again() {
    for wire in WIRES {
        let whole = answer(wire);
        let half = whole.split_inclusive("\n\n").next().unwrap();
        // In the middle of an event, and between two.
        let server =
            Server::start(vec![cut(&whole[..half.len() + 9]), cut(half), stream(&whole)]).await;
        let heard = ask(&own(&server, wire, "stream_max_retries = 2")).await;
        let kinds: Vec<&str> = heard
            .iter()
            .filter_map(|event| match event.as_ref().unwrap() {
                ModelEvent::TextDelta(_) => Some("text"),
                ModelEvent::Retrying { error: ModelError::BrokenOff { .. }, .. } => Some("again"),
                ModelEvent::End(_) => Some("end"),
                _ => None,
            })
            .collect();
        assert_eq!(kinds, ["text", "again", "text", "again", "text", "end"], "{wire}");

        let server = Server::start(vec![cut(half), cut(half)]).await;
        let own = own(&server, wire, "stream_max_retries = 1\nrequest_max_retries = 9");
        let (retried, end) = outcome(ask(&own).await);
        assert_eq!(retried.len(), 1);
        assert!(matches!(end, Err(ModelError::BrokenOff { .. })), "{end:?}");
    }
}

/// spec MODEL.6: What cannot come to anything is not asked for again: a wrong request, a wrong key, no
/// more money.
#[tokio::test]
async fn what_cannot_change_is_not_tried_again() {
    for code in [400, 401, 403, 404, 422, 501] {
        let server = Server::start(vec![status(code, "", r#"{"error": {"message": "no"}}"#)]).await;
        let own = own(&server, "responses", "request_max_retries = 1");
        let (retried, end) = outcome(ask(&own).await);
        match code {
            // Everything from 500 may be a matter of time.
            501 => assert_eq!(retried.len(), 1),
            _ => {
                assert_eq!(retried, []);
                assert_eq!(end.unwrap_err().to_string(), format!("own answered {code}: no"));
            }
        }
    }
    for (code, body) in [
        (
            429,
            r#"{"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}}"#,
        ),
        (
            400,
            r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low."}}"#,
        ),
        (402, r#"{"error": {"code": 402, "message": "pay"}}"#),
    ] {
        let server = Server::start(vec![status(code, "", body)]).await;
        let (retried, end) = outcome(ask(&own(&server, "chat", "")).await);
        assert_eq!(retried, []);
        assert!(matches!(end, Err(ModelError::Quota { .. })), "{end:?}");
    }
    // Who wants to be left alone for long is.
    let busy = status(429, "retry-after: 3600\r\n", r#"{"error": {"message": "slowly"}}"#);
    let server = Server::start(vec![busy]).await;
    let (retried, end) = outcome(ask(&own(&server, "chat", "")).await);
    let told = "own answered 429: slowly (it asks to be left alone for 3600 s)";
    assert_eq!((retried, end.unwrap_err().to_string().as_str()), (vec![], told));
}

/// spec MODEL.7: A conversation that is too long for the model is told from all else, in each form, as
/// an answer and in the middle of a stream.
#[tokio::test]
async fn too_long_a_conversation_is_recognised() {
    let as_answers = [
        (
            "responses",
            400,
            r#"{"error": {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}}"#,
        ),
        (
            "chat",
            400,
            r#"{"error": {"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error"}}"#,
        ),
        (
            "chat",
            400,
            r#"{"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}"#,
        ),
        (
            "anthropic",
            400,
            r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ),
        (
            "anthropic",
            413,
            r#"{"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}"#,
        ),
    ];
    for (wire, code, body) in as_answers {
        let server = Server::start(vec![status(code, "", body)]).await;
        let (retried, end) = outcome(ask(&own(&server, wire, "")).await);
        assert_eq!(retried, []);
        assert!(
            matches!(&end, Err(ModelError::ContextOverflow { model, .. }) if model == "some-model"),
            "{end:?}"
        );
    }
    let in_streams = [
        (
            "responses",
            json!({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "too long"}}}),
        ),
        ("chat", json!({"error": {"message": "maximum context length is 8192"}})),
        (
            "anthropic",
            json!({"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}),
        ),
    ];
    for (wire, event) in in_streams {
        let server = Server::start(vec![stream(&format!("data: {event}\n\n"))]).await;
        let (retried, end) = outcome(ask(&own(&server, wire, "")).await);
        assert_eq!(retried, []);
        assert!(matches!(end, Err(ModelError::ContextOverflow { .. })), "{wire}: {end:?}");
    }
}

/// spec MODEL.8: An error in the middle of a stream is tried again like one before it, or not.
#[tokio::test]
async fn errors_in_the_middle_of_a_stream() {
    let cases = [
        (
            "responses",
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}}),
            Some(500),
        ),
        (
            "responses",
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "oh"}),
            Some(429),
        ),
        (
            "responses",
            json!({"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "oh"}}}),
            None,
        ),
        ("chat", json!({"error": {"code": 502, "message": "oh"}}), Some(502)),
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "oh"}}),
            Some(529),
        ),
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "authentication_error", "message": "oh"}}),
            None,
        ),
    ];
    for (wire, event, retried_as) in cases {
        let failing = format!("data: {event}\n\n");
        let server = Server::start(vec![stream(&failing), stream(&answer(wire))]).await;
        let (retried, end) = outcome(ask(&own(&server, wire, "")).await);
        match retried_as {
            Some(code) => {
                assert_eq!(retried[0].to_string(), format!("own answered {code}: oh"));
                assert_eq!(end, Ok(StopReason::Done));
            }
            None => assert!(retried.is_empty() && end.is_err(), "{wire}: {retried:?} {end:?}"),
        }
    }
}

/// spec MODEL.11: A provider that says nothing for `stream_idle_timeout_ms`, before its answer or in
/// the middle of it, is given up.
#[tokio::test]
async fn silence_is_an_error() {
    let whole = answer("chat");
    let begun = format!("{OPEN_STREAM}: still here\n\n{}", &whole[..20]);
    for said in ["", OPEN_STREAM, &begun] {
        let mut server = Server::start(vec![Answer::Hang(said.as_bytes().to_vec())]).await;
        let lines = "stream_idle_timeout_ms = 100\nrequest_max_retries = 0\nstream_max_retries = 0";
        let (_, end) = outcome(ask(&own(&server, "chat", lines)).await);
        assert!(matches!(end, Err(ModelError::Silent { .. })), "{end:?}");
        server.closed().await;
    }
}

/// spec MODEL.12: A redirect is not followed: it would take the key and the conversation to somebody
/// who was not named.
#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Server::start(vec![]).await;
    let headers = format!("location: {}/responses\r\n", elsewhere.url);
    let server = Server::start(vec![status(307, &headers, "")]).await;
    let (_, end) = outcome(ask(&own(&server, "responses", "")).await);
    assert!(end.unwrap_err().to_string().contains("which base_url does not say"));
    assert!(elsewhere.received().is_empty());
}

/// spec MODEL.13: What is no stream of events is an error with a sentence, whatever it is.
#[tokio::test]
async fn answers_of_another_kind() {
    let page = "<!DOCTYPE html><html><head><title>Log in to the\nhotel</title></head></html>";
    let long = "x".repeat(100_000);
    let cases = [
        (
            status(200, "content-type: text/html\r\n", page),
            "own sent what cannot be understood: a web page instead of a stream of events",
        ),
        (
            status(200, "content-type: application/json\r\n", r#"{"id": 1}"#),
            "own sent what cannot be understood: JSON instead of a stream of events",
        ),
        (
            status(
                200,
                "content-type: application/json\r\n",
                r#"{"error": {"code": 403, "message": "no"}}"#,
            ),
            "own answered 403: no",
        ),
        (status(403, "", page), "own answered 403: a web page: Log in to the hotel"),
        (
            status(404, "", "404 page not\nfound\u{1b}[2J"),
            "own answered 404: 404 page not found\\u{1b}[2J",
        ),
        (status(403, "", ""), "own answered 403: Forbidden"),
        (
            status(422, "", r#"{"detail": [{"loc": ["body"], "msg": "field required"}]}"#),
            "own answered 422: field required",
        ),
        (status(400, "", r#"{"error": "model not found"}"#), "own answered 400: model not found"),
        (
            status(400, "", r#"[{"error": {"code": 400, "message": "bad"}}]"#),
            "own answered 400: bad",
        ),
        (
            status(400, "", r#"{"object": "error", "message": "bad", "code": 400}"#),
            "own answered 400: bad",
        ),
        (status(400, "", r#"{"some": "thing"}"#), "own answered 400: {\"some\":\"thing\"}"),
        (
            stream("data: {\n\n"),
            "own sent what cannot be understood: EOF while parsing an object at line 1 column 1",
        ),
    ];
    for (answer, expected) in cases {
        let server = Server::start(vec![answer]).await;
        let (_, end) = outcome(ask(&own(&server, "responses", "")).await);
        assert_eq!(end.unwrap_err().to_string(), expected);
    }
    let server = Server::start(vec![status(400, "", &long)]).await;
    let (_, end) = outcome(ask(&own(&server, "responses", "")).await);
    assert!(end.unwrap_err().to_string().len() < 700);
}
