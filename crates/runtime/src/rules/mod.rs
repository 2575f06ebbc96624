//! The files that rules are kept in.

use sandgate_policy::rules::Rules;
use std::path::{Path, PathBuf};

/// A file whose rules are not used.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// It holds something that is no rule.
    #[error("{}:1:1: rules files cannot be read yet", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
    },
}

/// The rules in effect, and the files that are not used.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All rules of all files that are in order.
    pub rules: Rules,
    /// Why others are not used.
    pub broken: Vec<RulesFileError>,
}

/// Reads one file.
///
/// # Errors
/// When it cannot be read or is not in order.
pub fn load_file(path: &Path) -> Result<Rules, RulesFileError> {
    let unreadable = |cause| RulesFileError::Unreadable { path: path.to_owned(), cause };
    match std::fs::read_to_string(path).map_err(unreadable)?.trim().is_empty() {
        true => Ok(Rules::default()),
        false => Err(RulesFileError::Broken { path: path.to_owned() }),
    }
}

/// Where the rules of the project come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectRules {
    /// There is none, or it is not trusted.
    None,
}

/// Reads the rules in the person's settings and in a trusted project.
pub fn load(_home: &Path, _project: ProjectRules) -> Loaded {
    Loaded::default()
}
