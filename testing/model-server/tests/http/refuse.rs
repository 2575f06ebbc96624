//! What the server refuses, because the real services do.

use crate::raw::{ask, hello};
use sandgate_model_server::{ModelServer, Script, Turn, Wire};
use serde_json::{Value, json};
use std::slice::from_ref;

/// A server that answers everything that it takes.
fn server() -> ModelServer {
    ModelServer::start(Script::new().then_always(|_| Turn::new().message("yes")))
}

/// What a request looks like, but for one thing.
fn with(wire: Wire, name: &str, value: Value) -> Value {
    let mut body = hello(wire);
    body[name] = value;
    body
}

/// Each of these is refused for its reason, in an answer and in the record.
fn check_refused(wire: Wire, cases: &[(Value, &str)]) {
    let server = server();
    for (number, (body, reason)) in cases.iter().enumerate() {
        let refusal = ask(&server, wire, body).unwrap().refusal();
        assert!(refusal.contains(reason), "{refusal:?} is not about {reason:?}: {body}");
        let violations = server.violations();
        assert_eq!(violations.len(), number + 1);
        assert_eq!(violations[number].to_string(), format!("POST {}: {refusal}", wire.path()));
    }
}

/// Each of these is taken.
fn check_taken(wire: Wire, cases: &[Value]) {
    let server = server();
    for body in cases {
        let answer = ask(&server, wire, body).unwrap();
        assert_eq!((answer.status, server.violations()), (200, vec![]), "{body}");
    }
}

fn input(items: &[Value]) -> Value {
    with(Wire::Responses, "input", json!(items))
}

fn messages(wire: Wire, messages: &[Value]) -> Value {
    let mut body = with(wire, "messages", json!(messages));
    let schema = json!({"type": "object", "properties": {}});
    body["tools"] = match wire {
        Wire::Messages => json!([{"name": "t", "input_schema": schema}]),
        _ => json!([{"type": "function", "function": {"name": "t", "parameters": schema}}]),
    };
    body
}

/// A thought that the server gave out, and the call that it came with, as Responses gives them.
fn thought_and_call() -> (ModelServer, Value, Value) {
    let turn = Turn::new().reasoning("hm").call("t", json!({})).call_id("c1");
    let script = Script::new().turn(turn).then_always(|_| Turn::new().message("yes"));
    let server = ModelServer::start(script);
    let mut body = hello(Wire::Responses);
    body["stream"] = json!(false);
    body["include"] = json!(["reasoning.encrypted_content"]);
    let answer = ask(&server, Wire::Responses, &body).unwrap().json();
    (server, answer["output"][0].clone(), answer["output"][1].clone())
}

