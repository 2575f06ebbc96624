//! What the server says about itself, and the console's files.

use super::problem::Problem;
use super::server::Server;
use crate::asking::Caller;
use crate::web;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use sandgate_protocol::Enforcement;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;
use utoipa::ToSchema;

/// Who calls, and what.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    /// Whose token it is.
    role: Role,
    /// The server's version.
    version: &'static str,
    /// Where requesters work if they do not say.
    workspace: String,
    /// What this machine's sandbox can enforce.
    #[schema(value_type = Object)]
    sandbox: Enforcement,
}

/// Whose token it is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Of whoever asks for things to be done.
    Requester,
    /// Of whoever says what may be done.
    Approver,
}

/// Says whose token it is, and what the server is.
#[utoipa::path(get, path = "/settings/me", tag = "server", responses((status = 200, body = Me)))]
pub(super) async fn me(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
) -> axum::Json<Me> {
    let role = match caller {
        Caller::Requester => Role::Requester,
        Caller::Approver => Role::Approver,
    };
    let workspace = server.workspaces.first().map(|path| path.to_string_lossy().into_owned());
    axum::Json(Me {
        role,
        version: env!("CARGO_PKG_VERSION"),
        workspace: workspace.unwrap_or_default(),
        sandbox: server.enforcement.clone(),
    })
}

/// Says that the server is there.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// What was counted, as Prometheus reads it.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4")))]
pub(super) async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let open = server.conversations.all();
    let listeners: usize = open.iter().map(|live| live.events.listeners()).sum();
    let working = open.iter().filter(|live| live.is_working()).count();
    let mut text = (server.figures)();
    let gauges = [
        ("sandgate_conversations", "Conversations that are open.", open.len()),
        ("sandgate_conversations_working", "Conversations in which a turn is taken.", working),
        ("sandgate_event_subscribers", "Streams of events that are being read.", listeners),
        ("sandgate_open_approvals", "Questions that wait for a person.", server.questions.count()),
        ("sandgate_connections", "Connections that are open.", server.crowd.count()),
    ];
    for (name, help, value) in gauges {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// A file of the console.
pub(super) async fn console(uri: Uri) -> Response {
    let found = web::FILES.iter().find(|(path, ..)| *path == uri.path());
    match found {
        Some((_, kind, bytes)) => {
            let kind = HeaderValue::from_static(kind);
            // Looked at again each time: another version may be served here tomorrow.
            let fresh = HeaderValue::from_static("no-cache");
            ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)], *bytes).into_response()
        }
        None => Problem::not_found("there is nothing here; /openapi.json says what there is")
            .into_response(),
    }
}
