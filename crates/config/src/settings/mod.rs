//! Every setting, as it may stand in a `config.toml`.
//!
//! These types are the one place where a setting is declared: what reads a file, what finds its
//! mistakes, `docs/config.md` and the schema for editors all come from them. Each field is optional,
//! because a file says only what it wants to change.

mod environment;
mod form;
mod model;
mod policy;
mod services;

pub use environment::{InheritPolicy, ShellEnvironmentSettings};
pub use form::{Address, Argv, HeaderName, HeaderValue, ServerName, UpTo, VariableName};
pub(crate) use form::{Form, form};
pub use model::{AgentSettings, ModelProviderSettings, ReasoningEffort, ReasoningSummary, WireApi};
pub use policy::{
    ApprovalPolicy, AuditFailure, AuditFsync, AuditSettings, Features, LimitSettings,
    ProjectSettings, SandboxMode, TimeoutSettings, TrustLevel, WorkspaceWriteSettings,
};
pub use services::{McpServerSettings, OtelSettings, Seconds, ServerSettings};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// The settings of Sandgate: `$CODEX_HOME/config.toml`, and `.codex/config.toml` in a project that
/// you trust.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "Sandgate config.toml")]
pub struct Settings {
    /// When you are asked before a command runs. Without it: `on-request` in a directory that you
    /// trust, `untrusted` elsewhere.
    #[schemars(extend("examples" = ["on-request"]))]
    pub approval_policy: Option<ApprovalPolicy>,

    /// What commands may touch. Without it: `workspace-write` in a directory that you trust,
    /// `read-only` elsewhere.
    #[schemars(extend("examples" = ["workspace-write"]))]
    pub sandbox_mode: Option<SandboxMode>,

    /// What `sandbox_mode = "workspace-write"` means in detail.
    pub sandbox_workspace_write: Option<WorkspaceWriteSettings>,

    /// Refuses to run commands in a sandbox that lacks something on this machine; otherwise a partial
    /// one will do, and what is missing is reported.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub sandbox_require_full: Option<bool>,

    /// What of your environment commands are given: first `inherit`, then `ignore_default_excludes`,
    /// `exclude`, `set` and `include_only`, each applied to what the one before has left.
    pub shell_environment_policy: Option<ShellEnvironmentSettings>,

    /// The profile that is used when `--profile` names none.
    #[schemars(extend("examples" = ["paranoid"]))]
    pub profile: Option<String>,

    /// Sets of settings that are chosen by name. A profile may hold every setting but `profile`,
    /// `profiles`, `projects` and `codex_linux_sandbox_exe`.
    #[schemars(extend("examples" = [{"approval_policy": "never", "sandbox_mode": "read-only"}]))]
    pub profiles: BTreeMap<String, Settings>,

    /// Which directories you trust, by the path of the repository's root. Only in your own file;
    /// `sandgate trust` writes it.
    pub projects: BTreeMap<String, ProjectSettings>,

    /// What is not settled yet and can be turned on or off.
    pub features: Option<Features>,

    /// Where Codex finds its sandbox program. Accepted, in your own file only, and not used: Sandgate's
    /// sandbox is built in.
    #[schemars(extend("examples" = ["/opt/codex/codex-linux-sandbox"]))]
    pub codex_linux_sandbox_exe: Option<PathBuf>,

    /// The model that an agent talks to.
    #[schemars(extend("examples" = ["gpt-5.1-codex"]))]
    pub model: Option<String>,

    /// Whose model it is: a name from `model_providers`, or a provider that is built in.
    #[schemars(extend("examples" = ["local"]))]
    pub model_provider: Option<String>,

    /// The model that reviews changes. Without it: `model`.
    #[schemars(extend("examples" = ["gpt-5.1-codex"]))]
    pub review_model: Option<String>,

    /// How many tokens the model can be given at once, where Sandgate does not know it.
    #[schemars(extend("examples" = [200_000]))]
    pub model_context_window: Option<NonZeroU64>,

    /// How many tokens one answer of the model may have.
    #[schemars(extend("examples" = [16_000]))]
    pub model_max_output_tokens: Option<NonZeroU64>,

    /// From how many tokens on a conversation is summed up. Without it: shortly before the model can be
    /// given no more.
    #[schemars(extend("examples" = [150_000]))]
    pub model_auto_compact_token_limit: Option<NonZeroU64>,

    /// How much the model thinks before it answers. Without it: as its provider sees fit.
    #[schemars(extend("examples" = ["high"]))]
    pub model_reasoning_effort: Option<ReasoningEffort>,

    /// What the model tells of its thinking. Without it: as its provider sees fit.
    #[schemars(extend("examples" = ["concise"]))]
    pub model_reasoning_summary: Option<ReasoningSummary>,

    /// How many bytes of a project's `AGENTS.md` files the model is given; with 0 none.
    #[schemars(extend("default" = 32_768, "examples" = [65_536]))]
    pub project_doc_max_bytes: Option<UpTo<1_048_576>>,

    /// How far an agent may go before it stops and says so.
    pub agent: Option<AgentSettings>,

    /// Who serves models, by a name of your own.
    pub model_providers: BTreeMap<String, ModelProviderSettings>,

    /// MCP servers whose tools an agent may use, by a name of your own.
    #[schemars(
        with = "BTreeMap<String, McpServerSettings>",
        extend("propertyNames" = {"format": "server-name"})
    )]
    pub mcp_servers: BTreeMap<ServerName, McpServerSettings>,

    /// Rules files beside those in the directory `rules` of your settings, in your own file only. A
    /// relative path begins at that file's directory. A project has its rules in `.codex/rules`.
    #[schemars(extend("default" = [], "examples" = [["team-rules.toml"]]))]
    pub rules: Option<Vec<PathBuf>>,

    /// How long things may take.
    pub timeouts: Option<TimeoutSettings>,

    /// How much there may be of something.
    pub limits: Option<LimitSettings>,

    /// How what happens is recorded.
    pub audit: Option<AuditSettings>,

    /// Where traces and metrics are sent. The standard variables of OpenTelemetry outweigh it.
    pub otel: Option<OtelSettings>,

    /// What `sandgate serve` listens on.
    pub server: Option<ServerSettings>,
}

/// The keys that count in the person's own file only, also inside of a profile; `*` is any name.
pub(crate) const USER_ONLY: &[&[&str]] = &[
    &["projects"],
    &["codex_linux_sandbox_exe"],
    &["rules"],
    &["model_providers", "*", "key_command"],
    &["model_providers", "*", "key_file"],
];

/// The keys that mean nothing inside of a profile.
pub(crate) const NOT_IN_PROFILES: &[&str] =
    &["profile", "profiles", "projects", "codex_linux_sandbox_exe"];

/// Whether a setting counts in the person's own file only.
pub(crate) fn is_user_only(path: &[impl AsRef<str>]) -> bool {
    let path = match path {
        [profiles, _, below @ ..] if profiles.as_ref() == "profiles" => below,
        path => path,
    };
    USER_ONLY.iter().any(|pattern| {
        pattern.len() <= path.len()
            && pattern.iter().zip(path).all(|(part, name)| *part == "*" || *part == name.as_ref())
    })
}
