//! What a project's file would loosen.
//!
//! A repository is text that somebody else wrote. Until the person has seen exactly this text it may
//! make things stricter and nothing else. What is stricter is a table here; whatever the table does
//! not name counts as loosening, so that a setting which is added later is safe before anybody has
//! thought about it.

use crate::check::dotted;
use crate::resolve::{Leaves, leaves_of};
use sandgate_protocol::{visible_line, visible_remark};
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

/// The settings that a person is told of first, because they decide most: a long list must not push them away.
const FIRST: [&str; 6] = [
    "sandbox_mode",
    "approval_policy",
    "sandbox_workspace_write",
    "shell_environment_policy",
    "profile",
    "profiles",
];

/// What a project's settings would loosen of the settings that hold without them.
pub fn loosenings(project: &Table, base: &Table) -> Vec<Loosening> {
    let (project, base) = (leaves_of(project), leaves_of(base));
    let mut found: Vec<Loosening> = Vec::new();
    let rank = |path: &[String]| FIRST.iter().position(|name| path[0] == *name);
    let mut paths: Vec<&Vec<String>> = project.keys().collect();
    paths.sort_by_key(|path| rank(path).unwrap_or(FIRST.len()));
    for path in paths {
        if !is_no_looser(path, &project[path], &base) {
            let loosening = Told { settings: &project, base: &base }.loosening(path);
            if !found.contains(&loosening) {
                found.push(loosening);
            }
        }
    }
    found
}

/// What a profile would loosen of the settings that hold without it.
pub(crate) fn loosenings_of_profile(name: &str, profile: &Table, base: &Table) -> Vec<Loosening> {
    let below = Table::from_iter([(name.to_owned(), Value::Table(profile.clone()))]);
    let mut found = loosenings(&Table::from_iter([("profiles".to_owned(), below.into())]), base);
    // That there is one is no news to who has it.
    let itself = Told::definition(name);
    found.retain(|loosening| *loosening != itself);
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

/// Settings that a person is told about. Every value of theirs is told, unless the words for another one say it.
struct Told<'a> {
    settings: &'a Leaves,
    /// What holds without them.
    base: &'a Leaves,
}

/// What says nothing of its own beside the program or the address of a server.
const BESIDE_SERVER: [&str; 5] =
    ["startup_timeout_sec", "tool_timeout_sec", "enabled", "enabled_tools", "disabled_tools"];

/// What says nothing of its own beside the address of a provider.
const BESIDE_ADDRESS: [&str; 6] = [
    "name",
    "wire_api",
    "env_key_instructions",
    "request_max_retries",
    "stream_max_retries",
    "stream_idle_timeout_ms",
];

