//! A plan as people are shown it: a unified diff that git can read, and a summary.

use crate::paths::shown;
use crate::plan::{FileChange, Plan};
use similar::{DiffTag, TextDiff};
use std::fmt::Write as _;
use std::path::Path;

/// How many lines a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

/// So many bytes of a file are looked at to tell whether it is text.
const TELLING_BYTES: usize = 8 << 10;

const NOWHERE: &str = "/dev/null";

impl Plan {
    /// The diffs of all changes, one after the other.
    pub fn diff(&self) -> String {
        self.changes.iter().map(|change| change.diff(&self.base)).collect()
    }

    /// One line for each change: `A PATH`, `M PATH`, `D PATH` or `R PATH -> PATH`.
    pub fn summary(&self) -> String {
        let mut summary = String::new();
        for change in &self.changes {
            let _ = writeln!(summary, "{}", change.summary(&self.base));
        }
        summary
    }

    /// How many lines all changes add and remove.
    pub fn counts(&self) -> Counts {
        self.changes.iter().map(FileChange::counts).fold(Counts::default(), |sum, counts| Counts {
            added: sum.added + counts.added,
            removed: sum.removed + counts.removed,
        })
    }
}

impl FileChange {
    /// A unified diff, with paths from `base`. What is not UTF-8 is replaced, so that what `git apply`
    /// reads is the same for text only.
    pub fn diff(&self, base: &Path) -> String {
        let name = |path: &Path| shown(path, base).trim_start_matches('/').to_owned();
        let old_name = name(self.path());
        let new_name = match self {
            Self::Update { move_to: Some(to), .. } => name(to),
            _ => old_name.clone(),
        };
        let mut text = format!("diff --git a/{old_name} b/{new_name}\n");
        let (mut from, mut to) = (format!("a/{old_name}"), format!("b/{new_name}"));
        match self {
            Self::Add { .. } => {
                text.push_str("new file mode 100644\n");
                from = NOWHERE.to_owned();
            }
            Self::Delete { .. } => {
                text.push_str("deleted file mode 100644\n");
                to = NOWHERE.to_owned();
            }
            Self::Update { move_to: Some(_), .. } => {
                let _ = write!(text, "rename from {old_name}\nrename to {new_name}\n");
            }
            Self::Update { .. } => {}
        }
        let (old, new) = self.sides();
        if old == new {
            return text;
        }
        if is_binary(old) || is_binary(new) {
            let _ = writeln!(text, "Binary files {from} and {to} differ");
            return text;
        }
        let (old, new) = (lines(old), lines(new));
        let diff = compare(&old, &new);
        let _ = write!(text, "{}", diff.unified_diff().header(&from, &to));
        text
    }

    /// One line: a letter as git writes it, and the path from `base`.
    pub fn summary(&self, base: &Path) -> String {
        let path = shown(self.path(), base);
        match self {
            Self::Add { .. } => format!("A {path}"),
            Self::Delete { .. } => format!("D {path}"),
            Self::Update { move_to: None, .. } => format!("M {path}"),
            Self::Update { move_to: Some(to), .. } => format!("R {path} -> {}", shown(to, base)),
        }
    }

    /// How many lines it adds and removes.
    pub fn counts(&self) -> Counts {
        let (old, new) = self.sides();
        let (old, new) = (lines(old), lines(new));
        if old.is_empty() || new.is_empty() {
            return Counts { added: new.len(), removed: old.len() };
        }
        let diff = compare(&old, &new);
        let mut counts = Counts::default();
        for op in diff.ops() {
            match op.tag() {
                DiffTag::Equal => {}
                _ => {
                    counts.added += op.new_range().len();
                    counts.removed += op.old_range().len();
                }
            }
        }
        counts
    }

    fn sides(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Add { contents, .. } => (&[], contents),
            Self::Delete { old, .. } => (old, &[]),
            Self::Update { old, new, .. } => (old, new),
        }
    }
}

/// Only LF ends a line, as it does for git.
fn lines(contents: &[u8]) -> Vec<&[u8]> {
    contents.split_inclusive(|byte| *byte == b'\n').collect()
}

fn compare<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> TextDiff<'a, 'a, [u8]> {
    TextDiff::configure().newline_terminated(true).diff_slices(old, new)
}

fn is_binary(contents: &[u8]) -> bool {
    contents[..contents.len().min(TELLING_BYTES)].contains(&0)
}
