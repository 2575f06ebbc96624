//! From a request to its answer.

use super::connection::Clock;
use crate::check::{self, Issued};
use crate::delivery::{self, Action};
use crate::fault::Fault;
use crate::record::{Answer, AnswerEnd, Record, Request, Violation};
use crate::script::Script;
use crate::turn::Turn;
use crate::wire::{Asked, Wire};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER,
};
use hyper::{Method, Response, StatusCode};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest request that is read, in bytes.
const LARGEST_REQUEST: usize = 64 * 1024 * 1024;
/// How long what comes before a cut has to go out.
const BEFORE_CUT: Duration = Duration::from_millis(1);

type Body = StreamBody<Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>>;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Service {
    record: Arc<Record>,
    script: Mutex<Script>,
    issued: Mutex<Issued>,
}

/// What a request is answered with.
struct Plan {
    status: StatusCode,
    content_type: &'static str,
    retry_after: Option<String>,
    actions: Vec<Action>,
}

/// How a request is dealt with.
enum Outcome {
    Answer(Plan),
    Disconnect,
    NoAnswer,
}

impl Service {
    pub(super) fn new(script: Script) -> Self {
        let record = Arc::new(Record::default());
        Self { record, script: Mutex::new(script), issued: Mutex::default() }
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    pub(super) fn turns_left(&self) -> usize {
        lock(&self.script).left()
    }

    /// Answers a request. An error closes the connection without an answer.
    pub(super) async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        clock: &Clock,
    ) -> io::Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let place = format!("{} {}", head.method, head.uri.path());
        let body = Limited::new(body, LARGEST_REQUEST).collect().await;
        let (first_byte, last_byte) = clock.take_read();
        let wire = Wire::ALL.into_iter().find(|wire| wire.path() == head.uri.path());
        let Some(wire) = wire.filter(|_| head.method == Method::POST) else {
            self.violate(&place, "there is no such place");
            return Ok(plain(refused(Wire::Responses, 404, None, "Invalid URL")));
        };
        let read = body.map_err(|error| format!("the body cannot be read: {error}"));
        let read = read.and_then(|body| {
            serde_json::from_slice::<Value>(&body.to_bytes())
                .map_err(|error| format!("the body is no JSON: {error}"))
        });
        let body = match read {
            Ok(body) => body,
            Err(reason) => {
                self.violate(&place, &reason);
                return Ok(plain(refused(wire, 400, None, &reason)));
            }
        };
        let (headers, answer) = (texts(&head.headers), Answer::default());
        let request = Request { wire, headers, body, first_byte, last_byte, answer };
        let number = self.record.add(request.clone());
        clock.answering(number);
        let mut ending = Ending { record: Arc::clone(&self.record), number, ended: false };
        match self.outcome(&request, &head.headers, number, &place) {
            Outcome::Answer(plan) => {
                self.record.note(number, |answer| answer.status = Some(plan.status.as_u16()));
                Ok(response(plan, ending))
            }
            Outcome::Disconnect => {
                ending.end();
                Err(io::Error::other("the script says so"))
            }
            Outcome::NoAnswer => std::future::pending().await,
        }
    }

    fn outcome(
        &self,
        request: &Request,
        headers: &HeaderMap,
        number: usize,
        place: &str,
    ) -> Outcome {
        let wire = request.wire;
        if !self.key_fits(wire, headers) {
            return Outcome::Answer(refused(wire, 401, None, "Incorrect API key provided."));
        }
        let refusal = if lock(&self.script).is_unchecked() {
            None
        } else {
            check_headers(wire, headers)
                .or_else(|| check::refusal(wire, &request.body, &lock(&self.issued)))
        };
        let turn = match refusal {
            Some(reason) => Err(reason),
            None => self.next_turn(request),
        };
        let outcome = turn.and_then(|turn| self.perform(request, &turn, number));
        outcome.unwrap_or_else(|reason| {
            self.violate(place, &reason);
            Outcome::Answer(refused(wire, 400, None, &reason))
        })
    }

    /// What the script says to a request.
    fn next_turn(&self, request: &Request) -> Result<Turn, String> {
        let turn = lock(&self.script).next(request);
        let turn = turn.ok_or("the script has no turn for this request")?;
        let last = request.tool_outputs().pop().map(|output| output.text).unwrap_or_default();
        match turn.expected.iter().find(|expected| !last.contains(expected.as_str())) {
            Some(expected) => Err(format!(
                "the script expects {expected:?} in the output of the last tool, which is {last:?}"
            )),
            None => Ok(turn),
        }
    }

    fn perform(&self, request: &Request, turn: &Turn, number: usize) -> Result<Outcome, String> {
        let wire = request.wire;
        let streams = request.body["stream"] == true;
        let plan = match &turn.fault {
            Some(Fault::Disconnect) => return Ok(Outcome::Disconnect),
            Some(Fault::NoAnswer) => return Ok(Outcome::NoAnswer),
            Some(Fault::Status { status, retry_after, code, message }) => {
                let message = message.as_deref().unwrap_or("The script says so.");
                let mut plan = refused(wire, *status, code.as_deref(), message);
                plan.retry_after.clone_from(retry_after);
                plan
            }
            Some(Fault::ContextOverflow) => {
                let (code, message) = wire.overflow();
                refused(wire, 400, code, message)
            }
            Some(Fault::Error { code, message, .. } | Fault::Failed { code, message, .. })
                if !streams =>
            {
                refused(wire, 500, Some(code), message)
            }
            _ => {
                let asked = Asked { number: number + 1, body: &request.body, turn };
                lock(&self.issued).extend(wire.sealed_calls(asked));
                let (content_type, actions) = if streams {
                    let events = wire.events(asked);
                    ("text/event-stream; charset=utf-8", delivery::stream(wire, events, turn)?)
                } else {
                    let text = wire.document(asked).to_string();
                    ("application/json", delivery::document(&text, turn))
                };
                Plan { status: StatusCode::OK, content_type, retry_after: None, actions }
            }
        };
        Ok(Outcome::Answer(plan))
    }

    fn key_fits(&self, wire: Wire, headers: &HeaderMap) -> bool {
        let script = lock(&self.script);
        let Some(key) = script.required_key() else { return true };
        let shown = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = shown(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        bearer == Some(key) || (wire == Wire::Messages && shown("x-api-key") == Some(key))
    }

    fn violate(&self, request: &str, reason: &str) {
        let (request, reason) = (request.to_owned(), reason.to_owned());
        self.record.add_violation(Violation { request, reason });
    }
}

