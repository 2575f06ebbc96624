//! Calls of tools, one at a time, through the gate.

use super::body::{Json, LARGE_BYTES, Path};
use super::conversations::live;
use super::problem::Problem;
use super::server::Server;
use crate::asking::Caller;
use axum::Extension;
use axum::extract::State;
use sandgate_protocol::{CallId, CodexErr, Ran, ToolCall, ToolOutput, ToolPayload};
use sandgate_runtime::{Requester, Stop, ToolResult, ToolSpec, new_call_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::DropGuard;
use utoipa::ToSchema;

/// A call of a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallBody {
    /// The conversation in whose session it is made; without one, the server's own.
    conversation: Option<String>,
    /// What the tool takes: an object, or for `apply_patch` the text of a patch.
    arguments: Arguments,
    /// What the call is known by, which is not the id of one of the same session that is still at work; one is made if
    /// there is none.
    #[schema(min_length = 1, max_length = 256)]
    call_id: Option<String>,
}

/// What a tool takes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Arguments {
    /// Fields.
    #[schema(value_type = Object)]
    Object(serde_json::Map<String, Value>),
    /// Text that only the tool understands.
    Text(String),
}

/// What came of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallResult {
    /// The call.
    call_id: String,
    /// What a model would be given.
    output: String,
    /// The same in parts, where there is more than text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    content_items: Option<Value>,
    /// Whether it did what it was asked to do.
    success: bool,
    /// Why it came to nothing, if it did: the name of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How the command ran, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    ran: Option<Ran>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tool {
    /// Its name.
    name: String,
    /// What it does.
    description: String,
    /// What it takes, as a JSON schema.
    #[schema(value_type = Object)]
    parameters: Value,
}

/// The tools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tools {
    tools: Vec<Tool>,
}

/// Lists the tools that calls outside of conversations can name.
#[utoipa::path(get, path = "/tools", tag = "tools", responses((status = 200, body = Tools)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Result<axum::Json<Tools>, Problem> {
    let own = server.own_session().await?;
    let tools = own.session.requester().tools().into_iter().map(Tool::from).collect();
    Ok(axum::Json(Tools { tools }))
}

/// Calls a tool, and waits for what comes of it; also for a person, if one must be asked. It is called off
/// when the client goes.
#[utoipa::path(post, path = "/tools/{name}", tag = "tools", request_body = CallBody,
    params(("name" = String, Path, description = "The tool")),
    responses((status = 200, body = CallResult)))]
pub(super) async fn call(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Json(body): Json<CallBody, LARGE_BYTES>,
) -> Result<axum::Json<CallResult>, Problem> {
    let payload = match body.arguments {
        Arguments::Object(fields) => {
            ToolPayload::Function { arguments: Value::Object(fields).to_string() }
        }
        Arguments::Text(input) => ToolPayload::Custom { input },
    };
    let call_id = match body.call_id {
        Some(id) if !(1..=256).contains(&id.chars().count()) => {
            return Err(Problem::bad("call_id is 1 to 256 characters"));
        }
        Some(id) => CallId::new(id),
        None => new_call_id(),
    };
    let call = ToolCall { call_id, name, payload };
    let result = match body.conversation {
        Some(id) => {
            let live = live(&server, caller, &id).await?;
            make(live.requester(), &live.stop(), call).await?
        }
        None => {
            let own = server.own_session().await?;
            make(own.session.requester(), &server.stop.child(), call).await?
        }
    };
    match &result.error {
        Some(error @ CodexErr::CallIdTaken { .. }) => Err(Problem::conflict(error.to_string())),
        _ => Ok(axum::Json(CallResult::from(result))),
    }
}

/// Makes a call in a task of its own: when the client goes it is called off, and ends in order.
pub(super) async fn make(
    requester: Requester,
    stop: &Stop,
    call: ToolCall,
) -> Result<ToolResult, Problem> {
    if !requester.tools().iter().any(|tool| tool.name == call.name) {
        let name: String = call.name.chars().take(80).collect();
        return Err(Problem::not_found(format!(
            "there is no tool {name:?}; GET /tools lists them"
        )));
    }
    let turn = requester.begin_turn().stopped_by(stop);
    let _called_off: DropGuard = stop.cancel.clone().drop_guard();
    let calling = tokio::spawn(async move {
        let mut results = requester.call(vec![call], &turn).await;
        requester.end_turn(turn).await;
        results.pop()
    });
    let made = calling.await.map_err(Problem::failed)?;
    made.ok_or_else(|| Problem::failed("the call has no result"))
}

impl From<ToolSpec> for Tool {
    fn from(spec: ToolSpec) -> Self {
        let ToolSpec { name, description, parameters } = spec;
        Self { name, description, parameters }
    }
}

impl From<ToolResult> for CallResult {
    fn from(result: ToolResult) -> Self {
        let call_id = result.call_id.as_str().to_owned();
        let error = result.error.as_ref().map(CodexErr::name).map(str::to_owned);
        let none = error.is_none();
        match result.output {
            ToolOutput::Function { content, content_items, success, ran } => Self {
                call_id,
                output: content,
                content_items: content_items.and_then(|items| serde_json::to_value(items).ok()),
                success: success.unwrap_or(none),
                error,
                ran: ran.map(|ran| *ran),
            },
            ToolOutput::Mcp { result } => {
                let success = result.is_ok();
                let output = result.map_or_else(|error| error, |value| value.to_string());
                Self { call_id, output, content_items: None, success, error, ran: None }
            }
        }
    }
}
