//! When a person is asked, and what the person can answer.

use serde::{Deserialize, Serialize};

/// When a person is asked before a command runs: the session's approval policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskForApproval {
    /// Before everything that is not known to be safe.
    #[serde(rename = "untrusted")]
    UnlessTrusted,
    /// When the sandbox has refused something.
    OnFailure,
    /// When the call itself asks to leave the sandbox.
    #[default]
    OnRequest,
    /// Never.
    Never,
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    /// Yes, this once.
    Approved,
    /// Yes, and do not ask again for the same in this session.
    ApprovedForSession,
    /// No; the work goes on without it.
    Denied,
    /// No, and the work stops.
    Abort,
}
