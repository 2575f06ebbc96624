//! Conversations: to begin one, to have turns taken in it, to hear what happens.

use super::body::{Json, Path, Query};
use super::problem::Problem;
use super::server::{FRONT_END, Server};
use super::sse::{self, streamed};
use crate::asking::Caller;
use crate::live::{Busy, LiveConversation, MOST_OPEN, Reading, first_line};
use crate::opener::{NewConversation, WantedAgent, WantedSession};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use sandgate_agent::UserInput;
use sandgate_agent::rollout::{self, Found, Recorded, RolloutError};
use sandgate_protocol::{
    AskForApproval, ResponseItem, Role, SandboxPolicy, SessionSource, TokenUsage,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// How many conversations a list has at the most.
const MOST_LISTED: usize = 100;

/// How many recorded conversations are looked through for a page of a list.
const MOST_LOOKED_AT: usize = 10_000;

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

/// When a person is asked.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only the document names it")]
pub(crate) enum ApprovalPolicy {
    Untrusted,
    OnFailure,
    OnRequest,
    Never,
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

/// What commands may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SandboxMode {
    /// Nothing.
    ReadOnly,
    /// What is in the workspace.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
    /// Something else confines them.
    ExternalSandbox,
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// What it is known by.
    id: String,
    /// Whether it is open.
    state: Condition,
    /// The first line of what the person said first.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Where it works.
    cwd: String,
    /// The model.
    model: String,
    /// Who serves it.
    provider: String,
    /// When a person is asked; unknown of one that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ApprovalPolicy>)]
    approval_policy: Option<AskForApproval>,
    /// What commands may touch; unknown of one that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxMode>,
    /// When it was begun, or opened again.
    #[schema(value_type = String, format = DateTime)]
    started: Timestamp,
    /// The number of its last event; 0 if it has none.
    last_event: u64,
    /// What it used of the model.
    usage: Usage,
    /// How many tokens fit into the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
}

/// How things are with a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConversationState)]
pub(crate) enum Condition {
    /// It waits for a turn.
    Idle,
    /// A turn is being taken.
    Working,
    /// It is only written down, and a turn opens it.
    Recorded,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Read by the model.
    input: u64,
    /// Written by it.
    output: u64,
    /// Both.
    total: u64,
}

/// Conversations, the open ones first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationList {
    conversations: Vec<ConversationView>,
}

/// Which page of a list is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// How many recorded ones at the most.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Only recorded ones that come after the one of this id.
    before: Option<String>,
}

/// What was said and done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Items {
    #[schema(value_type = Vec<Object>)]
    items: Vec<ResponseItem>,
}

/// What the person says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnBody {
    input: TurnInput,
}

/// In words, or in parts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TurnInput {
    /// In words.
    Text(String),
    /// In parts.
    Parts(Vec<InputPart>),
}

/// A part of what the person says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum InputPart {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// As a data URL: `data:image/png;base64,…`.
        #[schema(pattern = "^data:image/")]
        image_url: String,
    },
}

/// Where the events of a turn begin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnBegun {
    /// The conversation.
    conversation: String,
    /// The number of the last event before the turn.
    after: u64,
}

/// Where a stream of events begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// The number of the last event that was heard. A `Last-Event-ID` header outweighs it.
    after: Option<u64>,
}

/// Begins a conversation.
#[utoipa::path(post, path = "/conversations", tag = "conversations", request_body = NewConversationBody,
    responses((status = 201, body = ConversationView, headers(("location" = String)))))]
pub(super) async fn begin(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Json(body): Json<NewConversationBody>,
) -> Result<Response, Problem> {
    let kind = match body.ephemeral {
        true => NewConversation::Ephemeral,
        false => NewConversation::Recorded,
    };
    let live = open(&server, caller, body, kind).await?;
    let place = HeaderValue::try_from(format!("/conversations/{}", live.about.id));
    let place = place.map_err(Problem::failed)?;
    let made = axum::Json(ConversationView::of(&live));
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], made).into_response())
}

