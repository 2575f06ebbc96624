//! Reads the text of a patch: strictly, and with errors that a model can mend it by.
//!
//! Few things are let pass that the language does not have, because models write them all the time:
//! blank lines around the patch and between its sections, white space behind a marker, a
//! here-document's words around everything, lines that end in CR LF, an empty line where a line of a
//! single space is meant, and a first hunk without its `@@`.

use crate::patch::{Hunk, HunkLine, Patch, Section};
use std::iter::Peekable;
use std::str::FromStr;

/// The longest text that is read, in bytes.
pub const LARGEST_TEXT: usize = 10 << 20;

/// The most sections and hunks of one patch, together.
pub const MOST_PARTS: usize = 10_000;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// How much of a line is quoted in an error.
const QUOTED_CHARS: usize = 80;

/// A text that is no patch, and where it stops being one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a text. Lines are quoted as they were written, long ones cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is longer than [`LARGEST_TEXT`].
    #[error("the patch has {bytes} bytes, more than the {LARGEST_TEXT} that are allowed; split it")]
    TooLarge {
        /// How long it is.
        bytes: usize,
    },
    /// It has more parts than [`MOST_PARTS`].
    #[error("the patch has more than {MOST_PARTS} sections and hunks; split it")]
    TooManyParts,
    /// It does not begin as a patch does.
    #[error("expected `*** Begin Patch`, found {found}")]
    NoBegin {
        /// What stands there.
        found: String,
    },
    /// It ends before it says so.
    #[error("expected `*** End Patch` at the end, but the text ends here")]
    NoEnd,
    /// Something follows its end.
    #[error("expected nothing after `*** End Patch`, found {found}")]
    AfterEnd {
        /// What stands there.
        found: String,
    },
    /// There is no section in it.
    #[error(
        "the patch changes no file; expected `*** Add File: PATH`, `*** Delete File: PATH` or \
         `*** Update File: PATH`"
    )]
    NoSections,
    /// A line outside a section that begins none.
    #[error(
        "expected `*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or \
         `*** End Patch`, found {found}"
    )]
    NoHeader {
        /// What stands there.
        found: String,
    },
    /// A section without the path of its file.
    #[error("a path must follow `{marker}` on the same line")]
    NoPath {
        /// What it should have followed.
        marker: &'static str,
    },
    /// A line of a new file that is not marked as such.
    #[error("every line of a new file begins with `+`, found {found}")]
    NotAdded {
        /// What stands there.
        found: String,
    },
    /// A section that removes a file, with lines.
    #[error("`*** Delete File` takes no lines, found {found}")]
    LinesInDelete {
        /// What stands there.
        found: String,
    },
    /// An update that updates nothing.
    #[error("`*** Update File` without a change; expected `@@` and lines, or `*** Move to: PATH`")]
    NoHunks,
    /// A hunk without lines.
    #[error("expected lines that begin with ` `, `+` or `-` after `@@`, found {found}")]
    EmptyHunk {
        /// What stands there.
        found: String,
    },
    /// A line of a hunk that says neither to keep, nor to add, nor to remove it.
    #[error(
        "every line of a hunk begins with ` ` (keep), `+` (add) or `-` (remove), or is `@@`, found \
         {found}"
    )]
    NoMark {
        /// What stands there.
        found: String,
    },
    /// Lines after the end of a file.
    #[error("expected `@@` or the next section after `*** End of File`, found {found}")]
    AfterEndOfFile {
        /// What stands there.
        found: String,
    },
}

impl FromStr for Patch {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > LARGEST_TEXT {
            return fail(1, Problem::TooLarge { bytes: text.len() });
        }
        let (first, lines) = unwrapped(text);
        let mut parser = Parser { lines: lines.iter().copied().peekable(), next: first, parts: 0 };
        parser.patch()
    }
}

fn fail<T>(line: usize, problem: Problem) -> Result<T, ParseError> {
    Err(ParseError { line, problem })
}

