//! Model providers and MCP servers as they are used: with every default filled in, and only if their
//! settings go together.
//!
//! Layers may each say a part of one, so this can be told only of what they come to. A server or
//! provider that makes no sense is an error where it is used, and stops nothing else.

use crate::config::Config;
use crate::settings::{
    Address, Argv, HeaderName, HeaderValue, McpServerSettings, ModelProviderSettings, SandboxMode,
    Seconds, ServerName, UpTo, VariableName, WireApi,
};
use sandgate_protocol::{NetworkAccess, SandboxPolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Why a provider or server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} {fault}")]
pub struct ServiceError {
    /// Which, like `mcp_servers.docs`.
    pub key: String,
    /// What is wrong with it.
    pub fault: ServiceFault,
}

/// What is wrong with a provider or server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceFault {
    /// A setting that it cannot do without is missing.
    #[error("has no {0}")]
    Missing(&'static str),
    /// One of two settings is too much.
    #[error("has both {0} and {1}; take one of them away")]
    Both(&'static str, &'static str),
    /// A setting means nothing without another.
    #[error("has {0}, which is for one with {1} only")]
    OnlyWith(&'static str, &'static str),
}

/// Who serves a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// Its name in the settings.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub base_url: Address,
    /// Where its key comes from; none if it needs none.
    pub key: Option<KeySource>,
    /// What it speaks.
    pub wire_api: WireApi,
    /// Added to every address.
    pub query_params: BTreeMap<String, String>,
    /// Sent with every request.
    pub http_headers: BTreeMap<HeaderName, HeaderValue>,
    /// Sent with every request, with what these variables hold.
    pub env_http_headers: BTreeMap<HeaderName, VariableName>,
    /// How often a request that failed is made again.
    pub request_max_retries: u32,
    /// How often a stream that broke off is begun again.
    pub stream_max_retries: u32,
    /// How long a stream may be silent.
    pub stream_idle_timeout: Duration,
    /// Certificates of authorities that are believed beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Whether its key may be sent over a network without TLS.
    pub allow_plain_http: bool,
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable of the environment.
    Variable {
        /// Its name.
        name: VariableName,
        /// How to get a key, for whoever has not set it.
        instructions: Option<String>,
    },
    /// What a program prints. Only the person can have named it.
    Command(Argv),
    /// What is in a file. Only the person can have named it.
    File(PathBuf),
}

impl ModelProvider {
    /// The provider that settings describe.
    ///
    /// # Errors
    /// When it cannot be used like that.
    pub fn new(id: &str, settings: &ModelProviderSettings) -> Result<Self, ServiceError> {
        let fault = |fault| ServiceError { key: format!("model_providers.{id}"), fault };
        let ModelProviderSettings { base_url, env_key, key_command, key_file, .. } = settings;
        let key = match (env_key, key_command, key_file) {
            (None, None, None) => None,
            (Some(name), None, None) => {
                let instructions = settings.env_key_instructions.clone();
                Some(KeySource::Variable { name: name.clone(), instructions })
            }
            (None, Some(argv), None) => Some(KeySource::Command(argv.clone())),
            (None, None, Some(file)) => Some(KeySource::File(file.clone())),
            (Some(_), Some(_), _) => {
                return Err(fault(ServiceFault::Both("env_key", "key_command")));
            }
            (Some(_), _, Some(_)) => return Err(fault(ServiceFault::Both("env_key", "key_file"))),
            (_, Some(_), Some(_)) => {
                return Err(fault(ServiceFault::Both("key_command", "key_file")));
            }
        };
        let base_url = base_url.clone().ok_or_else(|| fault(ServiceFault::Missing("base_url")))?;
        let idle = settings.stream_idle_timeout_ms.map_or(300_000, std::num::NonZeroU64::get);
        Ok(Self {
            id: id.to_owned(),
            name: settings.name.clone().unwrap_or_else(|| id.to_owned()),
            base_url,
            key,
            wire_api: settings.wire_api.unwrap_or_default(),
            query_params: settings.query_params.clone(),
            http_headers: settings.http_headers.clone(),
            env_http_headers: settings.env_http_headers.clone(),
            request_max_retries: settings.request_max_retries.map_or(4, UpTo::get),
            stream_max_retries: settings.stream_max_retries.map_or(5, UpTo::get),
            stream_idle_timeout: Duration::from_millis(idle),
            ca_file: settings.ca_file.clone(),
            allow_plain_http: settings.allow_plain_http.unwrap_or(false),
        })
    }
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name, with which the names of its tools begin.
    pub name: ServerName,
    /// How it is reached.
    pub transport: McpTransport,
    /// Which of its tools may be used.
    pub tools: McpTools,
    /// How long it may take to start.
    pub startup_timeout: Duration,
    /// How long a call of one of its tools may take.
    pub tool_timeout: Duration,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that is started, and talked to through its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it is given.
        env: BTreeMap<VariableName, String>,
        /// Variables of the person's that it is given.
        env_vars: Vec<VariableName>,
        /// Where it is started; none if that is the workspace.
        cwd: Option<PathBuf>,
        /// What it may touch.
        sandbox: SandboxPolicy,
    },
    /// An address.
    Http {
        /// Where it is.
        url: Address,
        /// The variable that holds its token.
        bearer_token_env_var: Option<VariableName>,
        /// Sent with every request.
        http_headers: BTreeMap<HeaderName, HeaderValue>,
        /// Sent with every request, with what these variables hold.
        env_http_headers: BTreeMap<HeaderName, VariableName>,
    },
}

