//! What a project's file would loosen.
//!
//! A repository is text that somebody else wrote. Until the person has seen exactly this text it may
//! make things stricter and nothing else. What is stricter is a table here; whatever the table does
//! not name counts as loosening, so that a setting which is added later is safe before anybody has
//! thought about it.

use crate::check::dotted;
use crate::resolve::{Leaves, leaves_of};
use sandgate_protocol::visible_line;
use serde::Serialize;
use std::fmt;
use toml::{Table, Value};

/// One thing that a project's file would loosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loosening {
    /// The setting, like `mcp_servers.docs`.
    pub key: String,
    /// What it would do, in a person's words.
    pub effect: String,
}

impl fmt::Display for Loosening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.effect, self.key)
    }
}

/// When a value is no looser than another.
enum Order {
    /// The words, strictest first.
    Words(&'static [&'static str]),
    /// This is the strict one.
    Flag(bool),
    /// A number that is not larger. Where there is none there is no limit.
    AtMost,
    /// A list that has everything of the other, and perhaps more.
    Superset,
    /// A list that has nothing which the other has not.
    Subset,
    /// The same, but an empty list is no limit at all, and the loosest.
    SubsetUnlessEmpty,
    /// It decides nothing about what commands may do, nor about who learns of them.
    Harmless,
}

/// Everything that a project may set without anybody having seen it, if it is no looser.
const ORDERS: &[(&str, Order)] = &[
    ("approval_policy", Order::Words(&["untrusted", "on-request", "on-failure", "never"])),
    ("sandbox_mode", Order::Words(&["read-only", "workspace-write", "danger-full-access"])),
    ("sandbox_workspace_write.writable_roots", Order::Subset),
    ("sandbox_workspace_write.network_access", Order::Flag(false)),
    ("sandbox_workspace_write.exclude_tmpdir_env_var", Order::Flag(true)),
    ("sandbox_workspace_write.exclude_slash_tmp", Order::Flag(true)),
    ("sandbox_require_full", Order::Flag(true)),
    ("shell_environment_policy.inherit", Order::Words(&["none", "core", "all"])),
    ("shell_environment_policy.ignore_default_excludes", Order::Flag(false)),
    ("shell_environment_policy.exclude", Order::Superset),
    ("shell_environment_policy.include_only", Order::SubsetUnlessEmpty),
    ("timeouts.approval_ms", Order::AtMost),
    ("timeouts.command_ms", Order::AtMost),
    ("timeouts.shell_snapshot_ms", Order::AtMost),
    ("limits.output_tokens", Order::AtMost),
    ("audit.fsync", Order::Words(&["each", "never"])),
    ("audit.on_failure", Order::Words(&["stop", "go-on"])),
    ("model", Order::Harmless),
    ("review_model", Order::Harmless),
    ("model_context_window", Order::AtMost),
    ("model_max_output_tokens", Order::AtMost),
    ("model_auto_compact_token_limit", Order::AtMost),
    ("model_reasoning_effort", Order::Harmless),
    ("model_reasoning_summary", Order::Harmless),
    ("project_doc_max_bytes", Order::AtMost),
    ("agent.max_turns", Order::AtMost),
    ("agent.max_tokens", Order::AtMost),
    ("agent.max_time_ms", Order::AtMost),
    ("agent.max_subagents", Order::AtMost),
    ("agent.max_subagent_depth", Order::AtMost),
];

