//! What the Chat Completions API takes.

use super::tools::{Strictness, check_function, check_schema};
use super::{
    Checked, Issued, check_boolean, check_name, check_unique, ensure, list, parameters, text,
};
use serde_json::Value;
use std::collections::HashSet;

const PARAMETERS: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];
const LONGEST_CALL_ID: usize = 40;
const LONGEST_NAME: usize = 64;

pub(super) fn check(body: &Value, _issued: &Issued) -> Checked {
    let given = parameters(body, PARAMETERS)?;
    text(body, "model", "body")?;
    for name in ["parallel_tool_calls", "store", "stream"] {
        check_boolean(given, name)?;
    }
    ensure(body["stream_options"].is_null() || body["stream"] == true, || {
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned()
    })?;
    ensure(body["max_tokens"].is_null() || body["max_completion_tokens"].is_null(), || {
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
            .to_owned()
    })?;
    let tools = body["tools"].as_array().map(Vec::as_slice);
    ensure(
        given.get("tools").is_none_or(|_| tools.is_some_and(|tools| !tools.is_empty())),
        || "Invalid 'tools': empty array. Expected an array with minimum length 1.".to_owned(),
    )?;
    for name in ["parallel_tool_calls", "tool_choice"] {
        ensure(tools.is_some() || given.get(name).is_none_or(Value::is_null), || {
            format!("'{name}' is only allowed when 'tools' are specified.")
        })?;
    }
    let mut seen = HashSet::new();
    for (index, tool) in tools.unwrap_or_default().iter().enumerate() {
        let at = format!("tools[{index}]");
        ensure(tool["type"] == "function", || {
            format!("{at}.type: invalid value {}.", tool["type"])
        })?;
        let at = format!("{at}.function");
        check_function(&tool["function"], "parameters", LONGEST_NAME, &mut seen, &at)?;
    }
    check_format(&body["response_format"])?;
    let messages = list(body, "messages", "body")?;
    ensure(!messages.is_empty(), || "Invalid 'messages': empty array.".to_owned())?;
    check_messages(messages)
}

fn check_format(format: &Value) -> Checked {
    let kind = format["type"].as_str().unwrap_or("text");
    match kind {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let inner = &format["json_schema"];
            let name = text(inner, "name", "response_format.json_schema")?;
            check_name(name, LONGEST_NAME, "response_format.json_schema.name")?;
            let (schema, strict) = (&inner["schema"], Strictness::of(&inner["strict"]));
            check_schema(schema, schema, strict, 0, "response_format.json_schema.schema")
        }
        other => Err(format!("response_format.type: invalid value '{other}'.")),
    }
}

fn check_messages(messages: &[Value]) -> Checked {
    // Calls whose answers have to come next.
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = text(message, "role", &at)?;
        if role == "tool" {
            let id = text(message, "tool_call_id", &at)?;
            let place = open.iter().position(|call| *call == id).ok_or_else(|| {
                format!(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding \
                     message with 'tool_calls'. ({at}: '{id}')"
                )
            })?;
            open.remove(place);
            check_content(&message["content"], &["text"], &at)?;
            continue;
        }
        check_answered(&open)?;
        match role {
            "user" => check_content(&message["content"], &["text", "image_url", "file"], &at)?,
            "system" | "developer" => check_content(&message["content"], &["text"], &at)?,
            "assistant" => {
                open = check_calls(message, &mut ids, &at)?;
                if open.is_empty() || !message["content"].is_null() {
                    check_content(&message["content"], &["text", "refusal"], &at)?;
                }
                let thought = &message["reasoning_content"];
                ensure(thought.is_null() || thought.is_string(), || {
                    format!("{at}.reasoning_content: a string is required.")
                })?;
            }
            other => return Err(format!("{at}.role: invalid value '{other}'.")),
        }
    }
    check_answered(&open)
}

fn check_answered(open: &[&str]) -> Checked {
    ensure(open.is_empty(), || {
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to \
             each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        )
    })
}

fn check_calls<'a>(
    message: &'a Value,
    ids: &mut HashSet<&'a str>,
    at: &str,
) -> Result<Vec<&'a str>, String> {
    let Some(calls) = message.get("tool_calls") else { return Ok(Vec::new()) };
    let calls = calls.as_array().filter(|calls| !calls.is_empty());
    let calls = calls.ok_or_else(|| format!("Invalid '{at}.tool_calls': empty array."))?;
    let mut open = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        let id = text(call, "id", &at)?;
        ensure(!id.is_empty() && id.len() <= LONGEST_CALL_ID, || {
            format!("{at}.id: expected a string of 1 to {LONGEST_CALL_ID} characters.")
        })?;
        check_unique(ids, id, &at)?;
        ensure(call["type"] == "function", || format!("{at}.type: 'function' is required."))?;
        let function = &call["function"];
        check_name(text(function, "name", &at)?, LONGEST_NAME, &format!("{at}.function.name"))?;
        text(function, "arguments", &format!("{at}.function"))?;
        open.push(id);
    }
    Ok(open)
}

fn check_content(content: &Value, kinds: &[&str], at: &str) -> Checked {
    if content.is_string() {
        return Ok(());
    }
    let parts = content.as_array().filter(|parts| !parts.is_empty());
    let parts = parts.ok_or_else(|| format!("{at}.content: a string or an array is required."))?;
    for part in parts {
        let known = part["type"].as_str().is_some_and(|kind| kinds.contains(&kind));
        ensure(known, || format!("{at}.content: invalid type {}.", part["type"]))?;
        ensure(part["type"] != "text" || part["text"].is_string(), || {
            format!("{at}.content: a text without text.")
        })?;
    }
    Ok(())
}
