//! `shell` and `shell_command`: one command, from a call's arguments to what the model is told.

use super::apply_patch::apply_text;
use super::command::{AskedCommand, ShellRequest, run_command};
use super::registry::{ToolHandler, ToolInvocation, ToolSpec};
use super::{parse, schema, wrong_kind};
use crate::request::{CommandInput, CommandLine};
use sandgate_patch::{PatchText, from_script};
use sandgate_process::Login;
use sandgate_protocol::{
    CodexErr, ExecExpiration, Ran, ShellCommandToolCallParams, ShellToolCallParams, ToolOutput,
    ToolPayload,
};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

/// `shell`: a program and its arguments.
pub(crate) struct ShellHandler;

/// `shell_command`: a script for the person's shell.
pub(crate) struct ShellCommandHandler;

impl ToolHandler for ShellHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell".to_owned(),
            description: "Runs a program with its arguments, without a shell, and returns its \
                          output."
                .to_owned(),
            parameters: schema::<ShellToolCallParams>(),
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["container.exec"]
    }

    fn is_mutating(&self, invocation: &ToolInvocation<'_>) -> bool {
        may_change_something(read_shell(invocation), invocation)
    }

    fn handle<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, CodexErr>> + Send + 'a>> {
        Box::pin(async move { run(read_shell(&invocation)?, invocation).await })
    }
}

impl ToolHandler for ShellCommandHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell_command".to_owned(),
            description: "Runs a script in the user's shell and returns its output.".to_owned(),
            parameters: schema::<ShellCommandToolCallParams>(),
        }
    }

    fn is_mutating(&self, invocation: &ToolInvocation<'_>) -> bool {
        may_change_something(read_shell_command(invocation), invocation)
    }

    fn handle<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, CodexErr>> + Send + 'a>> {
        Box::pin(async move { run(read_shell_command(&invocation)?, invocation).await })
    }
}

fn read_shell(invocation: &ToolInvocation<'_>) -> Result<AskedCommand, CodexErr> {
    let params = match invocation.payload {
        ToolPayload::Function { arguments } => {
            parse::<ShellToolCallParams>(invocation.tool_name, arguments)?
        }
        ToolPayload::LocalShell { params } => params.clone(),
        ToolPayload::Custom { .. } | ToolPayload::Mcp { .. } => {
            return Err(wrong_kind(invocation.tool_name));
        }
    };
    Ok(AskedCommand {
        command: CommandLine::Argv(params.command),
        workdir: params.workdir.map(PathBuf::from),
        expiration: expiration(params.timeout_ms, invocation),
        input: CommandInput::Nothing,
        sandbox_permissions: params.sandbox_permissions,
        justification: params.justification,
        prefix_rule: params.prefix_rule,
    })
}

pub(super) fn read_shell_command(
    invocation: &ToolInvocation<'_>,
) -> Result<AskedCommand, CodexErr> {
    let ToolPayload::Function { arguments } = invocation.payload else {
        return Err(wrong_kind(invocation.tool_name));
    };
    let params: ShellCommandToolCallParams = parse(invocation.tool_name, arguments)?;
    let login = if params.login.unwrap_or(true) { Login::Yes } else { Login::No };
    Ok(AskedCommand {
        command: CommandLine::Script { text: params.command, shell: None, login },
        workdir: params.workdir.map(PathBuf::from),
        expiration: expiration(params.timeout_ms, invocation),
        input: CommandInput::Nothing,
        sandbox_permissions: params.sandbox_permissions,
        justification: params.justification,
        prefix_rule: params.prefix_rule,
    })
}

/// Whatever is not known to be safe may.
fn may_change_something(
    asked: Result<AskedCommand, CodexErr>,
    invocation: &ToolInvocation<'_>,
) -> bool {
    let request = asked.and_then(|asked| ShellRequest::new(asked, &invocation.ctx()));
    !request.is_ok_and(|request| request.is_known_safe())
}

fn expiration(timeout_ms: Option<u64>, invocation: &ToolInvocation<'_>) -> ExecExpiration {
    let named = timeout_ms.map(Duration::from_millis);
    match named.or(invocation.services.config.command_timeout) {
        None => ExecExpiration::DefaultTimeout,
        Some(limit) => ExecExpiration::Timeout(limit),
    }
}

async fn run(asked: AskedCommand, invocation: ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
    if let Some(patch) = patch_in(&asked) {
        let cwd = &invocation.turn.cwd;
        let cwd = asked.workdir.as_ref().map_or_else(|| cwd.clone(), |workdir| cwd.join(workdir));
        return apply_text(&patch, &cwd, &invocation.ctx()).await;
    }
    let attempted = run_command(asked, &invocation.ctx()).await?;
    let (output, granted) = (&attempted.output.executed.output, attempted.granted());
    let (exit_code, timed_out) = (output.exit_code, output.timed_out);
    let ran = Ran { exit_code, timed_out, attempt: attempted.attempt, granted };
    let mut text = attempted.output.formatted;
    if let Some(why) = attempted.not_again.as_ref().and_then(CodexErr::after_denial) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&why);
        text.push('\n');
    }
    Ok(ToolOutput::command(text, ran))
}

/// The patch that a command consists of, if it is nothing else.
fn patch_in(asked: &AskedCommand) -> Option<PatchText> {
    match &asked.command {
        CommandLine::Argv(words) => from_script(words),
        CommandLine::Script { text, .. } => {
            from_script(&["bash".to_owned(), "-lc".to_owned(), text.clone()])
        }
    }
}