/// The lines of the patch itself, with the number of the first: no blank lines around them, and no
/// here-document.
fn unwrapped(text: &str) -> (usize, Vec<&str>) {
    let lines: Vec<&str> = text.lines().collect();
    let is_blank = |line: &&str| line.trim().is_empty();
    let first = lines.iter().take_while(|line| is_blank(line)).count();
    let behind = lines[first..].iter().rev().take_while(|line| is_blank(line)).count();
    let inner = &lines[first..lines.len() - behind];
    if let [opening, body @ .., closing] = inner
        && let Some(word) = here_document_word(opening.trim())
        && closing.trim() == word
    {
        return (first + 2, body.to_vec());
    }
    (first + 1, inner.to_vec())
}

/// The word that ends the here-document which a line begins.
fn here_document_word(line: &str) -> Option<&str> {
    let quoted = line.strip_prefix("<<")?.trim_start();
    let unquote = |quote| quoted.strip_prefix(quote)?.strip_suffix(quote);
    let word = unquote('\'').or_else(|| unquote('"')).unwrap_or(quoted);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_word.then_some(word)
}

/// A line as an error shows it.
fn quoted(line: Option<&str>) -> String {
    match line {
        None => "the end of the text".to_owned(),
        Some("") => "an empty line".to_owned(),
        Some(line) => match line.char_indices().nth(QUOTED_CHARS) {
            Some((end, _)) => format!("`{}…`", &line[..end]),
            None => format!("`{line}`"),
        },
    }
}

struct Parser<'a, I: Iterator<Item = &'a str>> {
    lines: Peekable<I>,
    /// The number of the line that comes next.
    next: usize,
    parts: usize,
}

