//! Finds conversations by their names, and lists them.

use super::{Entry, Line, RolloutError, SessionMeta, directory};
use sandgate_protocol::{ResponseItem, Role};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// How many bytes at the beginning of a file are looked at for a list.
const LOOKED_AT: u64 = 1024 * 1024;

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// How it began.
    pub meta: SessionMeta,
    /// What the person said first.
    pub prompt: Option<String>,
    /// When it was last written to.
    pub changed: jiff::Timestamp,
    /// The file.
    pub path: PathBuf,
}

/// The conversations on disk that are wanted, the one that was last written to first; at most `most`.
/// Files that are no conversations, and those in which nothing was said, are passed over.
///
/// # Errors
/// When the directory cannot be listed.
pub fn list(
    config_home: &Path,
    most: usize,
    is_wanted: impl Fn(&SessionMeta) -> bool,
) -> Result<Vec<Found>, RolloutError> {
    let mut files = Vec::new();
    collect(&directory(config_home), 3, &mut files)?;
    files.sort_by(|one, other| other.cmp(one));
    let look = |(changed, path): (std::time::SystemTime, PathBuf)| {
        let (meta, prompt) = look_at(&path).filter(|(meta, _)| is_wanted(meta))?;
        let changed = jiff::Timestamp::try_from(changed).ok()?;
        Some(Found { meta, prompt, changed, path })
    };
    Ok(files.into_iter().filter_map(look).take(most).collect())
}

/// The file of the conversation whose name begins like this.
///
/// # Errors
/// When there is none, or more than one.
pub fn find(config_home: &Path, name: &str) -> Result<PathBuf, RolloutError> {
    let mut files = Vec::new();
    collect(&directory(config_home), 3, &mut files)?;
    let stem = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let fits =
        |path: &PathBuf| !name.is_empty() && stem(path).is_some_and(|id| id.starts_with(name));
    let mut found = files.into_iter().map(|(_, path)| path).filter(fits);
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        (Some(_), Some(_)) => Err(RolloutError::Ambiguous(name.to_owned())),
        (None, _) => Err(RolloutError::NotFound(name.to_owned())),
    }
}

/// The files below a directory, as deep as years, months and days go.
fn collect(
    directory: &Path,
    levels: usize,
    into: &mut Vec<(std::time::SystemTime, PathBuf)>,
) -> Result<(), RolloutError> {
    let entries = match directory.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(RolloutError::doing("list", directory)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(RolloutError::doing("list", directory))?;
        let path = entry.path();
        let Ok(found) = entry.metadata() else { continue };
        if found.is_dir() && levels > 0 {
            collect(&path, levels - 1, into)?;
        } else if found.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
            into.push((found.modified().unwrap_or(std::time::UNIX_EPOCH), path));
        }
    }
    Ok(())
}

/// How a conversation begins, and what the person said first.
fn look_at(path: &Path) -> Option<(SessionMeta, Option<String>)> {
    let file = sandgate_runtime::open_file(path).ok()?;
    let mut entries = BufReader::new(file.take(LOOKED_AT)).lines().map_while(Result::ok);
    let entry = |line: String| serde_json::from_str::<Line>(&line).ok().map(|line| line.entry);
    let Entry::SessionMeta(meta) = entry(entries.next()?)? else { return None };
    // A program that was killed before anything was said has left the first line.
    let mut entries = entries.filter_map(entry).peekable();
    entries.peek()?;
    let prompt = entries.find_map(|entry| match entry {
        Entry::Item { item: item @ ResponseItem::Message { role: Role::User, .. } } => item.text(),
        _ => None,
    });
    Some((meta, prompt))
}
