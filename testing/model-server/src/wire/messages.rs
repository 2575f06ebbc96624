//! Messages: blocks one after the other, and what was used at the beginning and the end.

use super::{Asked, Event};
use crate::seal::seal;
use crate::turn::{Part, Stop, in_pieces};
use serde_json::{Value, json};

pub(super) fn events(asked: Asked<'_>) -> Vec<Event> {
    let mut begun = document(asked);
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    begun["usage"]["output_tokens"] = json!(1);
    let mut events = vec![
        Event::json("message_start", json!({"type": "message_start", "message": begun})),
        Event::ping(),
    ];
    for (index, part) in said(asked) {
        events.extend(block_events(asked, index, part));
    }
    let delta = json!({"stop_reason": stop_reason(asked), "stop_sequence": null});
    let usage = json!({"output_tokens": asked.turn.usage.output_tokens});
    let last = json!({"type": "message_delta", "delta": delta, "usage": usage});
    events.push(Event::json("message_delta", last));
    events.push(Event::json("message_stop", json!({"type": "message_stop"})));
    events
}

pub(super) fn document(asked: Asked<'_>) -> Value {
    let content: Vec<Value> = said(asked).map(|(index, part)| block(asked, index, part)).collect();
    let usage = asked.turn.usage;
    // Here, what came from the cache is counted apart.
    let fresh = usage.input_tokens.saturating_sub(usage.cached_input_tokens);
    json!({
        "id": format!("msg_{}", asked.number),
        "type": "message",
        "role": "assistant",
        "model": asked.model(),
        "content": content,
        "stop_reason": stop_reason(asked),
        "stop_sequence": null,
        "usage": {
            "input_tokens": fresh,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached_input_tokens,
            "output_tokens": usage.output_tokens,
            "service_tier": "standard",
        },
    })
}

/// The calls, each with the seals of all thoughts before it.
pub(super) fn sealed_calls(asked: Asked<'_>) -> Vec<(String, Vec<String>)> {
    let (mut calls, mut seals) = (Vec::new(), Vec::new());
    for (index, part) in said(asked) {
        match part {
            Part::Message { .. } => {}
            Part::Reasoning { pieces, .. } => seals.push(seal(&pieces.concat())),
            Part::Call { .. } => calls.push((call_id(asked, index, part), seals.clone())),
        }
    }
    calls
}

/// The parts with their places; thoughts are left out when nobody turned thinking on.
fn said(asked: Asked<'_>) -> impl Iterator<Item = (usize, &Part)> {
    let thinks = matches!(asked.body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    let said = move |part: &&Part| thinks || !matches!(part, Part::Reasoning { .. });
    asked.turn.parts.iter().filter(said).enumerate()
}

fn block(asked: Asked<'_>, index: usize, part: &Part) -> Value {
    match part {
        Part::Message { pieces } => {
            json!({"type": "text", "text": pieces.concat(), "citations": null})
        }
        Part::Reasoning { pieces, hidden: true } => {
            json!({"type": "redacted_thinking", "data": seal(&pieces.concat())})
        }
        Part::Reasoning { pieces, hidden: false } => {
            let text = pieces.concat();
            json!({"type": "thinking", "thinking": text, "signature": seal(&text)})
        }
        Part::Call { name, input, .. } => {
            // In one piece there is no way to be wrong: what is no JSON becomes nothing.
            let input: Value = serde_json::from_str(&input.as_arguments()).unwrap_or(json!({}));
            json!({"type": "tool_use", "id": call_id(asked, index, part), "name": name,
                "input": input})
        }
    }
}

fn block_events(asked: Asked<'_>, index: usize, part: &Part) -> Vec<Event> {
    let mut begun = block(asked, index, part);
    let mut deltas = Vec::new();
    match part {
        Part::Message { pieces } => {
            begun["text"] = json!("");
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            deltas.extend(pieces.iter().map(delta));
        }
        Part::Reasoning { hidden: true, .. } => {}
        Part::Reasoning { pieces, hidden: false } => {
            let signature = begun["signature"].take();
            begun["signature"] = json!("");
            begun["thinking"] = json!("");
            let delta = |piece| json!({"type": "thinking_delta", "thinking": piece});
            deltas.extend(pieces.iter().map(delta));
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
        }
        Part::Call { input, .. } => {
            begun["input"] = json!({});
            let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            deltas.push(delta(String::new()));
            deltas.extend(in_pieces(&input.as_arguments()).into_iter().map(delta));
        }
    }
    let event = |name, mut data: Value| {
        data["type"] = json!(name);
        data["index"] = json!(index);
        Event::json(name, data)
    };
    let mut events = vec![event("content_block_start", json!({"content_block": begun}))];
    let delta = |delta| event("content_block_delta", json!({"delta": delta}));
    events.extend(deltas.into_iter().map(delta));
    events.push(event("content_block_stop", json!({})));
    events
}

fn call_id(asked: Asked<'_>, index: usize, part: &Part) -> String {
    match part {
        Part::Call { call_id: Some(id), .. } => id.clone(),
        _ => format!("toolu_{}_{index}", asked.number),
    }
}

fn stop_reason(asked: Asked<'_>) -> &'static str {
    match asked.turn.stop {
        Stop::Done if asked.turn.calls() => "tool_use",
        Stop::Done => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
    }
}