async fn open(
    server: &Arc<Server>,
    caller: Caller,
    body: NewConversationBody,
    kind: NewConversation,
) -> Result<Arc<LiveConversation>, Problem> {
    if !server.conversations.has_room() {
        let why = format!("{MOST_OPEN} conversations are open, which is the most; close one");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let cwd = match (body.cwd, &kind) {
        (Some(cwd), _) if !cwd.is_absolute() => {
            return Err(Problem::unprocessable("cwd must be an absolute path"));
        }
        (Some(cwd), _) => Some(cwd),
        // Where it worked before.
        (None, NewConversation::Resumed(_)) => None,
        (None, _) => server.workspaces.first().cloned(),
    };
    if caller == Caller::Requester {
        if let Some(cwd) = &cwd {
            server.lets_work_in(cwd)?;
        }
        // It is read before anything confines it.
        if body.provider.as_deref().is_some_and(|provider| provider.starts_with("script:")) {
            return Err(Problem::forbidden("a script takes the approver's token"));
        }
    }
    let wanted = WantedSession {
        front_end: FRONT_END,
        workspace: cwd,
        approval_policy: body.approval_policy,
        sandbox_policy: body.sandbox_mode.map(Into::into),
        approval_timeout: None,
    };
    let agent = WantedAgent {
        source: SessionSource::Interactive,
        conversation: kind,
        model: body.model,
        provider: body.provider,
    };
    let opened = server.blocking(move |opener| opener.conversation(wanted, agent)).await??;
    let begun = LiveConversation::begin(
        opened,
        FRONT_END,
        &server.desk,
        &server.scratch,
        server.limits.events,
    )
    .await;
    let live = begun.map_err(Problem::failed)?;
    server.conversations.add(&live);
    Ok(live)
}

/// Lists conversations.
#[utoipa::path(get, path = "/conversations", tag = "conversations", params(Page),
    responses((status = 200, body = ConversationList)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Query(page): Query<Page>,
) -> Result<axum::Json<ConversationList>, Problem> {
    let limit = page.limit.unwrap_or(MOST_LISTED);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Problem::bad(format!("limit is 1 to {MOST_LISTED}")));
    }
    let open = server.conversations.all();
    let ids: Vec<String> = open.iter().map(|live| live.about.id.clone()).collect();
    let mut conversations: Vec<ConversationView> = match page.before {
        None => open.iter().map(|live| ConversationView::of(live)).collect(),
        Some(_) => Vec::new(),
    };
    if let Some(home) = server.settings.clone() {
        let most = if page.before.is_some() { MOST_LOOKED_AT } else { limit };
        let look = move |_: &dyn crate::opener::Opener| {
            let found = rollout::list(&home, most, |meta| {
                !meta.is_of_subagent() && !ids.contains(&meta.id)
            })?;
            let skip = match &page.before {
                Some(id) => found.iter().position(|one| one.meta.id == *id).map(|at| at + 1),
                None => Some(0),
            };
            let rest = found.into_iter().skip(skip.unwrap_or(usize::MAX)).take(limit);
            Ok::<_, RolloutError>(rest.map(|one| ConversationView::found(&one)).collect::<Vec<_>>())
        };
        conversations.extend(server.blocking(look).await?.map_err(Problem::failed)?);
    }
    Ok(axum::Json(ConversationList { conversations }))
}

/// Shows a conversation.
#[utoipa::path(get, path = "/conversations/{id}", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, body = ConversationView)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationView>, Problem> {
    let view = match server.conversations.get(&id) {
        Some(live) => ConversationView::of(&live),
        None => ConversationView::recorded(&recorded(&server, id).await?),
    };
    Ok(axum::Json(view))
}

