//! From layers to the settings that hold. A pure function: it opens no file and asks nobody.
//!
//! Later layers win, value by value: defaults, the preset that trust chooses, the person's file, the
//! project's, the profile, `-c`, options. Of a project's file nothing counts without trust, and what
//! loosens counts only if the person has seen exactly this file.

use crate::check::nearest;
use crate::config::Config;
use crate::layer::{Layer, Origin, insert};
use crate::loosen::Loosening;
use crate::loosen::{is_no_looser, loosenings, loosenings_of_profile};
use crate::settings::{NOT_IN_PROFILES, is_user_only};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// Settings value by value, by their paths. A list is one value.
pub(crate) type Leaves = BTreeMap<Vec<String>, Value>;

/// Every source of settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layers {
    /// The person's file.
    pub user: Option<Layer>,
    /// The project's file.
    pub project: Option<Layer>,
    /// The profile that `--profile` names.
    pub profile: Option<String>,
    /// Each `-c`, in order.
    pub overrides: Vec<Layer>,
    /// What options stand for, in order.
    pub flags: Vec<Layer>,
}

/// What the person thinks of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nothing of it is used.
    Untrusted,
    /// What it makes stricter counts; what it loosens does not: the person has not seen it.
    Trusted,
    /// The person trusts it and has seen its file as it is: all of it counts.
    TrustedAndSeen,
}

/// Why there are no settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The profile that was asked for is not there.
    #[error("there is no profile called {name:?}{}", .known.in_words())]
    NoProfile {
        /// As it was asked for.
        name: String,
        /// Those that there are.
        known: KnownProfiles,
    },
    /// Settings that are in order one by one do not fit together.
    #[error("the settings do not fit together: {0}")]
    Contradiction(String),
}

/// The profiles that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProfiles {
    names: Vec<String>,
    nearest: Option<String>,
}

impl KnownProfiles {
    fn in_words(&self) -> String {
        match (&self.nearest, self.names.as_slice()) {
            (Some(name), _) => format!("; did you mean {name}?"),
            (None, []) => "; no file defines any".to_owned(),
            (None, names) => format!("; there are {}", names.join(", ")),
        }
    }
}

/// The settings that hold, each with where it came from.
///
/// # Errors
/// When a profile is asked for that there is not.
pub fn resolve(layers: &Layers, trust: Trust) -> Result<Config, ResolveError> {
    let mut laid = beneath_project(layers, trust);
    let project = layers.project.as_ref().filter(|_| trust != Trust::Untrusted);
    let mut withheld = Vec::new();
    if let Some(project) = project {
        let mut leaves = leaves_of(&without(project.table(), &["profiles"]));
        leaves.retain(|path, _| !is_user_only(path));
        if trust == Trust::Trusted {
            withheld = loosened(project, layers, &laid.sum);
            let base = leaves_of(&laid.sum);
            leaves.retain(|path, value| is_no_looser(path, value, &base));
        }
        laid.lay(project.origin().clone(), table_of(&leaves));
    }
    let (profile, notes) = lay_profile_over(&mut laid, layers, project, trust)?;
    for layer in layers.overrides.iter().chain(&layers.flags) {
        let elsewhere = ["profile", "profiles", "projects"];
        laid.lay(layer.origin().clone(), without(layer.table(), &elsewhere));
    }
    let settings = laid.sum.try_into().map_err(|error: toml::de::Error| {
        ResolveError::Contradiction(error.message().to_owned())
    })?;
    Ok(Config { settings, layers: laid.layers, profile, withheld, notes })
}

/// What the project's file would loosen, whichever profile is asked for.
pub(crate) fn would_loosen(layers: &Layers) -> Vec<Loosening> {
    let Some(project) = &layers.project else { return Vec::new() };
    loosened(project, layers, &beneath_project(layers, Trust::Trusted).sum)
}

fn loosened(project: &Layer, layers: &Layers, base: &Table) -> Vec<Loosening> {
    let mut found = loosenings(project.table(), base);
    found.extend(of_chosen_profile(project, layers, base));
    found
}

