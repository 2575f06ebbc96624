//! Changes the contents of a file by hunks, and says where it went wrong if it did.

use crate::lines::{End, Line, join, split};
use crate::patch::{Hunk, HunkLine};
use crate::seek::{Haystack, Nearest};
use std::fmt;

/// A hunk that does not fit the file. Reads as several lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The line after `@@` is not in the file, or not after the hunk before.
    #[error("{}", context_message(*at, context, *after, *earlier))]
    NoContext {
        /// The line of the patch that the hunk begins at.
        at: usize,
        /// What was looked for.
        context: String,
        /// The line of the file that was looked after; 0 for the beginning.
        after: usize,
        /// A line before that one where it is.
        earlier: Option<usize>,
    },
    /// Its lines are not in the file.
    #[error("{}", lines_message(*at, expected, place))]
    NoLines {
        /// The line of the patch that the hunk begins at.
        at: usize,
        /// The lines that were looked for.
        expected: Vec<String>,
        /// What is there instead.
        place: Place,
    },
}

/// What is known about the lines that are not where they should be. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// All of them are in the file, but before the hunk before, or before its context.
    Earlier {
        /// Where.
        line: usize,
        /// The line that they should come after.
        after: usize,
    },
    /// All of them are in the file, but not at its end, as `*** End of File` says.
    NotAtEnd {
        /// Where.
        line: usize,
    },
    /// Some of them are.
    Near {
        /// Where the first of them would be.
        line: usize,
        /// How many of them.
        same: usize,
        /// The first line that differs.
        differs_at: usize,
        /// As it was expected.
        expected: String,
        /// As it is; nothing where the file has ended.
        found: Option<String>,
    },
    /// None of them is.
    Nowhere,
}

/// How much of what was looked for an error shows.
const SHOWN_LINES: usize = 20;
const SHOWN_CHARS: usize = 200;