fn check_headers(wire: Wire, headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Some(format!("content-type: expected application/json, but got '{kind}'."));
    }
    let unversioned = wire == Wire::Messages && !headers.contains_key("anthropic-version");
    unversioned.then(|| "anthropic-version: header is required".to_owned())
}

fn refused(wire: Wire, status: u16, code: Option<&str>, message: &str) -> Plan {
    let body = wire.error_body(status, code, message).to_string();
    Plan {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        content_type: "application/json",
        retry_after: None,
        actions: vec![Action::Send(Bytes::from(body))],
    }
}

/// An answer to what is no request that could be recorded.
fn plain(plan: Plan) -> Response<Body> {
    let record = Arc::new(Record::default());
    response(plan, Ending { record, number: 0, ended: false })
}

fn response(plan: Plan, ending: Ending) -> Response<Body> {
    let length = match plan.actions.as_slice() {
        [Action::Send(all)] if plan.content_type == "application/json" => Some(all.len()),
        _ => None,
    };
    let mut response = Response::new(body(plan.actions, ending));
    *response.status_mut() = plan.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(plan.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if let Some(value) = plan.retry_after.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert(RETRY_AFTER, value);
    }
    response
}

/// What is sent, each piece when its time has come.
fn body(actions: Vec<Action>, ending: Ending) -> Body {
    let state = (VecDeque::from(actions), ending);
    let pieces = stream::unfold(state, |(mut actions, mut ending)| async move {
        loop {
            match actions.pop_front() {
                None => {
                    ending.end();
                    return None;
                }
                Some(Action::Send(bytes)) => {
                    return Some((Ok(Frame::data(bytes)), (actions, ending)));
                }
                Some(Action::Wait(pause)) => tokio::time::sleep(pause).await,
                Some(Action::Hang) => std::future::pending::<()>().await,
                Some(Action::Cut) => {
                    // Lets what is to come before the cut go out first.
                    tokio::time::sleep(BEFORE_CUT).await;
                    ending.end();
                    let cut = io::Error::other("cut off, as the script says");
                    return Some((Err(cut), (actions, ending)));
                }
            }
        }
    });
    StreamBody::new(Box::pin(pieces))
}

/// Notes how an answer ended: by itself, or by being dropped because the client is gone.
struct Ending {
    record: Arc<Record>,
    number: usize,
    ended: bool,
}

impl Ending {
    fn end(&mut self) {
        self.ended = true;
        self.record.note(self.number, |answer| answer.end = AnswerEnd::Ended);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.ended {
            self.record.note(self.number, |answer| answer.end = AnswerEnd::Abandoned);
        }
    }
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
