//! A patch as it was written: what its author asks for, and not yet what that means for any file.

use std::fmt;

/// A whole patch: what it does to some files, one section for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// In the order in which they were written, which is the order in which they are done.
    pub sections: Vec<Section>,
}

/// What a patch does to one file. Paths are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// Makes a file.
    Add {
        /// Where.
        path: String,
        /// Its lines, without their ends.
        lines: Vec<String>,
        /// The line of the text that the section begins at, from 1.
        at: usize,
    },
    /// Removes a file.
    Delete {
        /// Which.
        path: String,
        /// The line of the text that the section begins at, from 1.
        at: usize,
    },
    /// Changes a file, moves it, or both.
    Update {
        /// Which.
        path: String,
        /// Where it goes, if it goes anywhere.
        move_to: Option<String>,
        /// The changes, in the order of the file.
        hunks: Vec<Hunk>,
        /// The line of the text that the section begins at, from 1.
        at: usize,
    },
}

/// One change of a file: lines that are there, with those to add and to remove among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// Lines of the file that stand somewhere before the change, each to be looked for after the one
    /// before it. What follows `@@`.
    pub contexts: Vec<String>,
    /// The lines.
    pub lines: Vec<HunkLine>,
    /// Whether the change is at the very end of the file.
    pub end_of_file: bool,
    /// The line of the text that the hunk begins at, from 1.
    pub at: usize,
}

/// One line of a hunk, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// There, and stays.
    Keep(String),
    /// There, and goes.
    Remove(String),
    /// New.
    Add(String),
}

impl Section {
    /// The file that it is about, as it was written.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    /// The line of the text that it begins at, from 1.
    pub fn at(&self) -> usize {
        match self {
            Self::Add { at, .. } | Self::Delete { at, .. } | Self::Update { at, .. } => *at,
        }
    }
}

impl HunkLine {
    /// The line as the file has it before the change.
    pub fn before(&self) -> Option<&str> {
        match self {
            Self::Keep(line) | Self::Remove(line) => Some(line),
            Self::Add(_) => None,
        }
    }
}

/// The text that it is parsed from. What was left out or written in another way is written in the one
/// strict way.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "*** Begin Patch")?;
        for section in &self.sections {
            section.fmt(f)?;
        }
        writeln!(f, "*** End Patch")
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { path, lines, .. } => {
                writeln!(f, "*** Add File: {path}")?;
                lines.iter().try_for_each(|line| write_line(f, "+", line))
            }
            Self::Delete { path, .. } => writeln!(f, "*** Delete File: {path}"),
            Self::Update { path, move_to, hunks, .. } => {
                writeln!(f, "*** Update File: {path}")?;
                if let Some(move_to) = move_to {
                    writeln!(f, "*** Move to: {move_to}")?;
                }
                hunks.iter().try_for_each(|hunk| hunk.fmt(f))
            }
        }
    }
}

impl fmt::Display for Hunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.contexts.is_empty() {
            writeln!(f, "@@")?;
        }
        for context in &self.contexts {
            write_line(f, "@@ ", context)?;
        }
        for line in &self.lines {
            match line {
                HunkLine::Keep(line) => write_line(f, " ", line)?,
                HunkLine::Remove(line) => write_line(f, "-", line)?,
                HunkLine::Add(line) => write_line(f, "+", line)?,
            }
        }
        if self.end_of_file { writeln!(f, "*** End of File") } else { Ok(()) }
    }
}

/// Writes a line of a file. Whoever reads a text takes a carriage return at the end of a line for a part of its end,
/// so that one which belongs to the line needs another behind it.
fn write_line(f: &mut fmt::Formatter<'_>, mark: &str, line: &str) -> fmt::Result {
    let end = if line.ends_with('\r') { "\r\n" } else { "\n" };
    write!(f, "{mark}{line}{end}")
}
