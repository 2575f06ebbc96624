//! What the server was asked, when, and what came of it.

use crate::wire::Wire;
use serde_json::Value;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A request that came, and its answer so far.
#[derive(Debug, Clone)]
pub struct Request {
    /// What it was written in.
    pub wire: Wire,
    /// Its headers, as they came, with names in small letters.
    pub headers: Vec<(String, String)>,
    /// What it said.
    pub body: Value,
    /// When its first byte was read.
    pub first_byte: Instant,
    /// When its last byte was read.
    pub last_byte: Instant,
    /// What came of it so far.
    pub answer: Answer,
}

/// An answer so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its status, when it has one.
    pub status: Option<u16>,
    /// When its first byte was given to the system.
    pub first_byte: Option<Instant>,
    /// When the last of its bytes so far was given to the system.
    pub last_byte: Option<Instant>,
    /// Whether it is at its end.
    pub end: AnswerEnd,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnswerEnd {
    /// It has not.
    #[default]
    Open,
    /// The server has sent, or cut off, everything as the script says.
    Ended,
    /// The client went away before.
    Abandoned,
}

/// The result of a tool, as it stands in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// Of which call.
    pub call_id: String,
    /// What the model gets to read.
    pub text: String,
}

/// A request that the real service would have refused, or that the script did not expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was asked, such as `POST /v1/responses`.
    pub request: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.request, self.reason)
    }
}

impl Request {
    /// A header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The results of tools in it, in their order.
    pub fn tool_outputs(&self) -> Vec<ToolOutput> {
        let list = |name: &str| self.body[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let output = |value: &Value, id: &str, content: &str| {
            let call_id = value[id].as_str()?.to_owned();
            Some(ToolOutput { call_id, text: plain(&value[content]) })
        };
        match self.wire {
            Wire::Responses => {
                // A call has the same name as its output.
                let items = list("input").iter().filter(|item| !item["output"].is_null());
                items.filter_map(|item| output(item, "call_id", "output")).collect()
            }
            Wire::Chat => {
                let messages = list("messages").iter();
                messages.filter_map(|message| output(message, "tool_call_id", "content")).collect()
            }
            Wire::Messages => {
                let messages = list("messages").iter();
                let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
                blocks.filter_map(|block| output(block, "tool_use_id", "content")).collect()
            }
        }
    }
}

/// The text of something that is a text or has parts with texts.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Everything that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Record {
    kept: Mutex<Kept>,
    changed: Condvar,
    changed_async: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    requests: Vec<Request>,
    violations: Vec<Violation>,
}

impl Record {
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// Keeps a request, and says which one it is, from 0.
    pub(crate) fn add(&self, request: Request) -> usize {
        self.change(|kept| {
            kept.requests.push(request);
            kept.requests.len() - 1
        })
    }

    pub(crate) fn add_violation(&self, violation: Violation) {
        self.change(|kept| kept.violations.push(violation));
    }

    /// Notes something about the answer to a request.
    pub(crate) fn note(&self, request: usize, note: impl FnOnce(&mut Answer)) {
        self.change(|kept| {
            if let Some(request) = kept.requests.get_mut(request) {
                note(&mut request.answer);
            }
        });
    }

    /// Notes that bytes of an answer went out now.
    pub(crate) fn note_sent(&self, request: usize) {
        let now = Instant::now();
        self.note(request, |answer| {
            answer.first_byte.get_or_insert(now);
            answer.last_byte = Some(now);
        });
    }

    /// Waits, at most so long, until the requests are as they should be.
    pub(crate) fn wait_until(
        &self,
        limit: Duration,
        mut reached: impl FnMut(&[Request]) -> bool,
    ) -> bool {
        let (kept, outcome) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |kept| !reached(&kept.requests))
            .unwrap_or_else(PoisonError::into_inner);
        drop(kept);
        !outcome.timed_out()
    }

    /// Waits until the requests are as they should be, without holding up a runtime.
    pub(crate) async fn until(&self, mut reached: impl FnMut(&[Request]) -> bool) {
        loop {
            let changed = self.changed_async.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            if reached(&self.lock().requests) {
                return;
            }
            changed.await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.changed_async.notify_waiters();
        result
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
