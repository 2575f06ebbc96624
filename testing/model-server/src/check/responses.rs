//! What the Responses API takes.

use super::tools::{Strictness, check_function, check_schema};
use super::{
    Checked, Issued, check_boolean, check_name, check_unique, ensure, list, parameters, text,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const PARAMETERS: &[&str] = &[
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const INCLUDABLE: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const SUMMARIES: &[&str] = &["auto", "concise", "detailed"];
const LONGEST_CALL_ID: usize = 64;
const LONGEST_NAME: usize = 64;
/// The least that can be asked for.
const LEAST_OUTPUT: u64 = 16;

pub(super) fn check(body: &Value, issued: &Issued) -> Checked {
    let given = parameters(body, PARAMETERS)?;
    text(body, "model", "body")?;
    for name in ["parallel_tool_calls", "store", "stream", "background"] {
        check_boolean(given, name)?;
    }
    let instructions = &body["instructions"];
    ensure(instructions.is_string() || instructions.is_null(), || {
        "instructions: a string is required.".to_owned()
    })?;
    for one in body["include"].as_array().into_iter().flatten() {
        let known = one.as_str().is_some_and(|one| INCLUDABLE.contains(&one));
        ensure(known, || format!("include: invalid value {one}."))?;
    }
    check_choice(&body["reasoning"]["effort"], EFFORTS, "reasoning.effort")?;
    check_choice(&body["reasoning"]["summary"], SUMMARIES, "reasoning.summary")?;
    let most = &body["max_output_tokens"];
    ensure(most.is_null() || most.as_u64().is_some_and(|most| most >= LEAST_OUTPUT), || {
        format!("max_output_tokens: expected a value >= {LEAST_OUTPUT}, but got {most}.")
    })?;
    ensure(body["stream_options"].is_null() || body["stream"] == true, || {
        "stream_options: only allowed when 'stream' is enabled.".to_owned()
    })?;
    // Nothing is stored here, whatever the request says.
    if let Some(id) = body["previous_response_id"].as_str() {
        return Err(format!("Previous response with id '{id}' not found."));
    }
    check_format(&body["text"]["format"])?;
    if !body["tools"].is_null() {
        check_tools(list(body, "tools", "body")?)?;
    }
    match &body["input"] {
        Value::String(text) => ensure(!text.is_empty(), || "input: empty.".to_owned()),
        Value::Array(items) if !items.is_empty() => check_items(items, body, issued),
        _ => Err("input: a string or a non-empty array is required.".to_owned()),
    }
}

fn check_choice(value: &Value, known: &[&str], at: &str) -> Checked {
    let good = value.is_null() || value.as_str().is_some_and(|value| known.contains(&value));
    ensure(good, || format!("{at}: invalid value {value}."))
}

fn check_format(format: &Value) -> Checked {
    if format["type"] != "json_schema" {
        return check_choice(&format["type"], &["text", "json_object"], "text.format.type");
    }
    check_name(text(format, "name", "text.format")?, LONGEST_NAME, "text.format.name")?;
    let (schema, strict) = (&format["schema"], Strictness::of(&format["strict"]));
    check_schema(schema, schema, strict, 0, "text.format.schema")
}

fn check_tools(tools: &[Value]) -> Checked {
    let mut seen = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        match text(tool, "type", &at)? {
            "function" => check_function(tool, "parameters", LONGEST_NAME, &mut seen, &at)?,
            "custom" => {
                let name = text(tool, "name", &at)?;
                check_name(name, LONGEST_NAME, &format!("{at}.name"))?;
                check_unique(&mut seen, name, &format!("{at}.name"))?;
                check_grammar(&tool["format"], &at)?;
            }
            "local_shell" | "web_search" => {}
            other => return Err(format!("{at}.type: invalid value '{other}'.")),
        }
    }
    Ok(())
}

/// What the text of a custom tool may be.
fn check_grammar(format: &Value, at: &str) -> Checked {
    match format["type"].as_str() {
        None if format.is_null() => Ok(()),
        Some("text") => Ok(()),
        Some("grammar") => {
            text(format, "definition", &format!("{at}.format"))?;
            let syntax = &format["syntax"];
            ensure(syntax == "lark" || syntax == "regex", || {
                format!("{at}.format.syntax: invalid value {syntax}.")
            })
        }
        _ => Err(format!("{at}.format.type: invalid value {}.", format["type"])),
    }
}

fn check_items(items: &[Value], body: &Value, issued: &Issued) -> Checked {
    let mut calls: HashMap<&str, &str> = HashMap::new();
    let mut answered = HashSet::new();
    let mut ids = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        if let Some(id) = item["id"].as_str() {
            check_unique(&mut ids, id, &at)?;
        }
        let kind = match item.get("type") {
            None if item.get("role").is_some() => "message",
            _ => text(item, "type", &at)?,
        };
        match kind {
            "message" => check_message(item, &at)?,
            "reasoning" => check_reasoning(items, index, body["store"] == false, &at)?,
            "function_call" | "custom_tool_call" => {
                check_name(text(item, "name", &at)?, LONGEST_NAME, &format!("{at}.name"))?;
                let content = if kind == "function_call" { "arguments" } else { "input" };
                text(item, content, &at)?;
                let call_id = text(item, "call_id", &at)?;
                check_length(call_id, &at)?;
                ensure(calls.insert(call_id, kind).is_none(), || {
                    format!("{at}: duplicate call_id '{call_id}'.")
                })?;
                check_thought_of(items, index, issued)?;
            }
            "function_call_output" | "custom_tool_call_output" => {
                let call_id = text(item, "call_id", &at)?;
                let called = calls.get(call_id).copied();
                ensure(called.is_some_and(|called| kind == format!("{called}_output")), || {
                    format!("No tool call found for function call output with call_id {call_id}.")
                })?;
                ensure(answered.insert(call_id), || {
                    format!("{at}: a second output for call_id {call_id}.")
                })?;
                let output = &item["output"];
                ensure(output.is_string() || output.is_array(), || {
                    format!("{at}.output: a string or an array is required.")
                })?;
            }
            "item_reference" => {
                return Err(format!("Item with id {} not found.", item["id"]));
            }
            other => return Err(format!("{at}.type: invalid value '{other}'.")),
        }
    }
    match calls.keys().find(|call| !answered.contains(**call)) {
        Some(call) => Err(format!("No tool output found for function call {call}.")),
        None => Ok(()),
    }
}

