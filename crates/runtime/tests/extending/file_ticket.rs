//! `file_ticket`: a tool that works in this program, and that a person is asked about first.

use sandgate_protocol::{
    AskForApproval, CodexErr, Denials, SandboxPermissions, SandboxablePreference, ToolOutput,
    visible,
};
use sandgate_runtime::audit::{Judged, Record, RiskClass};
use sandgate_runtime::{
    Answer, Approvable, ApprovalCtx, ApprovalKey, ApprovalRequirement, BypassSandbox, Question,
    SandboxAttempt, Sandboxable, Terms, ToolCtx, ToolFuture, ToolHandler, ToolInvocation,
    ToolOrchestrator, ToolRuntime, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Mutex;

/// What the model writes. Its comments are what the model reads about each field.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileTicketParams {
    /// The ticket's title, as one sentence.
    title: String,
}

/// The tool, and what it works on: here a list, in a real program a tracker.
#[derive(Default)]
pub struct FileTicket {
    pub tickets: Mutex<Vec<String>>,
}

impl ToolHandler for FileTicket {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<FileTicketParams>(
            "file_ticket",
            "Files a ticket with the project's tracker.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let FileTicketParams { title } = invocation.arguments()?;
            let ctx = invocation.ctx();
            let request = TicketRequest { title, directory: ctx.workspace().to_owned() };
            let filed = ToolOrchestrator.run(self, &request, &ctx).await?;
            Ok(ToolOutput::text(format!("Filed as ticket {}.\n", filed.output), true))
        })
    }
}

/// One ticket that somebody wants to have filed.
pub struct TicketRequest {
    title: String,
    directory: std::path::PathBuf,
}

/// When a person is asked, and what an approval for the session covers: the same ticket again.
impl Approvable for TicketRequest {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        vec![ApprovalKey::Command {
            tool: "file_ticket".to_owned(),
            argv: vec![self.title.clone()],
            cwd: self.directory.clone(),
            sandbox_permissions: SandboxPermissions::UseDefault,
            tty: false,
            runs: Vec::new(),
        }]
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        match terms.approval {
            AskForApproval::Never => ApprovalRequirement::Forbidden {
                reason: "Tickets are filed only when a person agrees, and nobody may be asked. \
                         Say what the ticket would have been."
                    .to_owned(),
            },
            _ => ApprovalRequirement::NeedsApproval {
                reason: "others see the ticket".to_owned(),
                bypass_sandbox: BypassSandbox::No,
                proposed_rule: None,
            },
        }
    }
}

/// No process is started, so there is nothing to confine and nothing to try again.
impl Sandboxable<TicketRequest> for FileTicket {
    fn sandbox_preference(&self) -> SandboxablePreference {
        SandboxablePreference::Forbid
    }

    fn escalate_on_failure(&self) -> bool {
        false
    }
}

impl ToolRuntime<TicketRequest> for FileTicket {
    /// The number of the ticket.
    type Output = usize;

    /// What a person is shown. `visible` spells out what does not show itself.
    async fn start_approval_async(
        &self,
        request: &TicketRequest,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        let command = vec!["file_ticket".to_owned(), request.title.clone()];
        let text = format!("file a ticket: {}", visible(&request.title));
        let question = ctx.question(command, text, request.directory.clone(), &approval.reason);
        ctx.ask(Question::Exec(Box::new(question))).await
    }

    /// What the audit log says before anything is decided.
    fn describe(&self, request: &TicketRequest, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let judged = Judged {
            call_id: ctx.call_id.clone(),
            class: RiskClass::Unknown,
            reason: Some("others see the ticket".to_owned()),
            rules: Vec::new(),
        };
        vec![ctx.asked(vec![request.title.clone()]), Record::Judged(judged)]
    }

    /// Runs only with the permission that the attempt carries.
    async fn run(
        &self,
        request: &TicketRequest,
        _: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<usize, CodexErr> {
        let number = {
            let broken = |_| CodexErr::ToolExecutionFailed("the tracker is broken".to_owned());
            let mut tickets = self.tickets.lock().map_err(broken)?;
            tickets.push(request.title.clone());
            tickets.len()
        };
        ctx.record(&Record::Note { text: format!("filed ticket {number}") })?;
        Ok(number)
    }

    fn denial(&self, _: &usize) -> Option<Denials> {
        None
    }
}
