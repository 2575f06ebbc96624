//! One tool of a server: when a person is asked, what the person sees, and the call itself.

use super::connect::Connection;
use super::list::spec;
use super::result::output;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, Tool};
use sandgate_config::McpServer;
use sandgate_protocol::{
    AskForApproval, CodexErr, Denials, SandboxPermissions, SandboxPolicy, SandboxablePreference,
    ToolOutput, visible, visible_line,
};
use sandgate_runtime::audit::{Ended, Judged, Record, RiskClass};
use sandgate_runtime::{
    Answer, Approvable, ApprovalCtx, ApprovalKey, ApprovalRequirement, BypassSandbox, Question,
    SandboxAttempt, Sandboxable, Stop, Terms, ToolCtx, ToolFuture, ToolHandler, ToolInvocation,
    ToolOrchestrator, ToolRuntime, ToolSpec,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A tool of a server.
pub(super) struct McpTool {
    server: String,
    /// Its name at the server.
    tool: String,
    spec: ToolSpec,
    /// Whether the server says that it changes nothing.
    read_only: bool,
    connection: Arc<Connection>,
    limit: Duration,
}

impl McpTool {
    pub(super) fn new(server: &McpServer, connection: &Arc<Connection>, tool: &Tool) -> Self {
        let annotations = tool.annotations.as_ref();
        Self {
            server: server.name.to_string(),
            tool: tool.name.to_string(),
            spec: spec(server.name.as_str(), tool),
            read_only: annotations.and_then(|hints| hints.read_only_hint).unwrap_or(false),
            connection: Arc::clone(connection),
            limit: server.tool_timeout,
        }
    }
}

impl ToolHandler for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        !self.read_only
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        self.read_only
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: JsonObject = invocation.arguments()?;
            let ctx = invocation.ctx();
            let request = McpCall {
                name: self.spec.name.clone(),
                read_only: self.read_only,
                text: serde_json::to_string(&arguments).unwrap_or_default(),
                arguments,
                workspace: ctx.workspace().to_owned(),
                stop: invocation.turn.stop().clone(),
            };
            Ok(ToolOrchestrator.run(self, &request, &ctx).await?.output)
        })
    }
}

/// One call of a tool.
struct McpCall {
    name: String,
    read_only: bool,
    arguments: JsonObject,
    /// The same as text.
    text: String,
    workspace: PathBuf,
    stop: Stop,
}

/// A yes for the session covers the same call of the same tool, as it does for a command.
impl Approvable for McpCall {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        vec![ApprovalKey::Command {
            tool: self.name.clone(),
            argv: vec![self.text.clone()],
            cwd: self.workspace.clone(),
            sandbox_permissions: SandboxPermissions::UseDefault,
            tty: false,
            runs: Vec::new(),
        }]
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        let bypass_sandbox = BypassSandbox::No;
        let ask = |reason: &str| ApprovalRequirement::NeedsApproval {
            reason: reason.to_owned(),
            bypass_sandbox,
            proposed_rule: None,
        };
        match terms.approval {
            AskForApproval::UnlessTrusted => ask("a tool of an MCP server is not known to be safe"),
            _ if self.read_only => ApprovalRequirement::Skip { bypass_sandbox },
            AskForApproval::OnRequest | AskForApproval::OnFailure => {
                ask("the MCP server does not say that this tool changes nothing")
            }
            AskForApproval::Never if *terms.sandbox == SandboxPolicy::DangerFullAccess => {
                ApprovalRequirement::Skip { bypass_sandbox }
            }
            AskForApproval::Never => ApprovalRequirement::Forbidden {
                reason: "This tool of an MCP server may change something, which needs a person's \
                         approval, and nobody may be asked. Do without it."
                    .to_owned(),
            },
        }
    }
}

/// The server is in its cage already, or elsewhere.
impl Sandboxable<McpCall> for McpTool {
    fn sandbox_preference(&self) -> SandboxablePreference {
        SandboxablePreference::Forbid
    }

    fn escalate_on_failure(&self) -> bool {
        false
    }
}

impl ToolRuntime<McpCall> for McpTool {
    type Output = ToolOutput;

    async fn start_approval_async(
        &self,
        request: &McpCall,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        let arguments = serde_json::to_string_pretty(&request.arguments).unwrap_or_default();
        let (server, tool) = (&self.server, visible_line(&self.tool));
        let text = format!("MCP server {server}, tool {tool}: {}", visible(&arguments));
        let command = vec![request.name.clone(), request.text.clone()];
        let question = ctx.question(command, text, request.workspace.clone(), &approval.reason);
        ctx.ask(Question::Exec(Box::new(question))).await
    }

    fn describe(&self, request: &McpCall, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let reason = match self.read_only {
            true => "its server says that it changes nothing",
            false => "its server does not say that it changes nothing",
        };
        let judged = Judged {
            call_id: ctx.call_id.clone(),
            class: RiskClass::Unknown,
            reason: Some(reason.to_owned()),
            rules: Vec::new(),
        };
        let words = vec![self.server.clone(), self.tool.clone(), request.text.clone()];
        vec![ctx.asked(words), Record::Judged(judged)]
    }

    async fn run(
        &self,
        request: &McpCall,
        _: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<ToolOutput, CodexErr> {
        if self.connection.may_write {
            ctx.before_changes().await;
        }
        let began = Instant::now();
        let params =
            CallToolRequestParams::new(self.tool.clone()).with_arguments(request.arguments.clone());
        let calling = self.connection.peer().call_tool_once(params);
        // A call that is dropped tells the server that it was called off.
        let called = tokio::select! {
            biased;
            () = request.stop.cancel.cancelled() => Called::Off,
            () = request.stop.interrupt.cancelled() => Called::Off,
            called = tokio::time::timeout(self.limit, calling) => match called {
                Ok(Ok(CallToolResponse::Complete(result))) => {
                    Called::Answered(output(&result, ctx.model_format()))
                }
                Ok(Ok(_)) => Called::Failed("it wants something first that it cannot have".to_owned()),
                Ok(Err(error)) => Called::Failed(self.connection.failure(&error).await),
                Err(_) => Called::TimedOut,
            },
        };
        let failed = |why: &str| format!("MCP server {}: {}", self.server, visible_line(why));
        let mut ended = Ended {
            call_id: ctx.call_id.clone(),
            attempt: 1,
            exit_code: None,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            timed_out: matches!(called, Called::TimedOut),
            cancelled: matches!(called, Called::Off),
            denials: Denials::default(),
            error: None,
        };
        let result = match called {
            Called::Answered(output) => Ok(output),
            Called::Off => Err(CodexErr::UserAborted),
            Called::TimedOut => {
                let limit = self.limit.as_secs_f64();
                Err(CodexErr::ToolExecutionFailed(failed(&format!(
                    "no answer within {limit} seconds"
                ))))
            }
            Called::Failed(why) => Err(CodexErr::ToolExecutionFailed(failed(&why))),
        };
        ended.error = match &result {
            Ok(ToolOutput::Function { success: Some(false), .. }) => {
                Some("the tool says that it failed".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        ctx.record(&Record::Ended(ended))?;
        result
    }

    fn denial(&self, _: &ToolOutput) -> Option<Denials> {
        None
    }
}

/// What came of a call.
enum Called {
    Answered(ToolOutput),
    Off,
    TimedOut,
    Failed(String),
}
