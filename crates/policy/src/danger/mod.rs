//! Commands that can destroy, give away or take over more than an agent's work should: found in
//! whatever can be made out of a script, through the wrappers around them.

use crate::script::Reading;
use crate::surroundings::Surroundings;

/// A danger that was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Danger {
    /// What it would do, in a person's words.
    pub reason: String,
    /// Which of the reading's commands it was found in.
    pub command: usize,
}

/// The first danger in a reading.
pub fn find(_reading: &Reading, _around: &Surroundings) -> Option<Danger> {
    None
}
