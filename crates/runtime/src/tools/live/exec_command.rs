//! `exec_command`: starts a process that lives on after the call.

use super::{invalid, output, pattern, size, wanted, yield_time};
use crate::approval::Answer;
use crate::audit::{Began, DecidedBy, Granted, Record};
use crate::environment::{for_sessions, keep_to_reading};
use crate::error::RuntimeError;
use crate::orchestrator::{
    ApprovalCtx, FirstAttempt, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::report::Report;
use crate::request::{CommandInput, CommandLine};
use crate::tools::command::{AskedCommand, CommandTool, ShellRequest};
use crate::tools::registry::{ToolHandler, ToolInvocation, ToolSpec};
use crate::tools::{parse, schema, wrong_kind};
use crate::unified_exec::{LiveEntry, LiveObserver, ReservedId, Wanted, Whereabouts};
use crate::unified_exec::{reply, wake_when_printed};
use regex::bytes::Regex;
use sandgate_policy::{Approvable, ApprovalKey, ApprovalRequirement, Extras, Terms};
use sandgate_process::{
    LiveOptions, LiveStdio, Login, Patience, ScreenWanted, TerminalSize, UnifiedExecProcess,
};
use sandgate_protocol::{
    AskForApproval, CodexErr, CommandText, Denials, ExecCommandToolCallParams, ExecExpiration,
    ExecParams, ReturnReason, SandboxPolicy, SandboxType, ToolOutput, ToolPayload,
    UnifiedExecReply,
};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// `exec_command`.
pub(crate) struct ExecCommandHandler;

impl ToolHandler for ExecCommandHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "exec_command".to_owned(),
            description: "Starts a process that lives on after the call, such as a shell, a REPL or a \
                          server, and returns what it printed when it has ended, waits for input, or \
                          the time is over. Talk to it with write_stdin."
                .to_owned(),
            parameters: schema::<ExecCommandToolCallParams>(),
        }
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, CodexErr>> + Send + 'a>> {
        Box::pin(async move { start(&invocation).await })
    }
}

async fn start(invocation: &ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
    let ToolPayload::Function { arguments } = invocation.payload else {
        return Err(wrong_kind(invocation.tool_name));
    };
    let ctx = &invocation.ctx();
    let params: ExecCommandToolCallParams = parse(ctx.tool_name, arguments)?;
    let manager = &ctx.services.live;
    let wanted_id = params.process_id.clone();
    if let Some(id) = &wanted_id {
        check_id(ctx.tool_name, id)?;
    }
    let request = LiveRequest::new(params, ctx)?;
    let reserved = manager.reserve(wanted_id.as_deref(), ctx.services, ctx.call_id).await?;
    let tool = LiveTool { id: &reserved };
    let started = ToolOrchestrator.run(&tool, &request, ctx).await?.output;
    let reply = started.reply;
    if let (Some(pattern), ReturnReason::YieldElapsed) = (request.pattern, reply.returned) {
        wake_when_printed(pattern, reserved.id(), &started.entry, ctx.services.me());
    }
    let count = reserved.give_to(started.entry);
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
    stdio: LiveStdio,
    screen: ScreenWanted,
    limit: Duration,
    pattern: Option<Regex>,
    wanted: Wanted,
}

impl LiveRequest {
    fn new(params: ExecCommandToolCallParams, ctx: &ToolCtx<'_>) -> Result<Self, CodexErr> {
        let tool = ctx.tool_name;
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
        let screen = match params.screen.unwrap_or(false) {
            true => ScreenWanted::Always,
            false => ScreenWanted::WhileBorrowed,
        };
        for_sessions(&mut command.params.env, screen);
        let stdio = match params.tty.unwrap_or(true) {
            true => LiveStdio::Terminal(match params.size {
                Some(asked) => size(tool, asked)?,
                None => TerminalSize::default(),
            }),
            false => LiveStdio::Pipes,
        };
        Ok(Self {
            command,
            stdio,
            screen,
            limit: yield_time(params.yield_time_ms),
            pattern: pattern(tool, "wait_for", params.wait_for.as_deref())?,
            wanted: wanted(params.raw, params.max_output_tokens),
        })
    }
}

