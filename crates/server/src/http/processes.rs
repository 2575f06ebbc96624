//! The live processes of all open sessions.

use super::body::{Json, Path, Query};
use super::conversations::last_event_id;
use super::problem::Problem;
use super::server::{OwnSession, Server};
use super::sse::{self, Source, streamed};
use super::tools::make;
use crate::asking::Caller;
use crate::live::LiveConversation;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use sandgate_protocol::{Encoding, ProcessInfo, TerminalSizeParams, ToolCall, ToolPayload};
use sandgate_runtime::{LiveProcess, ProcessOutput, Session, Stop, new_call_id};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// What the name of a process of the server's own session begins with.
const OWN: &str = "serve";

/// The largest piece that is typed at once.
const MOST_TYPED: usize = 64 * 1024;

/// The processes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Processes {
    processes: Vec<Process>,
}

/// A live process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Process {
    /// What it is known by here: the conversation or `serve`, a dot, and its id in that session.
    id: String,
    /// The conversation that started it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    info: ProcessInfo,
}

/// Where a process's output begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FromByte {
    /// How many bytes were read already. A `Last-Event-ID` header outweighs it.
    after: Option<u64>,
}

/// Something that is typed: one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputBody {
    /// As text.
    text: Option<String>,
    /// As bytes in base64; with the approver's token.
    #[schema(format = Byte)]
    bytes: Option<String>,
}

/// The size of a terminal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeBody {
    /// Characters in a line.
    #[schema(minimum = 1, maximum = 500)]
    #[serde(deserialize_with = "side")]
    columns: u16,
    /// Lines.
    #[schema(minimum = 1, maximum = 500)]
    #[serde(deserialize_with = "side")]
    rows: u16,
}

/// A whole number from 1 to 500; to JSON 80.0 is one.
fn side<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let side = (1..=500).find(|side| f64::from(*side) == number);
    side.ok_or_else(|| serde::de::Error::custom("a side of a terminal is 1 to 500"))
}

/// Lists the live processes.
#[utoipa::path(get, path = "/processes", tag = "processes", responses((status = 200, body = Processes)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
) -> Result<axum::Json<Processes>, Problem> {
    let mut processes = Vec::new();
    for live in server.conversations_of(caller) {
        let infos = live.session().processes().await.map_err(Problem::failed)?;
        let id = &live.about.id;
        processes.extend(infos.into_iter().map(|info| Process::named(id, Some(id), info)));
    }
    if let Some(own) = server.opened_session().await {
        let infos = own.session.processes().await.map_err(Problem::failed)?;
        processes.extend(infos.into_iter().map(|info| Process::named(OWN, None, info)));
    }
    Ok(axum::Json(Processes { processes }))
}

/// What a process prints, from a byte on, until it has ended.
#[utoipa::path(get, path = "/processes/{id}/output", tag = "processes",
    params(("id" = String, Path, description = "The process"), FromByte,
        ("last-event-id" = Option<u64>, Header, description = "How many bytes were read already")),
    responses((status = 200, body = sse::Sent, content_type = "text/event-stream",
        description = "`output` events whose id is how much was printed until their end, and one `exit`")))]
pub(super) async fn output(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<FromByte>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let from = last_event_id(&headers)?.or(query.after).unwrap_or(0);
    let found = find(&server, caller, &id).await?;
    let process = found.process()?;
    Ok(streamed(Printing { output: process.output(from), process, over: false }))
}

struct Printing {
    output: ProcessOutput,
    process: LiveProcess,
    over: bool,
}

#[derive(Serialize)]
struct Printed {
    offset: u64,
    encoding: Encoding,
    chunk: String,
}

#[derive(Serialize)]
struct Exited {
    exit_code: Option<i32>,
}

impl Source for Printing {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.over {
            return Ok(None);
        }
        match self.output.next().await? {
            Some((offset, bytes)) => {
                let until = offset + bytes.len() as u64;
                let (encoding, chunk) = match String::from_utf8(bytes) {
                    Ok(text) => (Encoding::Utf8, text),
                    Err(error) => (Encoding::Base64, BASE64.encode(error.as_bytes())),
                };
                let printed = Printed { offset, encoding, chunk };
                sse::event("output", Some(until), &printed).map(Some)
            }
            None => {
                self.over = true;
                let exited = Exited { exit_code: self.process.exit_code() };
                sse::event("exit", None, &exited).map(Some)
            }
        }
    }
}

