//! The stream of Chat Completions.

use super::NAME;
use crate::provider::MOST_CALLS;
use crate::provider::wire::{Decode, Fault, KnownIds, Sign, Told, arguments, or_default, read};
use crate::provider::{ModelEvent, StopReason};
use sandgate_protocol::{ResponseItem, Role, TokenUsage};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The fields that what a model thinks comes in, by server.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) struct Reader {
    known: KnownIds,
    text: String,
    reasoning: String,
    /// The field that it came in.
    reasoning_field: &'static str,
    /// What a server wants to see again beside it.
    reasoning_details: Vec<Value>,
    calls: Vec<Call>,
    usage: Option<TokenUsage>,
    finish: Option<StopReason>,
    refused: bool,
    over: bool,
}

/// A call that is being written.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, deserialize_with = "or_default")]
    index: u64,
    #[serde(default, deserialize_with = "or_default")]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    reasoning_details: Vec<Value>,
    #[serde(default, deserialize_with = "or_default")]
    tool_calls: Vec<CallDelta>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    function: FunctionDelta,
}

#[derive(Deserialize, Default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens_details: PromptDetails,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens_details: CompletionDetails,
    /// DeepSeek's word for the cached ones.
    #[serde(default, deserialize_with = "or_default")]
    prompt_cache_hit_tokens: u64,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    #[serde(default, deserialize_with = "or_default")]
    cached_tokens: u64,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "or_default")]
    reasoning_tokens: u64,
}

impl Reader {
    pub(super) fn new(known: KnownIds) -> Self {
        Self {
            known,
            text: String::new(),
            reasoning: String::new(),
            reasoning_field: REASONING_FIELDS[0],
            reasoning_details: Vec::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
            refused: false,
            over: false,
        }
    }

    fn delta(&mut self, delta: Delta, heard: &mut Vec<ModelEvent>) {
        let thought = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) if !text.is_empty() => Some((text, REASONING_FIELDS[0])),
            (_, Some(text)) if !text.is_empty() => Some((text, REASONING_FIELDS[1])),
            _ => None,
        };
        if let Some((text, field)) = thought {
            self.reasoning_field = field;
            self.reasoning.push_str(&text);
            heard.push(ModelEvent::ReasoningDelta(text));
        }
        self.reasoning_details.extend(delta.reasoning_details);
        self.refused |= delta.refusal.as_ref().is_some_and(|text| !text.is_empty());
        for text in [delta.content, delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.text.push_str(&text);
                heard.push(ModelEvent::TextDelta(text));
            }
        }
        delta.tool_calls.into_iter().for_each(|call| self.call(call));
    }

    /// Adds to the call that a piece belongs to. Servers that number nothing, or everything alike,
    /// begin a new call with a new id.
    fn call(&mut self, delta: CallDelta) {
        let id = delta.id.filter(|id| !id.is_empty());
        let same = |call: &&mut Call| match delta.index {
            Some(_) => call.index == delta.index,
            None => true,
        };
        let goes_on = |call: &&mut Call| id.is_none() || call.id.is_none() || call.id == id;
        let full = self.calls.len() >= MOST_CALLS;
        let current = self.calls.iter_mut().rev().find(same);
        let call = match current.filter(goes_on) {
            Some(call) => call,
            // Whoever is told of so many refuses all of them.
            None if full => return,
            None => self.calls.push_mut(Call { index: delta.index, ..Call::default() }),
        };
        call.id = call.id.take().or(id);
        if call.name.is_empty() {
            call.name = delta.function.name.unwrap_or_default();
        }
        match delta.function.arguments {
            Some(Value::String(text)) => call.arguments.push_str(&text),
            Some(Value::Null) | None => {}
            // A server that takes the text for what it says.
            Some(value) => call.arguments.push_str(&value.to_string()),
        }
    }

    /// All of the response, once it is complete.
    fn complete(&mut self, heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.over = true;
        if !self.reasoning.is_empty() || !self.reasoning_details.is_empty() {
            let mut data = Map::new();
            if !self.reasoning.is_empty() {
                data.insert(self.reasoning_field.to_owned(), self.reasoning.clone().into());
            }
            if !self.reasoning_details.is_empty() {
                let details = merged(std::mem::take(&mut self.reasoning_details));
                data.insert("reasoning_details".to_owned(), details.into());
            }
            let summary = std::mem::take(&mut self.reasoning);
            let (wire, data) = (NAME.to_owned(), Value::Object(data));
            heard.push(ModelEvent::Item(ResponseItem::Reasoning { summary, wire, data }));
        }
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            heard.push(ModelEvent::Item(ResponseItem::message(Role::Assistant, text)));
        }
        for call in std::mem::take(&mut self.calls) {
            if call.name.is_empty() {
                return Err(Fault::Malformed("a call has no name".to_owned()));
            }
            let call_id = self.known.name(call.id);
            let input = arguments(call.arguments);
            heard.push(ModelEvent::Item(ResponseItem::ToolCall {
                call_id,
                name: call.name,
                input,
            }));
        }
        heard.extend(self.usage.map(ModelEvent::Usage));
        let reason = self.finish.unwrap_or(StopReason::Done);
        heard.push(ModelEvent::End(if self.refused { StopReason::Refused } else { reason }));
        Ok(())
    }
}

/// Pieces of one detail, which come one after the other, as one.
fn merged(pieces: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for piece in pieces {
        let same = |last: &&mut Value| {
            ["type", "index", "id"].iter().all(|name| last.get(name) == piece.get(name))
                && piece.get("type").and_then(Value::as_str) == Some("reasoning.text")
        };
        let (Some(last), Some(fields)) = (merged.last_mut().filter(same), piece.as_object()) else {
            merged.push(piece);
            continue;
        };
        for (name, value) in fields {
            match (last.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more)) if name == "text" => {
                    text.push_str(more);
                }
                (_, Value::Null) => {}
                (_, value) => last[name.as_str()] = value.clone(),
            }
        }
    }
    merged
}

impl Decode for Reader {
    fn event(&mut self, data: &str, heard: &mut Vec<ModelEvent>) -> Result<Sign, Fault> {
        if data == "[DONE]" {
            // A server may say so without a reason to stop.
            let brought = !self.text.is_empty() || !self.calls.is_empty();
            if !self.over && (self.finish.is_some() || brought) {
                self.complete(heard)?;
            }
            return Ok(Sign::Work);
        }
        let chunk: Chunk = read(data)?;
        if chunk.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(Fault::Told(Told::of_event(&read::<Value>(data)?)));
        }
        if let Some(usage) = chunk.usage {
            let cached = usage.prompt_tokens_details.cached_tokens;
            self.usage = Some(TokenUsage {
                input_tokens: usage.prompt_tokens,
                cached_input_tokens: cached.max(usage.prompt_cache_hit_tokens),
                output_tokens: usage.completion_tokens,
                reasoning_output_tokens: usage.completion_tokens_details.reasoning_tokens,
            });
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.delta(choice.delta, heard);
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("length") => self.finish = Some(StopReason::Length),
                Some("content_filter") => self.finish = Some(StopReason::Refused),
                Some("error") => {
                    let message = "the server says that something went wrong".to_owned();
                    return Err(Fault::Told(Told { message, ..Told::default() }));
                }
                Some(_) => self.finish = Some(StopReason::Done),
            }
        }
        Ok(Sign::Work)
    }

    fn end_of_stream(&mut self, heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        match self.finish {
            Some(_) if !self.over => self.complete(heard),
            _ => Ok(()),
        }
    }
}