fn check_length(call_id: &str, at: &str) -> Checked {
    ensure(!call_id.is_empty() && call_id.len() <= LONGEST_CALL_ID, || {
        format!("{at}.call_id: expected a string of 1 to {LONGEST_CALL_ID} characters.")
    })
}

fn check_message(item: &Value, at: &str) -> Checked {
    let role = text(item, "role", at)?;
    let kinds: &[&str] = match role {
        "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
        "assistant" => &["output_text", "refusal"],
        other => return Err(format!("{at}.role: invalid value '{other}'.")),
    };
    if item["content"].is_string() {
        return Ok(());
    }
    for (index, part) in list(item, "content", at)?.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let kind = text(part, "type", &at)?;
        ensure(kinds.contains(&kind), || {
            format!("Invalid value: '{kind}'. Supported values are: {kinds:?}. ({at})")
        })?;
        if matches!(kind, "input_text" | "output_text") {
            text(part, "text", &at)?;
        }
    }
    Ok(())
}

/// A thought has what it was sealed with, and what was thought of follows.
fn check_reasoning(items: &[Value], index: usize, unstored: bool, at: &str) -> Checked {
    let item = &items[index];
    let name = item["id"].as_str().unwrap_or(at);
    for part in list(item, "summary", at)? {
        ensure(part["type"] == "summary_text" && part["text"].is_string(), || {
            format!("{at}.summary: {part} is no summary_text.")
        })?;
    }
    match item["encrypted_content"].as_str() {
        Some(seal) => ensure(crate::seal::is_seal(seal), || {
            format!("The encrypted content for item {name} could not be verified.")
        })?,
        None => ensure(!unstored && item["id"].is_string(), || {
            format!(
                "Item with id '{name}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            )
        })?,
    }
    let follows = items.get(index + 1).is_some_and(|next| {
        matches!(next["type"].as_str(), Some("reasoning" | "function_call" | "custom_tool_call"))
            || next["role"] == "assistant"
    });
    ensure(follows, || {
        format!(
            "Item '{name}' of type 'reasoning' was provided without its required following item."
        )
    })
}

/// A call that is named as the service named it has the thoughts before it that it had then.
fn check_thought_of(items: &[Value], index: usize, issued: &Issued) -> Checked {
    let id = items[index]["id"].as_str().unwrap_or_default();
    let Some(seals) = issued.get(id) else { return Ok(()) };
    let before = items[..index].iter().rev().take_while(|item| item["type"] == "reasoning");
    ensure(before.count() == seals.len(), || {
        format!("Item '{id}' was provided without its required 'reasoning' item.")
    })
}
