//! Anthropic's Messages.

mod models;
mod read;
mod request;

use super::{Decode, KnownIds, Wire};
use crate::provider::ModelRequest;

/// What marks the reasoning that came in this form.
const NAME: &str = "messages";

/// Anthropic's Messages.
#[derive(Debug)]
pub(in crate::provider) struct Messages;

impl Wire for Messages {
    fn path(&self) -> &'static str {
        "messages"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&request::Body::of(request))
    }

    fn decoder(&self, known: KnownIds) -> Box<dyn Decode> {
        Box::new(read::Reader::new(known))
    }
}
