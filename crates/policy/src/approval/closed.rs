//! What an answer about a whole directory does not reach: a home as such, protected names, the
//! settings, and what the danger tables name.
//!
//! A person who lets an agent work on a directory means its files, not what shells, logins, git or
//! agents obey there.

use crate::danger;
use crate::surroundings::Surroundings;
use sandgate_protocol::may_be_protected;
use std::path::{Path, PathBuf};

/// What an answer about a whole directory does not reach. All paths are absolute and canonical.
#[derive(Debug, Clone, Default)]
pub(super) struct Closed {
    around: Surroundings,
    settings: Option<PathBuf>,
}

/// Why a directory cannot be opened as a whole.
pub(super) enum ClosedRoot {
    /// It is a home, or holds one.
    HoldsHome,
    /// It is what this says.
    Kept(&'static str),
}

impl Closed {
    pub(super) fn new(around: Surroundings, settings: Option<PathBuf>) -> Self {
        Self { around, settings }
    }

    /// Whether a file belongs to the settings, by which everything here is decided.
    pub(super) fn is_settings(&self, path: &Path) -> bool {
        self.settings.as_ref().is_some_and(|settings| path.starts_with(settings))
    }

    /// What a path is, if it must be asked about by itself.
    pub(super) fn kept(&self, path: &Path) -> Option<&'static str> {
        if self.is_settings(path) {
            return Some("where the settings are");
        }
        if path.iter().any(may_be_protected) {
            return Some("protected");
        }
        danger::kept(path, &self.around)
    }

    /// Why a directory cannot be opened as a whole, if it cannot.
    pub(super) fn root(&self, root: &Path) -> Option<ClosedRoot> {
        if danger::holds_home(root, &self.around) {
            return Some(ClosedRoot::HoldsHome);
        }
        self.kept(root).map(ClosedRoot::Kept)
    }
}
