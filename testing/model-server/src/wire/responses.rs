//! Responses: items, each with its own events, and the whole response at the beginning and the end.

use super::{Asked, CREATED, Data, Event, by_turns};
use crate::seal::seal;
use crate::turn::{CallInput, Part, Stop, in_pieces};
use serde_json::{Value, json};

pub(super) fn events(asked: Asked<'_>) -> Vec<Event> {
    let begun = response(asked, "in_progress", &[]);
    let mut events = vec![
        Event::json("response.created", json!({"type": "response.created", "response": begun})),
        Event::json(
            "response.in_progress",
            json!({"type": "response.in_progress", "response": begun}),
        ),
    ];
    let mut calls = Vec::new();
    for (index, part) in asked.turn.parts.iter().enumerate() {
        let of_part = item_events(asked, index, part);
        if asked.turn.interleaved && matches!(part, Part::Call { .. }) {
            calls.push(of_part);
            continue;
        }
        events.extend(by_turns(std::mem::take(&mut calls)));
        events.extend(of_part);
    }
    events.extend(by_turns(calls));
    let name = match asked.turn.stop {
        Stop::Done => "response.completed",
        Stop::Length | Stop::Refused => "response.incomplete",
    };
    events.push(Event::json(name, json!({"type": name, "response": document(asked)})));
    events
}

pub(super) fn document(asked: Asked<'_>) -> Value {
    let parts = asked.turn.parts.iter().enumerate();
    let output: Vec<Value> = parts.map(|(index, part)| item(asked, index, part)).collect();
    let status = match asked.turn.stop {
        Stop::Done => "completed",
        Stop::Length | Stop::Refused => "incomplete",
    };
    let mut document = response(asked, status, &output);
    document["incomplete_details"] = match asked.turn.stop {
        Stop::Done => Value::Null,
        Stop::Length => json!({"reason": "max_output_tokens"}),
        Stop::Refused => json!({"reason": "content_filter"}),
    };
    let usage = asked.turn.usage;
    document["usage"] = json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details":
            {"cached_tokens": usage.cached_input_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    });
    document
}

/// The event that says that the response which these began has failed.
pub(super) fn failed(before: &[Event], code: &str, message: &str) -> Event {
    let mut response = match before.first() {
        Some(Event { data: Data::Json(first), .. }) => first["response"].clone(),
        _ => json!({"id": "resp_0", "object": "response", "created_at": CREATED, "model": "",
            "output": [], "parallel_tool_calls": true, "tool_choice": "auto", "tools": []}),
    };
    response["status"] = json!("failed");
    response["error"] = json!({"code": code, "message": message});
    Event::json("response.failed", json!({"type": "response.failed", "response": response}))
}

/// The items that are calls, each with the seals of the thoughts right before it.
pub(super) fn sealed_calls(asked: Asked<'_>) -> Vec<(String, Vec<String>)> {
    let (mut calls, mut seals) = (Vec::new(), Vec::new());
    for (index, part) in asked.turn.parts.iter().enumerate() {
        match part {
            Part::Reasoning { pieces, .. } => seals.push(seal(&pieces.concat())),
            // Only the item that follows a thought belongs to it.
            Part::Message { .. } => seals.clear(),
            Part::Call { .. } if seals.is_empty() => {}
            Part::Call { .. } => {
                calls.push((item_id(asked, index, part), std::mem::take(&mut seals)));
            }
        }
    }
    calls
}