/// spec SCRIPTED.10: Responses: a call without an output, an output without a call, a thought that was
/// changed or has nothing behind it, a call without the thought that it was made with, and what was
/// never stored are refused.
#[test]
fn responses_refuses_a_broken_history() {
    let user = json!({"role": "user", "content": "hello"});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"});
    let custom = json!({"type": "custom_tool_call", "call_id": "c2", "name": "t", "input": "x"});
    let output = |kind: &str, id: &str| json!({"type": kind, "call_id": id, "output": "ok"});
    let answer = output("function_call_output", "c1");
    let custom_answer = output("custom_tool_call_output", "c2");
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    check_taken(
        Wire::Responses,
        &[
            input(&[user.clone(), call.clone(), custom.clone(), custom_answer, answer.clone()]),
            input(&[json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "hi"}]})]),
        ],
    );
    check_refused(
        Wire::Responses,
        &[
            (input(&[user.clone(), call.clone()]), "No tool output found for function call c1"),
            (input(&[user.clone(), answer.clone()]), "No tool call found"),
            (input(&[answer.clone(), call.clone()]), "No tool call found"),
            (input(&[call.clone(), answer.clone(), answer.clone()]), "a second output"),
            (input(&[call.clone(), call.clone(), answer.clone()]), "duplicate call_id 'c1'"),
            (input(&[custom, output("function_call_output", "c2")]), "No tool call found"),
            (
                input(&[
                    json!({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
                ]),
                "Invalid value: 'input_text'",
            ),
            (input(&[json!({"type": "item_reference", "id": "msg_1"})]), "not found"),
            (input(&[json!({"type": "mystery"})]), "invalid value 'mystery'"),
            (input(&[]), "non-empty"),
            (with(Wire::Responses, "previous_response_id", json!("resp_1")), "not found"),
            (with(Wire::Responses, "max_output_tokens", json!(3)), ">= 16"),
            (with(Wire::Responses, "include", json!(["thoughts"])), "include"),
            (
                {
                    let mut body = input(&[thought.clone(), call.clone(), answer.clone()]);
                    body["store"] = json!(false);
                    body
                },
                "not persisted when `store` is set to false",
            ),
        ],
    );
}

#[test]
fn responses_refuses_thoughts_that_are_not_as_they_were() {
    let answer = json!({"type": "function_call_output", "call_id": "c1", "output": "ok"});
    let (server, thought, call) = thought_and_call();
    let asked = |items: &[Value]| ask(&server, Wire::Responses, &input(items)).unwrap();
    assert_eq!(asked(&[thought.clone(), call.clone(), answer.clone()]).status, 200);
    let alone = asked(&[call.clone(), answer.clone()]).refusal();
    assert!(alone.contains("without its required 'reasoning' item"), "{alone}");
    let idle = asked(&[call.clone(), answer.clone(), thought.clone()]).refusal();
    assert!(idle.contains("without its required"), "{idle}");
    let mut changed = thought.clone();
    changed["encrypted_content"] = json!("c29tZXRoaW5nIGVsc2UgdGhhdCBpcyBsb25n");
    let changed = asked(&[changed, call.clone(), answer]).refusal();
    assert!(changed.contains("could not be verified"), "{changed}");
    assert_eq!(server.violations().len(), 3);
}

/// spec SCRIPTED.11: Chat Completions: a call that is not answered at once, an answer to no call, and
/// parameters that need others are refused.
#[test]
fn chat_refuses_a_broken_history() {
    let user = json!({"role": "user", "content": "hello"});
    let call = |ids: &[&str]| {
        let call = |id| {
            json!({"id": id, "type": "function",
            "function": {"name": "t", "arguments": "{}"}})
        };
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    };
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let chat = |all: &[Value]| messages(Wire::Chat, all);
    check_taken(
        Wire::Chat,
        &[chat(&[user.clone(), call(&["a", "b"]), tool("b"), tool("a"), user.clone()])],
    );
    let unanswered = "did not have response messages: b";
    check_refused(
        Wire::Chat,
        &[
            (chat(&[user.clone(), call(&["a", "b"]), tool("a")]), unanswered),
            (chat(&[call(&["a", "b"]), tool("a"), user.clone(), tool("b")]), unanswered),
            (chat(&[user.clone(), tool("a")]), "must be a response to a preceding message"),
            (chat(&[call(&["a"]), tool("a"), tool("a")]), "must be a response to a preceding"),
            (chat(&[call(&["a"]), tool("a"), call(&["a"]), tool("a")]), "duplicate id 'a'"),
            (chat(&[call(&[])]), "tool_calls': empty array"),
            (chat(&[call(&[&"x".repeat(41)])]), "1 to 40 characters"),
            (chat(&[json!({"role": "assistant", "content": null})]), "content"),
            (chat(&[]), "empty array"),
            (with(Wire::Chat, "parallel_tool_calls", json!(true)), "when 'tools' are specified"),
            (with(Wire::Chat, "tools", json!([])), "empty array"),
            (
                {
                    let mut body =
                        with(Wire::Chat, "stream_options", json!({"include_usage": true}));
                    body["stream"] = json!(false);
                    body
                },
                "when 'stream' is enabled",
            ),
        ],
    );
}

/// spec SCRIPTED.12: Messages: roles that do not alternate, results that are missing, late or for no
/// call, thoughts that were changed or left out while tools are used, and a request without
/// `max_tokens` are refused.
#[test]
fn messages_refuses_a_broken_history() {
    let user = |content: Value| json!({"role": "user", "content": content});
    let hello = || user(json!("hello"));
    let text = json!({"type": "text", "text": "x"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let says = |blocks: &[Value]| json!({"role": "assistant", "content": blocks});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let chat = |all: &[Value]| messages(Wire::Messages, all);
    check_taken(
        Wire::Messages,
        &[chat(&[
            hello(),
            says(&[text.clone(), call("a"), call("b")]),
            user(json!([result("b"), result("a"), text])),
        ])],
    );
    let cached = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    check_refused(
        Wire::Messages,
        &[
            (chat(&[hello(), hello()]), "roles must alternate"),
            (chat(&[says(from_ref(&text))]), "first message must use the \"user\" role"),
            (chat(&[hello(), says(from_ref(&text))]), "must end with a user message"),
            (
                chat(&[hello(), says(&[call("a"), call("b")]), user(json!([result("a")]))]),
                "without `tool_result` blocks immediately after: b",
            ),
            (chat(&[hello(), says(&[call("a")]), hello()]), "immediately after: a"),
            (chat(&[hello(), says(&[call("a")]), user(json!([text, result("a")]))]), "come first"),
            (chat(&[user(json!([result("a")]))]), "unexpected `tool_use_id`"),
            (
                chat(&[hello(), says(&[call("a")]), user(json!([result("a"), result("a")]))]),
                "single result",
            ),
            (
                chat(&[hello(), says(&[call("a"), call("a")]), user(json!([result("a")]))]),
                "must be unique",
            ),
            (chat(&[hello(), says(&[json!({"type": "text", "text": ""})]), hello()]), "non-empty"),
            (chat(&[user(json!(""))]), "non-empty content"),
            (
                chat(&[
                    hello(),
                    says(&[json!({"type": "tool_use", "id": "a", "name": "t",
                "input": "{}"})]),
                    user(json!([result("a")])),
                ]),
                "valid dictionary",
            ),
            (chat(&[user(json!(vec![cached; 5]))]), "A maximum of 4 blocks with cache_control"),
            (
                with(Wire::Messages, "output_config", json!({"format": {"type": "json_schema"}})),
                "is no schema",
            ),
            (with(Wire::Messages, "max_tokens", Value::Null), "max_tokens: Field required"),
            (
                with(Wire::Messages, "thinking", json!({"type": "enabled", "budget_tokens": 5})),
                "at least 1024",
            ),
            (
                with(Wire::Messages, "thinking", json!({"type": "enabled", "budget_tokens": 4096})),
                "must be greater than",
            ),
        ],
    );
}

#[test]
fn messages_refuses_thoughts_that_are_not_as_they_were() {
    let turn = Turn::new().reasoning("hm").hidden_reasoning("psst").call("t", json!({}));
    let script = Script::new().turn(turn).then_always(|_| Turn::new().message("yes"));
    let server = ModelServer::start(script);
    let hello = json!({"role": "user", "content": "hello"});
    let asked = |all: &[Value]| {
        let mut body = messages(Wire::Messages, all);
        body["stream"] = json!(false);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        ask(&server, Wire::Messages, &body).unwrap()
    };
    let answer = asked(from_ref(&hello)).json();
    let [thought, hidden, call] = answer["content"].as_array().unwrap().as_slice() else {
        panic!("{answer}")
    };
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}]});
    let said = |blocks: &[&Value]| {
        asked(&[hello.clone(), json!({"role": "assistant", "content": blocks}), result.clone()])
    };
    assert_eq!(said(&[thought, hidden, call]).status, 200);
    let mut changed = thought.clone();
    changed["thinking"] = json!("hmm");
    assert!(said(&[&changed, hidden, call]).refusal().contains("Invalid `signature`"));
    for left in [&[call][..], &[thought, call], &[hidden, thought, call], &[call, thought, hidden]]
    {
        let refusal = said(left).refusal();
        assert!(refusal.contains("Expected `thinking`"), "{refusal}");
    }
    // The next task has begun: what was thought for the last one may be left out.
    let done = json!({"role": "assistant", "content": "done"});
    let called = json!({"role": "assistant", "content": [call]});
    assert_eq!(asked(&[hello.clone(), called, result.clone(), done, hello.clone()]).status, 200);
}

