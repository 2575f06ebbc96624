//! What can be wrong with a log, in a person's words.

use super::folder::HEAD;
use serde::Serialize;
use std::fmt;

/// What came of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verification {
    /// How many files were read.
    pub files: u64,
    /// How many lines of the log were read.
    pub lines: u64,
    /// What is wrong, in the order of the log.
    pub findings: Vec<Finding<Problem>>,
    /// How many findings are not listed, because there are too many.
    pub more_findings: u64,
    /// What is worth knowing and is not wrong.
    pub notices: Vec<Finding<Notice>>,
    /// How many notices are not listed.
    pub more_notices: u64,
}

/// So many findings are listed, and so many notices.
const MOST: usize = 1000;

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn find(&mut self, place: Place<'_>, what: Problem) {
        match self.findings.len() {
            MOST => self.more_findings += 1,
            _ => self.findings.push(place.with(what)),
        }
    }

    pub(super) fn notice(&mut self, place: Place<'_>, what: Notice) {
        match self.notices.len() {
            MOST => self.more_notices += 1,
            _ => self.notices.push(place.with(what)),
        }
    }
}

/// Something about a place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding<T> {
    /// The file.
    pub file: String,
    /// Its line, where it is about one; the first is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What there is to say.
    #[serde(flatten)]
    pub what: T,
}

impl<T: fmt::Display> fmt::Display for Finding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Where something was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: Option<u64>,
}

impl Place<'_> {
    pub(super) const HEAD: Self = Self { file: HEAD, line: None };

    fn with<T>(self, what: T) -> Finding<T> {
        Finding { file: self.file.to_owned(), line: self.line, what }
    }
}

/// What is wrong. On the wire its name is in `problem`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The line does not have the hash that it must have.
    #[error("this line was changed after it was written")]
    Changed,
    /// It has not the form of a line.
    #[error("this is no line of the log; it was changed or put in")]
    NotALine,
    /// The file ends in the middle of a line that was whole once.
    #[error("the file ends in the middle of a line; its end was cut off")]
    EndsInALine,
    /// Numbers are left out.
    #[error("{} missing before this one, or its number was changed", numbers(*first, *last))]
    Lost {
        /// The first number that is not there.
        first: u64,
        /// The last.
        last: u64,
    },
    /// A number comes too late.
    #[error("this is number {seq} where {expected} belongs; it was moved here, or changed")]
    OutOfPlace {
        /// The number of the line.
        seq: u64,
        /// The number that belongs here.
        expected: u64,
    },
    /// The line stands here twice.
    #[error("this is the line before it once more")]
    Twice,
    /// A file is not there.
    #[error("{name} belongs before this file and is gone")]
    LostFile {
        /// Its name.
        name: String,
    },
    /// What an unfinished line was is not what its marker says.
    #[error("the unfinished line that this one tells of is gone, or was changed")]
    TornChanged,
    /// The log ends before its head says.
    #[error(
        "the end of the log was cut off: its head says that it reaches to number {sealed}, and \
         {} the last that is there",
        match last { 0 => "nothing is".to_owned(), last => format!("number {last} is") }
    )]
    CutOff {
        /// The number of the last line.
        last: u64,
        /// The number that the head says.
        sealed: u64,
    },
    /// There is no head.
    #[error("it is gone; without it nobody can tell whether the end of the log was cut off")]
    HeadGone,
    /// The head is none.
    #[error("it was changed, and says nothing that makes sense")]
    HeadUnreadable,
    /// The head says something else than the log.
    #[error("it does not fit the line that it names, number {seq}; it was changed")]
    HeadChanged {
        /// The line that it names.
        seq: u64,
    },
    /// The head is older than it can be.
    #[error(
        "it names number {seq}, and {lines} more lines follow; it was put back to an earlier \
         state, or the power went off"
    )]
    HeadBehind {
        /// The line that it names.
        seq: u64,
        /// How many lines follow.
        lines: u64,
    },
    /// A writer met damage and marked it.
    #[error("damage was found when this line was written: {what}")]
    Damaged {
        /// What did not fit.
        what: String,
    },
}

fn numbers(first: u64, last: u64) -> String {
    match first == last {
        true => format!("number {first} is"),
        false => format!("numbers {first} to {last} are"),
    }
}

fn records(count: u64) -> String {
    if count == 1 { "one record".to_owned() } else { format!("{count} records") }
}

/// What is worth knowing and is not wrong. On the wire its name is in `notice`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A line was never finished, and the one after it says so.
    #[error("{bytes} bytes of a line that was never finished; the next line says so")]
    Torn {
        /// How long it is.
        bytes: u64,
    },
    /// The last line was never finished; the next writer will say so.
    #[error("the last {bytes} bytes are a line that was never finished; the next writer closes it")]
    TornEnd {
        /// How long it is.
        bytes: u64,
    },
    /// The last line is not in the head yet.
    #[error("one line is not yet sealed; the next writer does that")]
    Unsealed,
    /// Records are missing that could not be written.
    #[error("{} could not be written before the line above: {why}", records(*count))]
    Unrecorded {
        /// How many.
        count: u64,
        /// Why not.
        why: String,
    },
}
