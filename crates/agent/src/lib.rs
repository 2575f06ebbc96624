//! Talks with models, and takes what they ask for to the gate.
//!
//! This crate is an untrusted client of `runtime`: it is handed a `Requester` and has no way to answer a
//! question. A [`Provider`] turns a history into a stream of what a model says, thinks and calls; a
//! [`Conversation`] keeps the history, makes the calls and asks the model again until it has nothing
//! more to ask for.

#![forbid(unsafe_code)]

mod conversation;
mod instructions;
mod mcp;
mod provider;
mod risk;
pub mod rollout;
mod subagent;
mod untrusted;

pub use conversation::{Conversation, ConversationOptions, Limits, TurnEnd, UserInput};
pub use instructions::{
    DEFAULT_PROJECT_DOC_BYTES, InstructionSources, Instructions, instructions, surroundings,
};
pub use mcp::{McpServers, Settled, server_programs};
pub use provider::{
    DEFAULT_PROVIDER, KeyCommand, ModelError, ModelEvent, ModelRequest, ModelStream,
    OfflineProvider, Provider, ScriptProvider, StopReason, Surroundings, default_model,
    key_variables, provider, small_model,
};
pub use risk::ModelRiskAssessor;
/// What a key is held in.
pub use secrecy::SecretString;
pub use subagent::{
    Changes, Finding, Priority, Review, ReviewSubject, SpawnAgent, read_review, review_input,
    review_options,
};
