//! `exec_command`: starts a process that lives on after the call.

use super::launch::{Launch, Manner};
use super::{invalid, output};
use crate::approval::Answer;
use crate::audit::{DecidedBy, Record};
#[cfg(unix)]
use crate::daemon::Keeper;
use crate::environment::for_sessions;
use crate::orchestrator::{
    ApprovalCtx, FirstAttempt, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::request::{CommandInput, CommandLine};
use crate::session::Keeping;
use crate::tools::command::{AskedCommand, CommandTool, ShellRequest, may_write};
use crate::tools::registry::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use crate::unified_exec::wake_when_printed;
use crate::unified_exec::{Kept, LiveEntry, ReservedId, Writes};
use sandgate_policy::{Approvable, ApprovalKey, ApprovalRequirement, BypassSandbox, Extras, Terms};
use sandgate_process::{LiveStdio, Login};
use sandgate_protocol::{
    AskForApproval, CodexErr, CommandText, Denials, ExecCommandToolCallParams, ExecExpiration,
    ReturnReason, ToolOutput, UnifiedExecReply,
};
use std::path::PathBuf;
use std::sync::Arc;

/// What a call is told that wants a process to stay where nobody can keep it.
const NOBODY_KEEPS: &str = "keep_alive is not available here: this program has no daemon that would keep \
                            the process alive, so it was not started";

/// `exec_command`.
pub(crate) struct ExecCommandHandler;

impl ToolHandler for ExecCommandHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<ExecCommandToolCallParams>(
            "exec_command",
            "Starts a process that lives on after the call, such as a shell, a REPL or a \
                          server, and returns what it printed when it has ended, waits for input, or \
                          the time is over. Talk to it with write_stdin.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { start(&invocation).await })
    }
}

async fn start(invocation: &ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
    let ctx = &invocation.ctx();
    let params: ExecCommandToolCallParams = invocation.arguments()?;
    let manager = &ctx.services.live;
    let wanted_id = params.process_id.clone();
    if let Some(id) = &wanted_id {
        check_id(ctx.tool_name, id)?;
    }
    let request = LiveRequest::new(params, ctx)?;
    let reserved = manager.reserve(wanted_id.as_deref(), ctx.services, ctx.call_id).await?;
    let tool = LiveTool { id: &reserved };
    let attempted = ToolOrchestrator.run(&tool, &request, ctx).await?;
    let started = attempted.output;
    let mut reply = started.reply;
    reply.not_again = attempted.not_again.as_ref().and_then(CodexErr::after_denial);
    let Some(entry) = started.entry else { return Ok(output(&reply)) };
    if let (Some(pattern), ReturnReason::YieldElapsed) = (request.manner.pattern, reply.returned) {
        wake_when_printed(pattern, reserved.id(), &entry, ctx.services.me());
    }
    let count = reserved.give_to(entry);
    if count >= crate::unified_exec::WARNING_UNIFIED_EXEC_PROCESSES {
        let most = crate::unified_exec::MAX_UNIFIED_EXEC_PROCESSES;
        let message = format!("there are {count} processes; at {most} the oldest will be ended");
        ctx.services.warn(Some(ctx.call_id.clone()), message).await;
    }
    Ok(output(&reply))
}

/// An id is typed, shown and looked for: it must be plain.
fn check_id(tool: &str, id: &str) -> Result<(), CodexErr> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&id.len()) && id.chars().all(is_plain) {
        true => Ok(()),
        false => Err(invalid(tool, "process_id has 1 to 64 letters, digits, `-`, `_` or `.`")),
    }
}

/// A process that was asked for, looked up and judged.
struct LiveRequest {
    command: ShellRequest,
    manner: Manner,
    /// Who keeps it alive when the session has ended, and as what it was asked for.
    #[cfg(unix)]
    keeper: Option<(Keeper, ExecCommandToolCallParams)>,
    kept: Kept,
}

