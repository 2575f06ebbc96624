//! The model that an agent talks to, who serves it, and how far the agent may go.

use super::form::{Address, Argv, HeaderName, HeaderValue, UpTo, VariableName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Who serves models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelProviderSettings {
    /// What people call it.
    #[schemars(extend("examples" = ["My own server"]))]
    pub name: Option<String>,
    /// Where it is.
    #[schemars(extend("examples" = ["http://localhost:8000/v1"]))]
    pub base_url: Option<Address>,
    /// The variable of your environment that holds its key. The key itself is never in this file.
    #[schemars(extend("examples" = ["MY_SERVER_KEY"]))]
    pub env_key: Option<VariableName>,
    /// How to get a key; shown when the variable is not set.
    #[schemars(extend("examples" = ["Ask the team for a key."]))]
    pub env_key_instructions: Option<String>,
    /// A program and its arguments that prints the key, instead of `env_key`. Only in your own file.
    #[schemars(extend("examples" = [["pass", "show", "my-server"]]))]
    pub key_command: Option<Argv>,
    /// A file with the key in it that nobody else can read, instead of `env_key`. Only in your own
    /// file.
    #[schemars(extend("examples" = ["~/.keys/my-server"]))]
    pub key_file: Option<PathBuf>,
    /// What it speaks.
    #[schemars(extend("default" = "responses", "examples" = ["chat"]))]
    pub wire_api: Option<WireApi>,
    /// Added to every address.
    #[schemars(extend("examples" = [{"api-version": "2025-04-01"}]))]
    pub query_params: BTreeMap<String, String>,
    /// Sent with every request.
    #[schemars(
        with = "BTreeMap<String, HeaderValue>",
        extend("propertyNames" = {"format": "header-name"}, "examples" = [{"X-Team": "tools"}])
    )]
    pub http_headers: BTreeMap<HeaderName, HeaderValue>,
    /// Sent with every request; the values are names of variables.
    #[schemars(
        with = "BTreeMap<String, VariableName>",
        extend("propertyNames" = {"format": "header-name"}, "examples" = [{"X-Key": "MY_OTHER_KEY"}])
    )]
    pub env_http_headers: BTreeMap<HeaderName, VariableName>,
    /// How often a request that failed is made again.
    #[schemars(extend("default" = 4, "examples" = [2]))]
    pub request_max_retries: Option<UpTo<100>>,
    /// How often a stream that broke off is begun again.
    #[schemars(extend("default" = 5, "examples" = [2]))]
    pub stream_max_retries: Option<UpTo<100>>,
    /// How many milliseconds a stream may be silent.
    #[schemars(extend("default" = 300_000, "examples" = [60_000]))]
    pub stream_idle_timeout_ms: Option<NonZeroU64>,
    /// Certificates, in PEM, of authorities that are believed beside those of your system.
    #[schemars(extend("examples" = ["~/certificates/office.pem"]))]
    pub ca_file: Option<PathBuf>,
    /// Whether its key may be sent over a network without TLS.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub allow_plain_http: Option<bool>,
}

/// What a model provider speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireApi {
    /// OpenAI's Responses.
    #[default]
    Responses,
    /// OpenAI's Chat Completions, which many servers speak.
    Chat,
    /// Anthropic's Messages.
    Anthropic,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// A lot.
    High,
    /// As much as it can.
    Xhigh,
}

/// What a model tells of its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningSummary {
    /// What the provider sees fit.
    Auto,
    /// In short.
    Concise,
    /// At length.
    Detailed,
    /// Nothing.
    None,
}

/// How far an agent may go before it stops and says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSettings {
    /// How often the model may be asked on the way to the answer to one prompt.
    #[schemars(extend("default" = 200, "examples" = [50]))]
    pub max_turns: Option<NonZeroU64>,
    /// How many tokens, sent and received, the answer to one prompt may cost. Without it: as many as
    /// it takes.
    #[schemars(extend("examples" = [2_000_000]))]
    pub max_tokens: Option<NonZeroU64>,
    /// How many milliseconds the answer to one prompt may take. Without it: as many as it takes.
    #[schemars(extend("examples" = [3_600_000]))]
    pub max_time_ms: Option<NonZeroU64>,
    /// How many subagents may be at work at the same time; with 0 there are none.
    #[schemars(extend("default" = 4, "examples" = [2]))]
    pub max_subagents: Option<UpTo<64>>,
    /// How deep subagents may have subagents of their own.
    #[schemars(extend("default" = 1, "examples" = [2]))]
    pub max_subagent_depth: Option<UpTo<8>>,
    /// The model that looks at a command which was blocked, see `features`. Without it: a small one of
    /// the same provider.
    #[schemars(extend("examples" = ["gpt-5.1-codex-mini"]))]
    pub assessment_model: Option<String>,
}
