//! The files that rules are kept in: `rules/*.toml` in the person's settings, and the same in the
//! `.codex` directory of a project that the person trusts.
//!
//! What the files say is read by `sandgate_policy::rules`, which opens none. Here they are found, read
//! within limits and without following links, and one of them is written: the rules that a person
//! approves go into `default.toml`, whole or not at all.

mod add;
mod directory;
mod load;

pub use add::append_rule;
pub use load::{Loaded, ProjectRules, load, load_file};

use sandgate_policy::rules::{MAX_RULES_BYTES, RulesError};
use std::io;
use std::path::PathBuf;

/// A rules file, or the directory of such, that could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesFileError {
    /// Something in it is wrong.
    #[error(transparent)]
    Broken(#[from] RulesError),
    /// A link stands in its place.
    #[error("{} is a link, and rules are not read through links; put the rules there themselves", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// It is no file, or its directory is no directory.
    #[error("{} is not a {wanted}; move it away", .path.display())]
    WrongKind {
        /// What was found.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// It is larger than a person would write.
    #[error("{} has more than {MAX_RULES_BYTES} bytes; split it into several files", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not text.
    #[error("{} is not UTF-8 text; save it as that", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There are more files than a person would write.
    #[error("{} holds more than {max} rules files, and only the first are read; join some of them", .path.display())]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// How many are read.
        max: usize,
    },
    /// It belongs to somebody else, and would not be theirs any more.
    #[error("{} belongs to another user, so nothing is written to it", .path.display())]
    OfAnother {
        /// The directory.
        path: PathBuf,
    },
    /// The system did not let us.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl RulesFileError {
    /// For `map_err`: what was tried, with what.
    fn doing(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