/// What of the person's file counts if somebody else may have written it: what makes things stricter than they
/// are in a directory that nobody trusts, and the rules that it names, for what they forbid.
pub(crate) fn strict_part(user: &Layer) -> Layer {
    let mut laid = Laid::default();
    built_in(&mut laid, Trust::Untrusted);
    let base = leaves_of(&laid.sum);
    let mut leaves = leaves_of(&without(user.table(), &["profiles", "projects"]));
    leaves.retain(|path, value| path[0] == "rules" || is_no_looser(path, value, &base));
    let mut table = table_of(&leaves);
    // Each goes on to have its name, so that choosing it is no error.
    if let Some(Value::Table(profiles)) = user.table().get("profiles") {
        let strict = profiles.iter().filter_map(|(name, profile)| {
            let mut leaves = leaves_of(profile.as_table()?);
            leaves.retain(|path, value| is_no_looser(path, value, &base));
            Some((name.clone(), Value::Table(table_of(&leaves))))
        });
        table.insert("profiles".to_owned(), Value::Table(strict.collect()));
    }
    user.with_table(table)
}

/// What holds without the project: the defaults, and the person's file.
fn beneath_project(layers: &Layers, trust: Trust) -> Laid {
    let mut laid = Laid::default();
    built_in(&mut laid, trust);
    if let Some(user) = &layers.user {
        // Most of a long file is about other projects and profiles that are not chosen.
        laid.lay(user.origin().clone(), without(user.table(), &["profiles", "projects"]));
    }
    laid
}

/// What a profile of the person's would loosen that the project chooses.
fn of_chosen_profile(project: &Layer, layers: &Layers, base: &Table) -> Vec<Loosening> {
    let chosen = project.table().get("profile");
    let Some(name) = chosen.filter(|chosen| base.get("profile") != Some(chosen)) else {
        return Vec::new();
    };
    let name = name.as_str().unwrap_or_default();
    let own = layers.user.iter().chain(&layers.overrides);
    let profiles = own.filter_map(|layer| profile_in(layer, name));
    profiles.flat_map(|profile| loosenings_of_profile(name, profile, base)).collect()
}

/// Layers that lie on each other.
#[derive(Default)]
struct Laid {
    /// Each with what of it counts, the lowest first.
    layers: Vec<(Origin, Table)>,
    /// What they come to.
    sum: Table,
}

impl Laid {
    fn lay(&mut self, origin: Origin, table: Table) {
        merge(&mut self.sum, &table);
        self.layers.push((origin, table));
    }
}

/// Lays the values of one table over those of another.
fn merge(below: &mut Table, above: &Table) {
    for (name, value) in above {
        match (below.get_mut(name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, Value::Table(above)) => {
                let mut copy = Table::new();
                merge(&mut copy, above);
                // Where nothing is said, nothing is there.
                if !copy.is_empty() {
                    below.insert(name.clone(), Value::Table(copy));
                }
            }
            (Some(below), value) => *below = value.clone(),
            (None, value) => {
                below.insert(name.clone(), value.clone());
            }
        }
    }
}

/// A table without some of its names.
fn without(table: &Table, names: &[&str]) -> Table {
    let others = table.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Lays the profile over what there is, and says which it was.
fn lay_profile_over(
    laid: &mut Laid,
    layers: &Layers,
    project: Option<&Layer>,
    trust: Trust,
) -> Result<(Option<String>, Vec<String>), ResolveError> {
    let of_override = |layer: &Layer| Some(layer.table().get("profile")?.as_str()?.to_owned());
    let named = |(origin, table): &(Origin, Table)| {
        Some((table.get("profile")?.as_str()?.to_owned(), origin.clone()))
    };
    let of_file = laid.layers.iter().rev().find_map(named);
    let by_person =
        layers.profile.clone().or_else(|| layers.overrides.iter().rev().find_map(of_override));
    let by_file = of_file.as_ref().map(|(name, _)| name.clone());
    let Some(name) = by_person.clone().or(by_file) else { return Ok((None, Vec::new())) };

    let own = layers.user.iter().chain(&layers.overrides);
    let seen = project.filter(|_| trust == Trust::TrustedAndSeen);
    // A project cannot put something else under the name of a profile that the person has.
    let mut defining: Vec<&Layer> =
        own.filter(|layer| profile_in(layer, &name).is_some()).collect();
    if defining.is_empty() {
        defining.extend(seen.filter(|layer| profile_in(layer, &name).is_some()));
    }
    if defining.is_empty() {
        let by_project = matches!(of_file, Some((_, Origin::Project { .. })));
        if by_person.is_none() && by_project {
            let note = format!("the project's file names the profile {name:?}, which there is not");
            return Ok((None, vec![note]));
        }
        let names = known_profiles(layers.user.iter().chain(&layers.overrides).chain(seen));
        let nearest = nearest(&name, names.iter().map(String::as_str)).map(str::to_owned);
        return Err(ResolveError::NoProfile { name, known: KnownProfiles { names, nearest } });
    }
    for layer in defining {
        let file = match layer.origin() {
            Origin::User { file } | Origin::Project { file } => file.clone(),
            _ => PathBuf::from("-c"),
        };
        let origin = Origin::Profile { name: name.clone(), file };
        if let Some(table) = profile_in(layer, &name) {
            laid.lay(origin, without(table, NOT_IN_PROFILES));
        }
    }
    Ok((Some(name), Vec::new()))
}

fn profile_in<'a>(layer: &'a Layer, name: &str) -> Option<&'a Table> {
    layer.table().get("profiles")?.as_table()?.get(name)?.as_table()
}