/// What was said and done so far. Of an ephemeral one, until its last turn ended.
#[utoipa::path(get, path = "/conversations/{id}/items", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, body = Items)))]
pub(super) async fn items(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Items>, Problem> {
    let items = match server.conversations.get(&id) {
        Some(live) if !live.about.is_recorded => live.facts().items.clone(),
        _ => recorded(&server, id).await?.everything,
    };
    Ok(axum::Json(Items { items }))
}

/// Has a turn taken. Answers with its events as they happen; with `Prefer: respond-async` at once.
#[utoipa::path(post, path = "/conversations/{id}/turns", tag = "conversations", request_body = TurnBody,
    params(("id" = String, Path, description = "The conversation; one that is written down is opened"),
        ("prefer" = Option<String>, Header, description = "`respond-async` to be answered at once")),
    responses(
        (status = 200, body = sse::Sent, content_type = "text/event-stream",
            description = "The turn's events, until it has ended"),
        (status = 202, body = TurnBegun, description = "The turn was begun")))]
pub(super) async fn turn(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(body): Json<TurnBody, { super::body::LARGE_BYTES }>,
) -> Result<Response, Problem> {
    let input = body.input.read()?;
    let live = match server.conversations.get(&id) {
        Some(live) => live,
        None => resume(&server, caller, &id).await?,
    };
    let after = live.events.progress().borrow().last;
    let reading = live.begin_turn(input).map_err(|Busy| {
        Problem::conflict("a turn is being taken; interrupt it, or wait until it has ended")
    })?;
    if prefers_async(&headers) {
        let begun = TurnBegun { conversation: live.about.id.clone(), after };
        return Ok((StatusCode::ACCEPTED, axum::Json(begun)).into_response());
    }
    Ok(streamed(reading))
}

async fn resume(
    server: &Arc<Server>,
    caller: Caller,
    id: &str,
) -> Result<Arc<LiveConversation>, Problem> {
    let _alone = server.opening.lock().await;
    if let Some(live) = server.conversations.get(id) {
        return Ok(live);
    }
    let recorded = recorded(server, id.to_owned()).await?;
    if caller == Caller::Requester {
        server.lets_work_in(&recorded.meta.cwd)?;
    }
    let kind = NewConversation::Resumed(recorded.meta.id);
    open(server, caller, NewConversationBody::default(), kind).await
}

/// The events of a conversation from a number on, as they happen, until it is closed.
#[utoipa::path(get, path = "/conversations/{id}/events", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), After,
        ("last-event-id" = Option<u64>, Header, description = "The last event that was heard")),
    responses((status = 200, body = sse::Sent, content_type = "text/event-stream",
        description = "Each event with its number as `id`, its type as `event` and itself as `data`")))]
pub(super) async fn events(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Query(query): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = last_event_id(&headers)?.or(query.after).unwrap_or(0);
    let live = live(&server, &id).await?;
    let reading: Reading = live.events.after(after).map_err(Problem::failed)?;
    Ok(streamed(reading))
}

/// The last event that a client has heard, as its browser repeats it.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let number = id.to_str().ok().and_then(|id| id.parse().ok());
    number.map(Some).ok_or_else(|| Problem::bad("Last-Event-ID is not a number"))
}

/// Calls off the turn that is being taken, if one is.
#[utoipa::path(post, path = "/conversations/{id}/interrupt", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 202, description = "It ends as soon as it can")))]
pub(super) async fn interrupt(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    live(&server, &id).await?.interrupt();
    Ok(StatusCode::ACCEPTED)
}

/// Closes a conversation, with all that runs in it. What is written down of it stays.
#[utoipa::path(delete, path = "/conversations/{id}", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 204, description = "It is closed")))]
pub(super) async fn close(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    live(&server, &id).await?;
    if let Some(live) = server.conversations.take(&id) {
        // To the end, also if the client does not wait for it.
        let closing = tokio::spawn(async move { live.close().await });
        closing.await.map_err(Problem::failed)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A conversation that is open; one that is not open is a conflict, one that is not there is not found.
pub(super) async fn live(server: &Server, id: &str) -> Result<Arc<LiveConversation>, Problem> {
    if let Some(live) = server.conversations.get(id) {
        return Ok(live);
    }
    recorded(server, id.to_owned()).await?;
    Err(Problem::conflict("this conversation is not open; a turn opens it"))
}

/// A conversation that is written down, by its whole id.
async fn recorded(server: &Server, id: String) -> Result<Recorded, Problem> {
    let shown: String = id.chars().take(80).collect();
    let none = || Problem::not_found(format!("there is no conversation {shown:?}"));
    let home = server.settings.clone().ok_or_else(none)?;
    let read = move |_: &dyn crate::opener::Opener| {
        let read = rollout::find(&home, &id).and_then(|path| rollout::read(&path));
        read.map(|recorded| Some(recorded).filter(|recorded| recorded.meta.id == id))
    };
    match server.blocking(read).await? {
        Ok(Some(recorded)) => Ok(recorded),
        Ok(None) | Err(RolloutError::NotFound(_) | RolloutError::Ambiguous(_)) => Err(none()),
        Err(error) => Err(Problem::failed(error)),
    }
}

fn prefers_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim() == "respond-async")
}

