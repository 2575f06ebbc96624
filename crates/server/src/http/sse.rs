//! Streams of server-sent events.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use std::io;
use std::time::Duration;

/// How long a stream says nothing before it says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What says so: a comment, which no reader hears.
const STILL_HERE: &[u8] = b": still here\n\n";

/// One event of a stream, as readers of such streams have it.
#[derive(utoipa::ToSchema)]
#[schema(as = ServerSentEvent)]
#[expect(dead_code, reason = "only the document names it")]
pub(crate) struct Sent {
    /// What a stream is resumed by.
    id: Option<String>,
    /// Its type.
    event: String,
    /// JSON.
    data: String,
}

/// What a stream is made of. Wherever it waits, all that it gave before were whole events.
pub(crate) trait Source: Send + 'static {
    /// The next bytes; none at the end. Can be dropped and called again.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Bytes>>> + Send;
}

impl Source for crate::live::Reading {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        Ok(Self::next(self).await?.map(Bytes::from))
    }
}

/// A response that goes on as long as its source does.
pub(crate) fn streamed(source: impl Source) -> Response {
    let pieces = stream::unfold(source, |mut source| async move {
        let piece = match tokio::time::timeout(HEARTBEAT, source.next()).await {
            Ok(Ok(piece)) => Ok(piece?),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Bytes::from_static(STILL_HERE)),
        };
        Some((piece, source))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(pieces)).into_response()
}

/// One event.
pub(crate) fn event(
    name: &str,
    id: Option<u64>,
    data: &impl serde::Serialize,
) -> io::Result<Bytes> {
    let data = serde_json::to_string(data)?;
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Ok(Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n")))
}