impl Told<'_> {
    fn loosening(&self, path: &[String]) -> Loosening {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let (profile, below) = match names.as_slice() {
            ["profiles", name, ..] => (Some(*name), &path[2..]),
            _ => (None, path),
        };
        if let Some(name) = profile
            && is_no_looser(below, &self.settings[path], self.base)
        {
            return Self::definition(name);
        }
        let (length, effect) = self.described(path, path.len() - below.len());
        let effect = match profile {
            Some(name) => format!("with the profile {name}: {effect}"),
            None => effect,
        };
        Self::shown(&names[..length.min(names.len())], &effect)
    }

    /// That there is a profile, whatever is in it.
    fn definition(name: &str) -> Loosening {
        Self::shown(&["profiles", name], &format!("defines the profile {name}"))
    }

    /// A project wrote the words in it, and a person reads them in a terminal, with others above and below.
    fn shown(names: &[&str], effect: &str) -> Loosening {
        Loosening { key: visible_line(&dotted(names)), effect: visible_remark(effect) }
    }

    /// What a setting would do, in a person's words, and how many names of its path they are about. So many names
    /// in front are of the profile that it is in.
    fn described(&self, path: &[String], front: usize) -> (usize, String) {
        let names: Vec<&str> = path[front..].iter().map(String::as_str).collect();
        let value = &self.settings[path];
        let set = || {
            let key = dotted(&names);
            (path.len(), format!("sets {key} to {}", text(value)))
        };
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
            ["mcp_servers", server, below @ ..] => match self.server(path, front, below, value) {
                Some(effect) => (2, effect),
                None => match told_of_server(below, value) {
                    Some(effect) => (names.len(), format!("MCP server {server}: {effect}")),
                    None => return set(),
                },
            },
            ["model_providers", _, below @ ..] => match self.provider(path, front, below) {
                Some(effect) => (2, effect),
                None => return set(),
            },
            ["model_provider"] => (1, format!("uses the model of {}", text(value))),
            ["profile"] => {
                let old = self.base.get(path).map(|old| format!(" instead of {}", text(old)));
                (1, format!("uses the profile {}{}", text(value), old.unwrap_or_default()))
            }
            ["features", name] => (2, format!("sets the feature {name} to {}", text(value))),
            ["audit", "fsync"] => (2, "what happens is recorded less safely".to_owned()),
            ["audit", "on_failure"] => {
                (2, "commands run even if nothing can be recorded".to_owned())
            }
            ["otel", "endpoint"] => (2, format!("sends traces of your work to {}", text(value))),
            ["server", "listen"] => (2, format!("sandgate serve listens on {}", text(value))),
            _ => return set(),
        };
        (front + length, effect)
    }

    /// What else is said of the server or provider that a setting is about.
    fn beside(&self, path: &[String], front: usize, name: &str) -> Option<&Value> {
        let mut other = path[..front + 2].to_vec();
        other.push(name.to_owned());
        self.settings.get(&other)
    }

    /// What a server is, if the setting says it or goes without saying beside it.
    fn server(
        &self,
        path: &[String],
        front: usize,
        below: &[&str],
        value: &Value,
    ) -> Option<String> {
        let command = self.beside(path, front, "command");
        let url = self.beside(path, front, "url");
        let starts = |command: &Value| {
            let arguments = self.beside(path, front, "args").map(listed).unwrap_or_default();
            let command = quoted(&text(command));
            format!("starts the program {}", format!("{command} {arguments}").trim_end())
        };
        let connects = |url: &Value| format!("connects to the MCP server at {}", text(url));
        match below {
            ["command" | "args"] => command.map(starts),
            ["url"] => Some(connects(value)),
            [name] if BESIDE_SERVER.contains(name) => command.map(starts).or(url.map(connects)),
            _ => None,
        }
    }

    /// What is sent to a provider, if the setting says it or goes without saying beside it.
    fn provider(&self, path: &[String], front: usize, below: &[&str]) -> Option<String> {
        let url = self.beside(path, front, "base_url")?;
        let is_part = match below {
            ["base_url" | "env_key"] | ["env_http_headers", _] => true,
            [name] => BESIDE_ADDRESS.contains(name),
            _ => false,
        };
        // A key and the headers are read from variables of the person's.
        let depth = front + 4;
        let of_headers = self.settings.iter().filter(|(other, _)| {
            other.len() == depth
                && other[..front + 2] == path[..front + 2]
                && other[front + 2] == "env_http_headers"
        });
        let key = self.beside(path, front, "env_key");
        let variables = key.into_iter().chain(of_headers.map(|(_, name)| name));
        let keys: String = variables.map(|name| format!(" and your {}", text(name))).collect();
        is_part.then(|| format!("sends what the model is told{keys} to {}", text(url)))
    }
}

/// What a setting of a server does that is neither its program nor its address.
fn told_of_server(below: &[&str], value: &Value) -> Option<String> {
    Some(match below {
        ["env", name] => format!("it gets {name}={}", text(value)),
        ["env_vars"] => format!("it gets your {}", listed(value)),
        ["cwd"] => format!("it is started in {}", text(value)),
        ["bearer_token_env_var"] | ["env_http_headers", _] => {
            format!("it is sent your {}", text(value))
        }
        ["sandbox_mode"] => match value.as_str() {
            Some("danger-full-access") => "it runs without a sandbox".to_owned(),
            Some("workspace-write") => "it may write in the workspace".to_owned(),
            _ => return None,
        },
        ["network_access"] if value.as_bool() == Some(true) => {
            "it can reach the network".to_owned()
        }
        ["writable_roots"] => format!("it may write to {}", listed(value)),
        _ => return None,
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The items of a list, so that one with a blank in it is not taken for two.
fn listed(value: &Value) -> String {
    items(Some(value)).iter().map(|item| quoted(&text(item))).collect::<Vec<_>>().join(" ")
}

/// A text in quotes, unless it plainly is one word.
fn quoted(text: &str) -> String {
    let odd = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    match text.is_empty() || text.contains(odd) {
        true => Value::from(text).to_string(),
        false => text.to_owned(),
    }
}
