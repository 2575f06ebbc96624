//! The settings that hold.

use crate::check::dotted;
use crate::layer::Origin;
use crate::loosen::Loosening;
use crate::resolve::leaves_of;
use crate::settings::{ApprovalPolicy, SandboxMode, Settings, WorkspaceWriteSettings};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// The settings that hold, each with where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub(crate) settings: Settings,
    /// What of each layer counts, the lowest first.
    pub(crate) layers: Vec<(Origin, Table)>,
    pub(crate) profile: Option<String>,
    pub(crate) withheld: Vec<Loosening>,
    pub(crate) notes: Vec<String>,
}

impl Config {
    /// All of them. Whatever has a default is there.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Every value with its key, as it is written in a file, and its origin; in the order of the keys.
    /// Found out when somebody wants to know: a command does not.
    pub fn entries(&self) -> impl Iterator<Item = (String, Entry)> {
        let mut entries = BTreeMap::new();
        for (origin, table) in &self.layers {
            for (path, value) in leaves_of(table) {
                entries.insert(path, Entry { value, origin: origin.clone() });
            }
        }
        entries.into_iter().map(|(path, entry)| (dotted(&path), entry))
    }

    /// Where the value of a key came from.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        let sets = |table: &Table| {
            let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
            let tables = tables.split('.').filter(|name| !name.is_empty());
            let table =
                tables.into_iter().try_fold(table, |table, name| table.get(name)?.as_table());
            table.and_then(|table| table.get(name)).is_some_and(|value| !value.is_table())
        };
        let mut layers = self.layers.iter().rev();
        layers.find(|(_, table)| sets(table)).map(|(origin, _)| origin)
    }

    /// The profile that is in it.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// What the project's file would loosen, and does not, because the person has not seen it.
    pub fn withheld(&self) -> &[Loosening] {
        &self.withheld
    }

    /// What the person should know about how it came about.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// When a person is asked.
    pub fn approval_policy(&self) -> AskForApproval {
        // Without a word the strictest holds; but there is always a word, from a preset at least.
        self.settings.approval_policy.unwrap_or(ApprovalPolicy::Untrusted).into()
    }

    /// What commands may touch.
    pub fn sandbox_policy(&self) -> SandboxPolicy {
        match self.settings.sandbox_mode.unwrap_or(SandboxMode::ReadOnly) {
            SandboxMode::ReadOnly => SandboxPolicy::ReadOnly,
            SandboxMode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
            SandboxMode::WorkspaceWrite => self.workspace_write(),
        }
    }

    /// What `workspace-write` means, whatever the mode is.
    pub fn workspace_write(&self) -> SandboxPolicy {
        let WorkspaceWriteSettings {
            writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } = self.settings.sandbox_workspace_write.clone().unwrap_or_default();
        SandboxPolicy::WorkspaceWrite {
            writable_roots: writable_roots.unwrap_or_default(),
            network_access: match network_access {
                Some(true) => NetworkAccess::Enabled,
                _ => NetworkAccess::Restricted,
            },
            exclude_tmpdir_env_var: exclude_tmpdir_env_var.unwrap_or(false),
            exclude_slash_tmp: exclude_slash_tmp.unwrap_or(false),
        }
    }

    /// Whether a sandbox that lacks something is refused.
    pub fn requires_full_sandbox(&self) -> bool {
        self.settings.sandbox_require_full.unwrap_or(false)
    }

    /// Rules files beside those in the person's settings.
    pub fn rules_files(&self) -> &[PathBuf] {
        self.settings.rules.as_deref().unwrap_or(&[])
    }

    /// How long a question waits for its answer.
    pub fn approval_timeout(&self) -> Option<Duration> {
        self.settings.timeouts.as_ref()?.approval_ms.map(milliseconds)
    }

    /// How long a command may take for which no limit is named.
    pub fn command_timeout(&self) -> Option<Duration> {
        self.settings.timeouts.as_ref()?.command_ms.map(milliseconds)
    }

    /// How long the start-up files of a shell may take that a snapshot is made of, if there are to be
    /// snapshots.
    pub fn shell_snapshot(&self) -> Option<Duration> {
        let limit = self.settings.timeouts.as_ref()?.shell_snapshot_ms?;
        let is_on = self.settings.features.as_ref()?.shell_snapshot?;
        is_on.then(|| milliseconds(limit))
    }

    /// How many tokens of a command's output a model is given.
    pub fn output_tokens(&self) -> Option<usize> {
        let tokens = self.settings.limits.as_ref()?.output_tokens?;
        Some(usize::try_from(tokens.get()).unwrap_or(usize::MAX))
    }
}

fn milliseconds(number: NonZeroU64) -> Duration {
    Duration::from_millis(number.get())
}
