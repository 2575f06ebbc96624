//! The three forms side by side: one conversation as each of them writes it, one answer as each of them
//! is read.

use super::chat::{Chat, ChatServer};
use super::messages::Messages;
use super::responses::Responses;
use super::{Fault, KnownIds, Wire};
use crate::provider::{ModelEvent, ModelRequest, StopReason};
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{
    CallId, CallInput, ContentItem, ResponseItem, Role, SessionSource, TokenUsage,
};
use sandgate_runtime::ToolSpec;
use serde_json::{Value, json};

const CHAT: Chat = Chat { server: ChatServer::Other };

fn call(id: &str, name: &str, arguments: &str) -> ResponseItem {
    let input = CallInput::Arguments(arguments.to_owned());
    ResponseItem::ToolCall { call_id: CallId::new(id), name: name.to_owned(), input }
}

fn result(id: &str, output: &str, success: bool) -> ResponseItem {
    let (call_id, output) = (CallId::new(id), output.to_owned());
    ResponseItem::ToolCallOutput { call_id, output, content_items: Vec::new(), success }
}

fn thought(wire: &str, data: Value) -> ResponseItem {
    ResponseItem::Reasoning { summary: "hm".to_owned(), wire: wire.to_owned(), data }
}

fn text(text: &str) -> ContentItem {
    ContentItem::InputText { text: text.to_owned() }
}

/// A conversation with everything in it that there can be.
fn items() -> Vec<ResponseItem> {
    let picture = ContentItem::InputImage { image_url: "data:image/png;base64,aGk=".to_owned() };
    vec![
        ResponseItem::message(Role::Developer, "The directory is /project."),
        ResponseItem::Message {
            role: Role::User,
            content: vec![text("What is this?"), picture.clone()],
        },
        thought(
            "responses",
            json!({"type": "reasoning", "id": "rs_1", "status": null,
            "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}),
        ),
        thought("messages", json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})),
        thought("messages", json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
        thought("chat", json!({"reasoning_content": "hm"})),
        ResponseItem::message(Role::Assistant, "I look."),
        call("call_1", "read_file", r#"{"path": "a"}"#),
        call("call with spaces", "view_image", r#"{"path": "b.png"}"#),
        ResponseItem::ToolCall {
            call_id: CallId::new("call_3"),
            name: "apply_patch".to_owned(),
            input: CallInput::Text("*** Begin Patch\n*** End Patch\n".to_owned()),
        },
        result("call_1", "no such file", false),
        ResponseItem::ToolCallOutput {
            call_id: CallId::new("call with spaces"),
            output: "a picture".to_owned(),
            content_items: vec![text("a picture"), picture],
            success: true,
        },
        result("call_3", "done", true),
        ResponseItem::message(Role::Assistant, "It is a cat."),
        ResponseItem::message(Role::User, "Thanks."),
        ResponseItem::message(Role::User, "And now?"),
    ]
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters,
    };
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    vec![tool("read_file", path), tool("apply_patch", Value::Null)]
}

const SOURCE: SessionSource = SessionSource::Exec;

fn request<'a>(
    model: &'a str,
    items: &'a [ResponseItem],
    tools: &'a [ToolSpec],
) -> ModelRequest<'a> {
    ModelRequest {
        model,
        instructions: "You are careful.",
        items,
        tools,
        parallel_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        reasoning_effort: None,
        output_schema: None,
        conversation_id: "conversation-1",
        source: &SOURCE,
    }
}

fn body(wire: &dyn Wire, request: &ModelRequest<'_>) -> Value {
    serde_json::from_slice(&wire.body(request).unwrap()).unwrap()
}

/// spec MODEL.20: A request has the whole conversation in the form of its API: calls with their
/// results, pictures where they may be, and nothing kept by the provider.
/// spec MODEL.21: What a model thought goes back as it came, to the form that it came in and to no
/// other.
#[test]
fn a_conversation_in_each_form() {
    let (items, tools) = (items(), tools());
    let effort = Some(ReasoningEffort::Medium);
    let of = |model| ModelRequest { reasoning_effort: effort, ..request(model, &items, &tools) };
    insta::assert_json_snapshot!("responses", body(&Responses, &of("gpt-5.1-codex")));
    insta::assert_json_snapshot!("chat", body(&CHAT, &of("some-model")));
    insta::assert_json_snapshot!("messages", body(&Messages, &of("claude-sonnet-4-5")));
}

