//! `/mcp`: clients over HTTP.
//!
//! Whoever mounts it has checked the token and says whose it was. Agents and the person never share anything
//! here: each has sessions of their own, so that an agent cannot answer in the person's. Clients of the newer
//! generation have no connection, and all of one caller work in one session.

use super::connection::Connection;
use super::handler::Server;
use super::{MAX_MESSAGE_BYTES, McpOptions, Workspace};
use crate::Caller;
use axum::body::Body;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How many clients of the older generation each kind of caller can have. Each has a session of its own.
const MOST_CLIENTS: usize = 64;

/// How long a client of the older generation may send nothing before its session ends. What it started runs
/// as long, and a call or a process may well be silent for hours.
const SILENCE: Duration = Duration::from_hours(24);

type Service = StreamableHttpService<Server, LocalSessionManager>;

/// Serves clients whose requests carry their [`Caller`] as an extension; those that carry none are refused, and
/// so is every request that a browser sends for a page of somebody else. `hosts` are the names that this server goes by, beside
/// those of the loopback.
pub fn http_service<S: Clone + Send + Sync + 'static>(
    options: &McpOptions,
    hosts: &[String],
    stop: &CancellationToken,
) -> MethodRouter<S> {
    // What an agent says is no person's answer, and where it works is not for it to say.
    let agents = McpOptions { person: None, workspace: Workspace::Given, ..options.clone() };
    let requester = service(agents, hosts, stop);
    let approver = service(options.clone(), hosts, stop);
    any(move |mut request: Request<Body>| {
        if is_of_own_page(request.headers()) {
            request.headers_mut().remove(ORIGIN);
        }
        let service = match request.extensions().get::<Caller>() {
            Some(Caller::Requester) => Some(requester.clone()),
            Some(Caller::Approver) => Some(approver.clone()),
            None => None,
        };
        async move {
            match service {
                Some(service) => service.handle(request).await.map(Body::new),
                None => refused(),
            }
        }
    })
}

/// Whether a page of this very server sent it. Which names the server has is checked afterwards, so that a page
/// of another that was pointed here is none of ours.
fn is_of_own_page(headers: &HeaderMap) -> bool {
    let only = |name| {
        let mut values = headers.get_all(name).iter().map(|value| value.to_str().ok());
        values.next().flatten().filter(|_| values.next().is_none())
    };
    let Some((origin, host)) = only(ORIGIN).zip(only(HOST)) else { return false };
    ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host))
}

fn refused() -> Response {
    StatusCode::FORBIDDEN.into_response()
}

fn service(options: McpOptions, hosts: &[String], stop: &CancellationToken) -> Service {
    let usual = StreamableHttpServerConfig::default();
    let hosts = usual.allowed_hosts.iter().chain(hosts).cloned().collect::<Vec<_>>();
    let config = usual
        .with_allowed_hosts(hosts)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_cancellation_token(stop.child_token());
    let shared = Arc::new(Connection::new(options.clone(), stop));
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    let stop = stop.clone();
    let make = move || {
        let own = Arc::new(Connection::new(options.clone(), &stop));
        Ok(Server {
            connection: own,
            shared: Some(Arc::clone(&shared)),
            places: Some(Arc::clone(&places)),
            permit: OnceLock::new(),
        })
    };
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SILENCE);
    StreamableHttpService::new(make, sessions.into(), config)
}
