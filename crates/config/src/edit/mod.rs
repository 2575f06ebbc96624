//! Changes in the person's file that keep everything else as it was written: comments, order, blanks.

mod below;
mod put;
mod replace;

use crate::check::{Owner, check, dotted};
use crate::file::FileError;
use crate::layer::{OverrideError, parse_setting};
use crate::load::CONFIG_FILE;
use crate::problem::Problem;
use crate::settings::TrustLevel;
use below::HeldBelow;
use put::put;
use replace::Held;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Value};

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such setting, or it cannot have that value.
    #[error(transparent)]
    Setting(#[from] OverrideError),
    /// The file is broken; nothing is added to it.
    #[error("{}\nnothing was written", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Broken(Vec<Problem>),
    /// Something else than a table stands where one is needed.
    #[error("{key} cannot be set: something above it is not a table")]
    Shape {
        /// The setting.
        key: String,
    },
    /// A path that cannot be written down.
    #[error("{} cannot be written to a file, because it is not valid UTF-8", .path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A link that leads nowhere, or to something that is not the person's.
    #[error("{} is a link that leads nowhere; correct it or take it away", .path.display())]
    DeadLink {
        /// The link.
        path: PathBuf,
    },
}

/// Sets one setting in the person's file, or in a profile of it. The value is TOML, or a text without
/// its quotes. The directory and the file are made if they are not there, for their owner only.
/// Returns the file.
///
/// # Errors
/// When there is no such setting, it cannot have that value, or the file cannot be written. Then the
/// file is as it was.
pub fn set(
    config_home: &Path,
    profile: Option<&str>,
    key: &str,
    value: &str,
) -> Result<PathBuf, EditError> {
    let whole = match profile {
        Some(profile) => format!("{}.{key}", dotted(&["profiles", profile])),
        None => key.to_owned(),
    };
    let setting = parse_setting(&whole, value, "the value")?;
    let value: Value = setting.value.parse().map_err(|_| {
        // It has been read as TOML before; this is the same text in the other reader's eyes.
        OverrideError::NoValue { given: setting.value.clone() }
    })?;
    edit(config_home, |document| put(document, &setting.path, value))
}

/// Notes that the person trusts a root or does not, and which files they have seen. Of earlier
/// fingerprints the newest are kept, as the worktrees of one repository share what was said.
///
/// # Errors
/// When the file cannot be written. Then it is as it was.
pub fn set_trust(
    config_home: &Path,
    root: &Path,
    level: TrustLevel,
    seen: &[String],
) -> Result<PathBuf, EditError> {
    /// The most that is kept for one root.
    const MAX_SEEN: usize = 512;
    let Some(name) = root.to_str() else {
        return Err(EditError::NotText { path: root.to_owned() });
    };
    edit(config_home, |document| {
        for name in spellings(document, name) {
            let old = document.get("projects").and_then(|item| item.get(&name));
            let old = old.and_then(|item| item.get("seen")).and_then(Item::as_array);
            let had_any = old.is_some();
            let mut all: Vec<String> = old
                .filter(|_| level == TrustLevel::Trusted)
                .map(|old| old.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
                .unwrap_or_default();
            all.retain(|fingerprint| !seen.contains(fingerprint));
            all.extend(seen.iter().cloned());
            all.drain(..all.len().saturating_sub(MAX_SEEN));
            let word = match level {
                TrustLevel::Trusted => "trusted",
                TrustLevel::Untrusted => "untrusted",
            };
            let path = |key: &str| ["projects", &name, key].map(str::to_owned);
            put(document, &path("trust_level"), word.into())?;
            if had_any || !all.is_empty() {
                put(document, &path("seen"), Value::Array(all.iter().collect::<Array>()))?;
            }
        }
        Ok(())
    })
}

/// How a document names a path: perhaps in several ways, like with a slash at the end. What is said
/// about it now is said about each.
fn spellings(document: &DocumentMut, name: &str) -> Vec<String> {
    let projects = document.get("projects").and_then(Item::as_table_like);
    let names = projects.into_iter().flat_map(|projects| projects.iter().map(|(key, _)| key));
    let same = names.filter(|key| Path::new(key) == Path::new(name)).map(str::to_owned);
    let mut same: Vec<String> = same.collect();
    if same.is_empty() {
        same.push(name.to_owned());
    }
    same
}

/// Changes another file of the person's under a lock, all or nothing. `change` is given its text, if there is
/// one, and says what is to be there; nothing if the file is to stay as it is. Returns the file.
///
/// # Errors
/// When the file cannot be read or written. Then it is as it was.
pub fn change_own_file(
    directory: &Path,
    name: &str,
    change: impl FnOnce(Option<&str>) -> Option<String>,
) -> Result<PathBuf, EditError> {
    let held = Held::open(directory, name)?;
    if let Some(text) = change(held.read()?.as_deref()) {
        held.replace(&text)?;
    }
    Ok(held.path().to_owned())
}

/// Changes a file of a project, given by its names below the root, in the same way. No link below the root is
/// followed, and a directory that is missing is made.
///
/// # Errors
/// When the file cannot be read or written, or a link stands in its place or above it. Then it is as it was.
pub fn change_project_file(
    root: &Path,
    names: &[&str],
    change: impl FnOnce(Option<&str>) -> Option<String>,
) -> Result<PathBuf, EditError> {
    let held = HeldBelow::open(root, names)?;
    if let Some(text) = change(held.read()?.as_deref()) {
        held.replace(&text)?;
    }
    Ok(held.path().to_owned())
}

/// Changes the person's file under a lock, all or nothing.
fn edit(
    config_home: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<PathBuf, EditError> {
    let held = Held::open(config_home, CONFIG_FILE)?;
    let text = held.read()?.unwrap_or_default();
    let label = held.path().display().to_string();
    check(&text, &label, Owner::Person).map_err(EditError::Broken)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        // The other reader has accepted it; should the two ever differ, nothing is written.
        EditError::File(FileError::Io {
            action: "understand",
            path: held.path().to_owned(),
            source: std::io::Error::other(error.message().to_owned()),
        })
    })?;
    change(&mut document)?;
    let new = document.to_string();
    check(&new, &label, Owner::Person).map_err(EditError::Broken)?;
    if new != text {
        held.replace(&new)?;
    }
    Ok(held.path().to_owned())
}
