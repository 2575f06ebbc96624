//! What is different from before: each file that changed, with what it held and what it holds.

use super::baseline::{Baseline, Held, LARGEST_FILE, Seen, read, says_what_is_ignored};
use super::patched::{Original, Originals};
use super::walk::{Kind, MOST_FILES, PATIENCE, Reach, Stamp, Walk};
use crate::git::ObjectName;
use crate::tools::said_of;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of how many files the contents are compared.
const MOST_CHANGES: usize = 2_000;

/// Everything that changed, in the order of the paths.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) changes: Vec<Change>,
    /// What is to be said besides.
    pub(super) notes: Vec<String>,
}

/// A file that may have changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) old: Side,
    pub(super) new: Side,
}

/// A file before or after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Side {
    Absent,
    There { mode: Mode, size: u64, held: Held },
}

/// What a file is to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Regular,
    Executable,
    Link,
}

impl Found {
    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The objects that hold what files held, with their lengths.
    pub(super) fn objects(&self) -> Vec<(ObjectName, u64)> {
        let wanted = self.changes.iter().filter_map(|change| match change.old {
            Side::There { size, held: Held::Object(name), .. } => Some((name, size)),
            _ => None,
        });
        wanted.collect()
    }

    /// Puts in what was found in those.
    pub(super) fn fill_in(&mut self, read: &HashMap<ObjectName, Arc<[u8]>>) {
        for change in &mut self.changes {
            if let Side::There { held, .. } = &mut change.old
                && let Held::Object(name) = held
            {
                *held = read.get(name).map_or(Held::NotKept, |text| Held::Contents(text.clone()));
            }
        }
    }
}

/// Looks at the workspace again and finds what is different.
pub(super) fn changes(root: &Path, before: Option<&Baseline>, originals: &Originals) -> Found {
    let mut found = Found::default();
    let mut paths: BTreeSet<PathBuf> = originals.paths().cloned().collect();
    let mut now = HashMap::new();
    if let Some(before) = before {
        let walk = Walk::of(root, MOST_FILES, PATIENCE * 2);
        if before.reach == Reach::Partial || walk.reach == Reach::Partial {
            found.note(format!(
                "the workspace is too large to be looked at whole: what changed beyond {} files is \
                 not here",
                before.files.len().min(walk.files.len())
            ));
        }
        let mut left_out = [before.left_out.as_slice(), &walk.left_out].concat();
        left_out.sort_unstable();
        left_out.dedup();
        said_of(&left_out).into_iter().for_each(|said| found.note(said));
        now = walk.files.into_iter().collect();
        paths.extend(different(root, before, &mut now, &mut found));
    }
    for (index, path) in paths.iter().enumerate() {
        if index == MOST_CHANGES {
            found.note(format!("{} more files were changed", paths.len() - MOST_CHANGES));
            break;
        }
        let old = match (originals.get(path), before.and_then(|before| before.files.get(path))) {
            (Some(Original::Absent), _) => Side::Absent,
            (Some(Original::File { contents, executable }), _) => Side::There {
                mode: if *executable { Mode::Executable } else { Mode::Regular },
                size: contents.len() as u64,
                held: Held::Contents(Arc::clone(contents)),
            },
            (None, Some(seen)) => side(&seen.stamp, seen.held.clone()),
            (None, None) => Side::Absent,
        };
        let whole = root.join(path);
        let stamp = now.get(path).copied().or_else(|| Stamp::at(&whole));
        let new = match stamp {
            None => Side::Absent,
            Some(stamp) if stamp.size > LARGEST_FILE => side(&stamp, Held::NotKept),
            Some(stamp) => {
                let held = read(&whole, stamp.kind).map_or(Held::NotKept, Held::Contents);
                side(&stamp, held)
            }
        };
        found.changes.push(Change { path: path.clone(), old, new });
    }
    found
}

fn side(stamp: &Stamp, held: Held) -> Side {
    let mode = match (stamp.kind, stamp.executable) {
        (Kind::Link, _) => Mode::Link,
        (Kind::File, true) => Mode::Executable,
        (Kind::File, false) => Mode::Regular,
    };
    Side::There { mode, size: stamp.size, held }
}

/// The paths that look different from before.
fn different(
    root: &Path,
    before: &Baseline,
    now: &mut HashMap<PathBuf, Stamp>,
    found: &mut Found,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (path, seen) in &before.files {
        // What is ignored by now, or was not reached this time, is looked for by its name.
        let stamp = now.get(path).copied().or_else(|| Stamp::at(&root.join(path)));
        if let Some(stamp) = stamp {
            now.insert(path.clone(), stamp);
        }
        if is_different(seen, stamp) {
            paths.push(path.clone());
        }
    }
    let rules_changed = paths.iter().any(|path| says_what_is_ignored(path))
        || now.keys().any(|path| says_what_is_ignored(path) && !before.files.contains_key(path));
    let mut unknown = 0;
    for (path, stamp) in now.iter().filter(|(path, _)| !before.files.contains_key(*path)) {
        let is_older = !stamp.changed_since(before.began);
        let was_left_out = before.left_out.iter().any(|directory| path.starts_with(directory));
        match if was_left_out { Reach::Partial } else { before.reach } {
            // It was there before, only ignored.
            Reach::Whole if rules_changed && is_older => {}
            Reach::Whole => paths.push(path.clone()),
            Reach::Partial if is_older => {}
            Reach::Partial => unknown += 1,
        }
    }
    if unknown > 0 {
        found.note(format!("{unknown} files that had not been looked at were made or changed"));
    }
    paths
}

fn is_different(seen: &Seen, now: Option<Stamp>) -> bool {
    seen.unsettled || now != Some(seen.stamp)
}
