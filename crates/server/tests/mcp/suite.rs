//! What the conformance suite calls things that our server has under other names.
//!
//! The suite calls tools and reads resources of a server that was made for it. Where ours has what such a scenario
//! is about, the request is given our name for it on the way in. What comes back is what our server said.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// A file in the workspace that is there if a command ran that nobody had allowed.
pub(crate) const NOT_ALLOWED: &str = "not-allowed";

/// Nothing of the suite is longer.
const MOST_BYTES: usize = 1 << 20;

/// The tool whose connection breaks after the first event.
const RECONNECTION: &str = "test_reconnection";

/// Our call for a tool of the suite.
fn call_for(tool: &str) -> Option<(&'static str, Value)> {
    let shell = |script: &str| ("shell", json!({ "command": ["sh", "-c", script] }));
    Some(match tool {
        "test_simple_text" => shell("echo This is a simple text response for testing."),
        // A tool that there is, called as nobody may call it.
        "test_error_handling" => ("shell", json!({ "command": 1 })),
        // A message holds 4 KiB at most, so that these are five.
        "test_tool_with_progress" => shell("head -c 20000 /dev/zero | tr '\\0' x"),
        RECONNECTION => shell("echo done"),
        // Whatever the suite fills into a form is none of our answers, which is a no.
        "test_elicitation"
        | "test_input_required_result_elicitation"
        | "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => (
            "shell",
            json!({
                "command": ["touch", NOT_ALLOWED],
                "sandbox_permissions": "require_escalated",
                "justification": "to be asked",
            }),
        ),
        "test_input_required_result_list_roots" => shell("pwd"),
        _ => return None,
    })
}

/// Our process for a resource of the suite.
fn process_for(uri: &str) -> Option<&'static str> {
    match uri {
        "test://static-text" => Some("static"),
        "test://template/123/data" => Some("123"),
        "test://watched-resource" => Some("watched"),
        _ => None,
    }
}

/// Gives a request our names for what it is about.
pub(crate) async fn stand_in(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, MOST_BYTES).await.unwrap();
    let Ok(mut message) = serde_json::from_slice::<Value>(&bytes) else {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    };
    let mut breaks = false;
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let params = &mut message["params"];
    if let Some(tool) = params["name"].as_str().filter(|_| method == "tools/call")
        && let Some((ours, arguments)) = call_for(tool)
    {
        breaks = tool == RECONNECTION;
        rename(&mut parts, tool, ours);
        params["name"] = ours.into();
        params["arguments"] = arguments;
    } else if let Some(uri) = params["uri"].as_str()
        && let Some(process) = process_for(uri)
    {
        let ours = format!("sandgate://process/{process}/output");
        rename(&mut parts, uri, &ours);
        params["uri"] = ours.into();
        if method == "resources/read" {
            let meta = params["_meta"].clone();
            print(process, meta, &parts, next.clone()).await;
        }
    }
    let answer = next.run(sent(parts, &message)).await;
    match breaks {
        true => {
            let (parts, body) = answer.into_parts();
            Response::from_parts(parts, Body::from_stream(body.into_data_stream().take(1)))
        }
        false => answer,
    }
}

/// Starts a process that prints its name, in the session that a request is for.
async fn print(process: &str, meta: Value, like: &Parts, next: Next) {
    let script = format!("echo {process}; exec cat");
    let mut params = json!({ "name": "exec_command", "arguments": {
        "command": ["sh", "-c", script], "process_id": process, "wait_for": process } });
    if !meta.is_null() {
        params["_meta"] = meta;
    }
    let call =
        json!({ "jsonrpc": "2.0", "id": "before", "method": "tools/call", "params": params });
    let mut parts = like.clone();
    for (name, value) in [("mcp-method", "tools/call"), ("mcp-name", "exec_command")] {
        if let Some(header) = parts.headers.get_mut(name) {
            *header = HeaderValue::from_static(value);
        }
    }
    let answer = next.run(sent(parts, &call)).await;
    to_bytes(answer.into_body(), MOST_BYTES).await.unwrap();
}

/// From the newer generation on the name stands in the head too, where the suite has not made it a wrong one.
fn rename(parts: &mut Parts, theirs: &str, ours: &str) {
    if let Some(header) = parts.headers.get_mut("mcp-name")
        && header == theirs
    {
        *header = HeaderValue::from_str(ours).unwrap();
    }
}

fn sent(mut parts: Parts, message: &Value) -> Request {
    let bytes = message.to_string();
    parts.headers.insert("content-length", bytes.len().into());
    Request::from_parts(parts, Body::from(bytes))
}