/// Which tools of an MCP server may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpTools {
    enabled: Option<BTreeSet<String>>,
    disabled: BTreeSet<String>,
}

impl McpTools {
    /// Whether the tool of this name may be used.
    pub fn contains(&self, tool: &str) -> bool {
        let named = self.enabled.as_ref().is_none_or(|enabled| enabled.contains(tool));
        named && !self.disabled.contains(tool)
    }
}

impl McpServer {
    /// The server that settings describe.
    ///
    /// # Errors
    /// When it cannot be used like that.
    pub fn new(name: &ServerName, settings: &McpServerSettings) -> Result<Self, ServiceError> {
        let transport = transport(settings)
            .map_err(|fault| ServiceError { key: format!("mcp_servers.{name}"), fault })?;
        let set = |names: &Option<Vec<String>>| names.clone().map(BTreeSet::from_iter);
        let seconds = |given: Option<Seconds>, usual| {
            given.map_or(Duration::from_secs(usual), Seconds::duration)
        };
        Ok(Self {
            name: name.clone(),
            transport,
            tools: McpTools {
                enabled: set(&settings.enabled_tools),
                disabled: set(&settings.disabled_tools).unwrap_or_default(),
            },
            startup_timeout: seconds(settings.startup_timeout_sec, 10),
            tool_timeout: seconds(settings.tool_timeout_sec, 60),
        })
    }
}

fn transport(settings: &McpServerSettings) -> Result<McpTransport, ServiceFault> {
    // Whatever is said about the other kind of server would be without effect, and perhaps was meant
    // to confine.
    let of_programs = [
        ("args", settings.args.is_some()),
        ("env", !settings.env.is_empty()),
        ("env_vars", settings.env_vars.is_some()),
        ("cwd", settings.cwd.is_some()),
        ("sandbox_mode", settings.sandbox_mode.is_some()),
        ("network_access", settings.network_access.is_some()),
        ("writable_roots", settings.writable_roots.is_some()),
    ];
    let of_addresses = [
        ("bearer_token_env_var", settings.bearer_token_env_var.is_some()),
        ("http_headers", !settings.http_headers.is_empty()),
        ("env_http_headers", !settings.env_http_headers.is_empty()),
    ];
    let first =
        |said: &[(&'static str, bool)]| said.iter().find(|(_, is)| *is).map(|(key, _)| *key);
    match (&settings.command, &settings.url) {
        (Some(_), Some(_)) => Err(ServiceFault::Both("command", "url")),
        (None, None) => Err(ServiceFault::Missing("command and no url")),
        (Some(command), None) => match first(&of_addresses) {
            Some(key) => Err(ServiceFault::OnlyWith(key, "url")),
            None => Ok(McpTransport::Stdio {
                command: command.clone(),
                args: settings.args.clone().unwrap_or_default(),
                env: settings.env.clone(),
                env_vars: settings.env_vars.clone().unwrap_or_default(),
                cwd: settings.cwd.clone(),
                sandbox: sandbox(settings)?,
            }),
        },
        (None, Some(url)) => match first(&of_programs) {
            Some(key) => Err(ServiceFault::OnlyWith(key, "command")),
            None => Ok(McpTransport::Http {
                url: url.clone(),
                bearer_token_env_var: settings.bearer_token_env_var.clone(),
                http_headers: settings.http_headers.clone(),
                env_http_headers: settings.env_http_headers.clone(),
            }),
        },
    }
}

/// What a server that is started may touch.
fn sandbox(settings: &McpServerSettings) -> Result<SandboxPolicy, ServiceFault> {
    let network = settings.network_access.unwrap_or(false);
    let roots = settings.writable_roots.clone().unwrap_or_default();
    let mode = settings.sandbox_mode.unwrap_or(SandboxMode::ReadOnly);
    let needs_mode = |key| Err(ServiceFault::OnlyWith(key, "sandbox_mode = \"workspace-write\""));
    match mode {
        SandboxMode::WorkspaceWrite => Ok(SandboxPolicy::WorkspaceWrite {
            writable_roots: roots,
            network_access: match network {
                true => NetworkAccess::Enabled,
                false => NetworkAccess::Restricted,
            },
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        }),
        _ if network => needs_mode("network_access"),
        _ if !roots.is_empty() => needs_mode("writable_roots"),
        SandboxMode::ReadOnly => Ok(SandboxPolicy::ReadOnly),
        SandboxMode::DangerFullAccess => Ok(SandboxPolicy::DangerFullAccess),
    }
}

impl Config {
    /// The model provider of this name, if the settings describe one.
    ///
    /// # Errors
    /// When it cannot be used as they do.
    pub fn model_provider(&self, id: &str) -> Result<Option<ModelProvider>, ServiceError> {
        let settings = self.settings.model_providers.get(id);
        settings.map(|settings| ModelProvider::new(id, settings)).transpose()
    }

    /// The MCP servers that are not turned off, each of its own or why it cannot be used.
    pub fn mcp_servers(&self) -> impl Iterator<Item = Result<McpServer, ServiceError>> {
        let servers = self.settings.mcp_servers.iter();
        servers
            .filter(|(_, settings)| settings.enabled.unwrap_or(true))
            .map(|(name, settings)| McpServer::new(name, settings))
    }
}
