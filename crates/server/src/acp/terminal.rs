//! Output of commands as a terminal of the editor's, which is only looked at.
//!
//! The protocol's own terminals run commands outside of the cage and are not used. Some editors show output
//! that an agent sends along: they say so with `terminal_output` among what they can do, and find it in
//! `_meta`. Others are given the output as text.

use agent_client_protocol::v1::schema::{ClientCapabilities, Meta, Terminal, ToolCallContent};
use serde_json::{Value, json};
use std::path::Path;

/// Whether an editor shows output that is sent along.
pub(super) fn is_shown(capabilities: &ClientCapabilities) -> bool {
    let meta = capabilities.meta.as_ref();
    meta.and_then(|meta| meta.get("terminal_output")).and_then(Value::as_bool) == Some(true)
}

/// Where it is shown.
pub(super) fn content(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(id.to_owned()))
}

/// It begins.
pub(super) fn info(id: &str, cwd: &Path) -> Meta {
    meta("terminal_info", json!({ "terminal_id": id, "cwd": cwd.to_string_lossy() }))
}

/// The next piece.
pub(super) fn output(id: &str, data: &str) -> Meta {
    meta("terminal_output", json!({ "terminal_id": id, "data": data }))
}

/// It ended.
pub(super) fn exit(id: &str, exit_code: i32) -> Meta {
    let end = json!({ "terminal_id": id, "exit_code": exit_code, "signal": null });
    meta("terminal_exit", end)
}

fn meta(name: &str, value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert(name.to_owned(), value);
    meta
}
