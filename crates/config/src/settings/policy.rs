//! What decides how commands run: approval, sandbox, trust, limits and the record.

use sandgate_protocol::AskForApproval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// When you are asked before a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// Before everything that is not known to be safe.
    Untrusted,
    /// When the sandbox has blocked something.
    OnFailure,
    /// When a call asks to leave the sandbox, and when the sandbox has blocked something.
    OnRequest,
    /// Never: what would need an answer is refused.
    Never,
}

impl From<ApprovalPolicy> for AskForApproval {
    fn from(policy: ApprovalPolicy) -> Self {
        match policy {
            ApprovalPolicy::Untrusted => Self::UnlessTrusted,
            ApprovalPolicy::OnFailure => Self::OnFailure,
            ApprovalPolicy::OnRequest => Self::OnRequest,
            ApprovalPolicy::Never => Self::Never,
        }
    }
}

/// What commands may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Read anywhere, write nowhere, no network.
    ReadOnly,
    /// Write in the workspace and in the directories for temporary files.
    WorkspaceWrite,
    /// No sandbox at all.
    DangerFullAccess,
}

/// What `workspace-write` means in detail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceWriteSettings {
    /// Directories that may be written to beside the workspace. `~/` is your home directory. In your
    /// file a relative path begins at that file's directory, in a project's at the project's root.
    #[schemars(extend("default" = [], "examples" = [["/home/user/.cache"]]))]
    pub writable_roots: Option<Vec<PathBuf>>,
    /// Lets commands reach the network.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub network_access: Option<bool>,
    /// Takes away the directory that `TMPDIR` names, which may be written to otherwise.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub exclude_tmpdir_env_var: Option<bool>,
    /// Takes away `/tmp`, which may be written to otherwise.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub exclude_slash_tmp: Option<bool>,
}

/// What you think of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectSettings {
    /// Whether you trust it. That chooses the defaults of `sandbox_mode` and `approval_policy`, and
    /// whether its own settings and rules are read at all.
    #[schemars(extend("examples" = ["trusted"]))]
    pub trust_level: Option<TrustLevel>,
    /// The files of the project that you were shown when you trusted it, each with the SHA-256 of its
    /// content, and what you were told that each loosens. Nothing else in them loosens a policy.
    #[schemars(extend("default" = [], "examples" = [["config.toml sha256:9f86d081884c7d65…"]]))]
    pub seen: Option<Vec<String>>,
}

/// Whether you trust a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrustLevel {
    /// You do.
    Trusted,
    /// You do not, and are not asked again.
    Untrusted,
}

/// What is not settled yet and can be turned on or off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Features {
    /// Has a model look at a command that was blocked, before you are asked about it.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub experimental_sandbox_command_assessment: Option<bool>,
    /// Confines commands on Windows with a restricted token.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub enable_experimental_windows_sandbox: Option<bool>,
    /// Starts your login shell once to learn what its start-up files make of it, and has commands start from
    /// that (bash and zsh). Otherwise each command that wants a login shell waits for its start-up files.
    #[schemars(extend("default" = true, "examples" = [false]))]
    pub shell_snapshot: Option<bool>,
    /// Removed: calls may always suggest a rule. It is accepted and changes nothing.
    #[schemars(extend("deprecated" = true, "examples" = [true]))]
    pub request_rule: Option<bool>,
}

/// How long things may take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimeoutSettings {
    /// How many milliseconds a question waits for its answer; then it counts as a no. Without it: for
    /// ever.
    #[schemars(extend("examples" = [300_000]))]
    pub approval_ms: Option<NonZeroU64>,
    /// How many milliseconds a command may take for which no limit is named: with `sandgate run`, and in
    /// calls of `shell` and `shell_command`. Without it: as long as it takes with `sandgate run`, 10
    /// seconds in calls. Live processes of `exec_command` have no limit.
    #[schemars(extend("examples" = [60_000]))]
    pub command_ms: Option<NonZeroU64>,
    /// How many milliseconds the start-up files of your shell may take when a snapshot of it is made. If they take
    /// longer, commands start login shells.
    #[schemars(extend("default" = 10_000, "examples" = [3_000]))]
    pub shell_snapshot_ms: Option<NonZeroU64>,
}

/// How much there may be of something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimitSettings {
    /// How many tokens of a command's output a model is given; a token is four bytes.
    #[schemars(extend("default" = 10_000, "examples" = [4_000]))]
    pub output_tokens: Option<NonZeroU64>,
}

/// How what happens is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditSettings {
    /// When a record is forced to the disk.
    #[schemars(extend("default" = "never", "examples" = ["each"]))]
    pub fsync: Option<AuditFsync>,
    /// What becomes of a command that cannot be recorded.
    #[schemars(extend("default" = "stop", "examples" = ["go-on"]))]
    pub on_failure: Option<AuditFailure>,
}

/// When a record is forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditFsync {
    /// When the system sees fit: a power cut can lose the last seconds.
    Never,
    /// After each record, before anything else happens.
    Each,
}

/// What becomes of a command that cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditFailure {
    /// It does not run.
    Stop,
    /// It runs all the same.
    GoOn,
}