impl<'a, I: Iterator<Item = &'a str>> Parser<'a, I> {
    fn patch(&mut self) -> Result<Patch, ParseError> {
        let found = self.peek();
        if found.is_none_or(|line| line.trim() != BEGIN) {
            return fail(self.next, Problem::NoBegin { found: quoted(found) });
        }
        self.advance();
        let mut sections = Vec::new();
        loop {
            self.skip_blank();
            let at = self.next;
            let Some(line) = self.advance() else { return fail(at, Problem::NoEnd) };
            if line.trim_end() == END {
                break;
            }
            self.count_part(at)?;
            sections.push(self.section(at, line)?);
        }
        self.skip_blank();
        if let Some(line) = self.peek() {
            return fail(self.next, Problem::AfterEnd { found: quoted(Some(line)) });
        }
        if sections.is_empty() {
            return fail(self.next - 1, Problem::NoSections);
        }
        Ok(Patch { sections })
    }

    fn section(&mut self, at: usize, header: &str) -> Result<Section, ParseError> {
        if let Some(path) = path_after(ADD, header, at)? {
            return Ok(Section::Add { path, lines: self.added_lines()?, at });
        }
        if let Some(path) = path_after(DELETE, header, at)? {
            self.skip_blank();
            return match self.peek() {
                Some(line) if !line.starts_with("***") => {
                    fail(self.next, Problem::LinesInDelete { found: quoted(Some(line)) })
                }
                _ => Ok(Section::Delete { path, at }),
            };
        }
        if let Some(path) = path_after(UPDATE, header, at)? {
            let move_to = match self.peek() {
                Some(line) => path_after(MOVE, line, self.next)?,
                None => None,
            };
            if move_to.is_some() {
                self.advance();
            }
            let hunks = self.hunks()?;
            if hunks.is_empty() && move_to.is_none() {
                return fail(at, Problem::NoHunks);
            }
            return Ok(Section::Update { path, move_to, hunks, at });
        }
        fail(at, Problem::NoHeader { found: quoted(Some(header)) })
    }

    fn added_lines(&mut self) -> Result<Vec<String>, ParseError> {
        let mut lines = Vec::new();
        loop {
            match self.peek() {
                Some(line) if line.starts_with('+') => lines.push(line[1..].to_owned()),
                Some(line) if is_marker(line) => return Ok(lines),
                None => return Ok(lines),
                Some("") => {
                    // Between two sections it says nothing, between two lines it is a mistake.
                    let at = self.next;
                    self.skip_blank();
                    match self.peek() {
                        Some(line) if !is_marker(line) => {
                            return fail(at, Problem::NotAdded { found: quoted(Some("")) });
                        }
                        _ => return Ok(lines),
                    }
                }
                Some(line) => {
                    return fail(self.next, Problem::NotAdded { found: quoted(Some(line)) });
                }
            }
            self.advance();
        }
    }

    fn hunks(&mut self) -> Result<Vec<Hunk>, ParseError> {
        let mut hunks: Vec<Hunk> = Vec::new();
        loop {
            // Not blank ones: a line of one space is a line of the hunk.
            while self.peek() == Some("") {
                self.advance();
            }
            let at = self.next;
            match self.peek() {
                None => return Ok(hunks),
                Some(line) if ends_section(line) => return Ok(hunks),
                Some(line) if !is_context(line) && !hunks.is_empty() => {
                    let found = quoted(Some(line));
                    return fail(at, Problem::AfterEndOfFile { found });
                }
                Some(_) => {
                    self.count_part(at)?;
                    hunks.push(self.hunk(at)?);
                }
            }
        }
    }

    fn hunk(&mut self, at: usize) -> Result<Hunk, ParseError> {
        let mut hunk = Hunk { at, ..Hunk::default() };
        while let Some(line) = self.peek().filter(|line| is_context(line)) {
            // Only the space that belongs to the marker is taken off: what follows may be indented.
            let context = line.strip_prefix("@@ ").unwrap_or_default();
            if !context.trim().is_empty() {
                hunk.contexts.push(context.to_owned());
            }
            self.advance();
        }
        // Empty lines count only if more of the hunk follows them.
        let mut empty = 0;
        loop {
            let read = match self.peek() {
                Some("") => {
                    empty += 1;
                    self.advance();
                    continue;
                }
                Some(line) if line.trim_end() == END_OF_FILE => {
                    hunk.end_of_file = true;
                    self.advance();
                    break;
                }
                Some(line) if is_context(line) || ends_section(line) => break,
                None => break,
                Some(line) => match line.split_at_checked(1) {
                    Some((" ", rest)) => HunkLine::Keep(rest.to_owned()),
                    Some(("-", rest)) => HunkLine::Remove(rest.to_owned()),
                    Some(("+", rest)) => HunkLine::Add(rest.to_owned()),
                    _ => return fail(self.next, Problem::NoMark { found: quoted(Some(line)) }),
                },
            };
            let kept = std::iter::repeat_n(HunkLine::Keep(String::new()), empty);
            empty = 0;
            hunk.lines.extend(kept);
            hunk.lines.push(read);
            self.advance();
        }
        if hunk.lines.is_empty() {
            return fail(self.next, Problem::EmptyHunk { found: quoted(self.peek()) });
        }
        Ok(hunk)
    }

    fn count_part(&mut self, at: usize) -> Result<(), ParseError> {
        self.parts += 1;
        if self.parts > MOST_PARTS { fail(at, Problem::TooManyParts) } else { Ok(()) }
    }

    fn peek(&mut self) -> Option<&'a str> {
        self.lines.peek().copied()
    }

    fn advance(&mut self) -> Option<&'a str> {
        let line = self.lines.next()?;
        self.next += 1;
        Some(line)
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.advance();
        }
    }
}

fn is_context(line: &str) -> bool {
    line.trim_end() == "@@" || line.starts_with("@@ ")
}

/// Whether a line ends the section that it follows: the header of the next, or the patch's end.
fn ends_section(line: &str) -> bool {
    line.trim_end() == END || [ADD, DELETE, UPDATE].iter().any(|marker| line.starts_with(marker))
}

fn is_marker(line: &str) -> bool {
    line.starts_with("***")
}

/// The path behind a marker, if the line begins with that marker.
fn path_after(marker: &'static str, line: &str, at: usize) -> Result<Option<String>, ParseError> {
    match line.strip_prefix(marker).map(str::trim) {
        None => Ok(None),
        Some("") => fail(at, Problem::NoPath { marker }),
        Some(path) => Ok(Some(path.to_owned())),
    }
}
