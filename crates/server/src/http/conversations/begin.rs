//! How conversations are begun, and opened again.

use super::view::{ApprovalPolicy, ConversationView, SandboxMode};
use super::{check_use, recorded};
use crate::asking::Caller;
use crate::http::body::Json;
use crate::http::problem::Problem;
use crate::http::server::{FRONT_END, Server};
use crate::live::{LiveConversation, most};
use crate::opener::{NewConversation, OpenError, WantedAgent, WantedSession};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandgate_protocol::{AskForApproval, SandboxPolicy, SessionSource};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use utoipa::ToSchema;

/// What a conversation is to be begun with. What is not said is as the settings say, and what is said can
/// only make them stricter.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewConversationBody {
    /// Where it works; with the requester's token in a directory that the server was started for.
    #[schema(value_type = Option<String>)]
    cwd: Option<PathBuf>,
    /// The model.
    model: Option<String>,
    /// Who serves it.
    provider: Option<String>,
    /// When a person is asked.
    #[schema(value_type = Option<ApprovalPolicy>)]
    approval_policy: Option<AskForApproval>,
    /// What commands may touch.
    sandbox_mode: Option<WantedMode>,
    /// Whether it is not written down.
    #[serde(default)]
    ephemeral: bool,
}

/// What commands are to touch at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WantedMode {
    /// Nothing.
    ReadOnly,
    /// What is in the workspace.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
}

/// Begins a conversation.
#[utoipa::path(post, path = "/conversations", tag = "conversations", request_body = NewConversationBody,
    responses((status = 201, body = ConversationView, headers(("location" = String)))))]
pub(in crate::http) async fn begin(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<NewConversationBody>,
) -> Result<Response, Problem> {
    let kind = match body.ephemeral {
        true => NewConversation::Ephemeral,
        false => NewConversation::Recorded,
    };
    let (approval, mode) = (body.approval_policy, body.sandbox_mode);
    let cwd = match body.cwd {
        Some(cwd) if !cwd.is_absolute() => {
            return Err(Problem::unprocessable("cwd must be an absolute path"));
        }
        Some(cwd) => Some(cwd),
        None => server.workspaces.first().cloned(),
    };
    // It is read before anything confines it.
    if caller == Caller::Requester
        && body.provider.as_deref().is_some_and(|provider| provider.starts_with("script:"))
    {
        return Err(Problem::forbidden("a script takes the approver's token"));
    }
    let wanted = WantedSession {
        front_end: FRONT_END,
        workspace: cwd,
        approval_policy: approval,
        sandbox_policy: mode.map(Into::into),
        ..WantedSession::default()
    };
    let agent = WantedAgent {
        source: SessionSource::Interactive,
        conversation: kind,
        model: body.model,
        provider: body.provider,
        ..WantedAgent::default()
    };
    let live = open(&server, caller, wanted, agent).await?;
    let place = HeaderValue::try_from(format!("/conversations/{}", live.about.id));
    let place = place.map_err(Problem::failed)?;
    let notes = differences(&live, approval, mode);
    let made = axum::Json(ConversationView::of(&live).with_notes(notes));
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], made).into_response())
}

/// Opens one that is written down, unless somebody else just has.
pub(super) async fn resume(
    server: &Arc<Server>,
    caller: Caller,
    id: &str,
) -> Result<Arc<LiveConversation>, Problem> {
    let _alone = server.opening.lock().await;
    if let Some(live) = server.conversations.get(id) {
        check_use(server, caller, &live.about.cwd)?;
        return Ok(live);
    }
    let recorded = recorded(server, id.to_owned()).await?;
    check_use(server, caller, &recorded.meta.cwd)?;
    let wanted = WantedSession {
        front_end: FRONT_END,
        // Where it worked before.
        workspace: Some(recorded.meta.cwd),
        ..WantedSession::default()
    };
    let agent = WantedAgent {
        source: SessionSource::Interactive,
        conversation: NewConversation::Resumed(recorded.meta.id),
        ..WantedAgent::default()
    };
    open(server, caller, wanted, agent).await
}

async fn open(
    server: &Arc<Server>,
    caller: Caller,
    mut wanted: WantedSession,
    agent: WantedAgent,
) -> Result<Arc<LiveConversation>, Problem> {
    let place = server.conversations.reserve(caller).ok_or_else(|| {
        let why = format!("{} conversations are open, which is the most; close one", most(caller));
        Problem::new(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    let workspaces = Arc::clone(&server.workspaces);
    let opening = server.blocking(move |opener| {
        // What was looked at is what is opened, wherever a link in its name leads by then.
        let cwd = wanted.workspace.take().map(|cwd| real(&workspaces, caller, &cwd));
        wanted.workspace = cwd.transpose()?;
        opener.conversation(wanted, agent)
    });
    let begun = LiveConversation::begin(
        opening.await??,
        FRONT_END,
        &server.desk,
        &server.scratch,
        server.limits.events,
    )
    .await;
    let live = begun.map_err(Problem::failed)?;
    place.fill(&live);
    Ok(live)
}

/// Which directory this is, if the caller may work in it.
fn real(workspaces: &[PathBuf], caller: Caller, directory: &Path) -> Result<PathBuf, OpenError> {
    let real = directory.canonicalize().map_err(|error| {
        OpenError::Refused(format!("cannot use {}: {error}", directory.display()))
    })?;
    let is_allowed = workspaces.iter().any(|workspace| real.starts_with(workspace));
    match is_allowed || caller == Caller::Approver {
        true => Ok(real),
        false => Err(OpenError::Refused(format!(
            "{} is not in a directory that requesters may work in; --also adds one",
            directory.display()
        ))),
    }
}

/// What a client asked for and did not get, as sentences.
fn differences(
    live: &LiveConversation,
    approval: Option<AskForApproval>,
    mode: Option<WantedMode>,
) -> Vec<String> {
    let word = |value: serde_json::Result<serde_json::Value>| {
        let value = value.unwrap_or_default();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut notes = Vec::new();
    let mut note = |field: &str, wanted: String, held: String| {
        if wanted != held {
            notes.push(format!(
                "{field} is {held} and not {wanted}: a client can only make it stricter than the \
                 settings"
            ));
        }
    };
    if let Some(wanted) = approval {
        let held = live.about.approval_policy;
        note(
            "approval_policy",
            word(serde_json::to_value(wanted)),
            word(serde_json::to_value(held)),
        );
    }
    if let Some(wanted) = mode {
        let [wanted, held] =
            [SandboxMode::from(&wanted.into()), SandboxMode::from(&live.about.sandbox)];
        note("sandbox_mode", word(serde_json::to_value(wanted)), word(serde_json::to_value(held)));
    }
    notes
}

impl From<WantedMode> for SandboxPolicy {
    fn from(mode: WantedMode) -> Self {
        match mode {
            WantedMode::ReadOnly => Self::ReadOnly,
            WantedMode::WorkspaceWrite => Self::workspace_write(),
            WantedMode::DangerFullAccess => Self::DangerFullAccess,
        }
    }
}
