//! Puts everything back that a journal says was begun, or clears away what was kept for that.
//!
//! The same code runs when something fails and when a crash is found. It looks at what is there and
//! not at how far anybody got: each file is its old self, its new self or something that somebody else
//! made of it, and the names beside it hold what we put there. So it can be broken off anywhere, and
//! begun again.

use crate::apply::{Step, Swap};
use crate::journal::{Digest, Journal, Phase, Task};
use crate::tree::{Directory, Entry, is_blocked};
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

/// A file that could not be put back, or not be cleared away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub why: Left,
    /// Where its former contents are.
    pub kept: Option<PathBuf>,
}

/// Why something was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Somebody changed it since.
    Changed,
    /// The system refused; it is tried again the next time.
    Refused(String),
}

impl std::fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.why {
            Left::Changed => write!(f, "{path} was changed since, and was left alone")?,
            Left::Refused(reason) => write!(f, "{path} could not be put back: {reason}")?,
        }
        match &self.kept {
            Some(kept) => write!(f, "; what it was before is in {}", kept.display()),
            None => Ok(()),
        }
    }
}

/// Puts back whatever was changed. Says what could not be.
pub(crate) fn undo(
    journal: &Journal,
    phase: Phase,
    swap: Swap,
    observe: &mut dyn FnMut(Step),
) -> Vec<LeftAlone> {
    let mut left = Vec::new();
    for (index, task) in journal.tasks.iter().enumerate().rev() {
        let done = match phase {
            Phase::Preparing => clear_away(journal, index, task),
            Phase::Changing => put_back(journal, index, task, swap),
        };
        left.extend(settled(task, done));
        observe(Step::PutBack);
    }
    for place in journal.directories.iter().rev() {
        let removed = place.directory().and_then(|above| {
            above.remove_empty_directory(place.name()?)?;
            above.sync()
        });
        if let Err(error) = removed
            && !is_gone(&error)
        {
            let why = Left::Refused(error.to_string());
            left.push(LeftAlone { path: place.path(), why, kept: None });
        }
        observe(Step::PutBack);
    }
    left
}

/// Clears away what was kept for undoing. Says what could not be.
pub(crate) fn finish(journal: &Journal, observe: &mut dyn FnMut(Step)) -> Vec<LeftAlone> {
    let mut left = Vec::new();
    for (index, task) in journal.tasks.iter().enumerate() {
        left.extend(settled(task, clear_away(journal, index, task)));
        observe(Step::OldRemoved);
    }
    // A name that comes back after a loss of power is litter and does no harm.
    let _ = journal.flush_directories();
    left
}

/// Removes what we put beside a file. Where the directory is gone there is nothing.
fn clear_away(journal: &Journal, index: usize, task: &Task) -> io::Result<Option<LeftAlone>> {
    let cleared = task.place.directory().and_then(|directory| {
        directory.remove(&journal.staged(index))?;
        directory.remove(&journal.aside(index))
    });
    match cleared {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(None),
    }
}

/// Whether a directory is no longer where it was, or not there yet.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || is_blocked(error)
}

fn settled(task: &Task, done: io::Result<Option<LeftAlone>>) -> Option<LeftAlone> {
    match done {
        Ok(left) => left,
        Err(error) => {
            let why = Left::Refused(error.to_string());
            Some(LeftAlone { path: task.place.path(), why, kept: None })
        }
    }
}

/// What a name holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Old,
    New,
    Another,
}

