//! `list_processes` and `kill_process`: for a model that has lost count.

use super::allow;
use crate::tools::registry::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use crate::tools::{parse, wrong_kind};
use crate::unified_exec::{Kept, LiveEntry};
use sandgate_process::LiveState;
use sandgate_protocol::{
    CodexErr, KillProcessToolCallParams, ListProcessesToolCallParams, ProcessInfo, ProcessState,
    ToolOutput, ToolPayload, visible_line,
};
use std::sync::Arc;
use std::time::Duration;

/// `list_processes`.
pub(crate) struct ListProcessesHandler;

/// `kill_process`.
pub(crate) struct KillProcessHandler;

/// How long the end of a process is waited for.
const GONE: Duration = Duration::from_secs(5);

impl ToolHandler for ListProcessesHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<ListProcessesToolCallParams>(
            "list_processes",
            "Lists the processes that exec_command started.",
        )
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let ListProcessesToolCallParams {} = invocation.arguments()?;
            allow(&invocation.ctx(), &[])?;
            let infos = process_infos(invocation.services.live.all()).await?;
            #[cfg(unix)]
            let infos = [infos, crate::daemon::list_kept(invocation.services).await].concat();
            let text = serde_json::to_string(&infos);
            text.map(|text| ToolOutput::text(text, true))
                .map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))
        })
    }
}

impl ToolHandler for KillProcessHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<KillProcessToolCallParams>(
            "kill_process",
            "Ends a process that exec_command started, with all that it started.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let ToolPayload::Function { arguments } = invocation.payload else {
                return Err(wrong_kind(invocation.tool_name));
            };
            let params: KillProcessToolCallParams = parse(invocation.tool_name, arguments)?;
            let entry = match invocation.services.live.get(&params.process_id) {
                Ok(entry) => entry,
                #[cfg(unix)]
                Err(unknown) => {
                    return super::kept::call(&params.process_id, arguments, unknown, &invocation)
                        .await;
                }
                #[cfg(not(unix))]
                Err(unknown) => return Err(unknown),
            };
            let id = &params.process_id;
            allow(&invocation.ctx(), std::slice::from_ref(id))?;
            if let Some(end) = entry.process.end() {
                let code = end.output.exit_code;
                let text = format!("process {id} had ended before, with exit code {code}");
                return Ok(ToolOutput::text(text, true));
            }
            entry.process.terminate();
            match tokio::time::timeout(GONE, entry.process.ended()).await {
                Ok(_) => Ok(ToolOutput::text(format!("process {id} was ended"), true)),
                Err(_) => Err(CodexErr::ToolExecutionFailed(format!(
                    "process {id} was told to end and has not: the system does not let go of it"
                ))),
            }
        })
    }
}

/// What there is to know about processes, in this order. Some of it is on disk.
pub(crate) async fn process_infos(
    all: Vec<(String, Arc<LiveEntry>)>,
) -> Result<Vec<ProcessInfo>, CodexErr> {
    let look = move || all.iter().map(|(id, entry)| process_info(id, entry)).collect();
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))
}

fn process_info(id: &str, entry: &LiveEntry) -> ProcessInfo {
    let (state, exit_code) = match entry.process.state() {
        LiveState::Exited(code) => (ProcessState::Exited, Some(code)),
        LiveState::WaitingForInput => (ProcessState::WaitingForInput, None),
        LiveState::Running => (ProcessState::Running, None),
    };
    ProcessInfo {
        process_id: id.to_owned(),
        command: entry.command.clone(),
        cwd: entry.cwd.to_string_lossy().into_owned(),
        pid: entry.process.pid(),
        state,
        exit_code,
        age_seconds: entry.process.age().as_secs(),
        printed_bytes: entry.process.kept().end,
        last_line: visible_line(&entry.process.last_line()),
        kept: entry.kept == Kept::Yes,
    }
}