impl LiveRequest {
    fn new(params: ExecCommandToolCallParams, ctx: &ToolCtx<'_>) -> Result<Self, CodexErr> {
        let tool = ctx.tool_name;
        let manner = Manner::of(tool, &params)?;
        let keeping = match params.keep_alive.unwrap_or(false) {
            true => &ctx.services.config.keeping,
            false => &Keeping::Nowhere,
        };
        let nobody = matches!(keeping, Keeping::Nowhere)
            || (cfg!(not(unix)) && matches!(keeping, Keeping::ByDaemon { .. }));
        if params.keep_alive == Some(true) && nobody {
            return Err(CodexErr::ToolExecutionFailed(NOBODY_KEEPS.to_owned()));
        }
        let kept = if matches!(keeping, Keeping::Here) { Kept::Yes } else { Kept::No };
        #[cfg(unix)]
        let keeper = match keeping {
            Keeping::ByDaemon { program } => {
                Some((Keeper::of(ctx.services, program)?, params.clone()))
            }
            Keeping::Here | Keeping::Nowhere => None,
        };
        let login = if params.login.unwrap_or(true) { Login::Yes } else { Login::No };
        let command = match params.command {
            CommandText::Script(text) => match only_a_shell(&text) {
                Some(words) if params.shell.is_none() => CommandLine::Argv(words),
                _ => CommandLine::Script { text, shell: params.shell, login },
            },
            CommandText::Argv(_) if params.shell.is_some() => {
                return Err(invalid(tool, "shell is for a command that is one text"));
            }
            CommandText::Argv(words) => CommandLine::Argv(words),
        };
        let asked = AskedCommand {
            command,
            workdir: params.workdir.map(PathBuf::from),
            expiration: ExecExpiration::Cancellation,
            input: CommandInput::Nothing,
            sandbox_permissions: params.sandbox_permissions,
            justification: params.justification,
            prefix_rule: params.prefix_rule,
        };
        let mut command = ShellRequest::new(asked, ctx)?;
        for_sessions(&mut command.params.env, manner.screen);
        Ok(Self {
            command,
            manner,
            #[cfg(unix)]
            keeper,
            kept,
        })
    }
}

/// The words of a text that only names a shell, for which no other shell is needed.
fn only_a_shell(text: &str) -> Option<Vec<String>> {
    const SHELLS: &[&str] = &["bash", "zsh", "fish", "sh", "dash"];
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    let (name, options) = words.split_first()?;
    let plain = |option: &String| {
        option.starts_with('-') && option.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    };
    (SHELLS.contains(&name.as_str()) && options.iter().all(plain)).then_some(words)
}

impl Approvable for LiveRequest {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        let mut keys = self.command.approval_keys();
        for key in &mut keys {
            if let ApprovalKey::Command { tty, .. } = key {
                *tty = matches!(self.manner.stdio, LiveStdio::Terminal(_));
            }
        }
        keys
    }

    fn lasts(&self, bypass_sandbox: BypassSandbox) -> bool {
        self.command.lasts(bypass_sandbox)
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        self.command.approval_requirement(terms)
    }

    fn wants_no_sandbox_approval(&self, policy: AskForApproval) -> bool {
        self.command.wants_no_sandbox_approval(policy)
    }
}

/// Starts a process under its id.
struct LiveTool<'a> {
    id: &'a ReservedId<'a>,
}

/// A process that was started, and its first answer.
struct Started {
    /// None if somebody else has it.
    entry: Option<Arc<LiveEntry>>,
    reply: UnifiedExecReply,
    denial: Option<Denials>,
}

impl Sandboxable<LiveRequest> for LiveTool<'_> {
    fn sandbox_mode_for_first_attempt(&self, request: &LiveRequest) -> FirstAttempt {
        CommandTool.sandbox_mode_for_first_attempt(&request.command)
    }
}

impl ToolRuntime<LiveRequest> for LiveTool<'_> {
    type Output = Started;

    async fn start_approval_async(
        &self,
        request: &LiveRequest,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        CommandTool.start_approval_async(&request.command, approval, ctx).await
    }

    fn describe(&self, request: &LiveRequest, ctx: &ToolCtx<'_>) -> Vec<Record> {
        CommandTool.describe(&request.command, ctx)
    }

    fn decided_by(&self, request: &LiveRequest) -> DecidedBy {
        CommandTool.decided_by(&request.command)
    }

    async fn run(
        &self,
        request: &LiveRequest,
        attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<Started, CodexErr> {
        let params = request.command.params_to_run(ctx.services);
        let policy = &ctx.services.config.sandbox_policy;
        let writes = match may_write(&request.command, attempt, policy) {
            true => Writes::Maybe,
            false => Writes::Never,
        };
        if writes == Writes::Maybe {
            ctx.turn.changes.before_command().await;
        }
        #[cfg(unix)]
        if let Some((keeper, asked)) = &request.keeper {
            let kept = keeper.keep(attempt, params, asked, ctx).await?;
            return Ok(Started { entry: None, reply: kept.reply, denial: kept.denials });
        }
        let launch = Launch {
            call_id: ctx.call_id,
            process_id: self.id.id(),
            attempt: attempt.number(),
            manner: &request.manner,
            kept: request.kept,
            writes,
            #[cfg(unix)]
            login_shell: request.command.login_shell(),
            cancel: ctx.turn.cancellation(),
        };
        let launched = launch.start(ctx.services, params, |params| attempt.grant(params)).await?;
        Ok(Started { entry: Some(launched.entry), reply: launched.reply, denial: launched.denial })
    }

    fn denial(&self, output: &Started) -> Option<Denials> {
        output.denial.clone()
    }

    fn narrowest(
        &self,
        request: &LiveRequest,
        denials: &Denials,
        ctx: &ToolCtx<'_>,
    ) -> Option<Extras> {
        CommandTool.narrowest(&request.command, denials, ctx)
    }
}
