//! Every setting, as it may stand in a `config.toml`.
//!
//! These types are the one place where a setting is declared: what reads a file, what finds its
//! mistakes, `docs/config.md` and the schema for editors all come from them. Each field is optional,
//! because a file says only what it wants to change.

mod environment;
mod policy;
mod services;

pub use environment::{InheritPolicy, ShellEnvironmentSettings};
pub use policy::{
    ApprovalPolicy, AuditFailure, AuditFsync, AuditSettings, Features, LimitSettings,
    ProjectSettings, SandboxMode, TimeoutSettings, TrustLevel, WorkspaceWriteSettings,
};
pub use services::{
    McpServerSettings, ModelProviderSettings, OtelSettings, Seconds, ServerSettings, WireApi,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

    /// Who serves models, by a name of your own.
    pub model_providers: BTreeMap<String, ModelProviderSettings>,

    /// MCP servers whose tools an agent may use, by a name of your own.
    pub mcp_servers: BTreeMap<String, McpServerSettings>,

    /// Rules files beside those in the directory `rules` of your settings. In your file a relative
    /// path begins at that file's directory, in a project's at the project's root.
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

/// The keys that count in the person's own file only.
pub(crate) const USER_ONLY: &[&str] = &["projects", "codex_linux_sandbox_exe"];

/// The keys that mean nothing inside of a profile.
pub(crate) const NOT_IN_PROFILES: &[&str] =
    &["profile", "profiles", "projects", "codex_linux_sandbox_exe"];
