//! From a JSON schema to tables for readers.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Types that a page has named and must tell of.
pub(crate) type Parts<'a> = Vec<(&'a str, &'a Value)>;

/// The types of a document, by their names.
pub(crate) struct Types<'a> {
    pub(crate) defs: &'a Map<String, Value>,
    /// What stands before a name that is referred to.
    pub(crate) prefix: &'static str,
}

impl<'a> Types<'a> {
    /// What a reference is to.
    pub(crate) fn target(&self, schema: &Value) -> Option<(&'a str, &'a Value)> {
        let name = schema["$ref"].as_str()?.strip_prefix(self.prefix)?;
        self.defs.get_key_value(name).map(|(name, schema)| (name.as_str(), schema))
    }

    /// The fields of an object: its own, those of what it refers to, and those of its variants.
    fn fields(&self, schema: &'a Value) -> Vec<Field<'a>> {
        let mut fields: Vec<Field<'a>> = Vec::new();
        let required = schema["required"].as_array();
        for (name, value) in schema["properties"].as_object().into_iter().flatten() {
            let always = required.is_some_and(|names| names.iter().any(|other| other == name));
            fields.push(Field { name, values: vec![value], always });
        }
        if let Some((_, target)) = self.target(schema) {
            fields.extend(self.fields(target));
        }
        for key in ["oneOf", "anyOf", "allOf"] {
            let variants = schema[key].as_array().into_iter().flatten();
            for (index, variant) in variants.enumerate() {
                for field in self.fields(variant) {
                    match fields.iter_mut().find(|known| known.name == field.name) {
                        Some(known) => known.values.extend(field.values),
                        None => {
                            let always = field.always && (index == 0 || key == "allOf");
                            fields.push(Field { always, ..field });
                        }
                    }
                }
            }
        }
        fields
    }

    pub(crate) fn table(&self, schema: &'a Value, parts: &mut Parts<'a>) -> String {
        let mut text = String::new();
        let fields = self.fields(schema);
        let fields: Vec<_> = fields.iter().filter(|field| field.name != "type").collect();
        if !fields.is_empty() {
            text += "\n| field | value | |\n| --- | --- | --- |\n";
        }
        for field in fields {
            let mut kinds: Vec<String> = Vec::new();
            for value in &field.values {
                let kind = self.kind(value, parts);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            let about = about(field.values[0]);
            let about = if field.values.len() > 1 { String::new() } else { about };
            let optional = if field.always { "" } else { ", or absent" };
            let _ =
                writeln!(text, "| `{}` | {}{optional} | {about} |", field.name, kinds.join(", "));
        }
        for (value, about) in self.words(schema) {
            let gap = if text.is_empty() { "\n" } else { "" };
            let _ = writeln!(text, "{gap}- `\"{value}\"`: {about}");
        }
        text
    }

    /// The words that a value can be, with what each says.
    fn words(&self, schema: &'a Value) -> Vec<(String, String)> {
        let plain = schema["enum"].as_array().into_iter().flatten();
        let plain = plain.filter_map(|word| Some((word.as_str()?.to_owned(), String::new())));
        let told = schema["oneOf"].as_array().into_iter().flatten();
        let told = told.filter_map(|word| Some((word["const"].as_str()?.to_owned(), about(word))));
        plain.chain(told).collect()
    }

    /// What a value is, in words. Objects are told of below, once each.
    pub(crate) fn kind(&self, schema: &'a Value, parts: &mut Parts<'a>) -> String {
        if let Some((name, target)) = self.target(schema) {
            let words = self.words(target);
            let is_told = words.iter().any(|(_, about)| !about.is_empty());
            let is_object = !self.fields(target).is_empty();
            // An event in an event is told of where events are.
            if name == "Event" {
                return "an event, as on this page".to_owned();
            }
            if is_object || is_told {
                if !parts.iter().any(|(known, _)| *known == name) {
                    parts.push((name, target));
                }
                return format!("[`{name}`](#{})", name.to_lowercase());
            }
            return self.kind(target, parts);
        }
        if let Some(word) = schema["const"].as_str() {
            return format!("`\"{word}\"`");
        }
        let words = self.words(schema);
        if !words.is_empty() {
            let words: Vec<String> =
                words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            return words.join(", ");
        }
        if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            let choices = choices.iter().filter(|choice| choice["type"] != "null");
            let kinds: Vec<String> = choices.map(|choice| self.kind(choice, parts)).collect();
            return kinds.join(" or ");
        }
        if schema["allOf"].is_array() || schema["type"].is_null() {
            return "object".to_owned();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[0].as_str().unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "string" => "text".to_owned(),
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "array" => format!("list of: {}", self.kind(&schema["items"], parts)),
            "object" => {
                let names = schema["properties"].as_object().into_iter().flatten();
                let names: Vec<String> = names
                    .map(|(name, value)| format!("`{name}`: {}", self.kind(value, parts)))
                    .collect();
                format!("object with {}", names.join(", "))
            }
            other => panic!("what is {other:?}? {schema}"),
        }
    }
}

struct Field<'a> {
    name: &'a str,
    /// What it can be, in each of the variants that have it.
    values: Vec<&'a Value>,
    always: bool,
}

/// What the documentation says of a type or field, in one line of a table.
pub(crate) fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    // A star means itself, but in code it needs no help for that.
    let parts = text.split('`').enumerate();
    let parts =
        parts.map(|(n, part)| if n % 2 == 0 { part.replace('*', "\\*") } else { part.into() });
    parts.collect::<Vec<String>>().join("`")
}
