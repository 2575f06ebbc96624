//! What the Messages API takes.

use super::tools::{Strictness, check_function, check_schema};
use super::{
    Checked, Issued, check_boolean, check_name, check_unique, ensure, list, parameters, text,
};
use crate::seal::{is_seal, seal};
use serde_json::Value;
use std::collections::HashSet;

const PARAMETERS: &[&str] = &[
    "cache_control",
    "container",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const LONGEST_NAME: usize = 128;
/// The least thinking that can be asked for, in tokens.
const LEAST_BUDGET: u64 = 1024;
/// How many places of a request can be kept in the cache.
const MOST_CACHED: usize = 4;

pub(super) fn check(body: &Value, issued: &Issued) -> Checked {
    let given = parameters(body, PARAMETERS)?;
    text(body, "model", "body")?;
    check_boolean(given, "stream")?;
    let most = body["max_tokens"].as_u64().filter(|most| *most > 0);
    let most = most.ok_or("max_tokens: Field required")?;
    check_thinking(body, most)?;
    check_system(&body["system"])?;
    let format = &body["output_config"]["format"];
    if !format.is_null() {
        ensure(format["type"] == "json_schema", || {
            "output_config.format.type: 'json_schema' is required".to_owned()
        })?;
        let (schema, at) = (&format["schema"], "output_config.format.schema");
        check_schema(schema, schema, Strictness::Loose, 0, at)?;
    }
    let mut seen = HashSet::new();
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools.{index}");
        ensure(tool["type"].is_null() || tool["type"] == "custom", || {
            format!("{at}.type: invalid value {}", tool["type"])
        })?;
        check_function(tool, "input_schema", LONGEST_NAME, &mut seen, &at)?;
    }
    ensure(body["tool_choice"].is_null() || !tools.is_empty(), || {
        "tool_choice: may only be specified while providing tools".to_owned()
    })?;
    let cached = count_cached(body);
    ensure(cached <= MOST_CACHED, || {
        format!(
            "A maximum of {MOST_CACHED} blocks with cache_control may be provided. Found {cached}."
        )
    })?;
    let messages = list(body, "messages", "body")?;
    check_messages(messages, !tools.is_empty())?;
    check_current_thoughts(messages, body, issued)
}

fn check_thinking(body: &Value, most: u64) -> Checked {
    match body["thinking"]["type"].as_str() {
        None if body["thinking"].is_null() => return Ok(()),
        Some("disabled") => return Ok(()),
        Some("adaptive") => {}
        Some("enabled") => {
            let budget = body["thinking"]["budget_tokens"].as_u64();
            let budget = budget.filter(|budget| *budget >= LEAST_BUDGET).ok_or_else(|| {
                format!("thinking.enabled.budget_tokens: should be at least {LEAST_BUDGET}")
            })?;
            ensure(budget < most, || {
                "`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned()
            })?;
        }
        _ => return Err("thinking.type: invalid value".to_owned()),
    }
    let temperature = &body["temperature"];
    ensure(temperature.is_null() || temperature.as_f64() == Some(1.0), || {
        "`temperature` may only be set to 1 when thinking is enabled.".to_owned()
    })?;
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    ensure(!forced, || "Thinking may not be enabled when tool_choice forces tool use.".to_owned())
}

fn check_system(system: &Value) -> Checked {
    match system {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => blocks.iter().enumerate().try_for_each(|(index, block)| {
            ensure(block["type"] == "text", || format!("system.{index}: a text is required"))?;
            check_text(block, &format!("system.{index}"))
        }),
        _ => Err("system: a string or an array is required".to_owned()),
    }
}

fn check_text(block: &Value, at: &str) -> Checked {
    ensure(!text(block, "text", at)?.is_empty(), || {
        format!("{at}: text content blocks must be non-empty")
    })
}

/// How often something is to be kept in the cache, wherever it says so.
fn count_cached(value: &Value) -> usize {
    match value {
        Value::Array(all) => all.iter().map(count_cached).sum(),
        // What a tool is called with, and its schema, may have a member of that name.
        Value::Object(all) => all
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "input" | "input_schema"))
            .map(|(name, inner)| {
                usize::from(name == "cache_control" && !inner.is_null()) + count_cached(inner)
            })
            .sum(),
        _ => 0,
    }
}

fn check_messages(messages: &[Value], has_tools: bool) -> Checked {
    let first = messages.first().ok_or("messages: at least one message is required")?;
    ensure(first["role"] == "user", || {
        "messages: first message must use the \"user\" role".to_owned()
    })?;
    let mut ids = HashSet::new();
    // Calls of the message before this one.
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        // The service joins what one side says twice; nobody here should rely on that.
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == expected, || {
            format!("{at}: roles must alternate between \"user\" and \"assistant\"")
        })?;
        let blocks = match &message["content"] {
            Value::String(text) if !text.is_empty() => &[],
            Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
            _ => return Err(format!("{at}: all messages must have non-empty content")),
        };
        if expected == "user" {
            check_user(blocks, &open, &at)?;
            open = Vec::new();
        } else {
            open = check_assistant(blocks, &mut ids, &at)?;
            ensure(open.is_empty() || has_tools, || {
                "Requests which include `tool_use` or `tool_result` blocks must define tools."
                    .to_owned()
            })?;
        }
    }
    ensure(messages.len() % 2 == 1, || "The conversation must end with a user message.".to_owned())
}

