//! Chat Completions: chunks of one message, whose calls are told apart by their index.

use super::{Asked, CREATED, Data, Event, by_turns};
use crate::turn::{Part, Stop, in_pieces};
use serde_json::{Value, json};

pub(super) fn events(asked: Asked<'_>) -> Vec<Event> {
    let mut events = vec![chunk(asked, &json!({"role": "assistant", "content": ""}), &Value::Null)];
    let delta = |delta: &Value| chunk(asked, delta, &Value::Null);
    let mut calls = Vec::new();
    for part in &asked.turn.parts {
        match part {
            Part::Message { pieces } => {
                events.extend(pieces.iter().map(|piece| delta(&json!({"content": piece}))));
            }
            Part::Reasoning { hidden: true, .. } => {}
            Part::Reasoning { pieces, hidden: false } => {
                let thought = |piece| delta(&json!({"reasoning_content": piece}));
                events.extend(pieces.iter().map(thought));
            }
            Part::Call { .. } => {
                let index = calls.len();
                let mut call = call(asked, index, part);
                let arguments = call["function"]["arguments"].take();
                call["function"]["arguments"] = json!("");
                call["index"] = json!(index);
                let mut lane = vec![delta(&json!({"tool_calls": [call]}))];
                for piece in in_pieces(arguments.as_str().unwrap_or_default()) {
                    let piece = json!({"index": index, "function": {"arguments": piece}});
                    lane.push(delta(&json!({"tool_calls": [piece]})));
                }
                calls.push(lane);
            }
        }
    }
    events.extend(if asked.turn.interleaved { by_turns(calls) } else { calls.concat() });
    events.push(chunk(asked, &json!({}), &json!(finish_reason(asked))));
    if wants_usage(asked) {
        let mut last = base(asked, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(asked);
        events.push(Event { name: None, data: Data::Json(last) });
    }
    events.push(Event { name: None, data: Data::Text("[DONE]") });
    events
}

pub(super) fn document(asked: Asked<'_>) -> Value {
    let (mut text, mut thoughts) = (String::new(), String::new());
    let mut calls = Vec::new();
    for part in &asked.turn.parts {
        match part {
            Part::Message { pieces } => text.push_str(&pieces.concat()),
            Part::Reasoning { hidden: true, .. } => {}
            Part::Reasoning { pieces, hidden: false } => thoughts.push_str(&pieces.concat()),
            Part::Call { .. } => calls.push(call(asked, calls.len(), part)),
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !thoughts.is_empty() {
        message["reasoning_content"] = json!(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut document = base(asked, "chat.completion");
    document["choices"] = json!([{"index": 0, "message": message, "logprobs": null,
        "finish_reason": finish_reason(asked)}]);
    document["usage"] = usage(asked);
    document
}

fn base(asked: Asked<'_>, object: &str) -> Value {
    json!({"id": format!("chatcmpl_{}", asked.number), "object": object, "created": CREATED,
        "model": asked.model(), "service_tier": "default", "system_fingerprint": "fp_1"})
}

fn chunk(asked: Asked<'_>, delta: &Value, finish_reason: &Value) -> Event {
    let mut chunk = base(asked, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "logprobs": null,
        "finish_reason": finish_reason}]);
    if wants_usage(asked) {
        chunk["usage"] = Value::Null;
    }
    Event { name: None, data: Data::Json(chunk) }
}

/// Only who asks for it gets the usage of a stream.
fn wants_usage(asked: Asked<'_>) -> bool {
    asked.body["stream_options"]["include_usage"] == true
}

fn call(asked: Asked<'_>, index: usize, part: &Part) -> Value {
    let Part::Call { name, call_id, input } = part else { return Value::Null };
    let id = call_id.clone().unwrap_or_else(|| format!("call_{}_{index}", asked.number));
    let function = json!({"name": name, "arguments": input.as_arguments()});
    json!({"id": id, "type": "function", "function": function})
}

fn finish_reason(asked: Asked<'_>) -> &'static str {
    match asked.turn.stop {
        Stop::Done if asked.turn.calls() => "tool_calls",
        Stop::Done => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    }
}

fn usage(asked: Asked<'_>) -> Value {
    let usage = asked.turn.usage;
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
    })
}
