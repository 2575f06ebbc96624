//! A plan as people are shown it: a unified diff that git can read, and a summary.

use crate::paths::shown;
use crate::plan::{FileChange, Plan};
use similar::{ChangeTag, DiffTag, TextDiff};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

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
        text.push_str(&unified(&from, &to, old, new, None));
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

/// The way from one text to another as git writes it: the two names and the hunks, nothing if the texts
/// are the same. What is not UTF-8 is replaced. After `patience` a way longer than need be will do.
pub fn unified(from: &str, to: &str, old: &[u8], new: &[u8], patience: Option<Duration>) -> String {
    let (old, new) = (lines(old), lines(new));
    let mut config = TextDiff::configure();
    config.newline_terminated(true);
    if let Some(patience) = patience {
        config.timeout(patience);
    }
    let diff = config.diff_slices(&old, &new);
    let mut text = String::new();
    for hunk in diff.unified_diff().iter_hunks() {
        if text.is_empty() {
            let _ = write!(text, "--- {from}\n+++ {to}\n");
        }
        let _ = writeln!(text, "{}", hunk.header());
        for change in hunk.iter_changes() {
            let line: &[u8] = change.value();
            text.push_str(match change.tag() {
                ChangeTag::Equal => " ",
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
            });
            text.push_str(&String::from_utf8_lossy(line));
            // Not what the crate would do: to it a CR alone ends a line too.
            if !line.ends_with(b"\n") {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_alone_ends_no_line() {
        let expected = "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\r\n\\ No newline at end of file\n";
        assert_eq!(unified("a", "b", b"", b"x\r", None), expected);
        assert_eq!(unified("a", "b", b"x\r", b"x\r", None), "");
    }
}
