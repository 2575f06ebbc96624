//! A request of Messages.

use super::NAME;
use super::models::{Abilities, Thinking};
use crate::provider::ModelRequest;
use crate::provider::wire::turns::{CallResult, Part, Turn, Turns};
use crate::provider::wire::{free_text_schema, schema_instruction};
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{CallInput, ContentItem};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Cache>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Speaker,
    content: Vec<Block<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Cache>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// A thought as it came.
    #[serde(untagged)]
    Thinking(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// Up to here the provider is to keep what it has computed.
#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Cache {
    Ephemeral,
}

impl<'a> Body<'a> {
    pub(super) fn of(request: &ModelRequest<'a>) -> Self {
        let abilities = Abilities::of(request.model);
        let Turns { mut system, turns } = Turns::of(request);
        if let Some(schema) = request.output_schema.filter(|_| !abilities.formats) {
            system = format!("{system}\n\n{}", schema_instruction(schema)).trim_start().to_owned();
        }
        let mut messages = messages(turns);
        keep_last(&mut messages);
        let max_tokens = request.max_output_tokens.unwrap_or(abilities.max_tokens);
        let thinking = thinking(request, abilities, max_tokens, &messages);
        let temperature = request
            .temperature
            .filter(|_| thinking.is_none() && abilities.thinking != Thinking::Effort);
        let mut system: Vec<Block<'_>> = match system.is_empty() {
            true => Vec::new(),
            false => vec![Block::of(Kind::Text { text: system.into() })],
        };
        system.iter_mut().for_each(Block::keep);
        let one_at_a_time = !request.tools.is_empty() && !request.parallel_tool_calls;
        Self {
            model: request.model,
            max_tokens,
            tools: tools(request),
            tool_choice: one_at_a_time
                .then(|| json!({ "type": "auto", "disable_parallel_tool_use": true })),
            system,
            messages,
            thinking,
            output_config: output_config(request, abilities),
            temperature,
            stream: true,
        }
    }
}

impl<'a> Block<'a> {
    fn of(kind: Kind<'a>) -> Self {
        Self { kind, cache_control: None }
    }

    /// A text, unless there is nothing in it: the provider refuses such a one.
    fn text(text: &'a str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self::of(Kind::Text { text: text.into() }))
    }

    fn keep(&mut self) {
        self.cache_control = Some(Cache::Ephemeral);
    }
}

fn tools<'a>(request: &ModelRequest<'a>) -> Vec<Tool<'a>> {
    let last = request.tools.len().wrapping_sub(1);
    let tools = request.tools.iter().enumerate().map(|(at, tool)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: match &tool.parameters {
            Value::Null => Cow::Owned(free_text_schema()),
            parameters => Cow::Borrowed(parameters),
        },
        cache_control: (at == last).then_some(Cache::Ephemeral),
    });
    tools.collect()
}

fn messages(turns: Vec<Turn<'_>>) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::new();
    for turn in turns {
        let (role, content): (_, Vec<Block<'_>>) = match turn {
            Turn::User(said) => (Speaker::User, said.into_iter().filter_map(said_block).collect()),
            Turn::Assistant(parts) => {
                (Speaker::Assistant, parts.into_iter().filter_map(done).collect())
            }
            Turn::Results(results) => (Speaker::User, results.into_iter().map(result).collect()),
        };
        match messages.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(Message { role, content }),
        }
    }
    messages
}

fn said_block(item: &ContentItem) -> Option<Block<'_>> {
    match item {
        ContentItem::InputText { text } => Block::text(text),
        ContentItem::InputImage { image_url } => {
            Some(Block::of(Kind::Image { source: source(image_url) }))
        }
    }
}

/// A picture that stands in its own address, or an address.
fn source(url: &str) -> Source<'_> {
    let inside = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inside {
        Some((media_type, data)) => Source::Base64 { media_type, data },
        None => Source::Url { url },
    }
}

/// What the model did. Thoughts come back as they came, or not at all: a signature is on them.
fn done(part: Part<'_>) -> Option<Block<'_>> {
    match part {
        Part::Text(text) => Block::text(text),
        Part::Reasoning { wire, data } => {
            let whole = data.get("signature").is_some() || data.get("data").is_some();
            (wire == NAME && whole).then(|| Block::of(Kind::Thinking(data)))
        }
        Part::Call { id, name, input } => {
            let input = match input {
                CallInput::Arguments(text) => match serde_json::from_str(text) {
                    Ok(input @ Value::Object(_)) => input,
                    // Nothing but an object is taken; the model sees what it wrote.
                    _ => json!({ "arguments": text }),
                },
                CallInput::Text(text) => json!({ "input": text }),
            };
            Some(Block::of(Kind::ToolUse { id, name, input }))
        }
    }
}

fn result(result: CallResult<'_>) -> Block<'_> {
    let content = match result.content_items {
        [] => Block::text(result.output).into_iter().collect(),
        parts => parts.iter().filter_map(said_block).collect(),
    };
    let is_error = (!result.success).then_some(true);
    Block::of(Kind::ToolResult { tool_use_id: result.id, content, is_error })
}

/// Marks the ends of the last two things said to the model: the last for the next request, the one
/// before because the last request was kept up to there.
fn keep_last(messages: &mut [Message<'_>]) {
    let said = messages.iter_mut().rev().filter(|message| message.role == Speaker::User);
    for message in said.take(2) {
        message.content.last_mut().into_iter().for_each(Block::keep);
    }
}

fn thinking(
    request: &ModelRequest<'_>,
    abilities: Abilities,
    max_tokens: u64,
    messages: &[Message<'_>],
) -> Option<Value> {
    let effort = request.reasoning_effort.filter(|effort| *effort != ReasoningEffort::None)?;
    match abilities.thinking {
        Thinking::None => None,
        Thinking::Effort => Some(json!({ "type": "adaptive" })),
        Thinking::Budget => {
            let budget: u64 = match effort {
                ReasoningEffort::None | ReasoningEffort::Minimal => return None,
                ReasoningEffort::Low => 4_096,
                ReasoningEffort::Medium => 10_240,
                ReasoningEffort::High => 24_576,
                ReasoningEffort::Xhigh => 49_152,
            };
            // At least 1024, and less than all that it may write.
            let budget = budget.min(max_tokens / 4 * 3);
            (budget >= 1_024 && may_think(messages))
                .then(|| json!({ "type": "enabled", "budget_tokens": budget }))
        }
    }
}

/// Whether the turn that goes on began with a thought. The provider refuses to have a model think that
/// has called without, as one does that another has served until now.
fn may_think(messages: &[Message<'_>]) -> bool {
    let last = messages.iter().rev().find(|message| message.role == Speaker::Assistant);
    let Some(last) = last else { return true };
    let calls = last.content.iter().any(|block| matches!(block.kind, Kind::ToolUse { .. }));
    !calls || matches!(last.content.first(), Some(Block { kind: Kind::Thinking(_), .. }))
}

fn output_config(request: &ModelRequest<'_>, abilities: Abilities) -> Option<Value> {
    let mut config = serde_json::Map::new();
    if let (Some(effort), Thinking::Effort) = (request.reasoning_effort, abilities.thinking) {
        let word = match effort {
            ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            ReasoningEffort::Xhigh => "max",
        };
        config.insert("effort".to_owned(), word.into());
    }
    if let Some(schema) = request.output_schema.filter(|_| abilities.formats) {
        let format = json!({ "type": "json_schema", "schema": schema });
        config.insert("format".to_owned(), format);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}