/// Types something to a process. With the approver's token it is the person who types, and nobody judges
/// that; with the requester's it is a call of `write_stdin`.
#[utoipa::path(post, path = "/processes/{id}/input", tag = "processes", request_body = InputBody,
    params(("id" = String, Path, description = "The process")),
    responses((status = 204, description = "It was typed")))]
pub(super) async fn input(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(body): Json<InputBody>,
) -> Result<StatusCode, Problem> {
    let found = find(&server, caller, &id).await?;
    let process = found.process()?;
    let typed = match (body.text, body.bytes, caller) {
        (Some(text), None, Caller::Requester) => {
            let arguments = serde_json::json!({
                "process_id": found.process_id, "input": text, "yield_time_ms": 250,
            });
            return found.call("write_stdin", &arguments).await;
        }
        (Some(text), None, Caller::Approver) => text.into_bytes(),
        (None, Some(bytes), Caller::Approver) => BASE64
            .decode(bytes)
            .map_err(|error| Problem::unprocessable(format!("bytes: {error}")))?,
        (None, Some(_), Caller::Requester) => {
            return Err(Problem::forbidden("bytes take the approver's token; send text"));
        }
        _ => return Err(Problem::unprocessable("either text or bytes is needed")),
    };
    if typed.len() > MOST_TYPED {
        return Err(Problem::unprocessable(format!(
            "at most {MOST_TYPED} bytes are typed at once"
        )));
    }
    if process.exit_code().is_some() {
        return Err(Problem::conflict("the process has ended"));
    }
    match process.type_in(typed).await {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::conflict("the process does not read what is typed")),
    }
}

/// Gives a process's terminal another size.
#[utoipa::path(post, path = "/processes/{id}/resize", tag = "processes", request_body = SizeBody,
    params(("id" = String, Path, description = "The process")),
    responses((status = 204, description = "It has that size, if it has a terminal")))]
pub(super) async fn resize(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(body): Json<SizeBody>,
) -> Result<StatusCode, Problem> {
    let size = TerminalSizeParams { rows: body.rows, columns: body.columns };
    find(&server, caller, &id).await?.process()?.resize(size);
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a process, with all that it started.
#[utoipa::path(delete, path = "/processes/{id}", tag = "processes",
    params(("id" = String, Path, description = "The process")),
    responses((status = 204, description = "It has ended")))]
pub(super) async fn kill(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let found = find(&server, caller, &id).await?;
    found.process()?;
    found.call("kill_process", &serde_json::json!({ "process_id": found.process_id })).await
}

/// A process and the session that it belongs to.
struct Found {
    holder: Holder,
    stop: Stop,
    process_id: String,
}

enum Holder {
    Conversation(Arc<LiveConversation>),
    Own(Arc<OwnSession>),
}

async fn find(server: &Server, caller: Caller, id: &str) -> Result<Found, Problem> {
    let shown: String = id.chars().take(120).collect();
    let none = || Problem::not_found(format!("there is no process {shown:?}"));
    let (session, process_id) = id.split_once('.').ok_or_else(none)?;
    let process_id = process_id.to_owned();
    if session == OWN {
        let own = server.opened_session().await.ok_or_else(none)?;
        return Ok(Found { holder: Holder::Own(own), stop: server.stop.child(), process_id });
    }
    let live = server.conversations.get(session);
    let live = live.filter(|live| server.lets_use(caller, &live.about.cwd)).ok_or_else(none)?;
    let stop = live.stop();
    Ok(Found { holder: Holder::Conversation(live), stop, process_id })
}

impl Found {
    fn session(&self) -> &Session {
        match &self.holder {
            Holder::Conversation(live) => live.session(),
            Holder::Own(own) => &own.session,
        }
    }

    fn process(&self) -> Result<LiveProcess, Problem> {
        let found = self.session().process(&self.process_id);
        found.ok_or_else(|| Problem::not_found("there is no such process"))
    }

    /// Makes a call about the process, through the gate.
    async fn call(&self, tool: &str, arguments: &serde_json::Value) -> Result<StatusCode, Problem> {
        let payload = ToolPayload::Function { arguments: arguments.to_string() };
        let call = ToolCall { call_id: new_call_id(), name: tool.to_owned(), payload };
        let result = make(self.session().requester(), &self.stop, call).await?;
        match result.error {
            None => Ok(StatusCode::NO_CONTENT),
            Some(error) => Err(Problem::conflict(error.to_string())),
        }
    }
}

impl Process {
    fn named(session: &str, conversation: Option<&String>, info: ProcessInfo) -> Self {
        let id = format!("{session}.{}", info.process_id);
        Self { id, conversation: conversation.cloned(), info }
    }
}
