//! What files held before patches changed them, as the patches themselves know it.

use super::baseline::Baseline;
use super::walk::{Kind, Stamp};
use sandgate_patch::{FileChange, Plan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files as they were before the first patch of the turn that changed them, by their paths from the top
/// of the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Originals {
    files: BTreeMap<PathBuf, Original>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Original {
    Absent,
    File { contents: Arc<[u8]>, executable: bool },
}

impl Originals {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Original> {
        self.files.get(path)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }

    /// Remembers what a plan's files hold, unless a command of the turn changed them before.
    pub(super) fn remember(&mut self, plan: &Plan, root: &Path, baseline: Option<&Baseline>) {
        for change in &plan.changes {
            let path = change.path();
            match change {
                FileChange::Add { .. } => self.insert(path, None, root, baseline),
                FileChange::Delete { old, .. } => self.insert(path, Some(old), root, baseline),
                FileChange::Update { old, move_to, .. } => {
                    self.insert(path, Some(old), root, baseline);
                    if let Some(to) = move_to {
                        self.insert(to, None, root, baseline);
                    }
                }
            }
        }
    }

    fn insert(&mut self, path: &Path, old: Option<&[u8]>, root: &Path, from: Option<&Baseline>) {
        let Ok(inside) = path.strip_prefix(root) else { return };
        if self.files.contains_key(inside) {
            return;
        }
        let now = Stamp::at(path);
        if let Some(baseline) = from {
            let same = match (baseline.files.get(inside), &now) {
                (Some(seen), Some(now)) => seen.stamp == *now && !seen.unsettled,
                (Some(_), None) => false,
                // Made in this turn, or ignored and older than it.
                (None, Some(now)) => !now.changed_since(baseline.began),
                (None, None) => true,
            };
            if !same {
                return;
            }
        }
        let original = match (old, now) {
            (Some(contents), Some(now)) if now.kind == Kind::File => {
                Original::File { contents: contents.into(), executable: now.executable }
            }
            _ => Original::Absent,
        };
        self.files.insert(inside.to_owned(), original);
    }
}
