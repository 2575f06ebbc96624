//! The stream of Messages.

use super::NAME;
use crate::provider::wire::{Decode, Fault, KnownIds, Sign, Told, arguments, or_default, read};
use crate::provider::{ModelEvent, StopReason};
use sandgate_protocol::{ResponseItem, Role, TokenUsage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Reader {
    known: KnownIds,
    /// The blocks that are being written, and those behind them that are complete: they are told in
    /// the order of their numbers.
    blocks: BTreeMap<u64, Block>,
    complete: BTreeSet<u64>,
    usage: Usage,
    stop: Option<StopReason>,
    over: bool,
}

enum Block {
    Text(String),
    Thinking { thinking: String, signature: String },
    Redacted(Value),
    Call { id: Option<String>, name: String, input: Value, json: String },
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        #[serde(default, deserialize_with = "or_default")]
        delta: Stop,
        usage: Option<Usage>,
    },
    MessageStop,
    Ping,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Start {
    Text {
        #[serde(default, deserialize_with = "or_default")]
        text: String,
    },
    Thinking {
        #[serde(default, deserialize_with = "or_default")]
        thinking: String,
        #[serde(default, deserialize_with = "or_default")]
        signature: String,
    },
    RedactedThinking,
    ToolUse {
        id: Option<String>,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize, Default)]
struct Stop {
    stop_reason: Option<String>,
}

/// Counts, each of them the last that came.
#[derive(Deserialize, Default)]
struct Usage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Reader {
    pub(super) fn new(known: KnownIds) -> Self {
        let (blocks, complete, usage) = (BTreeMap::new(), BTreeSet::new(), Usage::default());
        Self { known, blocks, complete, usage, stop: None, over: false }
    }

    fn begin(&mut self, index: u64, data: Value, heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let start =
            Start::deserialize(&data).map_err(|error| Fault::Malformed(error.to_string()))?;
        let block = match start {
            Start::Text { text } => {
                said(&text, heard);
                Block::Text(text)
            }
            Start::Thinking { thinking, signature } => {
                thought(&thinking, heard);
                Block::Thinking { thinking, signature }
            }
            Start::RedactedThinking => Block::Redacted(data),
            Start::ToolUse { id, name, input } => {
                Block::Call { id, name, input, json: String::new() }
            }
            Start::Other => Block::Other,
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn delta(
        &mut self,
        index: u64,
        delta: Delta,
        heard: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(Fault::Malformed("a piece of a block that has not begun".to_owned()));
        };
        match (block, delta) {
            (Block::Text(text), Delta::Text { text: more }) => {
                said(&more, heard);
                text.push_str(&more);
            }
            (Block::Thinking { thinking, .. }, Delta::Thinking { thinking: more }) => {
                thought(&more, heard);
                thinking.push_str(&more);
            }
            (Block::Thinking { signature, .. }, Delta::Signature { signature: more }) => {
                signature.push_str(&more);
            }
            (Block::Call { json, .. }, Delta::InputJson { partial_json }) => {
                json.push_str(&partial_json);
            }
            (_, Delta::Other) | (Block::Other, _) => {}
            _ => return Err(Fault::Malformed("a piece of another kind than its block".to_owned())),
        }
        Ok(())
    }

    fn finish(&mut self, block: Block, heard: &mut Vec<ModelEvent>) {
        let wire = NAME.to_owned();
        let item = match block {
            Block::Text(text) if text.is_empty() => return,
            Block::Text(text) => ResponseItem::message(Role::Assistant, text),
            Block::Thinking { thinking, signature } => {
                let mut data = json!({ "type": "thinking", "thinking": thinking });
                // Nothing is sent back that the provider has not signed.
                if !signature.is_empty() {
                    data["signature"] = signature.into();
                }
                ResponseItem::Reasoning { summary: thinking, wire, data }
            }
            Block::Redacted(data) => ResponseItem::Reasoning { summary: String::new(), wire, data },
            Block::Call { id, name, input, json } => {
                // All of it may stand in the beginning of the block.
                let is_whole = input.as_object().is_some_and(|input| !input.is_empty());
                let text = if json.is_empty() && is_whole { input.to_string() } else { json };
                let call_id = self.known.name(id);
                ResponseItem::ToolCall { call_id, name, input: arguments(text) }
            }
            Block::Other => return,
        };
        heard.push(ModelEvent::Item(item));
    }

    fn stopped(&mut self, reason: &str) -> Result<(), Fault> {
        self.stop = Some(match reason {
            "max_tokens" => StopReason::Length,
            "refusal" => StopReason::Refused,
            "model_context_window_exceeded" => {
                let (kind, message) = (reason.to_owned(), "its context window is full".to_owned());
                return Err(Fault::Told(Told { kind, message, status: Some(400) }));
            }
            // `end_turn`, `tool_use`, `stop_sequence`; `pause_turn` is about tools of the provider's,
            // none of which is asked for.
            _ => StopReason::Done,
        });
        Ok(())
    }

    fn complete(&mut self, heard: &mut Vec<ModelEvent>) {
        self.over = true;
        for block in std::mem::take(&mut self.blocks).into_values() {
            self.finish(block, heard);
        }
        let read = self.usage.cache_read_input_tokens.unwrap_or(0);
        let written = self.usage.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.usage.input_tokens.unwrap_or(0);
        heard.push(ModelEvent::Usage(TokenUsage {
            input_tokens: fresh.saturating_add(read).saturating_add(written),
            cached_input_tokens: read,
            output_tokens: self.usage.output_tokens.unwrap_or(0),
            reasoning_output_tokens: 0,
        }));
        heard.push(ModelEvent::End(self.stop.unwrap_or(StopReason::Done)));
    }
}

impl Usage {
    fn update(&mut self, new: &Self) {
        self.input_tokens = new.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            new.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = new.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = new.output_tokens.or(self.output_tokens);
    }
}

fn said(text: &str, heard: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        heard.push(ModelEvent::TextDelta(text.to_owned()));
    }
}

fn thought(text: &str, heard: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        heard.push(ModelEvent::ReasoningDelta(text.to_owned()));
    }
}

impl Decode for Reader {
    fn event(&mut self, data: &str, heard: &mut Vec<ModelEvent>) -> Result<Sign, Fault> {
        if data == "[DONE]" {
            return Ok(Sign::Life);
        }
        match read(data)? {
            Event::MessageStart { message } => {
                message.usage.iter().for_each(|usage| self.usage.update(usage));
            }
            Event::ContentBlockStart { index, content_block } => {
                self.begin(index, content_block, heard)?;
            }
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta, heard)?,
            Event::ContentBlockStop { index } => {
                self.complete.insert(index);
                while let Some(first) = self.blocks.first_entry() {
                    if !self.complete.remove(first.key()) {
                        break;
                    }
                    let block = first.remove();
                    self.finish(block, heard);
                }
            }
            Event::MessageDelta { delta, usage } => {
                usage.iter().for_each(|usage| self.usage.update(usage));
                if let Some(reason) = delta.stop_reason {
                    self.stopped(&reason)?;
                }
            }
            Event::MessageStop if !self.over => self.complete(heard),
            Event::MessageStop | Event::Other => {}
            Event::Ping => return Ok(Sign::Life),
            Event::Error => return Err(Fault::Told(Told::of_event(&read::<Value>(data)?))),
        }
        Ok(Sign::Work)
    }

    fn end_of_stream(&mut self, heard: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if self.stop.is_some() && !self.over {
            self.complete(heard);
        }
        Ok(())
    }
}