fn known_profiles<'a>(layers: impl Iterator<Item = &'a Layer>) -> Vec<String> {
    let profiles = layers.filter_map(|layer| layer.table().get("profiles")?.as_table());
    let mut names: Vec<String> = profiles.flat_map(|profiles| profiles.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// What holds when nobody says anything.
fn built_in(laid: &mut Laid, trust: Trust) {
    let (preset, mode, approval) = match trust {
        Trust::Untrusted => ("read-only", "read-only", "untrusted"),
        Trust::Trusted | Trust::TrustedAndSeen => ("auto", "workspace-write", "on-request"),
    };
    let nothing = || Value::Array(Vec::new());
    let defaults: [(&[&str], Value); 21] = [
        (&["sandbox_workspace_write", "writable_roots"], nothing()),
        (&["sandbox_workspace_write", "network_access"], false.into()),
        (&["sandbox_workspace_write", "exclude_tmpdir_env_var"], false.into()),
        (&["sandbox_workspace_write", "exclude_slash_tmp"], false.into()),
        (&["sandbox_require_full"], false.into()),
        (&["shell_environment_policy", "inherit"], "all".into()),
        (&["shell_environment_policy", "ignore_default_excludes"], false.into()),
        (&["shell_environment_policy", "exclude"], nothing()),
        (&["shell_environment_policy", "include_only"], nothing()),
        (&["features", "experimental_sandbox_command_assessment"], false.into()),
        (&["features", "enable_experimental_windows_sandbox"], false.into()),
        (&["features", "shell_snapshot"], true.into()),
        (&["rules"], nothing()),
        (&["project_doc_max_bytes"], 32_768.into()),
        (&["agent", "max_turns"], 200.into()),
        (&["agent", "max_subagents"], 8.into()),
        (&["agent", "max_subagent_depth"], 2.into()),
        (&["timeouts", "shell_snapshot_ms"], 10_000.into()),
        (&["limits", "output_tokens"], 10_000.into()),
        (&["audit", "fsync"], "never".into()),
        (&["audit", "on_failure"], "stop".into()),
    ];
    let mut table = Table::new();
    for (path, value) in defaults {
        insert(&mut table, path, value);
    }
    laid.lay(Origin::Default, table);
    let words = [("sandbox_mode", mode), ("approval_policy", approval)];
    let words = words.map(|(name, word)| (name.to_owned(), Value::from(word)));
    laid.lay(Origin::Preset { name: preset }, Table::from_iter(words));
}

/// The values of a table, by their paths.
pub(crate) fn leaves_of(table: &Table) -> Leaves {
    fn collect(table: &Table, path: &mut Vec<String>, leaves: &mut Leaves) {
        for (name, value) in table {
            path.push(name.clone());
            match value {
                Value::Table(below) => collect(below, path, leaves),
                value => {
                    leaves.insert(path.clone(), value.clone());
                }
            }
            path.pop();
        }
    }
    let mut leaves = Leaves::new();
    collect(table, &mut Vec::new(), &mut leaves);
    leaves
}

fn table_of(leaves: &Leaves) -> Table {
    let mut table = Table::new();
    for (path, value) in leaves {
        insert(&mut table, path, value.clone());
    }
    table
}