/// The response without what is known only at its end.
fn response(asked: Asked<'_>, status: &str, output: &[Value]) -> Value {
    let given = |name: &str, otherwise: Value| match asked.body.get(name) {
        Some(value) if !value.is_null() => value.clone(),
        _ => otherwise,
    };
    json!({
        "id": format!("resp_{}", asked.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": given("instructions", Value::Null),
        "max_output_tokens": given("max_output_tokens", Value::Null),
        "model": asked.model(),
        "output": output,
        "parallel_tool_calls": given("parallel_tool_calls", json!(true)),
        "previous_response_id": null,
        "prompt_cache_key": given("prompt_cache_key", Value::Null),
        "reasoning": given("reasoning", json!({"effort": null, "summary": null})),
        "service_tier": "default",
        "store": given("store", json!(true)),
        "temperature": given("temperature", json!(1.0)),
        "text": given("text", json!({"format": {"type": "text"}})),
        "tool_choice": given("tool_choice", json!("auto")),
        "tools": tools(asked.body),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "user": null,
        "metadata": {},
    })
}

/// The tools as the service gives them back: with what was left out.
fn tools(body: &Value) -> Vec<Value> {
    let mut tools = body["tools"].as_array().cloned().unwrap_or_default();
    for tool in tools.iter_mut().filter(|tool| tool["type"] == "function") {
        if tool["strict"].is_null() {
            tool["strict"] = json!(false);
        }
    }
    tools
}

fn item_id(asked: Asked<'_>, index: usize, part: &Part) -> String {
    let kind = match part {
        Part::Message { .. } => "msg",
        Part::Reasoning { .. } => "rs",
        Part::Call { input: CallInput::Arguments(_), .. } => "fc",
        Part::Call { input: CallInput::Text(_), .. } => "ctc",
    };
    format!("{kind}_{}_{index}", asked.number)
}

/// An item when it is complete.
fn item(asked: Asked<'_>, index: usize, part: &Part) -> Value {
    let id = item_id(asked, index, part);
    match part {
        Part::Message { pieces } => {
            let content = json!([text_part(&pieces.concat())]);
            json!({"type": "message", "id": id, "status": "completed", "role": "assistant",
                "content": content})
        }
        Part::Reasoning { pieces, .. } => {
            let text = pieces.concat();
            let summary: Vec<Value> =
                shown(asked, part).then(|| summary_part(&text)).into_iter().collect();
            let mut item = json!({"type": "reasoning", "id": id, "summary": summary});
            // Only who asks for the sealed thought gets it.
            let include = asked.body["include"].as_array();
            if include.is_some_and(|all| all.contains(&json!("reasoning.encrypted_content"))) {
                item["encrypted_content"] = json!(seal(&text));
            }
            item
        }
        Part::Call { name, input: CallInput::Arguments(arguments), .. } => {
            json!({"type": "function_call", "id": id, "status": "completed", "name": name,
                "call_id": call_id(asked, index, part), "arguments": arguments})
        }
        Part::Call { name, input: CallInput::Text(text), .. } => {
            json!({"type": "custom_tool_call", "id": id, "status": "completed", "name": name,
                "call_id": call_id(asked, index, part), "input": text})
        }
    }
}

fn item_events(asked: Asked<'_>, index: usize, part: &Part) -> Vec<Event> {
    let id = item_id(asked, index, part);
    let done = item(asked, index, part);
    let mut begun = done.clone();
    let mut lane = Lane { id, index, events: Vec::new() };
    match part {
        Part::Message { pieces } => {
            begun["content"] = json!([]);
            begun["status"] = json!("in_progress");
            lane.push("response.output_item.added", json!({"item": begun}));
            let at = json!({"content_index": 0});
            lane.push_at("response.content_part.added", &at, json!({"part": text_part("")}));
            for piece in pieces {
                let delta = json!({"delta": piece, "logprobs": []});
                lane.push_at("response.output_text.delta", &at, delta);
            }
            let text = pieces.concat();
            let whole = json!({"text": text, "logprobs": []});
            lane.push_at("response.output_text.done", &at, whole);
            lane.push_at("response.content_part.done", &at, json!({"part": text_part(&text)}));
        }
        Part::Reasoning { pieces, .. } => {
            begun["summary"] = json!([]);
            lane.push("response.output_item.added", json!({"item": begun}));
            if shown(asked, part) {
                let at = json!({"summary_index": 0});
                let text = pieces.concat();
                lane.push_at(
                    "response.reasoning_summary_part.added",
                    &at,
                    json!({"part": summary_part("")}),
                );
                for piece in pieces {
                    let delta = json!({"delta": piece});
                    lane.push_at("response.reasoning_summary_text.delta", &at, delta);
                }
                lane.push_at("response.reasoning_summary_text.done", &at, json!({"text": text}));
                let whole = json!({"part": summary_part(&text)});
                lane.push_at("response.reasoning_summary_part.done", &at, whole);
            }
        }
        Part::Call { input: CallInput::Arguments(arguments), .. } => {
            begun["arguments"] = json!("");
            begun["status"] = json!("in_progress");
            lane.push("response.output_item.added", json!({"item": begun}));
            for piece in in_pieces(arguments) {
                let delta = json!({"delta": piece});
                lane.push_at("response.function_call_arguments.delta", &json!({}), delta);
            }
            let whole = json!({"arguments": arguments, "name": done["name"]});
            lane.push_at("response.function_call_arguments.done", &json!({}), whole);
        }
        Part::Call { input: CallInput::Text(text), .. } => {
            begun["input"] = json!("");
            begun["status"] = json!("in_progress");
            lane.push("response.output_item.added", json!({"item": begun}));
            for piece in in_pieces(text) {
                let delta = json!({"delta": piece});
                lane.push_at("response.custom_tool_call_input.delta", &json!({}), delta);
            }
            let whole = json!({"input": text});
            lane.push_at("response.custom_tool_call_input.done", &json!({}), whole);
        }
    }
    lane.push("response.output_item.done", json!({"item": done}));
    lane.events
}

/// The events of one item.
struct Lane {
    id: String,
    index: usize,
    events: Vec<Event>,
}

impl Lane {
    /// An event about the item as a whole.
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = json!(name);
        data["output_index"] = json!(self.index);
        self.events.push(Event::json(name, data));
    }

    /// An event about a place in the item.
    fn push_at(&mut self, name: &'static str, place: &Value, mut data: Value) {
        data["item_id"] = json!(self.id);
        for (key, value) in place.as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        self.push(name, data);
    }
}

/// Whether a thought is shown: people may read it, and somebody asked to.
fn shown(asked: Asked<'_>, part: &Part) -> bool {
    matches!(part, Part::Reasoning { hidden: false, .. }) && asked.has("/reasoning/summary")
}

fn call_id(asked: Asked<'_>, index: usize, part: &Part) -> String {
    match part {
        Part::Call { call_id: Some(id), .. } => id.clone(),
        _ => format!("call_{}_{index}", asked.number),
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}