fn check_user(blocks: &[Value], open: &[&str], at: &str) -> Checked {
    let mut answered = HashSet::new();
    let mut others = false;
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        match text(block, "type", &at)? {
            "tool_result" => {
                let id = text(block, "tool_use_id", &at)?;
                ensure(open.contains(&id), || {
                    format!(
                        "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                         `tool_result` block must have a corresponding `tool_use` block in the \
                         previous message."
                    )
                })?;
                ensure(answered.insert(id), || {
                    format!("{at}: each tool_use must have a single result. Found several for {id}")
                })?;
                ensure(!others, || format!("{at}: tool_result blocks must come first"))?;
                check_result(&block["content"], &at)?;
            }
            "text" => {
                others = true;
                check_text(block, &at)?;
            }
            "image" | "document" => others = true,
            other => return Err(format!("{at}.type: '{other}' is not for users")),
        }
    }
    let missing: Vec<&str> = open.iter().filter(|id| !answered.contains(**id)).copied().collect();
    ensure(missing.is_empty(), || {
        format!(
            "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            missing.join(", ")
        )
    })
}

fn check_result(content: &Value, at: &str) -> Checked {
    match content {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => blocks.iter().try_for_each(|block| {
            match text(block, "type", &format!("{at}.content"))? {
                "text" => check_text(block, at),
                "image" | "document" => Ok(()),
                other => Err(format!("{at}.content: '{other}' is not for results")),
            }
        }),
        _ => Err(format!("{at}.content: a string or an array is required")),
    }
}

fn check_assistant<'a>(
    blocks: &'a [Value],
    ids: &mut HashSet<&'a str>,
    at: &str,
) -> Result<Vec<&'a str>, String> {
    let mut open = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        match text(block, "type", &at)? {
            "text" => check_text(block, &at)?,
            "thinking" => {
                let signature = text(block, "signature", &at)?;
                ensure(signature == seal(text(block, "thinking", &at)?), || {
                    format!("{at}: Invalid `signature` in `thinking` block")
                })?;
                ensure(block["cache_control"].is_null(), || {
                    format!("{at}: thinking blocks cannot have cache_control")
                })?;
            }
            "redacted_thinking" => ensure(is_seal(text(block, "data", &at)?), || {
                format!("{at}: Invalid `data` in `redacted_thinking` block")
            })?,
            "tool_use" => {
                let id = text(block, "id", &at)?;
                check_name(id, usize::MAX, &format!("{at}.id"))?;
                check_unique(ids, id, &format!("{at}: `tool_use` ids must be unique"))?;
                check_name(text(block, "name", &at)?, LONGEST_NAME, &format!("{at}.name"))?;
                ensure(block["input"].is_object(), || {
                    format!("{at}.input: Input should be a valid dictionary")
                })?;
                open.push(id);
            }
            other => return Err(format!("{at}.type: '{other}' is not for assistants")),
        }
    }
    Ok(open)
}

/// While the model works on one task, what it thought before each call stands before it, unchanged.
/// What it thought for earlier tasks may be left out.
fn check_current_thoughts(messages: &[Value], body: &Value, issued: &Issued) -> Checked {
    let thinking = body["thinking"]["type"].as_str();
    if !matches!(thinking, Some("enabled" | "adaptive")) {
        return Ok(());
    }
    let is_result = |block: &Value| block["type"] == "tool_result";
    let asks = |message: &Value| {
        message["role"] == "user"
            && message["content"].as_array().is_none_or(|blocks| !blocks.iter().any(is_result))
    };
    let since = messages.iter().rposition(asks).map_or(0, |at| at + 1);
    let said = messages[since..].iter().filter(|message| message["role"] == "assistant");
    for (index, message) in said.enumerate() {
        let mut seals = Vec::new();
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("thinking") => seals.extend(block["signature"].as_str()),
                Some("redacted_thinking") => seals.extend(block["data"].as_str()),
                Some("tool_use") => {
                    let id = block["id"].as_str().unwrap_or_default();
                    let good = match issued.get(id) {
                        Some(given) => *given == seals,
                        // Not from here: the service then wants at least the first to be thought of.
                        None => index > 0 || !seals.is_empty() || thinking == Some("adaptive"),
                    };
                    ensure(good, || {
                        format!(
                            "Expected `thinking` or `redacted_thinking`, as it was given, before the \
                             `tool_use` {id}. When `thinking` is enabled, thinking blocks cannot be \
                             modified or left out while tools are used."
                        )
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
