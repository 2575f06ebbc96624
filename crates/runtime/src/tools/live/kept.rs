//! Calls on a process that the daemon keeps, which may be another session's.
//!
//! To read what it printed and to end it needs no more than for a process of one's own. What is typed to
//! it is another matter: it may be confined by other terms than this session, or not at all, and then a
//! line for it is judged as if it asked to leave the sandbox of this one.

use super::output;
use crate::approval::Answer;
use crate::audit::{DecidedBy, Record};
use crate::daemon::{KeptProcess, KeptReply};
use crate::orchestrator::{
    ApprovalCtx, FirstAttempt, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::request::{CommandInput, CommandLine};
use crate::tools::command::{AskedCommand, CommandTool, ShellRequest};
use crate::tools::registry::ToolInvocation;
use sandgate_process::{CursorKeys, Login, keys};
use sandgate_protocol::{
    CodexErr, Denials, ExecExpiration, SandboxPermissions, SandboxPolicy, ToolOutput,
    WriteStdinToolCallParams,
};
use std::path::Path;
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
        if !input.is_empty() || params.close_stdin == Some(true) || params.signal.is_some() {
            ctx.turn.changes.before_command().await;
        }
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

/// A process that something is typed to.
#[derive(Clone, Copy)]
struct TypedTo<'a> {
    command: &'a [String],
    cwd: &'a Path,
    justification: Option<&'a str>,
}

/// A line for a process outside the sandbox is judged as a command that asks to run there.
fn judged(line: &str, to: TypedTo<'_>, ctx: &ToolCtx<'_>) -> Result<ShellRequest, CodexErr> {
    let policy = &ctx.services.config.sandbox_policy;
    let sandbox_permissions = match policy {
        SandboxPolicy::DangerFullAccess => SandboxPermissions::UseDefault,
        _ => SandboxPermissions::RequireEscalated,
    };
    let started_with = || format!("typed to {}", to.command.join(" "));
    let asked = AskedCommand {
        command: CommandLine::Script {
            text: line.trim_end_matches(['\n', '\r']).to_owned(),
            shell: None,
            login: Login::No,
        },
        workdir: Some(to.cwd.to_owned()),
        expiration: ExecExpiration::Cancellation,
        input: CommandInput::Nothing,
        sandbox_permissions,
        justification: Some(to.justification.map_or_else(started_with, str::to_owned)),
        prefix_rule: None,
    };
    let mut request = ShellRequest::new(asked, ctx)?;
    // Nobody here knows what a word stands for in a shell that others have talked to.
    request.is_not_known_safe("it is typed to a process that is kept on other terms");
    request.is_not_allowed_by_rules();
    Ok(request)
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
        ctx.turn.changes.before_command().await;
        self.process.lock().await.type_in(self.params, ctx.turn.cancellation()).await
    }

    fn denial(&self, _output: &KeptReply) -> Option<Denials> {
        None
    }
}
