//! What is wrong or odd in a file, where, and what could be written instead.

use sandgate_protocol::{is_invisible, is_odd_blank, visible_line};
use std::fmt;
use std::ops::Range;

/// The most characters of a line that are shown.
const MAX_SHOWN: usize = 120;

/// One thing in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as a person would name it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The setting, like `sandbox_workspace_write.network_access`; empty if it is not about one.
    pub key: String,
    /// What is wrong.
    pub fault: Fault,
    /// What could be written instead, or what becomes of it.
    pub advice: String,
    /// The part of the line that is shown, made harmless for a terminal.
    shown: String,
    /// Which characters of it are meant.
    marked: Range<usize>,
}

/// What is wrong with something in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// A value that the setting cannot have.
    #[error("{key} cannot be {given}")]
    Value {
        /// The setting.
        key: String,
        /// What was written.
        given: String,
    },
    /// A name that an entry of a table cannot have.
    #[error("{key} cannot have an entry called {given}")]
    Name {
        /// The table.
        key: String,
        /// What was written.
        given: String,
    },
    /// Something that a setting cannot be used with, as it is told by what reads it.
    #[error("this cannot be used: {0}")]
    Unusable(String),
    /// There is no such setting.
    #[error("there is no setting called {key}")]
    Unknown {
        /// As it was written.
        key: String,
    },
    /// There was such a setting.
    #[error("{key} does nothing any more")]
    Removed {
        /// The setting.
        key: String,
    },
    /// A setting where it does not count.
    #[error("{key} does not count {place}")]
    Misplaced {
        /// The setting.
        key: String,
        /// Where it stands.
        place: &'static str,
    },
}

impl Fault {
    /// Whether the file can be used all the same.
    pub fn is_warning(&self) -> bool {
        !matches!(
            self,
            Self::Syntax(_) | Self::Value { .. } | Self::Name { .. } | Self::Unusable(_)
        )
    }
}

impl Problem {
    /// A problem at some bytes of a text.
    pub(crate) fn new(
        place: (&str, &str, Range<usize>),
        key: &str,
        fault: Fault,
        advice: String,
    ) -> Self {
        let (file, text, place) = place;
        let border = |byte: usize| text.floor_char_boundary(byte.min(text.len()));
        let (start, end) = (border(place.start), border(place.end));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[..line_start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        let before = text[line_start..start].chars().count();
        let meant = text[start..end.clamp(start, line_end)].trim_end().chars().count().max(1);

        // Of a long line, what is around the place.
        let from = if before + meant <= MAX_SHOWN { 0 } else { before.saturating_sub(20) };
        let content = text[line_start..line_end].trim_end_matches('\r');
        let shown = content.chars().skip(from).take(MAX_SHOWN).map(harmless).collect();
        let marked = before - from..(before - from + meant).min(MAX_SHOWN);
        Self {
            file: file.to_owned(),
            line,
            column: before + 1,
            key: key.to_owned(),
            fault,
            advice,
            shown,
            marked,
        }
    }
}

impl Problem {
    /// The same in a line, without the place: for what stands in no file.
    pub(crate) fn in_words(&self) -> String {
        format!("{}: {}", visible_line(&self.fault.to_string()), visible_line(&self.advice))
    }
}

/// One column wide, and nothing that a terminal obeys, that changes how the line reads or that is not what it
/// looks like.
pub(crate) fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() || is_invisible(other) || is_odd_blank(other) => '\u{fffd}',
        other => other,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.marked.start);
        let carets = "^".repeat(self.marked.len().max(1));
        let file = visible_line(&self.file);
        let fault = visible_line(&self.fault.to_string());
        writeln!(f, "{file}:{}:{}: {fault}", self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.shown)?;
        writeln!(f, "{gutter} | {indent}{carets}")?;
        write!(f, "{gutter} = {}", visible_line(&self.advice))
    }
}
