//! What Sandgate talks to, and what talks to it: model providers, MCP servers, telemetry, clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

/// Who serves models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelProviderSettings {
    /// What people call it.
    #[schemars(extend("examples" = ["My own server"]))]
    pub name: Option<String>,
    /// Where it is.
    #[schemars(extend("examples" = ["http://localhost:8000/v1"]))]
    pub base_url: Option<String>,
    /// The variable of your environment that holds its key. The key itself is never in the settings.
    #[schemars(extend("examples" = ["MY_SERVER_KEY"]))]
    pub env_key: Option<String>,
    /// How to get a key; shown when the variable is not set.
    #[schemars(extend("examples" = ["Ask the team for a key."]))]
    pub env_key_instructions: Option<String>,
    /// A file that holds its key and that nobody but you may read. A relative path begins at the
    /// directory of the settings.
    #[schemars(extend("examples" = ["~/.config/my-server.key"]))]
    pub key_file: Option<PathBuf>,
    /// A program that prints its key, and its arguments.
    #[schemars(extend("examples" = [["pass", "show", "my-server"]]))]
    pub key_command: Option<Vec<String>>,
    /// Certificates, as PEM, that are believed beside those of your system.
    #[schemars(extend("examples" = ["/etc/ssl/our-own.pem"]))]
    pub ca_file: Option<PathBuf>,
    /// Whether its key may be sent over a network without TLS.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub allow_plain_http: Option<bool>,
    /// What it speaks.
    #[schemars(extend("default" = "responses", "examples" = ["chat"]))]
    pub wire_api: Option<WireApi>,
    /// Added to every address.
    #[schemars(extend("examples" = [{"api-version": "2025-04-01"}]))]
    pub query_params: BTreeMap<String, String>,
    /// Sent with every request.
    #[schemars(extend("examples" = [{"X-Team": "tools"}]))]
    pub http_headers: BTreeMap<String, String>,
    /// Sent with every request; the values are names of variables.
    #[schemars(extend("examples" = [{"X-Key": "MY_OTHER_KEY"}]))]
    pub env_http_headers: BTreeMap<String, String>,
    /// How often a request that failed is made again.
    #[schemars(extend("default" = 4, "examples" = [2]))]
    pub request_max_retries: Option<u64>,
    /// How often a stream that broke off is begun again.
    #[schemars(extend("default" = 5, "examples" = [2]))]
    pub stream_max_retries: Option<u64>,
    /// How many milliseconds a stream may be silent.
    #[schemars(extend("default" = 300_000, "examples" = [60_000]))]
    pub stream_idle_timeout_ms: Option<NonZeroU64>,
}

/// What a model provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireApi {
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

/// An MCP server: a program that is started, or an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServerSettings {
    /// The program to start.
    #[schemars(extend("examples" = ["npx"]))]
    pub command: Option<String>,
    /// Its arguments.
    #[schemars(extend("default" = [], "examples" = [["-y", "some-mcp-server"]]))]
    pub args: Option<Vec<String>>,
    /// Variables that it is given.
    #[schemars(extend("examples" = [{"LOG_LEVEL": "info"}]))]
    pub env: BTreeMap<String, String>,
    /// Names of variables of your own that it is given.
    #[schemars(extend("default" = [], "examples" = [["GITHUB_TOKEN"]]))]
    pub env_vars: Option<Vec<String>>,
    /// Where it is started.
    #[schemars(extend("examples" = ["/home/user/servers"]))]
    pub cwd: Option<PathBuf>,
    /// The address of a server that runs already.
    #[schemars(extend("examples" = ["https://mcp.example.com/mcp"]))]
    pub url: Option<String>,
    /// The variable of your environment that holds its token.
    #[schemars(extend("examples" = ["EXAMPLE_TOKEN"]))]
    pub bearer_token_env_var: Option<String>,
    /// Sent with every request.
    #[schemars(extend("examples" = [{"X-Team": "tools"}]))]
    pub http_headers: BTreeMap<String, String>,
    /// Sent with every request; the values are names of variables.
    #[schemars(extend("examples" = [{"X-Key": "MY_OTHER_KEY"}]))]
    pub env_http_headers: BTreeMap<String, String>,
    /// Whether it is used.
    #[schemars(extend("default" = true, "examples" = [false]))]
    pub enabled: Option<bool>,
    /// Its tools that may be used; all of them without this.
    #[schemars(extend("examples" = [["search", "read"]]))]
    pub enabled_tools: Option<Vec<String>>,
    /// Its tools that may not.
    #[schemars(extend("default" = [], "examples" = [["delete"]]))]
    pub disabled_tools: Option<Vec<String>>,
    /// How many seconds it may take to start.
    #[schemars(extend("default" = 10, "examples" = [30]))]
    pub startup_timeout_sec: Option<Seconds>,
    /// How many seconds a call of one of its tools may take.
    #[schemars(extend("default" = 60, "examples" = [120]))]
    pub tool_timeout_sec: Option<Seconds>,
}

/// A number of seconds between 0 and a year, with a fraction if need be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(inline, extend("minimum" = 0, "maximum" = 31_536_000))]
pub struct Seconds(f64);

impl Seconds {
    /// As a span of time.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        match (0.0..=31_536_000.0).contains(&seconds) {
            true => Ok(Self(seconds)),
            false => Err("this is not between 0 seconds and a year"),
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

/// Where traces and metrics are sent. The standard variables of OpenTelemetry outweigh it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OtelSettings {
    /// The base address of a collector that speaks OTLP over HTTP. Without it nothing is sent.
    #[schemars(extend("examples" = ["http://localhost:4318"]))]
    pub endpoint: Option<String>,
}

/// What `sandgate serve` listens on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// The address.
    #[schemars(extend("default" = "127.0.0.1:0", "examples" = ["127.0.0.1:7777"]))]
    pub listen: Option<String>,
    /// The variable of your environment that holds the token which clients must show.
    #[schemars(extend("examples" = ["SANDGATE_TOKEN"]))]
    pub token_env_var: Option<String>,
    /// Origins of web pages that may talk to it, beside its own.
    #[schemars(extend("default" = [], "examples" = [["https://console.example.com"]]))]
    pub allowed_origins: Option<Vec<String>>,
}
