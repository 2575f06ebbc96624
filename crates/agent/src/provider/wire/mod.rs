//! What models are spoken to in: three forms, each a request and a reader of its stream.
//!
//! A form only translates. It knows nothing of connections, keys, retries or time, and it never reads
//! the arguments of a call: they go on as the model wrote them.

pub(super) mod chat;
mod ids;
pub(super) mod messages;
pub(super) mod responses;
mod told;
mod turns;

#[cfg(test)]
mod tests;

pub(super) use ids::KnownIds;
pub(super) use told::Told;

use super::{ModelEvent, ModelRequest};
use serde::{Deserialize, Deserializer};

/// A form that models are spoken to in.
pub(super) trait Wire: Send + Sync {
    /// What is asked for below the address of the provider.
    fn path(&self) -> &'static str;

    /// The header that carries the key, and what stands in it before the key.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    /// What else every request carries.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The request as JSON. The same conversation gives the same bytes, with more behind them when it
    /// has grown.
    fn body(&self, request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>>;

    /// Reads one response.
    fn decoder(&self, known: KnownIds) -> Box<dyn Decode>;
}

/// Reads the events of one response.
pub(super) trait Decode: Send {
    /// Reads the data of one event. What it means is added to `heard`; [`ModelEvent::End`] is the last.
    fn event(&mut self, data: &str, heard: &mut Vec<ModelEvent>) -> Result<Sign, Fault>;

    /// The stream is at its end: adds what that means, if the response is complete without more.
    fn end_of_stream(&mut self, heard: &mut Vec<ModelEvent>) -> Result<(), Fault>;
}

/// What an event says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It works on the response.
    Work,
    /// It is there, and nothing more.
    Life,
}

/// Why a response is none.
#[derive(Debug)]
pub(super) enum Fault {
    /// An event that is known has not the form that it should have.
    Malformed(String),
    /// The provider says that something went wrong.
    Told(Told),
}

/// Reads what a provider sent, of a form that is known.
fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::Malformed(error.to_string()))
}

/// `null` is taken for what is not there: providers use either.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The arguments of a call without any are an empty object.
fn arguments(text: String) -> sandgate_protocol::CallInput {
    let text = if text.trim().is_empty() { "{}".to_owned() } else { text };
    sandgate_protocol::CallInput::Arguments(text)
}

/// What a tool takes that takes text and no JSON, where there are only tools that take JSON.
fn free_text_schema() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": { "input": { "type": "string" } },
        "required": ["input"],
        "additionalProperties": false,
    })
}

/// What a model is told that cannot be held to a schema in another way.
fn schema_instruction(schema: &serde_json::Value) -> String {
    format!("Your last answer is JSON alone, without a fence, and fits this JSON schema: {schema}")
}

/// Arguments as a provider takes them back: JSON of an object. What a model wrote that is none stands in
/// one, so that the model sees it and no server stumbles over it.
pub(super) fn replayed(arguments: &str) -> std::borrow::Cow<'_, str> {
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(_)) => arguments.into(),
        _ => serde_json::json!({ "arguments": arguments }).to_string().into(),
    }
}
