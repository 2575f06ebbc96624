//! The wire formats: what a turn looks like in each, and how each says that something went wrong.

mod chat;
mod messages;
mod responses;

use crate::turn::Turn;
use serde_json::{Value, json};
use std::fmt;

/// When every response was made, so that two runs give the same bytes.
const CREATED: u64 = 1_700_000_000;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which most others speak too.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Json(Value),
    Text(&'static str),
    /// These bytes and nothing else: no event at all.
    Raw(&'static [u8]),
}

/// A request that is being answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Which one, from 1: what the names of things are made of.
    pub(crate) number: usize,
    pub(crate) body: &'a Value,
    pub(crate) turn: &'a Turn,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// Where it is spoken.
    pub fn path(self) -> &'static str {
        match self {
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
            Self::Messages => "/v1/messages",
        }
    }

    /// What it is called in the settings (`wire_api`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// The answer as a stream.
    pub(crate) fn events(self, asked: Asked<'_>) -> Vec<Event> {
        match self {
            Self::Responses => responses::events(asked),
            Self::Chat => chat::events(asked),
            Self::Messages => messages::events(asked),
        }
    }

    /// The answer in one piece.
    pub(crate) fn document(self, asked: Asked<'_>) -> Value {
        match self {
            Self::Responses => responses::document(asked),
            Self::Chat => chat::document(asked),
            Self::Messages => messages::document(asked),
        }
    }

    /// Numbers the events, where the format does so.
    pub(crate) fn number(self, events: &mut [Event]) {
        if self != Self::Responses {
            return;
        }
        let numbered = events.iter_mut().filter_map(|event| match &mut event.data {
            Data::Json(Value::Object(object)) => Some(object),
            _ => None,
        });
        for (number, object) in numbered.enumerate() {
            object.insert("sequence_number".to_owned(), json!(number));
        }
    }

    /// The names of calls that come with thoughts which have to be shown again with them, each with
    /// the seals of those thoughts.
    pub(crate) fn sealed_calls(self, asked: Asked<'_>) -> Vec<(String, Vec<String>)> {
        match self {
            Self::Responses => responses::sealed_calls(asked),
            Self::Chat => Vec::new(),
            Self::Messages => messages::sealed_calls(asked),
        }
    }

    /// The body of an answer that refuses.
    pub(crate) fn error_body(self, status: u16, code: Option<&str>, message: &str) -> Value {
        if self == Self::Messages {
            let kind = code.unwrap_or(match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                504 => "timeout_error",
                503 | 529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            });
            let error = json!({"type": kind, "message": message});
            return json!({"type": "error", "error": error, "request_id": "req_1"});
        }
        let (kind, usual) = match status {
            401 => ("invalid_request_error", Some("invalid_api_key")),
            404 => ("invalid_request_error", Some("not_found")),
            429 => ("requests", Some("rate_limit_exceeded")),
            500.. => ("server_error", Some("server_error")),
            _ => ("invalid_request_error", None),
        };
        let code = code.or(usual);
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }

    /// How it says that a request is longer than the model can read: code and message.
    pub(crate) fn overflow(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Responses | Self::Chat => (
                Some("context_length_exceeded"),
                "Your input exceeds the context window of this model. Please adjust your input and \
                 try again.",
            ),
            Self::Messages => (None, "prompt is too long: 250000 tokens > 200000 maximum"),
        }
    }

    /// The event that says that something went wrong.
    pub(crate) fn error_event(self, code: &str, message: &str) -> Event {
        match self {
            Self::Responses => Event::json(
                "error",
                json!({"type": "error", "code": code, "message": message, "param": null}),
            ),
            Self::Chat => {
                let error = json!({"message": message, "type": code, "param": null, "code": code});
                Event { name: None, data: Data::Json(json!({"error": error})) }
            }
            Self::Messages => Event::json(
                "error",
                json!({"type": "error", "error": {"type": code, "message": message}}),
            ),
        }
    }

    /// The event that says that the response has failed, after these.
    pub(crate) fn failed_event(self, before: &[Event], code: &str, message: &str) -> Event {
        match self {
            Self::Responses => responses::failed(before, code, message),
            Self::Chat | Self::Messages => self.error_event(code, message),
        }
    }

    /// An event that nobody knows, with so many bytes that say nothing.
    pub(crate) fn unknown_event(self, bytes: usize) -> Event {
        let padding = "x".repeat(bytes);
        match self {
            Self::Responses | Self::Messages => {
                Event::json("unheard_of", json!({"type": "unheard_of", "padding": padding}))
            }
            Self::Chat => {
                let chunk = json!({"id": "chatcmpl_0", "object": "chat.completion.chunk",
                    "created": CREATED, "model": "unheard-of", "choices": [], "padding": padding});
                Event { name: None, data: Data::Json(chunk) }
            }
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Event {
    /// An event that says twice what it is, as Responses and Messages do.
    fn json(name: &'static str, data: Value) -> Self {
        Self { name: Some(name), data: Data::Json(data) }
    }

    /// What the Messages API keeps a connection open with.
    pub(crate) fn ping() -> Self {
        Self::json("ping", json!({"type": "ping"}))
    }
}

impl Asked<'_> {
    /// The model that was asked for.
    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Whether something that can be given or left out is there.
    fn has(&self, pointer: &str) -> bool {
        self.body.pointer(pointer).is_some_and(|value| !value.is_null())
    }
}

/// The events of parts that come at the same time, by turns.
fn by_turns(lanes: Vec<Vec<Event>>) -> Vec<Event> {
    let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).collect();
    let mut events = Vec::new();
    loop {
        let before = events.len();
        events.extend(lanes.iter_mut().filter_map(Iterator::next));
        if events.len() == before {
            return events;
        }
    }
}