fn put_back(
    journal: &Journal,
    index: usize,
    task: &Task,
    swap: Swap,
) -> io::Result<Option<LeftAlone>> {
    let changed = |kept: Option<&OsStr>| {
        let kept = kept.map(|name| task.place.path().with_file_name(name));
        Ok(Some(LeftAlone { path: task.place.path(), why: Left::Changed, kept }))
    };
    let directory = match task.place.directory() {
        Ok(directory) => directory,
        // A file that was added is not there any more if its directory is not.
        Err(error) if error.kind() == io::ErrorKind::NotFound && task.before.is_none() => {
            return Ok(None);
        }
        Err(error) if is_gone(&error) => return changed(None),
        Err(error) => return Err(error),
    };
    let name = task.place.name()?;
    let (staged, aside) = (journal.staged(index), journal.aside(index));
    let holds = |name: &OsStr| -> io::Result<Holds> {
        Ok(match directory.read(name)? {
            Entry::Absent => Holds::Nothing,
            Entry::Other => Holds::Another,
            Entry::File { contents, .. } => {
                let digest = Some(Digest::of(&contents));
                match digest {
                    same if same == task.before => Holds::Old,
                    same if same == task.after => Holds::New,
                    _ => Holds::Another,
                }
            }
        })
    };
    let (file, beside, away) = (holds(name)?, holds(&staged)?, holds(&aside)?);
    let left = match (file, beside, away) {
        // Moved aside, and nothing put in its place.
        (Holds::Nothing, _, Holds::Old | Holds::Another) => {
            directory.rename_to_free(&aside, name)?;
            None
        }
        // Moved aside, and replaced.
        (Holds::New, _, Holds::Old | Holds::Another) if task.before.is_some() => {
            replace(&directory, &aside, name, task, swap)?
        }
        // Exchanged: what stands beside it is what it was.
        (Holds::New, Holds::Old | Holds::Another, Holds::Nothing) if task.before.is_some() => {
            replace(&directory, &staged, name, task, swap)?
        }
        // Added.
        (Holds::New, Holds::Nothing, Holds::Nothing) if task.before.is_none() => {
            take_away(&directory, name, &staged, task)?
        }
        // Done, and changed by somebody since.
        (_, _, Holds::Old | Holds::Another) if file != Holds::Old => return changed(Some(&aside)),
        (_, Holds::Old, _) if file != Holds::Old => return changed(Some(&staged)),
        (Holds::Another, Holds::Nothing, _) if task.before.is_none() => return changed(None),
        (Holds::New, Holds::Nothing, Holds::Nothing) => return changed(None),
        // Not begun, whatever somebody else did to it.
        _ => None,
    };
    if left.is_some() {
        return Ok(left);
    }
    directory.remove(&staged)?;
    directory.remove(&aside)?;
    directory.sync()?;
    Ok(None)
}

/// Puts a file back in the place of its new version, unless that is somebody else's by now.
fn replace(
    directory: &Directory,
    kept: &OsStr,
    name: &OsStr,
    task: &Task,
    swap: Swap,
) -> io::Result<Option<LeftAlone>> {
    let exchanged = match swap {
        Swap::InOneStep => directory.exchange(kept, name),
        Swap::ByTwoRenames => Err(io::ErrorKind::Unsupported.into()),
    };
    match exchanged {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            directory.rename_over(kept, name)?;
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(()) if is_new(&directory.read(kept)?, task) => Ok(None),
        Ok(()) => {
            directory.exchange(kept, name)?;
            let kept = Some(task.place.path().with_file_name(kept));
            Ok(Some(LeftAlone { path: task.place.path(), why: Left::Changed, kept }))
        }
    }
}

/// Removes a file that was added, unless it is somebody else's by now.
fn take_away(
    directory: &Directory,
    name: &OsStr,
    to: &OsStr,
    task: &Task,
) -> io::Result<Option<LeftAlone>> {
    directory.rename_to_free(name, to)?;
    if is_new(&directory.read(to)?, task) {
        return Ok(None);
    }
    directory.rename_to_free(to, name)?;
    Ok(Some(LeftAlone { path: task.place.path(), why: Left::Changed, kept: None }))
}

fn is_new(entry: &Entry, task: &Task) -> bool {
    match entry {
        Entry::File { contents, .. } => Some(Digest::of(contents)) == task.after,
        _ => false,
    }
}
