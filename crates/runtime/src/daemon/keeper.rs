//! A session's side of what the daemon keeps: has a process kept, and reaches those that are.

use super::keep::{Described, KeepRequest, KeptReply};
use super::wire::{Reply, Request, SessionTerms, WireCall};
use super::{Client, DaemonError, Launcher, Place};
use crate::audit::Record;
use crate::orchestrator::{SandboxAttempt, ToolCtx};
use crate::session::{Keeping, Services};
use sandgate_protocol::{
    CodexErr, ExecCommandToolCallParams, ExecParams, ProcessInfo, ReviewDecision, ToolOutput,
    WriteStdinToolCallParams,
};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Has processes kept.
#[derive(Debug)]
pub(crate) struct Keeper {
    place: Place,
    launcher: Launcher,
}

/// A process that the daemon keeps.
pub(crate) struct KeptProcess {
    client: Client,
    pub(crate) described: Described,
}

impl Keeper {
    /// The one of a session.
    pub(crate) fn of(services: &Services, program: &Path) -> Result<Self, CodexErr> {
        let place = place(services).ok_or_else(|| not_kept(&DaemonError::NoSettings))?;
        Ok(Self { place, launcher: Launcher { program: program.to_owned() } })
    }

    /// Has the daemon start what this attempt permits. The daemon is started if there is none.
    pub(crate) async fn keep(
        &self,
        attempt: &SandboxAttempt,
        params: ExecParams,
        asked: &ExecCommandToolCallParams,
        ctx: &ToolCtx<'_>,
    ) -> Result<KeptReply, CodexErr> {
        let config = &ctx.services.config;
        let terms = SessionTerms {
            workspace: config.workspace.clone(),
            approval_policy: config.approval_policy,
            sandbox_policy: config.sandbox_policy.clone(),
            env: (&config.own_env).into(),
        };
        let call = (ctx.call_id.clone(), attempt.number());
        let request = KeepRequest::new(terms, call, asked, attempt.grant(params));
        let found = Client::find_or_start(&self.place, &self.launcher).await;
        let mut client = found.map_err(|error| not_kept(&error))?;
        let request = Request::Keep { request: Box::new(request) };
        let kept = answer(&mut client, &request, ctx.turn.cancellation()).await;
        let kept = kept.map_err(|error| not_kept(&error))?;
        if let Some(id) = &kept.reply.process_id {
            let text = format!("process {id} of the call {} is kept by the daemon", ctx.call_id);
            ctx.record(&Record::Note { text })?;
        }
        Ok(kept)
    }
}

impl KeptProcess {
    /// The one of this id; none if the daemon keeps none, or there is no daemon.
    pub(crate) async fn find(services: &Services, id: &str) -> Option<Self> {
        let mut client = running(services).await?;
        match client.ask(&Request::Describe { process_id: id.to_owned() }).await {
            Ok(Reply::Described(described)) => Some(Self { client, described: *described }),
            _ => None,
        }
    }

    /// Whether it was started on the terms of this session, and is confined by them.
    pub(crate) fn is_confined_as(&self, services: &Services) -> bool {
        let (own, theirs) = (&services.config, &self.described);
        theirs.is_confined
            && theirs.workspace == own.workspace
            && theirs.sandbox_policy == own.sandbox_policy
            && theirs.approval_policy == own.approval_policy
    }

    /// Types something that was judged, or need not be.
    pub(crate) async fn type_in(
        &mut self,
        params: &WriteStdinToolCallParams,
        cancel: &CancellationToken,
    ) -> Result<KeptReply, CodexErr> {
        let (params, typed) = (params.clone(), self.described.typed.clone());
        let request = Request::Type { params, typed };
        let answered = answer(&mut self.client, &request, cancel).await;
        answered.map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))
    }

    /// Makes a call that changes nothing but the process: reads what it printed, or ends it.
    pub(crate) async fn call(
        mut self,
        id: &str,
        arguments: &str,
        ctx: &ToolCtx<'_>,
    ) -> Result<ToolOutput, CodexErr> {
        let failed = |error: DaemonError| CodexErr::ToolExecutionFailed(error.to_string());
        let using = Request::Use { process_id: id.to_owned() };
        self.client.ask(&using).await.map_err(failed)?;
        let (name, call_id) = (ctx.tool_name.to_owned(), ctx.call_id.clone());
        let call = WireCall::Function { name, call_id, arguments: arguments.to_owned() };
        self.client.say(&Request::Call { calls: vec![call] }).await.map_err(failed)?;
        loop {
            match self.client.hear().await.map_err(failed)? {
                Reply::Result(result) if result.error.is_some() => {
                    return Err(CodexErr::ToolExecutionFailed(result.output));
                }
                Reply::Result(result) => {
                    return Ok(ToolOutput::text(result.output, result.success.unwrap_or(true)));
                }
                // Nothing that comes this way has anything to ask.
                Reply::Question { event: sandgate_protocol::Event::ExecApprovalRequest(asked) } => {
                    let (approval_id, decision) = (asked.approval_id, ReviewDecision::DENIED);
                    let no = Request::Answer { approval_id, decision };
                    self.client.say(&no).await.map_err(failed)?;
                }
                Reply::Error { message } => return Err(failed(DaemonError::Refused(message))),
                _ => {}
            }
        }
    }
}

/// The processes that the daemon keeps for sessions.
pub(crate) async fn list_kept(services: &Services) -> Vec<ProcessInfo> {
    let Some(mut client) = running(services).await else { return Vec::new() };
    match client.ask(&Request::List {}).await {
        Ok(Reply::Processes { processes }) => {
            processes.into_iter().filter(|process| process.kept).collect()
        }
        _ => Vec::new(),
    }
}

/// The daemon of a session that may use one, if it runs.
async fn running(services: &Services) -> Option<Client> {
    match services.config.keeping {
        Keeping::ByDaemon { .. } => Client::find(&place(services)?).await.ok()?,
        Keeping::Nowhere | Keeping::Here => None,
    }
}

fn place(services: &Services) -> Option<Place> {
    let home = services.config.config_home.as_ref()?;
    std::path::absolute(home).ok().map(|home| Place::in_settings(&home))
}

fn not_kept(error: &DaemonError) -> CodexErr {
    CodexErr::ToolExecutionFailed(format!("the process cannot be kept alive: {error}"))
}

/// Asks, and waits for the answer. When the turn is called off the process is not waited for any longer.
async fn answer(
    client: &mut Client,
    request: &Request,
    cancel: &CancellationToken,
) -> Result<KeptReply, DaemonError> {
    client.say(request).await?;
    let mut called_off = false;
    loop {
        let reply = tokio::select! {
            reply = client.hear() => reply?,
            () = cancel.cancelled(), if !called_off => {
                called_off = true;
                client.say(&Request::Cancel {}).await?;
                continue;
            }
        };
        match reply {
            Reply::Kept(kept) => return Ok(*kept),
            Reply::Error { message } => return Err(DaemonError::Refused(message)),
            _ => {}
        }
    }
}
