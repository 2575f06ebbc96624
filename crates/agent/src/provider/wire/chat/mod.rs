//! OpenAI's Chat Completions, which most servers of models speak, each a little differently.

mod read;
mod request;

use super::{Decode, KnownIds, Wire};
use crate::provider::ModelRequest;

/// What marks the reasoning that came in this form.
const NAME: &str = "chat";

/// OpenAI's Chat Completions.
#[derive(Debug)]
pub(in crate::provider) struct Chat {
    pub(in crate::provider) server: ChatServer,
}

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum ChatServer {
    /// OpenAI, which refuses what it does not know.
    OpenAi,
    /// Somebody else, who knows what OpenAI has known for long.
    Other,
}

impl Wire for Chat {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn body(&self, request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&request::Body::of(request, self.server))
    }

    fn decoder(&self, known: KnownIds) -> Box<dyn Decode> {
        Box::new(read::Reader::new(known))
    }
}
