//! One source of settings, and where a value came from.

use crate::check::{Checked, Owner, check};
use crate::problem::Problem;
use serde::Serialize;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The preset for directories of this kind.
    Preset {
        /// `auto` or `read-only`.
        name: &'static str,
    },
    /// The person's file.
    User {
        /// Which.
        file: PathBuf,
    },
    /// The project's file.
    Project {
        /// Which.
        file: PathBuf,
    },
    /// A profile.
    Profile {
        /// Its name.
        name: String,
        /// The file that it stands in.
        file: PathBuf,
    },
    /// `-c KEY=VALUE`.
    Override,
    /// An option of the command line.
    Flag {
        /// As it is written, like `--sandbox`.
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset { name } => write!(f, "preset {name}"),
            Self::User { file } | Self::Project { file } => write!(f, "{}", file.display()),
            Self::Profile { name, file } => write!(f, "profile {name} in {}", file.display()),
            Self::Override => f.write_str("-c"),
            Self::Flag { name } => f.write_str(name),
        }
    }
}

/// One source of settings. What is in it has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    origin: Origin,
    table: Table,
}

/// An override or an edit that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// There is no `=` in it.
    #[error("{given:?} is no setting; write KEY=VALUE, like sandbox_mode=read-only")]
    NoValue {
        /// What was written.
        given: String,
    },
    /// The key is not one.
    #[error(
        "{key:?} is no name of a setting; write names with dots between them, like audit.fsync"
    )]
    Key {
        /// What was written.
        key: String,
    },
    /// The value does not fit, or there is no such setting.
    #[error("{}", listed(.0))]
    Value(Vec<Problem>),
}

/// What was written stands in the command line that was just typed: it needs no place in a file.
fn listed(problems: &[Problem]) -> String {
    problems.iter().map(Problem::in_words).collect::<Vec<_>>().join("\n")
}

/// Where relative paths in a layer begin, and where `~/` is.
#[derive(Debug, Clone, Copy)]
pub struct Anchor<'a> {
    /// Where relative paths begin; absolute.
    pub directory: &'a Path,
    /// The person's home directory, if it is known.
    pub home: Option<&'a Path>,
}

impl Layer {
    /// The settings of a file, with what there is to say about it.
    ///
    /// # Errors
    /// Everything that is wrong with it; then none of it is to be used.
    pub fn read(
        text: &str,
        file: &Path,
        owner: Owner,
        anchor: Anchor<'_>,
    ) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let Checked { mut table, warnings } = check(text, &file.display().to_string(), owner)?;
        anchor_paths(&mut table, anchor);
        let file = file.to_owned();
        let origin = match owner {
            Owner::Person => Origin::User { file },
            Owner::Project => Origin::Project { file },
        };
        Ok((Self { origin, table }, warnings))
    }

    /// `-c KEY=VALUE`: a value of TOML, or a text without its quotes.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have that value.
    pub fn of_override(given: &str, anchor: Anchor<'_>) -> Result<Self, OverrideError> {
        let Some((key, value)) = given.split_once('=') else {
            return Err(OverrideError::NoValue { given: given.to_owned() });
        };
        let mut table = parse_setting(key.trim(), value.trim(), "-c")?.table;
        anchor_paths(&mut table, anchor);
        Ok(Self { origin: Origin::Override, table })
    }

    /// What an option of the command line stands for.
    pub fn of_flag(flag: &str, settings: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut table = Table::new();
        for (key, value) in settings {
            let path: Vec<&str> = key.split('.').collect();
            insert(&mut table, &path, value);
        }
        Self { origin: Origin::Flag { name: flag.to_owned() }, table }
    }

    /// The same source with other settings.
    pub(crate) fn with_table(&self, table: Table) -> Self {
        Self { origin: self.origin.clone(), table }
    }

    /// Where its values come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What it sets.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// A setting that was written on the command line.
