//! What a person has approved for the rest of the session.
//!
//! It lives as long as the session and is written nowhere. Forgetting is always allowed, because
//! then a person is asked again; remembering too much never is.

use super::ApprovalKey;
use super::closed::{Closed, ClosedRoot};
use crate::surroundings::Surroundings;
use sandgate_protocol::{AskForApproval, ReviewDecision};
use std::collections::{HashSet, VecDeque};
use std::path::{Component, Path, PathBuf};

/// How many keys are remembered.
pub const MAX_KEYS: usize = 10_000;

/// How many directories can be open to patches.
pub const MAX_ROOTS: usize = 100;

/// What a person has approved for the rest of the session.
///
/// ```
/// use sandgate_policy::{ApprovalKey, ApprovalStore, Remembered};
/// use sandgate_protocol::{AskForApproval, ReviewDecision};
///
/// let mut store = ApprovalStore::default();
/// let keys = [ApprovalKey::patch("/work/src/main.rs")];
/// assert_eq!(store.look_up(AskForApproval::OnRequest, &keys), Remembered::Nothing);
/// store.record(&ReviewDecision::ApprovedForSession, &keys);
/// assert_eq!(store.look_up(AskForApproval::OnRequest, &keys), Remembered::Approved);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ApprovalStore {
    keys: HashSet<ApprovalKey>,
    /// The same keys, oldest first.
    order: VecDeque<ApprovalKey>,
    patch_roots: Vec<PathBuf>,
    closed: Closed,
}

/// Whether a request was approved before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// All of it was, for the session.
    Approved,
    /// Not all of it.
    Nothing,
}

/// A directory that cannot be opened to patches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootRefused {
    /// It depends on where one stands.
    #[error("{} is not absolute; name the directory by its whole path", .0.display())]
    NotAbsolute(PathBuf),
    /// It may be another directory than it looks.
    #[error("{} climbs; name the directory that it leads to", .0.display())]
    Climbs(PathBuf),
    /// It holds all that there is.
    #[error("{} is everything; name a directory in it", .0.display())]
    Everything(PathBuf),
    /// It holds what a person would not think of.
    #[error("{} holds a home; name a directory in it", .0.display())]
    HoldsHome(PathBuf),
    /// It must be asked about file by file.
    #[error("{} is {what}; approve its files one by one", root.display())]
    Kept {
        /// The directory.
        root: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// There are too many.
    #[error("{MAX_ROOTS} directories are open to patches already; approve the files one by one")]
    TooMany,
}

impl ApprovalStore {
    /// A store that remembers nothing yet. `around` and `settings`, the directory that the person's
    /// settings are in, say what an answer about a whole directory does not reach.
    pub fn new(around: Surroundings, settings: Option<PathBuf>) -> Self {
        Self { closed: Closed::new(around, settings), ..Self::default() }
    }

    /// Whether an answer to a request with these keys can be remembered. One about the settings
    /// cannot: each change of them is asked about.
    pub fn can_remember(&self, keys: &[ApprovalKey]) -> bool {
        keys.len() <= MAX_KEYS && !keys.iter().any(|key| self.is_settings(key))
    }

    fn is_settings(&self, key: &ApprovalKey) -> bool {
        match key {
            ApprovalKey::Command { .. } => false,
            ApprovalKey::Patch { file } => self.closed.is_settings(file),
        }
    }

    /// Takes note of a person's answer, if it is meant to be remembered. All keys of the request are
    /// kept or, if they are more than are ever remembered or one never is, none.
    pub fn record(&mut self, decision: &ReviewDecision, keys: &[ApprovalKey]) {
        let for_session = *decision == ReviewDecision::ApprovedForSession;
        if !for_session || !self.can_remember(keys) {
            return;
        }
        for key in keys {
            if self.keys.insert(key.clone()) {
                self.order.push_back(key.clone());
            }
        }
        while self.keys.len() > MAX_KEYS {
            let Some(oldest) = self.order.pop_front() else { break };
            self.keys.remove(&oldest);
        }
    }

    /// Whether a directory, absolute and canonical, could be opened to patches.
    ///
    /// # Errors
    /// When it could be more than the person thinks.
    pub fn check_root(&self, root: &Path) -> Result<(), RootRefused> {
        if !root.is_absolute() {
            return Err(RootRefused::NotAbsolute(root.to_owned()));
        }
        if climbs(root) {
            return Err(RootRefused::Climbs(root.to_owned()));
        }
        if !root.components().any(|part| matches!(part, Component::Normal(_))) {
            return Err(RootRefused::Everything(root.to_owned()));
        }
        match self.closed.root(root) {
            Some(ClosedRoot::HoldsHome) => return Err(RootRefused::HoldsHome(root.to_owned())),
            Some(ClosedRoot::Kept(what)) => {
                return Err(RootRefused::Kept { root: root.to_owned(), what });
            }
            None => {}
        }
        if self.patch_roots.len() >= MAX_ROOTS && !self.is_open(root) {
            return Err(RootRefused::TooMany);
        }
        Ok(())
    }

    /// Opens a directory, absolute and canonical, to patches for the session: a person wants to be
    /// asked about no file beneath it but those that must be asked about by themselves.
    ///
    /// # Errors
    /// When it could be more than the person thinks.
    pub fn open_to_patches(&mut self, root: &Path) -> Result<(), RootRefused> {
        self.check_root(root)?;
        if !self.is_open(root) {
            self.patch_roots.push(root.to_owned());
        }
        Ok(())
    }

    fn is_open(&self, directory: &Path) -> bool {
        self.patch_roots.iter().any(|open| directory.starts_with(open))
    }

    /// Whether each of these keys has been approved for the session. A request without keys has not
    /// been, and under `never` nothing counts.
    pub fn look_up(&self, policy: AskForApproval, keys: &[ApprovalKey]) -> Remembered {
        if policy != AskForApproval::Never
            && !keys.is_empty()
            && keys.iter().all(|key| self.holds(key))
        {
            Remembered::Approved
        } else {
            Remembered::Nothing
        }
    }

    fn holds(&self, key: &ApprovalKey) -> bool {
        let beneath_open_root = match key {
            ApprovalKey::Command { .. } => false,
            ApprovalKey::Patch { file } => {
                !climbs(file)
                    && self.patch_roots.iter().any(|root| file != root && file.starts_with(root))
                    && self.closed.kept(file).is_none()
            }
        };
        beneath_open_root || self.keys.contains(key)
    }
}

/// Whether a path goes up somewhere, so that its beginning does not say where it leads.
fn climbs(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests;