/// spec SCRIPTED.13: In every wire format two things with one name, a parameter that nobody knows, and
/// a tool whose schema is none are refused.
#[test]
fn every_format_refuses_what_is_no_tool_and_no_parameter() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let schemas = [
        (json!({}), "schema must be a JSON Schema"),
        (json!({"type": "string"}), "schema must be a JSON Schema"),
        (json!({"type": "object", "anyOf": [{}]}), "'anyOf' at the top level"),
        (object(json!({"a": {"type": "text"}})), "\"text\" is not valid"),
        (object(json!({"a": {"type": "array"}})), "array schema missing items"),
        (object(json!({"a": {"type": "string", "enum": []}})), "values are required"),
        (object(json!({"a": {"$ref": "#/$defs/b"}})), "leads nowhere"),
        (object(json!({"a": 5})), "5 is no schema"),
        (json!({"type": "object", "properties": {}, "required": ["b"]}), "no property 'b'"),
    ];
    for wire in Wire::ALL {
        let tool = |name: &str, schema: &Value, strict: bool| match wire {
            Wire::Responses => json!({"type": "function", "name": name, "parameters": schema,
                "strict": strict}),
            Wire::Chat => json!({"type": "function", "function": {"name": name,
                "parameters": schema, "strict": strict}}),
            Wire::Messages => json!({"name": name, "input_schema": schema, "strict": strict}),
        };
        let tools = |tools: &[Value]| with(wire, "tools", json!(tools));
        let good = json!({"type": "object", "$defs": {"b": {"type": ["string", "null"]}},
            "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}}},
            "required": ["a"], "additionalProperties": false});
        check_taken(wire, &[tools(&[tool("t", &good, true), tool("u", &good, false)])]);
        let mut cases: Vec<(Value, &str)> = schemas
            .iter()
            .map(|(schema, reason)| (tools(&[tool("t", schema, false)]), *reason))
            .collect();
        let loose = object(json!({"a": {"type": "string"}}));
        cases.push((tools(&[tool("t", &loose, true)]), "'additionalProperties' is required"));
        cases.push((tools(&[tool("t", &good, true), tool("t", &good, true)]), "duplicate id 't'"));
        cases.push((tools(&[tool("no spaces", &good, true)]), "does not match"));
        cases.push((with(wire, "weather", json!("fine")), "Unknown parameter: 'weather'"));
        cases.push((with(wire, "model", Value::Null), "model"));
        check_refused(wire, &cases);
    }
}

