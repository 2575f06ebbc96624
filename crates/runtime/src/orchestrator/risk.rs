//! A second pair of eyes on a command that was blocked, before a person decides.

use sandgate_protocol::{Denials, RiskAssessment, SandboxPolicy};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

/// What is to be assessed.
#[derive(Debug, Clone, Copy)]
pub struct RiskQuestion<'a> {
    /// The command.
    pub command: &'a [String],
    /// Where it ran.
    pub cwd: &'a Path,
    /// Under which policy.
    pub policy: &'a SandboxPolicy,
    /// What was refused to it.
    pub denials: &'a Denials,
    /// What it wrote to standard error.
    pub stderr: &'a str,
}

impl RiskQuestion<'_> {
    /// How long an assessment may take. Afterwards the person decides without it.
    pub const PATIENCE: Duration = Duration::from_secs(5);
}

/// Looks at commands that were blocked. Its word is advice: it approves nothing.
pub trait RiskAssessor: Send + Sync {
    /// What it thinks of one, if it thinks anything.
    fn assess<'a>(
        &'a self,
        question: RiskQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = Option<RiskAssessment>> + Send + 'a>>;
}
