//! A request of Responses.

use super::NAME;
use crate::provider::ModelRequest;
use crate::provider::wire::ids::WireIds;
use crate::provider::wire::replayed;
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{CallInput, ContentItem, ResponseItem, Role};
use sandgate_runtime::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Input<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt_cache_key: &'a str,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input<'a> {
    Message {
        role: Role,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: String,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    CustomToolCall {
        call_id: String,
        name: &'a str,
        input: &'a str,
    },
    CustomToolCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    /// As it came.
    #[serde(untagged)]
    Reasoning(Map<String, Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    InputImage { image_url: &'a str },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { name: &'a str, description: &'a str, strict: bool, parameters: &'a Value },
    Custom { name: &'a str, description: &'a str },
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    summary: &'static str,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

impl<'a> Body<'a> {
    pub(super) fn of(request: &ModelRequest<'a>) -> Self {
        // A model that does not reason refuses a request that speaks of reasoning, and one that does
        // refuses a temperature.
        let is_asked_to =
            request.reasoning_effort.is_some_and(|effort| effort != ReasoningEffort::None);
        let reasons = is_asked_to || does_reason(request.model);
        let has_tools = !request.tools.is_empty();
        Self {
            model: request.model,
            instructions: request.instructions,
            input: input(request.items),
            tools: request.tools.iter().map(tool).collect(),
            tool_choice: has_tools.then_some("auto"),
            parallel_tool_calls: has_tools.then_some(request.parallel_tool_calls),
            reasoning: reasons.then(|| Reasoning {
                effort: request.reasoning_effort.map(|effort| word(effort, request.model)),
                summary: "auto",
            }),
            include: if reasons { &["reasoning.encrypted_content"] } else { &[] },
            text: request.output_schema.map(|schema| Text {
                format: Format { r#type: "json_schema", name: "answer", schema, strict: true },
            }),
            temperature: request.temperature.filter(|_| !reasons),
            max_output_tokens: request.max_output_tokens,
            prompt_cache_key: request.conversation_id,
            store: false,
            stream: true,
        }
    }
}

/// Whether a model of OpenAI's reasons, by its name.
fn does_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["o1", "o3", "o4", "gpt-5", "gpt-oss", "codex"].iter().any(|begin| name.starts_with(begin))
}

/// The word for an effort, as the model knows it: the first of the fifth generation think minimally,
/// the later ones not at all, and those made for code at least a little.
fn word(effort: ReasoningEffort, model: &str) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => match model.strip_prefix("gpt-5") {
            Some("" | "-mini" | "-nano") => "minimal",
            Some(rest) if rest.starts_with('.') && !rest.contains("codex") => "none",
            _ => "low",
        },
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::Xhigh => "xhigh",
    }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let (name, description) = (tool.name.as_str(), tool.description.as_str());
    match &tool.parameters {
        Value::Null => Tool::Custom { name, description },
        parameters => Tool::Function { name, description, strict: false, parameters },
    }
}

fn input(items: &[ResponseItem]) -> Vec<Input<'_>> {
    let ids = WireIds::of(items);
    let custom = items.iter().filter_map(|item| match item {
        ResponseItem::ToolCall { call_id, input: CallInput::Text(_), .. } => Some(call_id),
        _ => None,
    });
    let custom: HashSet<_> = custom.collect();
    let translated = items.iter().enumerate().filter_map(|(at, item)| match item {
        ResponseItem::Message { role, content } => {
            let content = content.iter().map(|item| said(item, *role)).collect();
            Some(Input::Message { role: *role, content })
        }
        ResponseItem::Reasoning { wire, data, .. } => (wire == NAME
            && leads_to_something(&items[at + 1..]))
        .then(|| reasoning(data).map(Input::Reasoning))
        .flatten(),
        ResponseItem::ToolCall { call_id, name, input } => {
            let call_id = ids.get(call_id).to_owned();
            Some(match input {
                CallInput::Arguments(text) => {
                    let arguments = replayed(text);
                    Input::FunctionCall { call_id, name, arguments }
                }
                CallInput::Text(input) => Input::CustomToolCall { call_id, name, input },
            })
        }
        ResponseItem::ToolCallOutput { call_id, output, content_items, .. } => {
            let output = match content_items.as_slice() {
                [] => Output::Text(output),
                parts => Output::Parts(parts.iter().map(|item| said(item, Role::User)).collect()),
            };
            let is_custom = custom.contains(call_id);
            let call_id = ids.get(call_id).to_owned();
            Some(match is_custom {
                true => Input::CustomToolCallOutput { call_id, output },
                false => Input::FunctionCallOutput { call_id, output },
            })
        }
    });
    translated.collect()
}

fn said(item: &ContentItem, role: Role) -> Content<'_> {
    match (item, role) {
        (ContentItem::InputText { text }, Role::Assistant) => Content::OutputText { text },
        (ContentItem::InputText { text }, _) => Content::InputText { text },
        (ContentItem::InputImage { image_url }, _) => Content::InputImage { image_url },
    }
}

/// Whether a thought is followed by what it led to. The provider refuses one that is not.
fn leads_to_something(rest: &[ResponseItem]) -> bool {
    let next = rest.iter().find(|item| !matches!(item, ResponseItem::Reasoning { .. }));
    matches!(
        next,
        Some(ResponseItem::ToolCall { .. } | ResponseItem::Message { role: Role::Assistant, .. })
    )
}

/// A thought as the provider wants to see it again. One without its content is only a name for
/// something that the provider has not kept.
fn reasoning(data: &Value) -> Option<Map<String, Value>> {
    let of_use = |name: &str| data.get(name).filter(|value| !value.is_null());
    let has_content =
        of_use("content").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if of_use("encrypted_content").is_none() && !has_content {
        return None;
    }
    let names = ["type", "id", "summary", "encrypted_content"];
    let names = names.into_iter().chain(has_content.then_some("content"));
    Some(names.filter_map(|name| Some((name.to_owned(), of_use(name)?.clone()))).collect())
}
