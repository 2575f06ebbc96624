//! From what a server says of its tools to what a model is told of them.

use super::connect::Connection;
use super::name::tool_name;
use super::shortened;
use super::tool::McpTool;
use rmcp::model::Tool;
use sandgate_config::McpServer;
use sandgate_protocol::visible;
use sandgate_runtime::{ToolHandler, ToolSpec};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many tools of one server a model is told of.
pub(super) const MOST_TOOLS: usize = 128;

/// How much a server may say of a tool, in bytes.
const MOST_DESCRIPTION: usize = 4096;

/// How large the schema of a tool may be, in bytes.
const MOST_SCHEMA: usize = 16 * 1024;

/// The tools of a server.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<Tool>,
    /// Whether there were more.
    pub(super) more: bool,
}

/// The tools that a person lets a model use, each once.
pub(super) fn tools_of(
    server: &McpServer,
    connection: &Arc<Connection>,
    listed: Vec<Tool>,
) -> Vec<Arc<dyn ToolHandler>> {
    let mut names = BTreeSet::new();
    let wanted = listed.into_iter().filter(|tool| server.tools.contains(&tool.name));
    let once = wanted.filter(|tool| names.insert(tool.name.to_string()));
    once.map(|tool| Arc::new(McpTool::new(server, connection, &tool)) as Arc<dyn ToolHandler>)
        .collect()
}

/// What a model is told of a tool. A description is the server's word: nothing in it is hidden from whoever
/// reads it, and it is no longer than it may be.
pub(super) fn spec(server: &str, tool: &Tool) -> ToolSpec {
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    ToolSpec {
        name: tool_name(server, &tool.name),
        description: shortened(&visible(described), MOST_DESCRIPTION),
        parameters: parameters(tool),
    }
}

/// Its schema if it is one of an object and not too large, and otherwise that it takes an object.
fn parameters(tool: &Tool) -> Value {
    let anything = || json!({"type": "object"});
    let mut schema = (*tool.input_schema).clone();
    let kind = schema.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return anything();
    }
    // Some providers want them, however few there are.
    schema.entry("properties").or_insert_with(|| json!({}));
    let schema = Value::Object(schema);
    match serde_json::to_string(&schema).is_ok_and(|text| text.len() <= MOST_SCHEMA) {
        true => schema,
        false => anything(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str, schema: &Value) -> ToolSpec {
        let tool = json!({"name": "t", "description": description, "inputSchema": schema});
        spec("s", &serde_json::from_value(tool).unwrap())
    }

    /// spec MCP.10: What a server says of a tool is bounded, hides nothing, and its schema is one of an
    /// object.
    #[test]
    fn what_a_server_says_of_a_tool_is_bounded_and_hides_nothing() {
        let told = tool("look\u{202e}\u{1b}[2J\nhere", &json!({"properties": {"a": {}}}));
        assert_eq!(told.description, "look\\u{202e}\\u{1b}[2J\nhere");
        assert_eq!(told.parameters, json!({"type": "object", "properties": {"a": {}}}));
        assert!(tool(&"ä".repeat(9999), &json!({})).description.len() < MOST_DESCRIPTION + 4);
        let large =
            json!({"type": "object", "properties": {"a": {"description": "x".repeat(20_000)}}});
        assert_eq!(tool("", &large).parameters, json!({"type": "object"}));
        assert_eq!(tool("", &json!({"type": "string"})).parameters, json!({"type": "object"}));
    }
}
