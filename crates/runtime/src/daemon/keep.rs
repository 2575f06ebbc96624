//! Processes that a session asked the daemon to keep: what crosses the socket, and the daemon's side.
//!
//! The session has judged the command and had it approved before it asks. What crosses is plain data: the
//! command with every name looked up, and the terms of its grant. The daemon confines it anew by those.

use super::DaemonError;
use super::pool::Pool;
use super::wire::{Environment, SessionTerms};
use crate::tools::{Launch, Launched, Manner, type_unjudged};
use crate::unified_exec::{Kept, LiveEntry, Whereabouts, Writes};
use sandgate_policy::{Confinement, Extras, Grant, Grantor};
use sandgate_protocol::{
    AskForApproval, CallId, Denials, ExecCommandToolCallParams, ExecExpiration, ExecParams,
    SandboxPermissions, SandboxPolicy, UnifiedExecReply, WriteStdinToolCallParams,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A process to keep.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepRequest {
    pub(super) terms: SessionTerms,
    pub(super) call_id: CallId,
    pub(super) attempt: u32,
    /// How it is started and waited for.
    pub(super) asked: ExecCommandToolCallParams,
    pub(super) command: Resolved,
    pub(super) bounds: Bounds,
    pub(super) granted_by: GrantedBy,
}

/// A command in which every name has been looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resolved {
    pub(super) words: Vec<String>,
    pub(super) program: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) env: Environment,
    pub(super) arg0: Option<String>,
    pub(super) justification: Option<String>,
}

/// What confines it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "bounds", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Bounds {
    /// Nothing, because that was granted.
    Unconfined {},
    /// The policy of its session, and what was opened beyond it.
    Sandboxed { writable: Vec<PathBuf>, sockets: Vec<PathBuf>, network: bool },
}

/// Who gave the grant.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GrantedBy {
    Person,
    Policy,
}

/// The first answer of a process that is kept, or what it said when something was typed to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptReply {
    /// The answer.
    pub(crate) reply: UnifiedExecReply,
    /// What was refused to it, if it failed because of that.
    pub(crate) denials: Option<Denials>,
}

/// What a session must know about a kept process before anything is typed to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    pub(crate) workspace: PathBuf,
    pub(crate) approval_policy: AskForApproval,
    pub(crate) sandbox_policy: SandboxPolicy,
    pub(crate) is_confined: bool,
    pub(crate) command: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) justification: Option<String>,
    /// What was typed of a line that is not complete.
    pub(crate) typed: String,
}

impl KeepRequest {
    /// The grant of a session, as data.
    pub(super) fn new(
        terms: SessionTerms,
        (call_id, attempt): (CallId, u32),
        asked: &ExecCommandToolCallParams,
        grant: Grant,
    ) -> Self {
        let Extras { writable, sockets, network } = grant.extras().clone();
        let bounds = match grant.confinement() {
            Confinement::Unconfined => Bounds::Unconfined {},
            Confinement::Sandboxed { .. } => Bounds::Sandboxed { writable, sockets, network },
        };
        let granted_by = match grant.grantor() {
            Grantor::Person => GrantedBy::Person,
            Grantor::Policy => GrantedBy::Policy,
        };
        let params = grant.into_params();
        let command = Resolved {
            words: params.command,
            program: params.program,
            cwd: params.cwd,
            env: (&params.env).into(),
            arg0: params.arg0,
            justification: params.justification,
        };
        Self { terms, call_id, attempt, asked: asked.clone(), command, bounds, granted_by }
    }

    fn params(&self) -> ExecParams {
        let Resolved { words, program, cwd, env, arg0, justification } = self.command.clone();
        ExecParams {
            command: words,
            program,
            cwd,
            env: (&env).into(),
            expiration: ExecExpiration::Cancellation,
            sandbox_permissions: match self.bounds {
                Bounds::Unconfined {} => SandboxPermissions::RequireEscalated,
                Bounds::Sandboxed { .. } => SandboxPermissions::UseDefault,
            },
            justification,
            arg0,
        }
    }

    /// The grant, once more.
    fn grant(&self, params: ExecParams, workspace: PathBuf) -> Grant {
        let (confinement, extras) = match self.bounds.clone() {
            Bounds::Unconfined {} => (Confinement::Unconfined, Extras::default()),
            Bounds::Sandboxed { writable, sockets, network } => {
                let policy = self.terms.sandbox_policy.clone();
                let extras = Extras { writable, sockets, network };
                (Confinement::Sandboxed { policy, workspace }, extras)
            }
        };
        let grantor = match self.granted_by {
            GrantedBy::Person => Grantor::Person,
            GrantedBy::Policy => Grantor::Policy,
        };
        Grant::carried_over(params, confinement, extras, grantor)
    }
}

/// Starts a process that is to be kept.
pub(super) async fn keep(
    pool: &Pool,
    request: &KeepRequest,
    cancel: &CancellationToken,
) -> Result<KeptReply, DaemonError> {
    let refused = |error: sandgate_protocol::CodexErr| DaemonError::Refused(error.to_string());
    let (session, _) = pool.open(request.terms.clone())?;
    let services = session.services();
    let wanted = request.asked.process_id.as_deref();
    wanted.into_iter().for_each(|id| pool.forget_ended(id));
    let reserved = services.live.reserve(wanted, services, &request.call_id).await;
    let reserved = reserved.map_err(refused)?;
    let manner = Manner::of("exec_command", &request.asked).map_err(refused)?;
    let launch = Launch {
        call_id: &request.call_id,
        process_id: reserved.id(),
        attempt: request.attempt,
        manner: &manner,
        kept: Kept::Yes,
        writes: Writes::Maybe,
        login_shell: None,
        cancel,
    };
    let workspace = services.config.workspace.clone();
    let permit = |params| request.grant(params, workspace);
    let launched = launch.start(services, request.params(), permit).await.map_err(refused)?;
    let Launched { entry, reply, denial } = launched;
    reserved.give_to(entry);
    Ok(KeptReply { reply, denials: denial })
}

/// Says what a session must know about a kept process.
pub(super) fn describe(pool: &Pool, id: &str) -> Result<Described, DaemonError> {
    let (session, entry) = kept(pool, id)?;
    let config = &session.services().config;
    Ok(Described {
        workspace: config.workspace.clone(),
        approval_policy: config.approval_policy,
        sandbox_policy: config.sandbox_policy.clone(),
        is_confined: entry.whereabouts == Whereabouts::Confined,
        command: entry.command.clone(),
        cwd: entry.cwd.clone(),
        justification: entry.justification.clone(),
        typed: entry.half_typed(),
    })
}

/// Types something that the session which sends it has judged, after this beginning of a line.
pub(super) async fn type_to(
    pool: &Pool,
    params: WriteStdinToolCallParams,
    typed: &str,
    cancel: &CancellationToken,
) -> Result<KeptReply, DaemonError> {
    let (_, entry) = kept(pool, &params.process_id)?;
    let reply = type_unjudged(&entry, params, typed, cancel).await;
    let reply = reply.map_err(|error| DaemonError::Refused(error.to_string()))?;
    Ok(KeptReply { reply, denials: None })
}

type Found = (std::rc::Rc<crate::Session>, Arc<LiveEntry>);

/// What people started for themselves is not for sessions.
fn kept(pool: &Pool, id: &str) -> Result<Found, DaemonError> {
    let found = pool.find(id)?;
    match found.1.kept {
        Kept::Yes => Ok(found),
        Kept::No => Err(DaemonError::Refused(format!("process {id} is not a kept one"))),
    }
}