impl TurnInput {
    fn read(self) -> Result<UserInput, Problem> {
        let mut input = match self {
            Self::Text(text) => UserInput::text(text),
            Self::Parts(parts) => {
                let mut input = UserInput::default();
                for part in parts {
                    match part {
                        InputPart::Text { text } if input.text.is_empty() => input.text = text,
                        InputPart::Text { text } => {
                            input.text.push('\n');
                            input.text.push_str(&text);
                        }
                        InputPart::Image { image_url } if image_url.starts_with("data:image/") => {
                            input.images.push(image_url);
                        }
                        InputPart::Image { .. } => {
                            let why = "an image must be a data URL: data:image/png;base64,…";
                            return Err(Problem::unprocessable(why));
                        }
                    }
                }
                input
            }
        };
        if input.text.trim().is_empty() && input.images.is_empty() {
            return Err(Problem::unprocessable("there is nothing in the input"));
        }
        input.images.truncate(64);
        Ok(input)
    }
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

impl From<&SandboxPolicy> for SandboxMode {
    fn from(policy: &SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::ReadOnly => Self::ReadOnly,
            SandboxPolicy::WorkspaceWrite { .. } => Self::WorkspaceWrite,
            SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            SandboxPolicy::ExternalSandbox { .. } => Self::ExternalSandbox,
        }
    }
}

impl From<TokenUsage> for Usage {
    fn from(usage: TokenUsage) -> Self {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        Self { input, output, total: usage.total() }
    }
}

impl ConversationView {
    fn of(live: &LiveConversation) -> Self {
        let (about, working) = (&live.about, live.is_working());
        let facts = live.facts();
        Self {
            id: about.id.clone(),
            state: if working { Condition::Working } else { Condition::Idle },
            title: facts.title.clone(),
            cwd: about.cwd.to_string_lossy().into_owned(),
            model: about.model.clone(),
            provider: about.provider.clone(),
            approval_policy: Some(about.approval_policy),
            sandbox: Some((&about.sandbox).into()),
            started: about.started,
            last_event: live.events.progress().borrow().last,
            usage: facts.usage.into(),
            context_window: facts.context_window,
        }
    }

    fn found(found: &Found) -> Self {
        let title = found.prompt.as_deref().map(first_line);
        Self::written_down(&found.meta, title, TokenUsage::default())
    }

    fn recorded(recorded: &Recorded) -> Self {
        let of_user =
            |item: &&ResponseItem| matches!(item, ResponseItem::Message { role: Role::User, .. });
        let first = recorded.everything.iter().find(of_user).and_then(ResponseItem::text);
        Self::written_down(&recorded.meta, first.as_deref().map(first_line), recorded.used)
    }

    fn written_down(meta: &rollout::SessionMeta, title: Option<String>, usage: TokenUsage) -> Self {
        Self {
            id: meta.id.clone(),
            state: Condition::Recorded,
            title,
            cwd: meta.cwd.to_string_lossy().into_owned(),
            model: meta.model.clone(),
            provider: meta.provider.clone(),
            approval_policy: None,
            sandbox: None,
            started: meta.started,
            last_event: 0,
            usage: usage.into(),
            context_window: None,
        }
    }
}
