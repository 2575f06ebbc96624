//! Changes of files, as lines.

use crate::text::{harmless, wrap};
use crate::theme::{ACCENT, BAD, DIM, GOOD, PLAIN, STRONG};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sandgate_protocol::{PatchChange, PatchChangeKind};
use std::path::Path;

/// How much of a diff is drawn. The rest is counted.
const MOST_LINES: usize = 4000;

/// A path on one line.
pub(crate) fn shown_path(path: &Path) -> String {
    harmless(&path.to_string_lossy())
}

/// The letter by which a change is known.
pub(crate) fn letter(kind: PatchChangeKind) -> (char, Style) {
    match kind {
        PatchChangeKind::Add => ('A', GOOD),
        PatchChangeKind::Delete => ('D', BAD),
        PatchChangeKind::Update => ('M', ACCENT),
    }
}

/// How many lines a diff adds and removes.
pub(crate) fn counts(diff: &str) -> (usize, usize) {
    let mut counts = (0, 0);
    for line in diff.lines() {
        match line.as_bytes() {
            [b'+', rest @ ..] if !rest.starts_with(b"++ ") => counts.0 += 1,
            [b'-', rest @ ..] if !rest.starts_with(b"-- ") => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

/// The files of a patch, a line each: what becomes of them, where they go, how much changes.
pub(crate) fn files(changes: &[PatchChange], width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for change in changes {
        let (letter, style) = letter(change.kind);
        let (added, removed) = counts(&change.diff);
        let mut spans = vec![Span::styled(shown_path(&change.path), STRONG)];
        if let Some(target) = &change.moved_to {
            spans.push(Span::styled(" → ", DIM));
            spans.push(Span::styled(shown_path(target), STRONG));
        }
        spans.push(Span::styled(format!("  +{added}"), GOOD));
        spans.push(Span::styled(format!(" -{removed}"), BAD));
        let lead = Span::styled(format!("{letter} "), style);
        rows.extend(wrap(&Line::from(spans), width, &lead, &Span::raw("  ")));
    }
    rows
}

/// A unified diff with the numbers of its lines.
pub(crate) fn unified(diff: &str, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    let total = diff.lines().count();
    for line in diff.lines().take(MOST_LINES) {
        let body = line.get(1..).unwrap_or("");
        let (number, mark, text, style) = match line.as_bytes().first() {
            _ if line.starts_with("+++ ")
                || line.starts_with("--- ")
                || line.starts_with("diff ") =>
            {
                (None, ' ', line, STRONG)
            }
            Some(b'@') => {
                (old, new) = hunk(line).unwrap_or((0, 0));
                (None, ' ', line, ACCENT)
            }
            Some(b'+') => {
                new += 1;
                (Some(new - 1), '+', body, GOOD)
            }
            Some(b'-') => {
                old += 1;
                (Some(old - 1), '-', body, BAD)
            }
            Some(b' ') => {
                (old, new) = (old + 1, new + 1);
                (Some(new - 1), ' ', body, PLAIN)
            }
            _ => (None, ' ', line, DIM),
        };
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let lead =
            Span::styled(format!("{number:>4} {mark} "), if mark == ' ' { DIM } else { style });
        let more = Span::styled("     ↪ ", DIM);
        rows.extend(wrap(&Line::styled(harmless(text), style), width, &lead, &more));
    }
    if total > MOST_LINES {
        let hidden = total - MOST_LINES;
        rows.push(Line::styled(format!("[{hidden} more lines are not shown]"), ACCENT));
    }
    rows
}

/// The first line numbers of a hunk, before and after.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ').skip(1);
    let mut number = |mark| {
        let word = words.next()?.strip_prefix(mark)?;
        word.split(',').next()?.parse().ok()
    };
    Some((number('-')?, number('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers() {
        let diff = "--- a/x\n+++ b/x\n@@ -3,2 +3,3 @@\n same\n-old\n+new\n+more\x1b[2J\n";
        let rows = unified(diff, 40);
        let text: Vec<String> = rows
            .iter()
            .map(|row| row.spans.iter().map(|span| span.content.as_ref()).collect())
            .collect();
        assert_eq!(text[3..], ["   3   same", "   4 - old", "   4 + new", "   5 + more\\u{1b}[2J"]);
        assert_eq!(counts(diff), (2, 1));
    }
}
