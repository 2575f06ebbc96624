//! What clients are told about the tools beyond their schemas: a title, and what a call may do.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use sandgate_runtime::ToolSpec;
use serde_json::Value;
use std::sync::Arc;

/// What a tool is to a client that asks its person before some calls.
struct Hint {
    name: &'static str,
    title: &'static str,
    /// It changes nothing.
    reads: bool,
    /// It may remove or overwrite something.
    destroys: bool,
    /// To call it twice is the same as once.
    repeats: bool,
    /// It may talk to the world outside this machine, if the gate lets it.
    outside: bool,
}

#[rustfmt::skip]
const HINTS: &[Hint] = &[
    Hint { name: "shell",          title: "Run a program",            reads: false, destroys: true,  repeats: false, outside: true },
    Hint { name: "shell_command",  title: "Run a script",             reads: false, destroys: true,  repeats: false, outside: true },
    Hint { name: "exec_command",   title: "Start a process",          reads: false, destroys: true,  repeats: false, outside: true },
    Hint { name: "write_stdin",    title: "Type to a process",        reads: false, destroys: true,  repeats: false, outside: true },
    Hint { name: "list_processes", title: "List processes",           reads: true,  destroys: false, repeats: true,  outside: false },
    Hint { name: "kill_process",   title: "End a process",            reads: false, destroys: true,  repeats: true,  outside: false },
    Hint { name: "read_output",    title: "Read a process's output",  reads: true,  destroys: false, repeats: true,  outside: false },
    Hint { name: "apply_patch",    title: "Change files by a patch",  reads: false, destroys: true,  repeats: false, outside: false },
    Hint { name: "read_file",      title: "Read a file",              reads: true,  destroys: false, repeats: true,  outside: false },
    Hint { name: "list_dir",       title: "List a directory",         reads: true,  destroys: false, repeats: true,  outside: false },
    Hint { name: "grep_files",     title: "Search in files",          reads: true,  destroys: false, repeats: true,  outside: false },
];

/// A tool as clients see it. One that the table does not know may do anything.
pub(super) fn tool(spec: ToolSpec, answers: &Arc<JsonObject>) -> Tool {
    let input = match spec.parameters {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let hint = HINTS.iter().find(|hint| hint.name == spec.name);
    let annotations = match hint {
        Some(hint) => ToolAnnotations::with_title(hint.title)
            .read_only(hint.reads)
            .destructive(hint.destroys)
            .idempotent(hint.repeats)
            .open_world(hint.outside),
        None => ToolAnnotations::new().read_only(false).destructive(true).open_world(true),
    };
    let tool = Tool::new(spec.name, spec.description, input)
        .with_raw_output_schema(Arc::clone(answers))
        .with_annotations(annotations);
    match hint {
        Some(hint) => tool.with_title(hint.title),
        None => tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_runtime::ToolRegistry;

    /// spec MCPS.3: Every tool that a session has is in the table of titles and hints, and one that is not
    /// counts as one that may do anything.
    #[test]
    fn every_tool_of_a_session_is_in_the_table() {
        let specs = ToolRegistry::standard().specs();
        assert!(!specs.is_empty());
        for spec in specs {
            assert!(HINTS.iter().any(|hint| hint.name == spec.name), "{}", spec.name);
        }
        for hint in HINTS {
            assert!(!(hint.reads && hint.destroys), "{}", hint.name);
        }
        let spec = ToolSpec {
            name: "other".to_owned(),
            description: String::new(),
            parameters: Value::Null,
        };
        let annotations = tool(spec, &Arc::default()).annotations.unwrap();
        assert_eq!(annotations.read_only_hint, Some(false));
        assert!(annotations.is_destructive());
        assert_eq!(annotations.open_world_hint, Some(true));
    }
}
