//! Sends one request to a collector, within a limit.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use std::time::Duration;
use tokio::net::TcpStream;

/// The longest answer that is read. It says whether something was taken, in a few bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// A client without TLS, for a collector on this machine or in this network.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// How long a request may take, from the connection to the last byte of the answer.
    pub(super) limit: Duration,
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let limit = self.limit;
        // Exporters have threads of their own, in which nothing drives a connection, and a collector is
        // spoken to once in a minute: a loop for each request is simplest.
        let sending = std::thread::spawn(move || {
            let asynchronous =
                tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            asynchronous.block_on(async { tokio::time::timeout(limit, send(request)).await? })
        });
        sending.join().map_err(|_| HttpError::from("the request was cut off"))?
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let host = request.uri().host().ok_or("the address names no host")?.to_owned();
    let port = request.uri().port_u16().unwrap_or(80);
    // An IPv6 address has brackets in an address and none in a connection.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((name, port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driven = tokio::spawn(connection);
    let place = request.uri().path_and_query().map_or("/", |place| place.as_str());
    let place = place.parse()?;
    request.headers_mut().insert(HOST, HeaderValue::try_from(format!("{host}:{port}"))?);
    *request.uri_mut() = place;
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
    driven.abort();
    Ok(Response::from_parts(head, body))
}