impl LiveRequest {
    /// Has a shell on a terminal say where its prompts and the output of its commands begin and end, if it
    /// can. The nonce that it says so with.
    async fn marked(&self, id: &str, params: &mut ExecParams, ctx: &ToolCtx<'_>) -> Option<String> {
        if !matches!(self.stdio, LiveStdio::Terminal(_)) {
            return None;
        }
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        let runtime = Arc::clone(&ctx.services.runtime);
        let (asked, id, same) = (params.clone(), id.to_owned(), nonce.clone());
        let write = move || runtime.with_marks(&asked, &id, &same);
        // A shell without marks is a shell all the same.
        let marked = tokio::task::spawn_blocking(write).await.ok()?.ok()??;
        *params = marked;
        Some(nonce)
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
                *tty = matches!(self.stdio, LiveStdio::Terminal(_));
            }
        }
        keys
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
    entry: Arc<LiveEntry>,
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
        let services = ctx.services;
        let mut params = request.command.params.clone();
        if request.command.is_known_safe() {
            keep_to_reading(&mut params.env);
        }
        let justification = params.justification.clone();
        let marks = request.marked(self.id.id(), &mut params, ctx).await;
        let grant = attempt.grant(params);
        let (call_id, number) = (|| ctx.call_id.clone(), attempt.number());
        ctx.record(&Record::Granted(Granted::of(call_id(), number, &grant)))?;
        let sandbox = &services.runtime.sandbox;
        let env = sandbox
            .transform(grant)
            .map_err(|error| CodexErr::SandboxTransform { reason: error.to_string() })?;
        let kind = env.sandbox();
        let enforcement = (kind != SandboxType::None).then(|| sandbox.status());
        let said = enforcement.clone();
        let began = Began { call_id: call_id(), attempt: number, sandbox: kind, enforcement: said };
        ctx.record(&Record::Began(began))?;
        let mut report = Report::new(call_id(), services);
        report.begin(&env, enforcement).await?;
        let observer = LiveObserver {
            report,
            services: services.me(),
            call_id: call_id(),
            process_id: self.id.id().to_owned(),
            attempt: number,
        };
        let spill = services.runtime.spill(services.config.keep);
        let options = LiveOptions { stdio: request.stdio, spill, marks, screen: request.screen };
        let spawner = &services.runtime.spawner;
        let started =
            UnifiedExecProcess::start(spawner, &env, options, observer, LiveObserver::ended).await;
        let process = started.map_err(|error| CodexErr::from(RuntimeError::from(error)))?;
        let entry = Arc::new(LiveEntry::new(
            process,
            call_id(),
            request.command.params.command.clone(),
            request.command.params.cwd.clone(),
            whereabouts(kind, &services.config.sandbox_policy),
            justification,
        ));
        let patience = Patience {
            limit: request.limit,
            pattern: request.pattern.as_ref(),
            cancel: ctx.turn.cancellation(),
        };
        let answered = entry.process.answer(entry.process.now(), patience).await;
        let reply = reply(self.id.id(), &entry, &answered, request.wanted)?;
        let denial = entry.process.end().and_then(|end| {
            let denied = sandbox.denied(kind, end.supervised, &end.output);
            denied.map(|_| end.output.denials.clone())
        });
        Ok(Started { entry, reply, denial })
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

/// A sandbox that somebody else provides is one.
fn whereabouts(sandbox: SandboxType, policy: &SandboxPolicy) -> Whereabouts {
    match (sandbox, policy) {
        (SandboxType::None, SandboxPolicy::ExternalSandbox { .. }) => Whereabouts::Confined,
        (SandboxType::None, _) => Whereabouts::Outside,
        _ => Whereabouts::Confined,
    }
}
