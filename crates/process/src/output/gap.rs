//! The one line that stands where output was left out, written and read here and nowhere else.

use super::head_tail::count_newlines;
use std::fmt::Write as _;

/// What is missing at one place of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// Newlines among the missing bytes.
    pub(super) lines: u64,
    /// Missing bytes.
    pub(super) bytes: u64,
}

const OPENING: &str = "[… ";
const CLOSING: &str = " …]";
const LINES: &str = " lines, ";
const BYTES: &str = " bytes omitted";
const FULL_OUTPUT: &str = "; full output: ";

impl Gap {
    /// The gap that leaving out this text makes.
    pub(super) fn of(text: &str) -> Self {
        Self { lines: count_newlines(text.as_bytes()), bytes: text.len() as u64 }
    }

    /// Two gaps that became one.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            lines: self.lines.saturating_add(other.lines),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The line, without a newline at its end.
    pub(super) fn line(self, spill: Option<&str>) -> String {
        let Self { lines, bytes } = self;
        let mut line = format!("{OPENING}{lines}{LINES}{bytes}{BYTES}");
        if let Some(id) = spill {
            let _ = write!(line, "{FULL_OUTPUT}{id}");
        }
        line.push_str(CLOSING);
        line
    }

    /// Reads a line that [`Self::line`] wrote. A program can print such a line too, so only a line
    /// whose place is known from elsewhere may be read as a gap.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let inner = line.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
        let (lines, rest) = inner.split_once(LINES)?;
        let (bytes, spill) = rest.split_once(BYTES)?;
        if !spill.is_empty() && !spill.starts_with(FULL_OUTPUT) {
            return None;
        }
        Some(Self { lines: lines.parse().ok()?, bytes: bytes.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_line_is_read_as_it_was_written() {
        let gap = Gap { lines: 12, bytes: 3_456 };
        assert_eq!(gap.line(None), "[… 12 lines, 3456 bytes omitted …]");
        assert_eq!(
            gap.line(Some("output-x")),
            "[… 12 lines, 3456 bytes omitted; full output: output-x …]"
        );
        assert_eq!(Gap::parse(&gap.line(None)), Some(gap));
        assert_eq!(Gap::parse(&gap.line(Some("output-x"))), Some(gap));
        assert_eq!(Gap::parse("[… 12 lines, many bytes omitted …]"), None);
        assert_eq!(Gap::parse("[… 12 lines, 3456 bytes omitted, he said …]"), None);
    }
}