/// spec MODEL.22: An answer can be held to a schema, its length and its chance set, and calls be made
/// one at a time, where the model takes it.
#[test]
fn what_can_be_asked_for_in_each_form() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let (items, tools) = ([ResponseItem::message(Role::User, "hi")], tools());
    let of = |model| ModelRequest {
        temperature: Some(0.0),
        max_output_tokens: Some(200),
        output_schema: Some(&schema),
        parallel_tool_calls: false,
        ..request(model, &items, &tools)
    };
    let openai = Chat { server: ChatServer::OpenAi };
    let all = json!({
        "responses": body(&Responses, &of("gpt-4.1")),
        "responses, reasons": body(&Responses, &of("gpt-5.1")),
        "chat": body(&CHAT, &of("some-model")),
        "chat, openai": body(&openai, &of("gpt-4.1")),
        "messages": body(&Messages, &of("claude-sonnet-4-5")),
        "messages, old": body(&Messages, &of("claude-3-5-haiku-latest")),
        "messages, new": body(&Messages, &of("claude-opus-4-7")),
    });
    insta::assert_json_snapshot!("asked_for", all);
}

/// spec MODEL.23: What stood in the last request stands in the next one, so that the provider can use
/// again what it has computed.
#[test]
fn a_longer_conversation_begins_like_a_shorter() {
    let (items, tools) = (items(), tools());
    let forms: [(&dyn Wire, &str, &str); 3] = [
        (&Responses, "gpt-5.1", "input"),
        (&CHAT, "m", "messages"),
        (&Messages, "claude-sonnet-4-5", "messages"),
    ];
    // The ends of what was said to the model: there requests are made.
    for (wire, model, list) in forms {
        for shorter in [2, 13, 15] {
            let mut short = body(wire, &request(model, &items[..shorter], &tools));
            let mut long = body(wire, &request(model, &items, &tools));
            let (short, long) = (short[list].take(), long[list].take());
            let (mut short, mut long) = (without_marks(&short), without_marks(&long));
            // The last thing said may go on.
            let last = short.pop().unwrap();
            let rest = long.split_off(short.len());
            assert_eq!(short, long, "{model} {shorter}");
            let words = |value: &Value| {
                value["content"].to_string().trim_matches(['"', '[', ']']).to_owned()
            };
            assert!(words(&rest[0]).starts_with(&words(&last)), "{} {last}", rest[0]);
        }
    }
}

/// The messages without the marks up to where a provider keeps them.
fn without_marks(value: &Value) -> Vec<Value> {
    let text = value.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    serde_json::from_str(&text).unwrap()
}

/// spec MODEL.24: Whatever the history is like, every call is followed by one result, with an id that
/// the API takes, and no result is without its call.
#[test]
fn every_call_has_its_result_and_every_result_its_call() {
    let long = "x".repeat(100);
    let items = [
        ResponseItem::message(Role::User, "go"),
        call(&long, "a", "{}"),
        call("", "b", "not json"),
        call("toolu:1/é", "c", "[]"),
        ResponseItem::message(Role::User, "stop"),
        result(&long, "late", true),
        result("nobody", "asked", true),
        call("call_1_0", "d", "{}"),
        result("call_1_0", "fine", true),
    ];
    let request = request("claude-sonnet-4-5", &items, &[]);
    let messages = body(&Messages, &request);
    let chat = body(&CHAT, &request);

    let content = |at: usize| messages["messages"][at]["content"].as_array().unwrap();
    let ids = |at: usize, kind: &str, id: &str| -> Vec<String> {
        let blocks = content(at).iter().filter(|block| block["type"] == kind);
        blocks.map(|block| block[id].as_str().unwrap().to_owned()).collect()
    };
    let called = ids(1, "tool_use", "id");
    assert_eq!(called, ids(2, "tool_result", "tool_use_id"));
    assert_eq!(called.len(), 3);
    assert_eq!(content(2)[3]["text"], "stop");
    assert_eq!(ids(3, "tool_use", "id"), ids(4, "tool_result", "tool_use_id"));
    let mut all = [called, ids(3, "tool_use", "id")].concat();
    assert!(all.iter().all(|id| {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (1..=40).contains(&id.len()) && id.chars().all(good)
    }));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);

    let roles: Vec<&str> =
        chat["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    let expected =
        ["system", "user", "assistant", "tool", "tool", "tool", "user", "assistant", "tool"];
    assert_eq!(roles, expected);
    assert!(!messages.to_string().contains("asked") && !chat.to_string().contains("asked"));
}

