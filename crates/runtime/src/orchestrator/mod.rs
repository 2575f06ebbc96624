//! One tool call from its approval to its result: the place where judgement, cage and process meet.

mod approve;
mod attempt;
mod retry;
mod risk;
mod traits;

pub use attempt::{Attempted, SandboxAttempt};
pub use risk::{RiskAssessor, RiskQuestion};
pub(crate) use traits::Recorded;
pub use traits::{ApprovalCtx, FirstAttempt, RanCommand, Sandboxable, ToolCtx, ToolRuntime};

use retry::Again;
use sandgate_policy::Approvable;
use sandgate_protocol::CodexErr;

/// Takes one request through its phases.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolOrchestrator;

impl ToolOrchestrator {
    /// Runs a request: approved, confined, run, and once more if its sandbox refused something and a
    /// person wants it to have that.
    ///
    /// # Errors
    /// When it did not run, or its run came to nothing. A command that failed has an output.
    pub async fn run<T, R>(
        &self,
        tool: &T,
        request: &R,
        ctx: &ToolCtx<'_>,
    ) -> Result<Attempted<T::Output>, CodexErr>
    where
        T: ToolRuntime<R>,
        R: Approvable + Sync,
    {
        let sandbox = attempt::select(tool, request, ctx)?;
        let permission = approve::approve(tool, request, &sandbox, ctx).await?;
        let first = SandboxAttempt::first(permission, ctx);
        let output = tool.run(request, &first, ctx).await?;
        let Some(denial) = tool.denial(&output) else { return Ok(first.ended(output)) };
        match retry::ask(tool, request, &first, &output, &denial, ctx).await? {
            Again::No(not_again) => Ok(Attempted { not_again, ..first.ended(output) }),
            Again::Yes(second) => {
                let output = tool.run(request, &second, ctx).await?;
                Ok(second.ended(output))
            }
        }
    }
}
