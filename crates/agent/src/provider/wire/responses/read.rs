//! The stream of Responses.

use super::NAME;
use crate::provider::wire::{Decode, Fault, KnownIds, Sign, Told, arguments, or_default, read};
use crate::provider::{ModelEvent, StopReason};
use sandgate_protocol::{CallInput, ResponseItem, Role, TokenUsage};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) struct Reader {
    known: KnownIds,
    /// What was said since the last complete message.
    unfinished: String,
    /// Items that have begun, by their numbers, and those behind them that are complete: they are told
    /// in the order of their numbers.
    items: BTreeMap<u64, Option<Value>>,
    brought_items: bool,
    refused: bool,
}

/// The events that mean something to us. All others are passed over.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.output_text.delta", alias = "response.refusal.delta")]
    Text { delta: String },
    #[serde(
        rename = "response.reasoning_summary_text.delta",
        alias = "response.reasoning_text.delta"
    )]
    Reasoning { delta: String },
    #[serde(rename = "response.reasoning_summary_part.added")]
    ReasoningPart {
        #[serde(default)]
        summary_index: u64,
    },
    #[serde(rename = "response.output_item.added")]
    ItemBegins { output_index: Option<u64> },
    #[serde(rename = "response.output_item.done")]
    Item { output_index: Option<u64>, item: Value },
    #[serde(rename = "response.completed", alias = "response.done")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed", alias = "response.cancelled")]
    Failed { response: Value },
    #[serde(rename = "error")]
    Error,
    #[serde(rename = "keepalive", alias = "ping")]
    KeepAlive,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default, deserialize_with = "or_default")]
    output: Vec<Value>,
    usage: Option<Usage>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Usage {
    #[serde(default, deserialize_with = "or_default")]
    input_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    input_tokens_details: InputDetails,
    #[serde(default, deserialize_with = "or_default")]
    output_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    output_tokens_details: OutputDetails,
}

#[derive(Deserialize, Default)]
struct InputDetails {
    #[serde(default, deserialize_with = "or_default")]
    cached_tokens: u64,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    #[serde(default, deserialize_with = "or_default")]
    reasoning_tokens: u64,
}

/// The items that mean something to us.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        #[serde(default, deserialize_with = "or_default")]
        content: Vec<Content>,
    },
    Reasoning {
        #[serde(default, deserialize_with = "or_default")]
        summary: Vec<Content>,
        #[serde(default, deserialize_with = "or_default")]
        content: Vec<Content>,
    },
    FunctionCall {
        call_id: Option<String>,
        id: Option<String>,
        name: String,
        #[serde(default, deserialize_with = "or_default")]
        arguments: String,
    },
    CustomToolCall {
        call_id: Option<String>,
        id: Option<String>,
        name: String,
        #[serde(default, deserialize_with = "or_default")]
        input: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    refusal: Option<String>,
}

impl Reader {
    pub(super) fn new(known: KnownIds) -> Self {
        let (unfinished, items) = (String::new(), BTreeMap::new());
        Self { known, unfinished, items, brought_items: false, refused: false }
    }

    fn item(&mut self, data: Value, heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let item = Item::deserialize(&data);
        let item = match item.map_err(|error| Fault::Malformed(error.to_string()))? {
            Item::Message { content } => {
                self.refused |= content.iter().any(|part| part.refusal.is_some());
                self.unfinished.clear();
                ResponseItem::message(Role::Assistant, joined(content, ""))
            }
            Item::Reasoning { summary, content } => {
                let summary = if summary.is_empty() { content } else { summary };
                let summary = joined(summary, "\n\n");
                ResponseItem::Reasoning { summary, wire: NAME.to_owned(), data }
            }
            Item::FunctionCall { call_id, id, name, arguments: text } => {
                let call_id = self.known.name(call_id.or(id));
                ResponseItem::ToolCall { call_id, name, input: arguments(text) }
            }
            Item::CustomToolCall { call_id, id, name, input } => {
                let call_id = self.known.name(call_id.or(id));
                ResponseItem::ToolCall { call_id, name, input: CallInput::Text(input) }
            }
            Item::Other => return Ok(()),
        };
        self.brought_items = true;
        heard.push(ModelEvent::Item(item));
        Ok(())
    }

    fn ended(
        &mut self,
        response: Response,
        reason: StopReason,
        heard: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        for item in std::mem::take(&mut self.items).into_values().flatten() {
            self.item(item, heard)?;
        }
        // A server may leave out the events of the items.
        if !self.brought_items {
            response.output.into_iter().try_for_each(|item| self.item(item, heard))?;
        }
        if !self.unfinished.is_empty() {
            let text = std::mem::take(&mut self.unfinished);
            heard.push(ModelEvent::Item(ResponseItem::message(Role::Assistant, text)));
        }
        if let Some(usage) = response.usage {
            heard.push(ModelEvent::Usage(TokenUsage {
                input_tokens: usage.input_tokens,
                cached_input_tokens: usage.input_tokens_details.cached_tokens,
                output_tokens: usage.output_tokens,
                reasoning_output_tokens: usage.output_tokens_details.reasoning_tokens,
            }));
        }
        heard.push(ModelEvent::End(if self.refused { StopReason::Refused } else { reason }));
        Ok(())
    }
}

fn joined(content: Vec<Content>, between: &str) -> String {
    let texts = content.into_iter().filter_map(|part| part.text.or(part.refusal));
    texts.collect::<Vec<_>>().join(between)
}

impl Decode for Reader {
    fn event(&mut self, data: &str, heard: &mut Vec<ModelEvent>) -> Result<Sign, Fault> {
        if data == "[DONE]" {
            return Ok(Sign::Life);
        }
        match read(data)? {
            Event::Text { delta } => {
                self.unfinished.push_str(&delta);
                heard.push(ModelEvent::TextDelta(delta));
            }
            Event::Reasoning { delta } => heard.push(ModelEvent::ReasoningDelta(delta)),
            Event::ReasoningPart { summary_index } => {
                if summary_index > 0 {
                    heard.push(ModelEvent::ReasoningDelta("\n\n".to_owned()));
                }
            }
            Event::ItemBegins { output_index } => {
                self.items.extend(output_index.map(|index| (index, None)));
            }
            Event::Item { output_index: None, item } => self.item(item, heard)?,
            Event::Item { output_index: Some(index), item } => {
                self.items.insert(index, Some(item));
                while let Some(first) = self.items.first_entry().filter(|item| item.get().is_some())
                {
                    if let Some(item) = first.remove() {
                        self.item(item, heard)?;
                    }
                }
            }
            Event::Completed { response } => self.ended(response, StopReason::Done, heard)?,
            Event::Incomplete { response } => {
                let why = response.incomplete_details.as_ref();
                let reason = match why.and_then(|why| why.reason.as_deref()) {
                    Some("content_filter") => StopReason::Refused,
                    _ => StopReason::Length,
                };
                self.ended(response, reason, heard)?;
            }
            Event::Failed { response } => return Err(Fault::Told(Told::of_event(&response))),
            Event::Error => return Err(Fault::Told(Told::of_event(&read::<Value>(data)?))),
            Event::KeepAlive => return Ok(Sign::Life),
            Event::Other => {}
        }
        Ok(Sign::Work)
    }

    fn end_of_stream(&mut self, _heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        Ok(())
    }
}
