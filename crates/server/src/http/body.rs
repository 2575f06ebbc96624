//! What clients send, read with limits.

use super::crowd::Seat;
use super::problem::Problem;
use super::server::Server;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The largest body, where nothing else is said.
pub(crate) const USUAL_BYTES: usize = 1 << 20;

/// The largest body that may carry a patch or a file.
pub(crate) const LARGE_BYTES: usize = 16 << 20;

/// A JSON body of a known shape, of at most so many bytes.
pub(crate) struct Json<T, const MOST_BYTES: usize = USUAL_BYTES>(pub(crate) T);

impl<T: DeserializeOwned, const MOST_BYTES: usize> FromRequest<Arc<Server>>
    for Json<T, MOST_BYTES>
{
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Arc<Server>) -> Result<Self, Problem> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let read = match is_json(request.headers()) {
            true => {
                let seat = request.extensions().get().cloned();
                read(request.into_body(), seat, MOST_BYTES, server.limits.body).await
            }
            // A page of another origin can send other kinds without asking the browser.
            false => {
                let why = "the body must be JSON, with the content type application/json";
                Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
            }
        };
        let read = read.and_then(|bytes| {
            serde_json::from_slice(&bytes)
                .map_err(|error| Problem::bad(format!("the body is not understood: {error}")))
        });
        read.map(Self).inspect_err(|problem| server.refused(problem, &method, &uri))
    }
}

async fn read(
    body: Body,
    seat: Option<Arc<Seat>>,
    most: usize,
    patience: Duration,
) -> Result<bytes::Bytes, Problem> {
    let reading = read_whole(body, seat.as_deref(), most);
    tokio::time::timeout(patience, reading).await.unwrap_or_else(|_| {
        let why = "the body took too long to arrive";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, why))
    })
}

async fn read_whole(
    mut body: Body,
    seat: Option<&Seat>,
    most: usize,
) -> Result<bytes::Bytes, Problem> {
    let mut read = BytesMut::new();
    while let Some(piece) = body.frame().await {
        let piece = piece.map_err(|_| Problem::bad("the body ended before its end"))?;
        let Ok(piece) = piece.into_data() else { continue };
        if read.len() + piece.len() > most {
            let why = format!("the body is larger than {most} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        seat.map_or(Ok(()), |seat| seat.sends(piece.len()))?;
        read.extend_from_slice(&piece);
    }
    Ok(read.freeze())
}

/// Has the body of a request that others read come in time.
pub(super) async fn in_time(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (mut head, body) = request.into_parts();
    // Whoever reads it may keep its head longer than the connection lives.
    let seat = head.extensions.remove();
    match read(body, seat, LARGE_BYTES, server.limits.body).await {
        Ok(bytes) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Err(problem) => {
            server.refused(&problem, &method, &uri);
            problem.into_response()
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The part of an address after the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| Problem::bad(error.body_text()))
    }
}

/// The parts of a path that are names.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(names)| Self(names))
            .map_err(|error| Problem::bad(error.body_text()))
    }
}
