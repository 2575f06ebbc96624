//! A request of Chat Completions.

use super::{ChatServer, NAME};
use crate::provider::ModelRequest;
use crate::provider::wire::turns::{CallResult, Part, Turn, Turns};
use crate::provider::wire::{free_text_schema, replayed};
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{CallInput, ContentItem};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        /// What the model thought, in the fields that it came in.
        #[serde(flatten)]
        reasoning: Map<String, Value>,
    },
    Tool {
        tool_call_id: String,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: String,
    r#type: &'static str,
    function: FunctionCall<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

impl<'a> Body<'a> {
    pub(super) fn of(request: &ModelRequest<'a>, server: ChatServer) -> Self {
        let tools = request.tools.iter().map(|tool| {
            let parameters = match &tool.parameters {
                Value::Null => Cow::Owned(free_text_schema()),
                parameters => Cow::Borrowed(parameters),
            };
            let (name, description) = (tool.name.as_str(), tool.description.as_str());
            Tool { r#type: "function", function: Function { name, description, parameters } }
        });
        let is_openai = server == ChatServer::OpenAi;
        let response_format = request.output_schema.map(|schema| {
            let json_schema = json!({ "name": "answer", "schema": schema, "strict": true });
            json!({ "type": "json_schema", "json_schema": json_schema })
        });
        Self {
            model: request.model,
            messages: messages(request, server),
            tools: tools.collect(),
            // What is so without it is not said: servers refuse what they do not know.
            parallel_tool_calls: (!request.tools.is_empty() && !request.parallel_tool_calls)
                .then_some(false),
            reasoning_effort: request.reasoning_effort.map(|effort| word(effort, server)),
            response_format,
            temperature: request.temperature,
            max_tokens: request.max_output_tokens.filter(|_| !is_openai),
            max_completion_tokens: request.max_output_tokens.filter(|_| is_openai),
            prompt_cache_key: is_openai.then_some(request.conversation_id),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        }
    }
}

fn word(effort: ReasoningEffort, server: ChatServer) -> &'static str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Xhigh if server == ChatServer::OpenAi => "xhigh",
        ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High | ReasoningEffort::Xhigh => "high",
    }
}

fn messages<'a>(request: &ModelRequest<'a>, server: ChatServer) -> Vec<Message<'a>> {
    let Turns { system, turns } = Turns::of(request);
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(Message::System { content: system });
    }
    // Pictures that are results; only what a person says can have pictures in it.
    let mut pictures = Vec::new();
    for turn in turns {
        match turn {
            Turn::User(said) => {
                let mut parts = std::mem::take(&mut pictures);
                parts.extend(said.into_iter().map(part));
                messages.push(Message::User { content: content(parts) });
            }
            Turn::Assistant(parts) => {
                if !pictures.is_empty() {
                    let content = Content::Parts(std::mem::take(&mut pictures));
                    messages.push(Message::User { content });
                }
                messages.push(assistant(parts, server));
            }
            Turn::Results(results) => {
                for result in results {
                    messages.push(tool_message(&result));
                    pictures.extend(pictures_of(&result));
                }
            }
        }
    }
    if !pictures.is_empty() {
        messages.push(Message::User { content: Content::Parts(pictures) });
    }
    messages
}

fn assistant(parts: Vec<Part<'_>>, server: ChatServer) -> Message<'_> {
    let (mut texts, mut tool_calls, mut reasoning) = (Vec::new(), Vec::new(), Map::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Reasoning { wire, data } => {
                if let (NAME, Value::Object(fields)) = (wire, data) {
                    reasoning.extend(fields.clone());
                }
            }
            Part::Call { id, name, input } => {
                let arguments = match input {
                    CallInput::Arguments(text) => replayed(text),
                    CallInput::Text(text) => Cow::Owned(json!({ "input": text }).to_string()),
                };
                let function = FunctionCall { name, arguments };
                tool_calls.push(Call { id, r#type: "function", function });
            }
        }
    }
    // Who thinks and calls wants to see the thoughts with the calls; of all else the thoughts are not
    // read again, and some refuse them.
    if tool_calls.is_empty() || server == ChatServer::OpenAi {
        reasoning.clear();
    }
    let content = (!texts.is_empty() || tool_calls.is_empty()).then(|| texts.join("\n\n"));
    Message::Assistant { content, tool_calls, reasoning }
}

fn tool_message<'a>(result: &CallResult<'a>) -> Message<'a> {
    let has_pictures = pictures_of(result).next().is_some();
    let content = match has_pictures {
        true => Cow::Owned(format!("{}\n[the pictures follow]", result.output)),
        false => Cow::Borrowed(result.output),
    };
    Message::Tool { tool_call_id: result.id.clone(), content }
}

fn pictures_of<'a>(result: &CallResult<'a>) -> impl Iterator<Item = ContentPart<'a>> + use<'a> {
    let picture = |item: &&ContentItem| matches!(item, ContentItem::InputImage { .. });
    result.content_items.iter().filter(picture).map(part)
}

fn part(item: &ContentItem) -> ContentPart<'_> {
    match item {
        ContentItem::InputText { text } => ContentPart::Text { text: text.into() },
        ContentItem::InputImage { image_url } => {
            ContentPart::ImageUrl { image_url: ImageUrl { url: image_url } }
        }
    }
}

/// Text alone is one text: not every server reads parts.
fn content(parts: Vec<ContentPart<'_>>) -> Content<'_> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            ContentPart::Text { text } => Some(&**text),
            ContentPart::ImageUrl { .. } => None,
        })
        .collect();
    match texts {
        Some(texts) => Content::Text(texts.join("\n\n")),
        None => Content::Parts(parts),
    }
}
