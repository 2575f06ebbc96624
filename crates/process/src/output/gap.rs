//! The one line that stands where output was left out.

use sandgate_protocol::Spilled;
use std::fmt::Write as _;

/// What is missing at one place of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gap {
    /// Newlines among the missing bytes.
    pub(super) lines: u64,
    /// Missing bytes.
    pub(super) bytes: u64,
}

impl Gap {
    /// Two gaps that became one.
    pub(super) fn and(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, bytes: self.bytes + other.bytes }
    }

    /// The line, without a newline at its end.
    pub(super) fn line(self, spill: Option<&Spilled>) -> String {
        let Self { lines, bytes } = self;
        let mut line = format!("[… {lines} lines, {bytes} bytes omitted");
        if let Some(Spilled { id: Some(id), bytes, complete, .. }) = spill {
            let _ = match complete {
                true => write!(line, "; full output: {id}"),
                false => write!(line, "; first {bytes} bytes: {id}"),
            };
        }
        line.push_str(" …]");
        line
    }
}

/// Both sides of a gap with its line between them, which starts on a line of its own.
pub(super) fn around(head: &str, gap_line: &str, tail: &str) -> String {
    let mut text = String::with_capacity(head.len() + gap_line.len() + tail.len() + 2);
    text.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(gap_line);
    text.push('\n');
    text.push_str(tail);
    text
}