/// spec MODEL.25: A thought that leads to nothing, and one whose content the provider has not sent, are
/// not sent back: the provider would refuse the request.
#[test]
fn thoughts_that_lead_nowhere_stay() {
    let whole = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let name = json!({"type": "reasoning", "id": "rs_2", "summary": []});
    let items = [
        ResponseItem::message(Role::User, "go"),
        thought("responses", whole.clone()),
        ResponseItem::message(Role::User, "stop"),
        thought("responses", name),
        ResponseItem::message(Role::Assistant, "Yes."),
        thought("responses", whole),
    ];
    let sent = body(&Responses, &request("gpt-5.1", &items, &[]));
    let kinds: Vec<&str> = sent["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["message", "message", "message"]);

    // One that calls without having thought cannot be made to think in the middle of it.
    let items = [
        ResponseItem::message(Role::User, "go"),
        call("call_1", "a", "{}"),
        result("call_1", "b", true),
    ];
    let effort = Some(ReasoningEffort::High);
    let request =
        ModelRequest { reasoning_effort: effort, ..request("claude-sonnet-4-5", &items, &[]) };
    assert_eq!(body(&Messages, &request).get("thinking"), None);
    let request = ModelRequest { items: &items[..1], ..request };
    assert_eq!(body(&Messages, &request)["thinking"]["budget_tokens"], 24_000);
}

/// What is heard of events, and of the end of the stream behind them.
fn hear(wire: &dyn Wire, events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
    let mut decoder = wire.decoder(KnownIds::of(&[call("call_0", "before", "{}")]));
    let mut heard = Vec::new();
    for event in events {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        decoder.event(&data, &mut heard)?;
    }
    decoder.end_of_stream(&mut heard)?;
    Ok(heard)
}

fn responses_events() -> Vec<Value> {
    let item = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let delta =
        |kind: &str, delta: &str| json!({"type": format!("response.{kind}.delta"), "delta": delta});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.reasoning_summary_part.added", "summary_index": 0}),
        delta("reasoning_summary_text", "h"),
        delta("reasoning_summary_text", "m"),
        item(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "hm"}]})),
        json!({"type": "response.some_new_thing", "delta": {"not": "a text"}}),
        json!({"type": "keepalive"}),
        delta("output_text", "I "),
        delta("output_text", "löök."),
        item(json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "I löök.", "annotations": []}]})),
        delta("function_call_arguments", "{\"path\""),
        item(
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file",
            "arguments": "{\"path\": \"a\"}", "status": "completed"}),
        ),
        item(
            json!({"type": "function_call", "id": "fc_2", "call_id": "call_0", "name": "list_dir",
            "arguments": ""}),
        ),
        item(json!({"type": "some_new_call", "id": "x"})),
        json!({"type": "response.completed", "response": {"id": "resp_1", "output": [], "usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 7}}}}),
    ]
}

fn chat_events() -> Vec<Value> {
    let delta =
        |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let calls = |calls: Value| delta(json!({"tool_calls": calls}));
    vec![
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "h"})),
        delta(json!({"reasoning_content": "m", "content": null})),
        delta(json!({"content": "I "})),
        delta(json!({"content": "löök.", "some_new_thing": 1})),
        calls(json!([{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "read_file", "arguments": ""}}])),
        calls(
            json!([{"index": 1, "id": "call_0", "function": {"name": "list_dir", "arguments": ""}}]),
        ),
        calls(json!([{"index": 0, "function": {"arguments": "{\"path\": "}}])),
        calls(json!([{"index": 1, "function": {"arguments": null}},
            {"index": 0, "function": {"arguments": "\"a\"}"}}])),
        json!({"choices": [{"index": 1, "delta": {"content": "another"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 7}}}),
        json!("[DONE]"),
    ]
}

fn messages_events() -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 30,
            "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I "})),
        delta(1, json!({"type": "text_delta", "text": "löök."})),
        delta(1, json!({"type": "some_new_delta", "text": 1})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "call_1", "name": "read_file", "input": {}})),
        start(3, json!({"type": "tool_use", "id": "call_0", "name": "list_dir", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"path\": "})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"a\"}"})),
        stop(2),
        stop(3),
        start(4, json!({"type": "some_new_block", "text": 1})),
        stop(4),
        json!({"type": "some_new_event"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]
}

