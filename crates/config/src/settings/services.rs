//! What Sandgate talks to, and what talks to it: MCP servers, telemetry, clients.

use super::form::{Address, HeaderName, HeaderValue, VariableName};
use super::policy::SandboxMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

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
    #[schemars(
        with = "BTreeMap<String, String>",
        extend("propertyNames" = {"format": "variable-name"}, "examples" = [{"LOG_LEVEL": "info"}])
    )]
    pub env: BTreeMap<VariableName, String>,
    /// Names of variables of your own that it is given.
    #[schemars(extend("default" = [], "examples" = [["GITHUB_TOKEN"]]))]
    pub env_vars: Option<Vec<VariableName>>,
    /// Where it is started.
    #[schemars(extend("examples" = ["/home/user/servers"]))]
    pub cwd: Option<PathBuf>,
    /// The address of a server that runs already.
    #[schemars(extend("examples" = ["https://mcp.example.com/mcp"]))]
    pub url: Option<Address>,
    /// The variable of your environment that holds its token.
    #[schemars(extend("examples" = ["EXAMPLE_TOKEN"]))]
    pub bearer_token_env_var: Option<VariableName>,
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
    /// What the program that is started may touch.
    #[schemars(extend("default" = "read-only", "examples" = ["workspace-write"]))]
    pub sandbox_mode: Option<SandboxMode>,
    /// Lets it reach the network; with `workspace-write`.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub network_access: Option<bool>,
    /// Directories that it may write to beside the workspace; with `workspace-write`.
    #[schemars(extend("default" = [], "examples" = [["~/.npm"]]))]
    pub writable_roots: Option<Vec<PathBuf>>,
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
    pub endpoint: Option<Address>,
}

/// What `sandgate serve` listens on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// The address, or `unix:PATH`; `--listen` outweighs it.
    #[schemars(extend("default" = "127.0.0.1:4747", "examples" = ["127.0.0.1:7777"]))]
    pub listen: Option<String>,
}
