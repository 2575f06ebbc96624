//! Requests to a server at an address: bounded, never redirected, and without TLS only on this machine.

use super::{MAX_MESSAGE_BYTES, shortened};
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream_of_rmcp::SseStream;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const SESSION: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// How much is read of an answer that says only that something is wrong.
const MAX_REFUSAL_BYTES: usize = 16 * 1024;

/// Speaks HTTP to one server.
#[derive(Debug, Clone)]
pub(super) struct HttpClient(Client);

type Failure = StreamableHttpError<reqwest::Error>;

impl HttpClient {
    /// For a server at this address.
    ///
    /// # Errors
    /// When nobody should talk with it there.
    pub(super) fn new(address: &str) -> Result<Self, String> {
        let url = Url::parse(address).map_err(|error| format!("its address is none: {error}"))?;
        let here = is_this_machine(&url);
        if url.scheme() != "https" && !here {
            return Err("without https only servers on this machine are talked with".to_owned());
        }
        // There may be one already, which does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10));
        if here {
            client = client.no_proxy();
        }
        client.build().map(Self).map_err(|error| format!("no HTTP client: {error}"))
    }
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut headers = HeaderMap::new();
        headers.extend(custom_headers);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(id) = &session_id {
            let id = HeaderValue::from_str(id);
            headers.insert(SESSION, id.map_err(|_| unexpected("a session without a name"))?);
        }
        let mut request = self.0.post(&*uri).headers(headers).body(serde_json::to_vec(&message)?);
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        answer(response, session_id.is_some(), wants_answer).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, Failure> {
        // What comes here is read event by event, and each is bounded.
        self.0
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                MAX_MESSAGE_BYTES,
            )
            .await
    }
}

/// What a server answered.
async fn answer(
    response: Response,
    in_session: bool,
    wants_answer: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let (kind, session) = (header(CONTENT_TYPE.as_str()).unwrap_or_default(), header(SESSION));
    if !status.is_success() {
        let body = body(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        return match serde_json::from_slice(&body) {
            Ok(refusal @ ServerJsonRpcMessage::Error(_)) if wants_answer => {
                Ok(StreamableHttpPostResponse::Json(refusal, session))
            }
            _ => {
                let text = shortened(&String::from_utf8_lossy(&body), 300);
                Err(unexpected(&format!("HTTP {status}: {text}")))
            }
        };
    }
    if kind.starts_with(EVENTS) {
        let events = SseStream::from_bytes_stream(bounded(response)).boxed();
        return Ok(StreamableHttpPostResponse::Sse(events, session));
    }
    let body = body(response, MAX_MESSAGE_BYTES).await?;
    match serde_json::from_slice(&body) {
        Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
        Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
        Err(error) => {
            let begins = shortened(&String::from_utf8_lossy(&body), 100);
            Err(unexpected(&format!("this is no answer: {error}: {begins}")))
        }
    }
}

/// A body of at most so many bytes.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + piece.len() > most {
            return Err(unexpected(&format!("an answer of more than {most} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events that answer one request, together as large as one message may be.
fn bounded(
    response: Response,
) -> impl futures_util::Stream<Item = io::Result<bytes::Bytes>> + Send + 'static {
    let mut left = MAX_MESSAGE_BYTES;
    response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        match left.checked_sub(piece.len()) {
            Some(rest) => {
                left = rest;
                Ok(piece)
            }
            None => {
                Err(io::Error::other(format!("an answer of more than {MAX_MESSAGE_BYTES} bytes")))
            }
        }
    })
}

fn unexpected(what: &str) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(what.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec MCP.14: Without TLS only servers on this machine are talked with.
    #[test]
    fn without_tls_only_this_machine_is_talked_with() {
        for address in [
            "http://127.0.0.1:1/mcp",
            "http://localhost",
            "http://[::1]:8080/",
            "https://a.example/",
        ] {
            assert!(HttpClient::new(address).is_ok(), "{address}");
        }
        for address in [
            "http://a.example/",
            "http://10.0.0.1/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
        ] {
            assert!(HttpClient::new(address).is_err(), "{address}");
        }
    }
}
