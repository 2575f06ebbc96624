//! The directory that a session's files live in, while the session lives.
//!
//! It is made when the first file needs it, held by a lock on a file inside, and removed with its
//! owner. An owner that was killed cannot remove anything, so whoever makes a directory afterwards
//! removes those whose lock nobody holds.
//!
//! Two locks keep makers and sweepers apart. Each session's own lock says that its owner lives. The
//! lock beside the sessions is shared by makers and exclusive for a sweeper: while somebody sweeps
//! there is no directory that has been made but not locked yet.

use crate::locks::{self, WhenMissing};
use crate::private::{make_private, own_directory};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of every lock file, the sessions' own and the one beside them.
const LOCK: &str = "lock";

/// Why there is no directory.
const NO_PLACE: &str = "there is no home of yours to keep it in; set HOME, or XDG_CACHE_HOME";

/// The directory of one session: a name from the start, the directory itself only when needed.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    /// None if there is no place for it.
    path: Option<PathBuf>,
    /// The lock on the directory, once it has been made.
    held: Mutex<Option<File>>,
}

impl SessionDirectory {
    /// Thinks of a name. Nothing is made yet.
    pub(crate) fn named() -> Self {
        Self::below(own_directory().as_deref())
    }

    fn below(own: Option<&Path>) -> Self {
        let id = uuid::Uuid::now_v7().to_string();
        Self { path: own.map(|own| own.join("sessions").join(id)), held: Mutex::new(None) }
    }

    /// Where it is, or would be, if there is a place for it.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Makes the directory, unless it is there, and says where; also removes those of sessions that
    /// were killed. May block for as long as the file system does.
    ///
    /// # Errors
    /// Names what could not be made. The next call tries again.
    pub(crate) fn make(&self) -> io::Result<PathBuf> {
        let Some(path) = &self.path else { return Err(io::Error::other(NO_PLACE)) };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Some(make(path)?);
        }
        Ok(path.clone())
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.take() {
            // Not every system removes a file that is locked.
            drop(lock);
            let _ = self.path.as_ref().map(fs::remove_dir_all);
        }
    }
}

fn make(directory: &Path) -> io::Result<File> {
    let sessions = directory.parent().ok_or(io::ErrorKind::InvalidInput)?;
    for directory in [sessions.parent().unwrap_or(sessions), sessions] {
        make_private(directory)?;
    }
    let beside = lock_file(sessions)?;
    locks::hold_shared(&beside)?;
    make_private(directory)?;
    let lock = locks::hold_lock(&directory.join(LOCK))?;
    beside.unlock()?;
    // What cannot be swept now is no reason to go without a directory.
    let _ = sweep(sessions, &beside);
    Ok(lock)
}

fn lock_file(directory: &Path) -> io::Result<File> {
    locks::open(&directory.join(LOCK), WhenMissing::Made)
}

/// Removes the directories that nobody holds. Skipped when others are at work: they, or the next to
/// come, will do it.
fn sweep(sessions: &Path, beside: &File) -> io::Result<()> {
    match beside.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for entry in fs::read_dir(sessions)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    beside.unlock()
}

/// Whether the owner of a session's directory is gone. Where that is not certain, it is not.
fn is_abandoned(session: &Path) -> bool {
    match locks::open(&session.join(LOCK), WhenMissing::NotFound) {
        Ok(lock) => lock.try_lock().is_ok(),
        // No maker is at work, so the one of this directory died before it could lock it, or its
        // owner is removing it right now.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_below(own: &Path) -> (SessionDirectory, PathBuf) {
        let session = SessionDirectory::below(Some(own));
        let path = session.make().unwrap();
        assert!(path.is_dir());
        (session, path)
    }

    #[test]
    fn nothing_is_made_before_it_is_needed() {
        let own = tempfile::tempdir().unwrap();
        drop(SessionDirectory::below(Some(own.path())));
        assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_session_removes_its_directory_with_everything_in_it() {
        let own = tempfile::tempdir().unwrap();
        let (session, path) = make_below(own.path());
        fs::write(path.join("output"), "all of it").unwrap();
        assert_eq!(session.make().unwrap(), path, "it is made once");
        drop(session);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_in_the_way_is_named_and_tried_again() {
        let own = tempfile::tempdir().unwrap();
        let in_the_way = own.path().join("sessions");
        fs::write(&in_the_way, "").unwrap();
        let session = SessionDirectory::below(Some(own.path()));
        let error = session.make().unwrap_err().to_string();
        assert!(error.contains(in_the_way.to_str().unwrap()), "{error}");
        fs::remove_file(&in_the_way).unwrap();
        assert!(session.make().unwrap().is_dir());
    }

    #[test]
    fn a_living_session_survives_the_sweep_of_another() {
        let own = tempfile::tempdir().unwrap();
        let first = make_below(own.path());
        let second = make_below(own.path());
        assert!(first.1.is_dir() && second.1.is_dir());
    }

    #[test]
    fn a_session_whose_lock_nobody_holds_is_swept() {
        let own = tempfile::tempdir().unwrap();
        let sessions = own.path().join("sessions");
        let killed = sessions.join("killed");
        let died_young = sessions.join("died-before-its-lock");
        for directory in [&killed, &died_young] {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("output"), "old").unwrap();
        }
        fs::write(killed.join(LOCK), "").unwrap();
        let _living = make_below(own.path());
        assert!(!killed.exists() && !died_young.exists());
    }

    #[test]
    fn a_directory_that_is_just_being_made_is_not_swept() {
        let own = tempfile::tempdir().unwrap();
        let sessions = own.path().join("sessions");
        let unlocked = sessions.join("not-locked-yet");
        fs::create_dir_all(&unlocked).unwrap();
        let maker = lock_file(&sessions).unwrap();
        maker.lock_shared().unwrap();
        let _living = make_below(own.path());
        assert!(unlocked.exists());
    }
}
