//! What is to be executed, before anybody judged it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long a command may run when its caller named no limit.
pub const DEFAULT_EXEC_TIMEOUT: Duration = Duration::from_millis(10_000);

/// One command, resolved: every name in it has been looked up, and no later stage looks one up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecParams {
    /// The command as it was asked for; the first element is the name the program was called by.
    pub command: Vec<String>,
    /// The file that `command[0]` was resolved to.
    pub program: PathBuf,
    /// The working directory, absolute and canonical.
    pub cwd: PathBuf,
    /// The whole environment of the command; nothing else is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// When the command is ended if it does not end by itself.
    pub expiration: ExecExpiration,
    /// Whether the call asks to leave the session's sandbox.
    pub sandbox_permissions: SandboxPermissions,
    /// Why it asks, in the model's words; shown to the person who decides.
    pub justification: Option<String>,
    /// What the program sees as its own name, when that is not `command[0]`.
    pub arg0: Option<String>,
}

/// When a command is ended from outside. Whatever is chosen, cancelling the call ends it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExecExpiration {
    /// After this long.
    Timeout(Duration),
    /// After [`DEFAULT_EXEC_TIMEOUT`].
    #[default]
    DefaultTimeout,
    /// Only when the call is cancelled.
    Cancellation,
}

impl ExecExpiration {
    /// The time limit, if there is one.
    pub fn timeout(self) -> Option<Duration> {
        match self {
            Self::Timeout(limit) => Some(limit),
            Self::DefaultTimeout => Some(DEFAULT_EXEC_TIMEOUT),
            Self::Cancellation => None,
        }
    }
}

/// A call's own word on the sandbox it wants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPermissions {
    /// The session's sandbox.
    #[default]
    UseDefault,
    /// No sandbox, after approval.
    RequireEscalated,
}

/// The means by which the operating system confines a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxType {
    /// Nothing confines it.
    None,
    /// macOS: a Seatbelt profile.
    MacosSeatbelt,
    /// Linux: namespaces, Landlock and seccomp.
    LinuxSeccomp,
    /// Windows: a restricted token and a job object.
    WindowsRestrictedToken,
}