/// spec SCRIPTED.14: A request that the script has no turn for, and one whose last tool output is not
/// what the turn expects, are refused and recorded as violations.
#[test]
fn what_the_script_does_not_expect_is_refused() {
    let script = Script::new().turn(Turn::new().expect("42").message("right"));
    let server = ModelServer::start(script);
    for reason in ["expects \"42\" in the output", "no turn for this request"] {
        let refusal = ask(&server, Wire::Chat, &hello(Wire::Chat)).unwrap().refusal();
        assert!(refusal.contains(reason), "{refusal}");
    }
    assert_eq!(server.violations().len(), 2);
}

/// spec SCRIPTED.15: A script for clients of others answers what the services would refuse.
#[test]
fn clients_of_others_are_answered() {
    let server = ModelServer::start(Script::new().turn(Turn::new().message("yes")).unchecked());
    let body = with(Wire::Responses, "client_metadata", json!({ "of": "its own" }));
    let answer = ask(&server, Wire::Responses, &body).unwrap();
    assert!(answer.text().contains("yes"), "{}", answer.text());
    assert!(server.violations().is_empty());
}

#[test]
fn what_is_no_request_at_all_is_refused_and_recorded() {
    use std::io::Read as _;
    let server = server();
    for (path, body, status) in
        [("/v1/models", "{}", "404"), ("/v1/responses", "{", "400"), ("/v1/messages", "[]", "400")]
    {
        let mut answer = String::new();
        crate::raw::send(&server, path, body).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert_eq!(server.violations().len(), 3);
}
