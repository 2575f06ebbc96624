//! A tree for people: a line each, and what belongs to it beneath it.

use anstyle::{AnsiColor, Effects, Style};
use std::fmt::Write as _;

/// Something of ours that is worth seeing first.
pub(super) const STRONG: Style = Style::new().effects(Effects::BOLD);
/// What only explains.
pub(super) const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// It runs.
pub(super) const GOOD: Style = AnsiColor::Green.on_default().effects(Effects::BOLD);
/// Somebody should look.
pub(super) const OPEN: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
/// It does not run, or should not.
pub(super) const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// A line and what belongs to it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    line: String,
    branches: Vec<Tree>,
}

impl Tree {
    pub(super) fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), branches: Vec::new() }
    }

    pub(super) fn push(&mut self, branch: impl Into<Tree>) {
        self.branches.push(branch.into());
    }

    pub(super) fn with(mut self, branches: impl IntoIterator<Item: Into<Tree>>) -> Self {
        self.branches.extend(branches.into_iter().map(Into::into));
        self
    }

    /// All of its lines.
    pub(super) fn render(&self) -> String {
        // Writing to a string does not fail.
        let mut text = String::new();
        let _ = writeln!(text, "{}", self.line);
        self.beneath("", &mut text);
        text
    }

    fn beneath(&self, indent: &str, text: &mut String) {
        for (index, branch) in self.branches.iter().enumerate() {
            let last = index + 1 == self.branches.len();
            let (knee, deeper) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let _ = writeln!(text, "{FAINT}{indent}{knee}{FAINT:#}{}", branch.line);
            branch.beneath(&format!("{indent}{deeper}"), text);
        }
    }
}

impl From<String> for Tree {
    fn from(line: String) -> Self {
        Self::new(line)
    }
}

/// A text in a style.
pub(super) fn painted(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
