//! Who serves models, behind one trait.

mod choose;
mod error;
mod http;
mod key;
mod offline;
mod script;
mod wire;

pub use choose::{
    DEFAULT_PROVIDER, Surroundings, default_model, key_variables, provider, small_model,
};
pub use error::ModelError;
pub use key::KeyCommand;
pub use offline::OfflineProvider;
pub use script::ScriptProvider;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{ResponseItem, SessionSource, TokenUsage};
use sandgate_runtime::ToolSpec;
use serde_json::Value;
use std::time::Duration;

/// Serves models.
pub trait Provider: Send + Sync {
    /// What it is called in the settings.
    fn name(&self) -> &str;

    /// Asks a model. To drop the stream closes the connection.
    ///
    /// The stream ends with [`ModelEvent::End`] or an error, and nothing follows either. Requests that
    /// can be made again are made again in here, which is told by [`ModelEvent::Retrying`].
    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a>;

    /// Finds out whether it is there and takes the key, without asking a model anything. What is on this
    /// machine always is.
    fn reach(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a model says, thinks and calls, as it comes.
pub type ModelStream<'a> = BoxStream<'a, Result<ModelEvent, ModelError>>;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The model.
    pub model: &'a str,
    /// What it is to be, before all else.
    pub instructions: &'a str,
    /// The conversation. What stood in it at the last request stands in it unchanged, so that the
    /// provider can use again what it has computed.
    pub items: &'a [ResponseItem],
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// Whether it may call several tools at once.
    pub parallel_tool_calls: bool,
    /// How much chance there is in what it says.
    pub temperature: Option<f32>,
    /// The most that it may write.
    pub max_output_tokens: Option<u64>,
    /// How much it is to think.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The JSON schema that its answer is to have.
    pub output_schema: Option<&'a Value>,
    /// What the conversation is known by.
    pub conversation_id: &'a str,
    /// Who it works for.
    pub source: &'a SessionSource,
}

/// The most that one answer may consist of: messages, thoughts and calls.
pub(crate) const MOST_CALLS: usize = 256;

/// What comes from a model.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The next piece of what it says.
    TextDelta(String),
    /// The next piece of what it thinks, as far as people may read it.
    ReasoningDelta(String),
    /// A piece of the conversation is complete: a message, a thought or a call.
    Item(ResponseItem),
    /// What was used, as far as it is known now.
    Usage(TokenUsage),
    /// The request failed and is made again after `delay`. Everything that it brought is forgotten.
    Retrying {
        /// Why it failed.
        error: ModelError,
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// How long it waits.
        delay: Duration,
    },
    /// The model is done.
    End(StopReason),
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It has nothing more to say, or waits for the results of its calls.
    Done,
    /// It wrote as much as it may.
    Length,
    /// Its provider will not let it say this.
    Refused,
}
