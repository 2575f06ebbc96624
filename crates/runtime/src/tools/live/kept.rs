//! Calls on a process that the daemon keeps, which may be another session's.
//!
//! To read what it printed and to end it needs no more than for a process of one's own. What is typed to
//! it is another matter: it may be confined by other terms than this session, or not at all, and then a
//! line for it is judged as if it asked to leave the sandbox of this one.

use super::output;
use super::write_stdin::{TypedTo, judged};
use crate::approval::Answer;
use crate::audit::{DecidedBy, Record};
use crate::daemon::{KeptProcess, KeptReply};
use crate::orchestrator::{
    ApprovalCtx, FirstAttempt, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::tools::command::{CommandTool, ShellRequest};
use crate::tools::registry::ToolInvocation;
use sandgate_process::{CursorKeys, keys};
use sandgate_protocol::{CodexErr, Denials, ToolOutput, WriteStdinToolCallParams};
use tokio::sync::Mutex;

/// Reads or ends a kept process. `unknown` is what is said if there is no such.
pub(super) async fn call(
    id: &str,
    arguments: &str,
    unknown: CodexErr,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolOutput, CodexErr> {
    let ctx = &invocation.ctx();
    match KeptProcess::find(ctx.services, id).await {
        Some(process) => process.call(id, arguments, ctx).await,
        None => Err(unknown),
    }
}

/// Types something to a kept process. `unknown` is what is said if there is no such.
pub(super) async fn write(
    params: WriteStdinToolCallParams,
    unknown: CodexErr,
    ctx: &ToolCtx<'_>,
) -> Result<ToolOutput, CodexErr> {
    let Some(mut process) = KeptProcess::find(ctx.services, &params.process_id).await else {
        return Err(unknown);
    };
    let mut input = params.input.clone().unwrap_or_default();
    if let Some(names) = &params.keys {
        let pressed = keys(names, CursorKeys::Normal);
        let pressed = pressed.map_err(|error| super::invalid(ctx.tool_name, error.to_string()))?;
        input.push_str(&String::from_utf8_lossy(&pressed));
    }
    if input.is_empty() || process.is_confined_as(ctx.services) {
        let answered = process.type_in(&params, ctx.turn.cancellation()).await?;
        return Ok(output(&answered.reply));
    }
    let described = process.described.clone();
    let to = TypedTo {
        command: &described.command,
        cwd: &described.cwd,
        justification: described.justification.as_deref(),
    };
    let request = judged(&format!("{}{input}", described.typed), to, ctx)?;
    let tool = KeptTypingTool { params: &params, process: Mutex::new(process) };
    let answered = ToolOrchestrator.run(&tool, &request, ctx).await?.output;
    Ok(output(&answered.reply))
}

/// Types to a kept process, once that is permitted.
struct KeptTypingTool<'a> {
    params: &'a WriteStdinToolCallParams,
    process: Mutex<KeptProcess>,
}

impl Sandboxable<ShellRequest> for KeptTypingTool<'_> {
    fn escalate_on_failure(&self) -> bool {
        false
    }

    fn sandbox_mode_for_first_attempt(&self, request: &ShellRequest) -> FirstAttempt {
        CommandTool.sandbox_mode_for_first_attempt(request)
    }
}

impl ToolRuntime<ShellRequest> for KeptTypingTool<'_> {
    type Output = KeptReply;

    async fn start_approval_async(
        &self,
        request: &ShellRequest,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        CommandTool.start_approval_async(request, approval, ctx).await
    }

    fn describe(&self, request: &ShellRequest, ctx: &ToolCtx<'_>) -> Vec<Record> {
        CommandTool.describe(request, ctx)
    }

    fn decided_by(&self, request: &ShellRequest) -> DecidedBy {
        CommandTool.decided_by(request)
    }

    async fn run(
        &self,
        _request: &ShellRequest,
        _attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<KeptReply, CodexErr> {
        self.process.lock().await.type_in(self.params, ctx.turn.cancellation()).await
    }

    fn denial(&self, _output: &KeptReply) -> Option<Denials> {
        None
    }
}
