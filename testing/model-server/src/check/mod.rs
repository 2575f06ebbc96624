//! Whether a request is one that the real service would take.
//!
//! What a client gets wrong in a conversation (a call without an answer, a thought that was changed,
//! a schema that is none) is refused by the services with status 400, often only turns later. These
//! checks refuse it too, so that a test finds it without a key and without a bill. They are no
//! complete copy of what the services check.

mod chat;
mod messages;
mod responses;
mod tools;

use crate::wire::Wire;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The calls that the server has made, each with the seals of the thoughts that belong to it.
pub(crate) type Issued = HashMap<String, Vec<String>>;

/// Nothing, or why a request is refused.
type Checked = Result<(), String>;

/// Why a request would be refused, if it would.
pub(crate) fn refusal(wire: Wire, body: &Value, issued: &Issued) -> Option<String> {
    let check = match wire {
        Wire::Responses => responses::check,
        Wire::Chat => chat::check,
        Wire::Messages => messages::check,
    };
    check(body, issued).err()
}

/// Holds what was asked against what must be.
fn ensure(good: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if good { Ok(()) } else { Err(otherwise()) }
}

/// The body, if it is an object with nothing in it that the service does not know.
fn parameters<'a>(body: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, String> {
    let body = body.as_object().ok_or("The body is not a JSON object.")?;
    match body.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("Unknown parameter: '{name}'.")),
        None => Ok(body),
    }
}

fn text<'a>(value: &'a Value, name: &str, at: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("{at}.{name}: a string is required."))
}

fn list<'a>(value: &'a Value, name: &str, at: &str) -> Result<&'a [Value], String> {
    let list = value[name].as_array().map(Vec::as_slice);
    list.ok_or_else(|| format!("{at}.{name}: an array is required."))
}

/// That a name has no other characters than the services take, and at most so many.
fn check_name(name: &str, longest: usize, at: &str) -> Checked {
    let good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    ensure(!name.is_empty() && name.len() <= longest && name.chars().all(good), || {
        format!("{at}: '{name}' does not match ^[a-zA-Z0-9_-]{{1,{longest}}}$.")
    })
}

/// That nothing has been called so before.
fn check_unique<'a>(seen: &mut HashSet<&'a str>, name: &'a str, at: &str) -> Checked {
    ensure(seen.insert(name), || format!("{at}: duplicate id '{name}'."))
}

fn check_boolean(body: &Map<String, Value>, name: &str) -> Checked {
    let good = body.get(name).is_none_or(|value| value.is_boolean() || value.is_null());
    ensure(good, || format!("{name}: a boolean is required."))
}
