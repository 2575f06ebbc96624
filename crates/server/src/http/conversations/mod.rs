//! Conversations: to begin one, to have turns taken in it, to hear what happens.

pub(super) mod begin;
pub(super) mod turn;
mod view;

use super::body::{Path, Query};
use super::problem::Problem;
use super::server::Server;
use super::sse::{self, streamed};
use crate::asking::Caller;
use crate::live::{LiveConversation, Reading};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sandgate_agent::rollout::{self, Recorded, RolloutError};
use sandgate_protocol::ResponseItem;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use view::ConversationView;

/// How many conversations a list has at the most.
const MOST_LISTED: usize = 100;

/// How many recorded conversations are looked through for a page of a list.
const MOST_LOOKED_AT: usize = 10_000;

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

/// Where a stream of events begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// The number of the last event that was heard. A `Last-Event-ID` header outweighs it.
    after: Option<u64>,
}

/// Lists conversations.
#[utoipa::path(get, path = "/conversations", tag = "conversations", params(Page),
    responses((status = 200, body = ConversationList)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Query(page): Query<Page>,
) -> Result<axum::Json<ConversationList>, Problem> {
    let limit = page.limit.unwrap_or(MOST_LISTED);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Problem::bad(format!("limit is 1 to {MOST_LISTED}")));
    }
    let open = server.conversations_of(caller);
    let ids: Vec<String> = open.iter().map(|live| live.about.id.clone()).collect();
    let mut conversations: Vec<ConversationView> = match page.before {
        None => open.iter().map(|live| ConversationView::of(live)).collect(),
        Some(_) => Vec::new(),
    };
    if let Some(home) = server.settings.clone() {
        let most = if page.before.is_some() { MOST_LOOKED_AT } else { limit };
        let shared = Arc::clone(&server);
        let look = move |_: &dyn crate::opener::Opener| {
            let found = rollout::list(&home, most, |meta| {
                !meta.is_of_subagent()
                    && !ids.contains(&meta.id)
                    && shared.lets_use(caller, &meta.cwd)
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
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationView>, Problem> {
    let view = match server.conversations.get(&id) {
        Some(live) => {
            check_use(&server, caller, &live.about.cwd)?;
            ConversationView::of(&live)
        }
        None => {
            let recorded = recorded(&server, id).await?;
            check_use(&server, caller, &recorded.meta.cwd)?;
            ConversationView::recorded(&recorded)
        }
    };
    Ok(axum::Json(view))
}

/// What was said and done so far. Of an ephemeral one, until its last turn ended.
#[utoipa::path(get, path = "/conversations/{id}/items", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, body = Items)))]
pub(super) async fn items(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<axum::Json<Items>, Problem> {
    let items = match server.conversations.get(&id) {
        Some(live) if !live.about.is_recorded => {
            check_use(&server, caller, &live.about.cwd)?;
            live.facts().items.clone()
        }
        _ => {
            let recorded = recorded(&server, id).await?;
            check_use(&server, caller, &recorded.meta.cwd)?;
            recorded.everything
        }
    };
    Ok(axum::Json(Items { items }))
}

/// The events of a conversation from a number on, as they happen, until it is closed.
#[utoipa::path(get, path = "/conversations/{id}/events", tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), After,
        ("last-event-id" = Option<u64>, Header, description = "The last event that was heard")),
    responses((status = 200, body = sse::Sent, content_type = "text/event-stream",
        description = "Each event with its number as `id`, its type as `event` and itself as `data`")))]
pub(super) async fn events(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = last_event_id(&headers)?.or(query.after).unwrap_or(0);
    let live = live(&server, caller, &id).await?;
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
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    live(&server, caller, &id).await?.interrupt();
    Ok(StatusCode::ACCEPTED)
}

/// Closes a conversation, with all that runs in it. What is written down of it stays.
#[utoipa::path(delete, path = "/conversations/{id}", tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 204, description = "It is closed")))]
pub(super) async fn close(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    live(&server, caller, &id).await?;
    if let Some(live) = server.conversations.take(&id) {
        // To the end, also if the client does not wait for it.
        let closing = tokio::spawn(async move { live.close().await });
        closing.await.map_err(Problem::failed)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A conversation that is open; one that is not open is a conflict, one that is not there is not found.
pub(super) async fn live(
    server: &Server,
    caller: Caller,
    id: &str,
) -> Result<Arc<LiveConversation>, Problem> {
    if let Some(live) = server.conversations.get(id) {
        check_use(server, caller, &live.about.cwd)?;
        return Ok(live);
    }
    recorded(server, id.to_owned()).await?;
    Err(Problem::conflict("this conversation is not open; a turn opens it"))
}

/// Refuses a requester what works in a directory that requesters may not work in, whoever opened it.
fn check_use(server: &Server, caller: Caller, directory: &std::path::Path) -> Result<(), Problem> {
    match server.lets_use(caller, directory) {
        true => Ok(()),
        false => Err(Problem::forbidden(
            "it works in a directory that requesters may not work in; this takes the approver's token",
        )),
    }
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