/// The contents after all hunks.
///
/// Lines that stay are the file's own, also where the hunk has them with other white space. A new line
/// ends as the line before it does, and the file goes on to have a final newline, or to have none.
pub(crate) fn rewrite(old: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, Mismatch> {
    let lines = split(old);
    let file = Haystack::new(lines.iter().map(|line| line.text).collect());
    let mut new: Vec<Line<'_>> = Vec::with_capacity(lines.len());
    let mut next = 0;
    for hunk in hunks {
        let found = locate(&file, hunk, next)?;
        new.extend_from_slice(&lines[next..found.start]);
        next = found.start;
        for line in &hunk.lines[..hunk.lines.len() - found.dropped] {
            match line {
                HunkLine::Keep(_) => {
                    new.push(lines[next]);
                    next += 1;
                }
                HunkLine::Remove(_) => next += 1,
                HunkLine::Add(text) => {
                    let beside = next.saturating_sub(1);
                    let end = lines.get(beside).map_or(End::None, |line| line.end);
                    new.push(Line { text: text.as_bytes(), end });
                }
            }
        }
    }
    new.extend_from_slice(&lines[next..]);
    let open = lines.last().is_some_and(|line| line.end == End::None);
    Ok(join(&new, open))
}

/// Where a hunk belongs.
struct Located {
    start: usize,
    /// How many of its last lines are left out: empty ones that the file does not have.
    dropped: usize,
}

fn locate(file: &Haystack<'_>, hunk: &Hunk, next: usize) -> Result<Located, Mismatch> {
    let mut from = next;
    for context in &hunk.contexts {
        let Some(place) = file.find(&[context.as_bytes()], from) else {
            return Err(Mismatch::NoContext {
                at: hunk.at,
                context: cut(context.as_bytes()),
                after: from,
                earlier: file.find(&[context.as_bytes()], 0).map(|place| place + 1),
            });
        };
        from = place + 1;
    }
    let wanted: Vec<&[u8]> =
        hunk.lines.iter().filter_map(HunkLine::before).map(str::as_bytes).collect();
    if wanted.is_empty() {
        // Only new lines: after their context if they have one, else at the end.
        let at_context = !hunk.contexts.is_empty() && !hunk.end_of_file;
        return Ok(Located { start: if at_context { from } else { file.len() }, dropped: 0 });
    }
    let find = |wanted: &[&[u8]], from| {
        if hunk.end_of_file { file.find_at_end(wanted, from) } else { file.find(wanted, from) }
    };
    let mut found = find(&wanted, from).map(|start| Located { start, dropped: 0 });
    if found.is_none() && from > next {
        // The line after `@@` is often written once more as the first of the hunk.
        found = find(&wanted, from - 1).map(|start| Located { start, dropped: 0 });
    }
    if found.is_none()
        && let Some(HunkLine::Keep(last)) = hunk.lines.last()
        && last.is_empty()
        && wanted.len() > 1
    {
        // An empty line behind the last one is how a final newline is often written.
        let shorter = &wanted[..wanted.len() - 1];
        found = find(shorter, from)
            .filter(|start| start + shorter.len() == file.len())
            .map(|start| Located { start, dropped: 1 });
    }
    found.ok_or_else(|| Mismatch::NoLines {
        at: hunk.at,
        expected: wanted.iter().take(SHOWN_LINES + 1).map(|line| cut(line)).collect(),
        place: explain(file, &wanted, from, hunk.end_of_file),
    })
}

/// What to say about lines that were not found.
fn explain(file: &Haystack<'_>, wanted: &[&[u8]], from: usize, at_end: bool) -> Place {
    if at_end && let Some(place) = file.find(wanted, from) {
        return Place::NotAtEnd { line: place + 1 };
    }
    if let Some(place) = file.find(wanted, 0) {
        return Place::Earlier { line: place + 1, after: from };
    }
    match file.nearest(wanted) {
        Some(Nearest { start, same, first_difference }) => Place::Near {
            line: start + 1,
            same,
            differs_at: start + first_difference + 1,
            expected: wanted.get(first_difference).map(|line| cut(line)).unwrap_or_default(),
            found: file.line(start + first_difference).map(cut),
        },
        None => Place::Nowhere,
    }
}

/// A line as an error shows it.
fn cut(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

fn context_message(at: usize, context: &str, after: usize, earlier: Option<usize>) -> String {
    let mut message = match (after, earlier) {
        (_, Some(line)) if after > 0 => format!(
            "the hunk at line {at} of the patch: `{context}` is at line {line} of the file, before \
             the change above it (line {after}); hunks must follow the order of the file"
        ),
        _ => format!("the hunk at line {at} of the patch: no line of the file is `{context}`"),
    };
    if context.starts_with('-') && context.trim_end().ends_with("@@") {
        message.push_str("; write `@@` alone, or `@@` and a line of the file, not line numbers");
    }
    message
}

fn lines_message(at: usize, expected: &[String], place: &Place) -> String {
    let mut message = format!("the hunk at line {at} of the patch expects these lines:\n");
    for line in expected.iter().take(SHOWN_LINES) {
        message.push_str(&format!("    {line}\n"));
    }
    if expected.len() > SHOWN_LINES {
        message.push_str("    …\n");
    }
    message + &place.to_string()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earlier { line, after } => write!(
                f,
                "they are at line {line} of the file, before what the hunk must come after (line \
                 {after}); hunks must follow the order of the file"
            ),
            Self::NotAtEnd { line } => {
                write!(f, "they are at line {line} of the file, which is not its end")
            }
            Self::Near { line, same, differs_at, expected, found } => {
                let are = if *same == 1 { "1 of them is" } else { &format!("{same} of them are") };
                write!(f, "{are} at line {line} of the file; the first that differs is line ")?;
                match found {
                    Some(found) => {
                        write!(f, "{differs_at}: expected `{expected}`, found `{found}`")
                    }
                    None => write!(f, "{differs_at}: expected `{expected}`, the file ends before"),
                }
            }
            Self::Nowhere => f.write_str("none of them is in the file; read it again"),
        }
    }
}