impl Order {
    /// Whether a value is no looser than the one that holds without it.
    fn holds(&self, value: &Value, base: Option<&Value>) -> bool {
        match self {
            Self::Words(words) => {
                let rank =
                    |value: &Value| words.iter().position(|word| value.as_str() == Some(word));
                match (rank(value), base.and_then(rank)) {
                    (Some(value), Some(base)) => value <= base,
                    _ => false,
                }
            }
            Self::Flag(strict) => value.as_bool() == Some(*strict),
            Self::AtMost => match (value.as_integer(), base.map(Value::as_integer)) {
                (Some(value), Some(Some(base))) => value <= base,
                (Some(_), None) => true,
                _ => false,
            },
            Self::Superset => items(base).iter().all(|item| items(Some(value)).contains(item)),
            Self::Subset => items(Some(value)).iter().all(|item| items(base).contains(item)),
            Self::SubsetUnlessEmpty => {
                let (new, old) = (items(Some(value)), items(base));
                let narrower = new.iter().all(|item| old.contains(item));
                old.is_empty() || (!new.is_empty() && narrower)
            }
            Self::Harmless => true,
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a project's settings would loosen of the settings that hold without them.
pub fn loosenings(project: &Table, base: &Table) -> Vec<Loosening> {
    let (project, base) = (leaves_of(project), leaves_of(base));
    let mut found: Vec<Loosening> = Vec::new();
    for (path, value) in &project {
        if !is_no_looser(path, value, &base) {
            let loosening = described(path, value, &project);
            if !found.contains(&loosening) {
                found.push(loosening);
            }
        }
    }
    found
}

/// Whether one setting of a project is no looser than what holds without it.
pub(crate) fn is_no_looser(path: &[String], value: &Value, base: &Leaves) -> bool {
    let old = base.get(path);
    let key = path.join(".");
    // A name with a dot in it is not the path that it looks like.
    let plain = path.iter().all(|name| !name.contains('.'));
    let order = ORDERS.iter().find(|(name, _)| plain && *name == key).map(|(_, order)| order);
    old == Some(value) || order.is_some_and(|order| order.holds(value, old))
}

/// What a setting would do, in a person's words. Settings of one server or provider are told as one.
fn described(path: &[String], value: &Value, project: &Leaves) -> Loosening {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let of_entry = |name: &str| {
        let path: Vec<String> = [names[0], names[1], name].map(str::to_owned).into();
        project.get(&path)
    };
    let listed = |value: &Value| items(Some(value)).iter().map(text).collect::<Vec<_>>().join(" ");
    let (length, effect) = match names.as_slice() {
        ["approval_policy"] => match value.as_str() {
            Some("never") => (1, "you are never asked".to_owned()),
            _ => (1, format!("you are asked less often: {}", text(value))),
        },
        ["sandbox_mode"] => match value.as_str() {
            Some("danger-full-access") => (1, "commands run without a sandbox".to_owned()),
            _ => (1, "commands may write in the workspace".to_owned()),
        },
        ["sandbox_require_full"] => (1, "a sandbox that lacks something will do".to_owned()),
        ["sandbox_workspace_write", "writable_roots"] => {
            (2, format!("commands may write to {}", listed(value)))
        }
        ["sandbox_workspace_write", "network_access"] => {
            (2, "commands can reach the network".to_owned())
        }
        ["sandbox_workspace_write", ..] => {
            (2, "commands may write to directories for temporary files".to_owned())
        }
        ["shell_environment_policy", "set", name] => {
            (3, format!("commands get {name}={}", text(value)))
        }
        ["shell_environment_policy", ..] => {
            (2, "commands get more of your environment, perhaps secrets".to_owned())
        }
        ["mcp_servers", server, _, ..] => {
            let command = of_entry("command").map(text);
            let arguments = of_entry("args").map(listed).unwrap_or_default();
            let effect = match (command, of_entry("url").map(text)) {
                (Some(command), _) => {
                    format!("starts the program {}", format!("{command} {arguments}").trim_end())
                }
                (None, Some(url)) => format!("connects to the MCP server at {url}"),
                (None, None) => format!("changes the MCP server {server}"),
            };
            (2, effect)
        }
        ["model_providers", provider, _, ..] => {
            // A key and the headers are read from variables of the person's.
            let of_headers = project.iter().filter(|(path, _)| {
                path.len() == 4 && path[..2] == names[..2] && path[2] == "env_http_headers"
            });
            let variables = of_entry("env_key").into_iter().chain(of_headers.map(|(_, name)| name));
            let key: String = variables.map(|name| format!(" and your {}", text(name))).collect();
            let effect = match of_entry("base_url").map(text) {
                Some(url) => format!("sends what the model is told{key} to {url}"),
                None => format!("changes the model provider {provider}"),
            };
            (2, effect)
        }
        ["model_provider"] => (1, format!("uses the model of {}", text(value))),
        ["profiles", name, ..] => (2, format!("defines the profile {name}")),
        ["profile"] => (1, format!("uses the profile {}", text(value))),
        ["rules"] => (1, format!("adds the rules in {}", listed(value))),
        ["features", name] => (2, format!("sets the feature {name} to {}", text(value))),
        ["audit", "fsync"] => (2, "what happens is recorded less safely".to_owned()),
        ["audit", ..] => (2, "commands run even if nothing can be recorded".to_owned()),
        ["otel", ..] => (1, "sends traces of your work to somebody else".to_owned()),
        ["server", ..] => (1, "changes who can talk to sandgate".to_owned()),
        _ => (names.len(), format!("sets {} to {}", dotted(&names), text(value))),
    };
    let key = dotted(&names[..length.min(names.len())]);
    // A project wrote the words in it, and a person reads them in a terminal.
    Loosening { key: visible_line(&key), effect: visible_line(&effect) }
}
