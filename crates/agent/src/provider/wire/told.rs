//! What a provider says went wrong, in whichever of their forms.

use serde_json::Value;

/// What a provider says went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::provider) struct Told {
    /// Its words for it, such as `context_length_exceeded`, one after the other.
    pub(in crate::provider) kind: String,
    /// Its sentence.
    pub(in crate::provider) message: String,
    /// The status that it names in what it says.
    pub(in crate::provider) status: Option<u16>,
}

impl Told {
    /// Reads an error: `{"error": {"type", "code", "message"}}` of all three forms, and what servers
    /// that are like them make of it. None if it says nothing of an error.
    pub(in crate::provider) fn read(value: &Value) -> Option<Self> {
        let value = match value {
            Value::Array(all) => all.first()?,
            value => value,
        };
        let error = match value.get("error") {
            Some(Value::String(message)) => return Some(Self::of_message(message)),
            Some(error @ Value::Object(_)) => error,
            _ => value,
        };
        let message = ["message", "detail", "error_description", "msg"]
            .into_iter()
            .find_map(|name| text_of(error.get(name)?))?;
        let words =
            ["type", "code", "status"].into_iter().filter_map(|name| error.get(name)?.as_str());
        let words = words.filter(|word| *word != "error");
        let status = ["code", "status", "http_status"].into_iter().find_map(|name| {
            let status = u16::try_from(error.get(name)?.as_u64()?).ok()?;
            (400..=599).contains(&status).then_some(status)
        });
        Some(Self { kind: words.collect::<Vec<_>>().join(" "), message, status })
    }

    /// Reads an event that is an error, whatever it says.
    pub(super) fn of_event(value: &Value) -> Self {
        Self::read(value).unwrap_or_else(|| Self::of_message("it gives no reason"))
    }

    fn of_message(message: &str) -> Self {
        Self { message: message.to_owned(), ..Self::default() }
    }

    /// The status that a response with this error would have had, had it not begun.
    pub(in crate::provider) fn status(&self) -> u16 {
        let by_word = |(word, status): &(&str, u16)| self.kind.contains(word).then_some(*status);
        self.status.or_else(|| STATUS_OF_WORDS.iter().find_map(by_word)).unwrap_or(500)
    }
}

/// A text, or the first text in a list of what is wrong.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(all) => all.first().and_then(|one| text_of(one.get("msg").unwrap_or(one))),
        _ => None,
    }
}

/// The providers' words for what goes wrong in the middle of a stream. What is not here may come to
/// something if it is asked for again.
const STATUS_OF_WORDS: &[(&str, u16)] = &[
    ("invalid_request", 400),
    ("invalid_prompt", 400),
    ("invalid_image", 400),
    ("image_", 400),
    ("authentication", 401),
    ("billing", 402),
    ("permission", 403),
    ("not_found", 404),
    ("request_too_large", 413),
    ("rate_limit", 429),
    ("overloaded", 529),
    ("timeout", 504),
];
