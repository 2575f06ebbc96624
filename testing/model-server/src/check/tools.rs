//! The tools of a request, and whether their schemas are schemas.

use super::{Checked, check_name, check_unique, ensure, text};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The kinds of values that a schema can name.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];
/// The deepest schema that is read.
const DEEPEST: usize = 32;

/// Whether the model is held to a schema, which allows less in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    Strict,
    Loose,
}

impl Strictness {
    pub(super) fn of(value: &Value) -> Self {
        if value == &json!(true) { Self::Strict } else { Self::Loose }
    }
}

/// One tool that is called with JSON: its name, and the schema of what it is called with.
pub(super) fn check_function<'a>(
    tool: &'a Value,
    schema: &str,
    longest_name: usize,
    seen: &mut HashSet<&'a str>,
    at: &str,
) -> Checked {
    let name = text(tool, "name", at)?;
    check_name(name, longest_name, &format!("{at}.name"))?;
    check_unique(seen, name, &format!("{at}.name"))?;
    let described = tool.get("description").is_none_or(Value::is_string);
    ensure(described, || format!("{at}.description: a string is required."))?;
    let strict = Strictness::of(&tool["strict"]);
    check_parameters(&tool[schema], strict, &format!("Invalid schema for function '{name}'"))
}

/// The schema of what a tool is called with: an object at the top, and nothing beside it.
pub(super) fn check_parameters(schema: &Value, strict: Strictness, at: &str) -> Checked {
    ensure(schema["type"] == "object", || {
        format!("{at}: schema must be a JSON Schema of 'type: \"object\"'.")
    })?;
    for word in ["oneOf", "anyOf", "allOf", "enum", "not"] {
        ensure(schema.get(word).is_none(), || format!("{at}: '{word}' at the top level."))?;
    }
    check_schema(schema, schema, strict, 0, at)
}

/// A schema, and all schemas in it.
pub(super) fn check_schema(
    root: &Value,
    schema: &Value,
    strict: Strictness,
    depth: usize,
    at: &str,
) -> Checked {
    ensure(depth <= DEEPEST, || format!("{at}: nested too deeply."))?;
    let inside = |inner: &Value, name: &str| {
        check_schema(root, inner, strict, depth + 1, &format!("{at}/{name}"))
    };
    if schema.is_boolean() && strict == Strictness::Loose && depth > 0 {
        return Ok(());
    }
    let object = schema.as_object().ok_or_else(|| format!("{at}: {schema} is no schema."))?;
    if let Some(kind) = object.get("type") {
        check_type(kind, at)?;
    }
    for (word, value) in object {
        match word.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                let all = value.as_object();
                let all = all.ok_or_else(|| format!("{at}/{word}: an object is required."))?;
                for (name, inner) in all {
                    inside(inner, &format!("{word}/{name}"))?;
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                let all = value.as_array().filter(|all| !all.is_empty());
                let all = all.ok_or_else(|| format!("{at}/{word}: schemas are required."))?;
                all.iter().try_for_each(|inner| inside(inner, word))?;
            }
            // The one place where strict schemas have a boolean.
            "additionalProperties" if value.is_boolean() => {}
            "items" | "not" | "additionalProperties" => inside(value, word)?,
            "required" => check_required(object.get("properties"), value, at)?,
            "enum" => {
                let good = value.as_array().is_some_and(|all| !all.is_empty());
                ensure(good, || format!("{at}/enum: values are required."))?;
            }
            "$ref" => check_reference(root, value, at)?,
            "description" | "title" | "format" | "pattern" | "$schema" => {
                ensure(value.is_string(), || format!("{at}/{word}: a string is required."))?;
            }
            _ => {}
        }
    }
    let is = |kind: &str| {
        object.get("type").is_some_and(|one| {
            one == kind || one.as_array().is_some_and(|all| all.contains(&json!(kind)))
        })
    };
    ensure(!is("array") || object.contains_key("items"), || {
        format!("{at}: array schema missing items.")
    })?;
    if strict == Strictness::Strict && is("object") {
        check_strict_object(schema, at)?;
    }
    Ok(())
}

fn check_type(kind: &Value, at: &str) -> Checked {
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    let good = match kind {
        Value::Array(all) => !all.is_empty() && all.iter().all(known),
        one => known(one),
    };
    ensure(good, || format!("{at}: {kind} is not valid under any of the given schemas."))
}

fn check_required(properties: Option<&Value>, required: &Value, at: &str) -> Checked {
    let all = required.as_array().ok_or_else(|| format!("{at}/required: an array is required."))?;
    let mut seen = HashSet::new();
    for one in all {
        let name = one.as_str().ok_or_else(|| format!("{at}/required: {one} is no string."))?;
        check_unique(&mut seen, name, &format!("{at}/required"))?;
        let there = properties.is_some_and(|properties| properties.get(name).is_some());
        ensure(there, || format!("{at}/required: there is no property '{name}'."))?;
    }
    Ok(())
}

fn check_reference(root: &Value, reference: &Value, at: &str) -> Checked {
    let place = reference.as_str().and_then(|text| text.strip_prefix('#'));
    let found = place.is_some_and(|place| root.pointer(place).is_some());
    ensure(found, || format!("{at}/$ref: {reference} leads nowhere."))
}

/// What a schema that is kept to the letter has to say: everything is required and nothing else may
/// come.
fn check_strict_object(schema: &Value, at: &str) -> Checked {
    ensure(schema["additionalProperties"] == false, || {
        format!("{at}: 'additionalProperties' is required to be supplied and to be false.")
    })?;
    let names = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
    for name in names {
        let required = schema["required"].as_array();
        ensure(required.is_some_and(|all| all.contains(&json!(name))), || {
            format!("{at}: 'required' has to have every key in properties. Missing '{name}'.")
        })?;
    }
    Ok(())
}
