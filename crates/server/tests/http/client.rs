//! A client that says what a test wants, also what no good client would.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// One who calls with a token.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that it is a problem of this status, and gives back what happened.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.request("POST", path, &json, &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], "").await
    }

    /// Sends a request and reads the whole answer. A header that is given takes the place of the usual one.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer { status, headers, text: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// Sends a request, and leaves the body of its answer to be read.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        let (host, token) = (self.address.to_string(), format!("Bearer {}", self.token));
        let usual = [("host", host.as_str()), ("authorization", token.as_str())];
        let is_given = |name: &str| headers.iter().any(|(other, _)| *other == name);
        for (name, value) in usual.into_iter().filter(|(name, _)| !is_given(name)) {
            request = request.header(name, value);
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        let sent = sender.send_request(request.body(body).unwrap()).await;
        let response = sent.unwrap();
        // The connection lives as long as somebody could send on it.
        tokio::spawn(async move {
            let _ = sender.ready().await;
            std::future::pending::<()>().await;
        });
        response
    }
}

/// Server-sent events, from bytes however they are cut.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    rest: Vec<u8>,
    /// How much of it was looked through.
    looked: usize,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Frames {
    /// The events that are complete now.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Frame> {
        self.rest.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(end) = self.rest[self.looked..].windows(2).position(|two| two == b"\n\n") {
            let text: Vec<u8> = self.rest.drain(..self.looked + end + 2).collect();
            self.looked = 0;
            frames.extend(frame(std::str::from_utf8(&text).unwrap()));
        }
        self.looked = self.rest.len().saturating_sub(1);
        frames
    }
}

/// All events of an answer that has ended.
pub(crate) fn frames(text: &str) -> Vec<Frame> {
    Frames::default().take(text.as_bytes())
}

fn frame(text: &str) -> Option<Frame> {
    let (mut id, mut name, mut data) = (None, None, None);
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
        match line.split_once(": ").unwrap() {
            ("id", value) => id = Some(value.parse().unwrap()),
            ("event", value) => name = Some(value.to_owned()),
            ("data", value) => data = Some(serde_json::from_str(value).unwrap()),
            other => panic!("{other:?} is no field of an event"),
        }
    }
    Some(Frame { id, name: name?, data: data? })
}

/// A stream of events that is being read.
pub(crate) struct Stream {
    body: Incoming,
    frames: Frames,
    waiting: std::collections::VecDeque<Frame>,
}

impl Stream {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body = response.into_body();
        Self { body, frames: Frames::default(), waiting: Default::default() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                return Some(frame);
            }
            let piece = self.body.frame().await?.ok()?;
            self.waiting.extend(self.frames.take(piece.data_ref()?));
        }
    }

    /// The next event of this type.
    pub(crate) async fn until(&mut self, name: &str) -> Frame {
        loop {
            let frame = self.next().await;
            let frame = frame.unwrap_or_else(|| panic!("the stream ended without {name}"));
            if frame.name == name {
                return frame;
            }
        }
    }
}