/// spec MODEL.26: Text, thoughts, calls that are written at once, what was used and the end are read
/// alike from each form; what is not known is passed over.
/// spec MODEL.27: A call whose id the conversation has already gets another.
#[test]
fn an_answer_is_read_alike_from_each_form() {
    let forms: [(&dyn Wire, &str, Vec<Value>); 3] = [
        (&Responses, "responses", responses_events()),
        (&CHAT, "chat", chat_events()),
        (&Messages, "messages", messages_events()),
    ];
    for (wire, name, events) in forms {
        let heard = hear(wire, &events).unwrap();
        let (mut said, mut thought, mut items, mut usage) =
            (Vec::new(), Vec::new(), Vec::new(), None);
        for event in &heard {
            match event {
                ModelEvent::TextDelta(text) => said.push(text.as_str()),
                ModelEvent::ReasoningDelta(text) => thought.push(text.as_str()),
                ModelEvent::Item(item) => items.push(item),
                ModelEvent::Usage(used) => usage = Some(*used),
                ModelEvent::Retrying { .. } | ModelEvent::End(_) => {}
            }
        }
        assert_eq!((said, thought), (vec!["I ", "löök."], vec!["h", "m"]), "{name}");
        assert_eq!(heard.last(), Some(&ModelEvent::End(StopReason::Done)));
        // Messages does not count what was thought.
        let reasoning_output_tokens = if name == "messages" { 0 } else { 7 };
        let (input_tokens, cached_input_tokens, output_tokens) = (100, 64, 20);
        let expected = TokenUsage {
            input_tokens,
            cached_input_tokens,
            output_tokens,
            reasoning_output_tokens,
        };
        assert_eq!(usage, Some(expected), "{name}");
        let [reasoning, message, first, second] = items.as_slice() else {
            panic!("{name}: {items:?}")
        };
        let ResponseItem::Reasoning { summary, wire, data } = reasoning else {
            panic!("{reasoning:?}")
        };
        assert_eq!((summary.as_str(), wire.as_str()), ("hm", name));
        let kept = match name {
            "responses" => data["encrypted_content"] == "gAAA",
            "chat" => data == &json!({"reasoning_content": "hm"}),
            _ => data == &json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        };
        assert!(kept, "{data}");
        assert_eq!(message.text().unwrap(), "I löök.");
        assert_eq!(first, &&call("call_1", "read_file", r#"{"path": "a"}"#));
        let ResponseItem::ToolCall { call_id, name, input } = second else { panic!("{second:?}") };
        assert_eq!((name.as_str(), input.as_str()), ("list_dir", "{}"));
        assert_ne!(call_id.as_str(), "call_0");
    }
}

/// spec MODEL.28: A response that is not complete has no end, whatever came of it.
#[test]
fn half_a_response_has_no_end() {
    let forms: [(&dyn Wire, Vec<Value>, usize); 3] = [
        (&Responses, responses_events(), 1),
        // The reason to stop comes before what was used and the mark.
        (&CHAT, chat_events(), 3),
        (&Messages, messages_events(), 2),
    ];
    for (wire, events, last) in forms {
        for length in 0..=events.len() - last {
            let heard = hear(wire, &events[..length]).unwrap();
            let ended = heard.iter().any(|event| matches!(event, ModelEvent::End(_)));
            assert!(!ended, "{} {length}", wire.path());
        }
    }
}

/// spec MODEL.29: Why a model stopped is read from each form.
#[test]
fn reasons_to_stop() {
    let responses = |kind: &str, reason: &str| {
        vec![
            json!({"type": "response.output_text.delta", "delta": "I"}),
            json!({"type": format!("response.{kind}"),
                "response": {"incomplete_details": {"reason": reason}}}),
        ]
    };
    let chat = |reason: &str| {
        vec![
            json!({"choices": [{"delta": {"content": "I"}, "finish_reason": reason}]}),
            json!("[DONE]"),
        ]
    };
    let messages = |reason: &str| {
        vec![
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ]
    };
    let cases: Vec<(&dyn Wire, Vec<Value>, StopReason)> = vec![
        (&Responses, responses("completed", ""), StopReason::Done),
        (&Responses, responses("incomplete", "max_output_tokens"), StopReason::Length),
        (&Responses, responses("incomplete", "content_filter"), StopReason::Refused),
        (&CHAT, chat("stop"), StopReason::Done),
        (&CHAT, chat("length"), StopReason::Length),
        (&CHAT, chat("content_filter"), StopReason::Refused),
        (&Messages, messages("end_turn"), StopReason::Done),
        (&Messages, messages("pause_turn"), StopReason::Done),
        (&Messages, messages("max_tokens"), StopReason::Length),
        (&Messages, messages("refusal"), StopReason::Refused),
    ];
    for (wire, events, expected) in cases {
        let heard = hear(wire, &events).unwrap();
        assert_eq!(heard.last(), Some(&ModelEvent::End(expected)), "{events:?}");
        // What was said until then is not lost.
        let message = ModelEvent::Item(ResponseItem::message(Role::Assistant, "I"));
        assert!(heard.contains(&message), "{events:?}: {heard:?}");
    }
}

/// spec MODEL.30: A known event of another form than it should have ends the response.
#[test]
fn what_is_malformed_is_said_to_be() {
    let cases: &[(&dyn Wire, &str)] = &[
        (&Responses, "{"),
        (&Responses, "[]"),
        (&Responses, r#"{"no": "type"}"#),
        (&Responses, r#"{"type": "response.output_text.delta", "delta": 1}"#),
        (&Responses, r#"{"type": "response.output_item.done", "item": {"type": "function_call"}}"#),
        (&CHAT, "null"),
        (&CHAT, r#"{"choices": 1}"#),
        (&CHAT, r#"{"choices": [{"delta": {"content": {}}}]}"#),
        (
            &Messages,
            r#"{"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": ""}}"#,
        ),
        (
            &Messages,
            r#"{"type": "content_block_start", "index": -1, "content_block": {"type": "text"}}"#,
        ),
        (
            &Messages,
            r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}"#,
        ),
    ];
    for (wire, data) in cases {
        let heard = hear(*wire, &[Value::String((*data).to_owned())]);
        assert!(matches!(heard, Err(Fault::Malformed(_))), "{data}: {heard:?}");
    }
    let nameless = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]},
        "finish_reason": "tool_calls"}]});
    assert!(matches!(hear(&CHAT, &[nameless]), Err(Fault::Malformed(_))));
}

