//! Tool calls, as models make them, and what they are given back.

use crate::{CallId, SandboxPermissions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// What its result will be known by.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// What it is asked to do.
    pub payload: ToolPayload,
}

/// What a tool is asked to do, in the form the model wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolPayload {
    /// Arguments as JSON text, not looked at yet.
    Function {
        /// The text.
        arguments: String,
    },
    /// Text that only the tool understands.
    Custom {
        /// The text.
        input: String,
    },
    /// A command in the form of providers that have a shell tool of their own.
    LocalShell {
        /// The command.
        params: ShellToolCallParams,
    },
    /// A call that goes on to an MCP server.
    Mcp {
        /// The server.
        server: String,
        /// Its tool.
        tool: String,
        /// Arguments as JSON text.
        raw_arguments: String,
    },
}

/// What a model is given back.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutput {
    /// The result of a function.
    Function {
        /// The text.
        content: String,
        /// The same in parts, where there is more than text.
        content_items: Option<Vec<ContentItem>>,
        /// Whether it did what it was asked to do.
        success: Option<bool>,
        /// How the command ran, where it is one.
        ran: Option<Box<Ran>>,
    },
    /// What an MCP server answered.
    Mcp {
        /// Its result, or why there is none.
        result: Result<Value, String>,
    },
}

impl ToolOutput {
    /// Plain text.
    pub fn text(content: impl Into<String>, success: bool) -> Self {
        let content = content.into();
        Self::Function { content, content_items: None, success: Some(success), ran: None }
    }

    /// What a command left, as text for the model and as facts for a program.
    pub fn command(content: impl Into<String>, ran: Ran) -> Self {
        let (content, success) = (content.into(), Some(ran.exit_code == 0));
        Self::Function { content, content_items: None, success, ran: Some(Box::new(ran)) }
    }
}

/// How a command ran, for a program that reads results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The command's own exit code, 124 after a timeout, 128 + n after signal n.
    pub exit_code: i32,
    /// The time limit ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub timed_out: bool,
    /// Which attempt this is from: 1, or 2 if a person let it have what the first was refused.
    pub attempt: u32,
    /// What a person opened to it beyond the policy.
    #[serde(skip_serializing_if = "GrantedToRun::is_nothing", default)]
    pub granted: GrantedToRun,
}

/// What a person opened to a command beyond the session's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GrantedToRun {
    /// Files and directories that it could write to.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "crate::lossy::all", default)]
    pub writable: Vec<PathBuf>,
    /// Unix sockets that it could connect to.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "crate::lossy::all", default)]
    pub sockets: Vec<PathBuf>,
    /// It could reach the network.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub network: bool,
    /// It ran without the sandbox that the policy asks for.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub without_sandbox: bool,
}

impl GrantedToRun {
    /// Whether nothing was.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentItem {
    /// Text.
    InputText {
        /// The text.
        text: String,
    },
    /// A picture.
    InputImage {
        /// Where it is, or the picture itself as a data URL.
        image_url: String,
    },
}

/// The parameters of `shell`: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellToolCallParams {
    /// The program and its arguments, e.g. ["ls", "-la"].
    pub command: Vec<String>,
    /// Where to run it; a relative path starts at the session's directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workdir: Option<String>,
    /// How many milliseconds it may take (default 10000).
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "timeout")]
    pub timeout_ms: Option<u64>,
    /// "require_escalated" asks to run it without the sandbox, and needs a justification.
    #[serde(default)]
    pub sandbox_permissions: SandboxPermissions,
    /// Why it must run without the sandbox, as one sentence for the person who decides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// With "require_escalated": the first words of the command, as a rule for commands like it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix_rule: Option<Vec<String>>,
}

/// The parameters of `shell_command`: a script for the person's shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellCommandToolCallParams {
    /// The script, e.g. "ls -la | grep foo".
    pub command: String,
    /// Where to run it; a relative path starts at the session's directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workdir: Option<String>,
    /// Whether the shell reads the person's profile first (default true).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub login: Option<bool>,
    /// How many milliseconds it may take (default 10000).
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "timeout")]
    pub timeout_ms: Option<u64>,
    /// "require_escalated" asks to run it without the sandbox, and needs a justification.
    #[serde(default)]
    pub sandbox_permissions: SandboxPermissions,
    /// Why it must run without the sandbox, as one sentence for the person who decides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub justification: Option<String>,
    /// With "require_escalated": the first words of the command, as a rule for commands like it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix_rule: Option<Vec<String>>,
}

/// The parameters of `apply_patch`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchToolCallParams {
    /// The whole patch, from "*** Begin Patch" to "*** End Patch".
    pub input: String,
}

/// The parameters of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFileToolCallParams {
    /// The file; a relative path starts at the session's directory.
    #[serde(alias = "file_path")]
    pub path: String,
    /// The first line to read, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// How many lines to read (default 2000).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// The parameters of `list_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDirToolCallParams {
    /// The directory; a relative path starts at the session's directory, which is the default.
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "dir_path")]
    pub path: Option<String>,
    /// How many levels to go down (default 2).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u32>,
    /// The first entry to list, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// How many entries to list (default 200).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// The parameters of `grep_files`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepFilesToolCallParams {
    /// A regular expression.
    pub pattern: String,
    /// Where to search; a relative path starts at the session's directory, which is the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Only files whose names match, e.g. "*.rs".
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub include: Option<String>,
    /// How many matching lines to give (default 100).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}
