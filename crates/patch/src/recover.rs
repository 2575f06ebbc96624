//! Puts in order what a crash left: a patch that was not done to the end is undone, one that was is
//! cleared up after.

use crate::apply::{Step, Swap};
use crate::journal::{Journals, Written};
use crate::undo::{Left, LeftAlone, finish, undo};
use std::io;
use std::path::{Path, PathBuf};

/// A patch that a crash had broken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What was done about it.
    pub resolution: Resolution,
    /// The files that it was about; its journal if that cannot be read.
    pub files: Vec<PathBuf>,
    /// Those of them that are not as they should be.
    pub left_alone: Vec<LeftAlone>,
}

/// What was done about a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It was undone: none of it is there, but for what was left alone.
    Undone,
    /// It had been done: all of it is there.
    Finished,
    /// Its journal cannot be read; nothing was done.
    Unreadable,
}

/// The journals cannot be looked through.
#[derive(Debug, thiserror::Error)]
#[error("cannot look for unfinished patches in {}: {source}", directory.display())]
pub struct RecoverError {
    /// Where they are.
    pub directory: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Settles every patch whose journal is in a directory and whose writer is gone. Waits for writers
/// that are not. Doing it twice is the same as doing it once, and breaking it off does no harm.
///
/// # Errors
/// When the directory cannot be read. What could not be put back is no error; it is told.
pub fn recover(journals: &Path) -> Result<Vec<Recovered>, RecoverError> {
    recover_observed(journals, Swap::InOneStep, &mut |_| {})
}

pub(crate) fn recover_observed(
    directory: &Path,
    swap: Swap,
    observe: &mut dyn FnMut(Step),
) -> Result<Vec<Recovered>, RecoverError> {
    let settled = match directory.try_exists() {
        Ok(true) => Journals::lock(directory).and_then(|held| settle(&held, swap, observe)),
        Ok(false) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    settled.map_err(|source| RecoverError { directory: directory.to_owned(), source })
}

/// Settles what others left. Whoever is about to begin a patch does it first: a second patch on top of
/// half of one could not be told from it.
pub(crate) fn settle(
    journals: &Journals,
    swap: Swap,
    observe: &mut dyn FnMut(Step),
) -> io::Result<Vec<Recovered>> {
    let mut recovered = Vec::new();
    for (path, written) in journals.left()? {
        let (journal, resolution, left_alone) = match written {
            Written::Unfinished => {
                journals.remove(&path)?;
                continue;
            }
            Written::Unreadable => {
                let resolution = Resolution::Unreadable;
                recovered.push(Recovered { resolution, files: vec![path], left_alone: Vec::new() });
                continue;
            }
            Written::Begun(journal, phase) => {
                let left = undo(&journal, phase, swap, observe);
                (journal, Resolution::Undone, left)
            }
            Written::Committed(journal) => {
                let left = finish(&journal, observe);
                (journal, Resolution::Finished, left)
            }
        };
        if may_forget(&left_alone) {
            journals.remove(&path)?;
        }
        let files = journal.tasks.iter().map(|task| task.place.path()).collect();
        recovered.push(Recovered { resolution, files, left_alone });
    }
    Ok(recovered)
}

/// Whether nothing is left to be tried again.
pub(crate) fn may_forget(left_alone: &[LeftAlone]) -> bool {
    !left_alone.iter().any(|left| matches!(left.why, Left::Refused(_)))
}