/// Servers that speak Chat Completions, each a little differently.
#[test]
fn dialects_of_chat() {
    let calls = |calls: Value| json!({"choices": [{"delta": {"tool_calls": calls}}]});
    let done = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let called = |events: &[Value]| -> Vec<(String, String)> {
        let heard = hear(&CHAT, events).unwrap().into_iter();
        let calls = heard.filter_map(|event| match event {
            ModelEvent::Item(ResponseItem::ToolCall { name, input, .. }) => {
                Some((name, input.as_str().to_owned()))
            }
            _ => None,
        });
        calls.collect()
    };
    let two = [("a".to_owned(), r#"{"x":1}"#.to_owned()), ("b".to_owned(), "{}".to_owned())];
    // All with the same number, whole, and no mark at the end.
    let events = [
        calls(
            json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\":1}"}}]),
        ),
        calls(json!([{"index": 0, "id": "2", "function": {"name": "b", "arguments": "{}"}}])),
        done.clone(),
    ];
    assert_eq!(called(&events), two);
    // Without numbers, and with arguments that are no text.
    let events = [
        calls(json!([{"id": "1", "function": {"name": "a", "arguments": {"x": 1}}}])),
        calls(json!([{"id": "2", "function": {"name": "b"}}])),
        done,
    ];
    assert_eq!(called(&events), two);

    // OpenRouter's details of what was thought, in pieces.
    let detail = |text: &str| {
        json!({"choices": [{"delta": {"reasoning": text, "reasoning_details":
        [{"type": "reasoning.text", "index": 0, "text": text, "signature": null}]}}]})
    };
    let events = [detail("h"), detail("m"), json!({"choices": [{"finish_reason": "stop"}]})];
    let heard = hear(&CHAT, &events).unwrap();
    let Some(ModelEvent::Item(ResponseItem::Reasoning { data, .. })) = heard.get(2) else {
        panic!("{heard:?}")
    };
    assert_eq!(data["reasoning"], "hm");
    assert_eq!(
        data["reasoning_details"],
        json!([{"type": "reasoning.text", "index": 0, "text": "hm", "signature": null}])
    );
}
