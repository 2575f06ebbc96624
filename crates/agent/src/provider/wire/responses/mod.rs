//! OpenAI's Responses, without anything kept by the provider: the whole conversation goes with every
//! request, and what the model thought goes with it, encrypted.

mod read;
mod request;

use super::{Decode, KnownIds, Wire};
use crate::provider::ModelRequest;

/// What marks the reasoning that came in this form.
const NAME: &str = "responses";

/// OpenAI's Responses.
#[derive(Debug)]
pub(in crate::provider) struct Responses;

impl Wire for Responses {
    fn path(&self) -> &'static str {
        "responses"
    }

    fn body(&self, request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&request::Body::of(request))
    }

    fn decoder(&self, known: KnownIds) -> Box<dyn Decode> {
        Box::new(read::Reader::new(known))
    }
}