pub(crate) struct ParsedSetting {
    /// Its path.
    pub(crate) path: Vec<String>,
    /// The value, as TOML.
    pub(crate) value: String,
    /// Both as a table.
    pub(crate) table: Table,
}

/// Reads a setting that was written on the command line. Here a key that has no meaning is an error:
/// the person waits for what it does.
pub(crate) fn parse_setting(
    key: &str,
    value: &str,
    label: &str,
) -> Result<ParsedSetting, OverrideError> {
    let path = toml_edit::Key::parse(key)
        .map_err(|_| OverrideError::Key { key: key.to_owned() })?
        .iter()
        .map(|part| part.get().to_owned())
        .collect();
    let checked = |value: String| {
        let text = format!("{key} = {value}");
        match check(&text, label, Owner::Person) {
            Ok(Checked { table, warnings }) if warnings.is_empty() => Ok((value, table)),
            Ok(Checked { warnings, .. }) => Err(warnings),
            Err(problems) => Err(problems),
        }
    };
    let quoted = Value::from(value).to_string();
    let is_value = toml::de::DeValue::parse(value).is_ok();
    // Where a text is wanted, what merely looks like a number is one too.
    let (value, table) = match is_value {
        true => checked(value.to_owned()).or_else(|first| checked(quoted).map_err(|_| first)),
        false => checked(quoted),
    }
    .map_err(OverrideError::Value)?;
    Ok(ParsedSetting { path, value, table })
}

/// Puts a value into a table, and makes the tables on the way.
pub(crate) fn insert(table: &mut Table, path: &[impl AsRef<str>], value: Value) {
    match path {
        [] => {}
        [key] => {
            table.insert(key.as_ref().to_owned(), value);
        }
        [key, rest @ ..] => {
            let below = table.entry(key.as_ref()).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

/// The settings that hold a path or a list of paths; `*` is any name.
const PATHS: &[&[&str]] = &[
    &["sandbox_workspace_write", "writable_roots"],
    &["codex_linux_sandbox_exe"],
    &["rules"],
    &["model_providers", "*", "key_file"],
    &["model_providers", "*", "ca_file"],
    &["mcp_servers", "*", "cwd"],
    &["mcp_servers", "*", "writable_roots"],
];

/// Makes the paths in a layer absolute, so that they mean the same wherever they are used.
fn anchor_paths(table: &mut Table, anchor: Anchor<'_>) {
    for path in PATHS {
        anchor_path(table, path, anchor);
    }
    if let Some(Value::Table(profiles)) = table.get_mut("profiles") {
        for profile in profiles.iter_mut().filter_map(|(_, profile)| profile.as_table_mut()) {
            anchor_paths(profile, anchor);
        }
    }
}

fn anchor_path(table: &mut Table, path: &[&str], anchor: Anchor<'_>) {
    let (name, below) = match path {
        [] => return,
        ["*", below @ ..] => {
            for below_any in table.iter_mut().filter_map(|(_, value)| value.as_table_mut()) {
                anchor_path(below_any, below, anchor);
            }
            return;
        }
        [name, below @ ..] => (name, below),
    };
    match table.get_mut(*name) {
        Some(Value::Table(table)) => anchor_path(table, below, anchor),
        Some(Value::Array(paths)) => paths.iter_mut().for_each(|path| make_absolute(path, anchor)),
        Some(path) => make_absolute(path, anchor),
        None => {}
    }
}

fn make_absolute(value: &mut Value, anchor: Anchor<'_>) {
    if let Value::String(text) = value {
        let path = match (text.strip_prefix("~/"), text.as_str(), anchor.home) {
            (Some(rest), _, Some(home)) => home.join(rest),
            (None, "~", Some(home)) => home.to_owned(),
            _ => anchor.directory.join(&*text),
        };
        *text = without_dots(&path).display().to_string();
    }
}

/// A path without `.` in it. `..` stays: only the file system knows where it leads.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}
