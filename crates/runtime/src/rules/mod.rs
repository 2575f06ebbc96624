//! The files that rules are kept in.

use sandgate_policy::rules::Rules;
use std::path::{Path, PathBuf};

/// A file whose rules are not used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
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
    pub broken: Vec<RulesError>,
}

/// Reads one file.
///
/// # Errors
/// When it cannot be read or is not in order.
pub fn load_file(path: &Path) -> Result<Rules, RulesError> {
    let unreadable = |cause| RulesError::Unreadable { path: path.to_owned(), cause };
    match std::fs::read_to_string(path).map_err(unreadable)?.trim().is_empty() {
        true => Ok(Rules::default()),
        false => Err(RulesError::Broken { path: path.to_owned() }),
    }
}

/// Reads the rules of a config home.
pub fn load(_home: &Path) -> Loaded {
    Loaded::default()
}
