//! What a provider says went wrong, as an error and one sentence.

use crate::provider::ModelError;
use crate::provider::wire::Told;
use sandgate_protocol::visible_line;
use serde_json::Value;
use std::time::Duration;

/// The longest sentence that is made of what a provider says, in characters.
const LONGEST_SENTENCE: usize = 600;

/// What providers say when a conversation does not fit into a model.
const OVERFLOWS: &[&str] = &[
    "context_length_exceeded",
    "model_context_window_exceeded",
    "exceed_context_size",
    "request_too_large",
    "maximum context length",
    "context window",
    "available context size",
    "exceed context limit",
    "context overflow",
    "context length",
    "prompt is too long",
];

/// What they say when nobody has paid.
const QUOTAS: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit",
    "billing_error",
    "insufficient_credits",
    "credit balance is too low",
];

/// Who was asked for what.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

/// The error that this is.
pub(super) fn error(
    asked: Asked<'_>,
    status: u16,
    told: &Told,
    retry_after: Option<Duration>,
) -> ModelError {
    let provider = asked.provider.to_owned();
    let message = sentence(&told.message);
    let words = format!("{} {}", told.kind, told.message).to_lowercase();
    let says = |table: &[&str]| table.iter().any(|words_of| words.contains(words_of));
    if status == 402 || says(QUOTAS) {
        return ModelError::Quota { provider, message };
    }
    // Who is asked too often may speak of tokens too.
    if status == 413 || (status != 429 && says(OVERFLOWS)) {
        return ModelError::ContextOverflow { model: asked.model.to_owned(), message };
    }
    ModelError::Status { provider, status, message, retry_after }
}

/// What the body of an answer says went wrong.
pub(super) fn told(body: &str, status: reqwest::StatusCode) -> Told {
    let of_json = serde_json::from_str::<Value>(body).ok();
    let message = match of_json {
        Some(value) => match Told::read(&value) {
            Some(told) => return told,
            None => value.to_string(),
        },
        None => match title(body) {
            Some(title) => title,
            None => body.to_owned(),
        },
    };
    let message = match message.trim() {
        "" => status.canonical_reason().unwrap_or("no reason given").to_owned(),
        _ => message,
    };
    Told { message, ..Told::default() }
}

/// The title of a web page, such as one of a proxy.
fn title(body: &str) -> Option<String> {
    let lower = body.to_ascii_lowercase();
    let is_page = lower.trim_start().starts_with("<!doctype html") || lower.contains("<html");
    if !is_page {
        return None;
    }
    let title = lower.find("<title>").map(|at| at + "<title>".len()).and_then(|begin| {
        let end = begin + lower[begin..].find("</title>")?;
        body.get(begin..end)
    });
    Some(format!("a web page: {}", title.map_or("without a title", str::trim)))
}

/// One sentence that a terminal can show, without what is too much.
pub(super) fn sentence(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = visible_line(&words.join(" "));
    match text.char_indices().nth(LONGEST_SENTENCE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
