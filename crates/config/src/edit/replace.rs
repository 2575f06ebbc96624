//! Replaces a file whole or not at all, while no other writer does.
//!
//! The new text is written beside the file, forced to the disk and renamed over it. Writers lock a file in
//! the directory of the settings (`flock`, which the kernel releases when they die). Nobody may read that
//! file, not even its owner: whoever can open a file can hold a lock on it, and a confined command can open
//! what its owner can read. Readers of the settings take no lock: a rename is all or nothing.

use super::EditError;
use crate::file::{FileError, check_owner, read_own};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What writers lock.
const LOCK: &str = ".config.lock";

/// How long another writer is waited for. None takes nearly as long.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A file that no other writer changes meanwhile.
pub(super) struct Held {
    /// Where it really is: a link has been followed.
    path: PathBuf,
    directory: PathBuf,
    _lock: File,
}

impl Held {
    /// Waits until no other writer is at work. Makes the directory if it is not there.
    pub(super) fn open(directory: &Path, name: &str) -> Result<Self, EditError> {
        make_directory(directory)?;
        let lock = lock(directory, PATIENCE)?;
        let named = directory.join(name);
        // A person keeps settings elsewhere and has a link here. The link stays, its target changes.
        let path = match named.is_symlink() {
            true => dunce::canonicalize(&named)
                .map_err(|_| EditError::DeadLink { path: named.clone() })?,
            false => named,
        };
        let directory = path.parent().unwrap_or(directory).to_owned();
        Ok(Self { path, directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The text; none if the file is not there.
    pub(super) fn read(&self) -> Result<Option<String>, FileError> {
        read_own(&self.path)
    }

    /// Puts a new text in the place of the old one.
    pub(super) fn replace(&self, text: &str) -> Result<(), FileError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let beside = self.directory.join(format!(".{name}.new"));
        // Only a writer who died has left it there: we hold the lock.
        let _ = fs::remove_file(&beside);
        let written = self.write(&beside, text).and_then(|()| {
            fs::rename(&beside, &self.path).map_err(FileError::doing("replace", &self.path))
        });
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
        // What a power cut could undo now is the rename as a whole.
        if cfg!(unix) {
            let directory = File::open(&self.directory).and_then(|directory| directory.sync_all());
            directory.map_err(FileError::doing("sync", &self.directory))?;
        }
        Ok(())
    }

    fn write(&self, beside: &Path, text: &str) -> Result<(), FileError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(beside).map_err(FileError::doing("make", beside))?;
        if let Ok(old) = File::open(&self.path) {
            check_owner(&old, &self.path)?;
            old.metadata()
                .and_then(|found| file.set_permissions(found.permissions()))
                .map_err(FileError::doing("make", beside))?;
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(FileError::doing("write", beside))
    }
}

fn make_directory(directory: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(FileError::doing("make", directory))
}

fn lock(directory: &Path, patience: Duration) -> Result<File, FileError> {
    let path = directory.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o200);
    let opened = options.open(&path).map_err(FileError::doing("open", &path))?;
    hold(&opened, &path, patience)?;
    Ok(opened)
}

/// Waits until no other writer holds a lock, though not for ever.
pub(super) fn hold(opened: &File, path: &Path, patience: Duration) -> Result<(), FileError> {
    let start = Instant::now();
    loop {
        match opened.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(FileError::Busy { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(FileError::doing("lock", path)(error)),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// spec CONFIG.55: What writers of the settings lock can be opened by nobody who may only read, and one
    /// who holds it for ever ends in an error that names the file.
    #[test]
    fn a_lock_that_somebody_keeps_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let held = Held::open(directory.path(), "config.toml").unwrap();
        // A lock on the directory, which anybody can have who reads it, holds up nobody.
        let reader = File::open(directory.path()).unwrap();
        reader.lock().unwrap();
        let path = directory.path().join(LOCK);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o200);
        let error = lock(directory.path(), Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(".config.lock") && error.contains("try again"), "{error}");
        drop(held);
        assert!(lock(directory.path(), Duration::ZERO).is_ok());
    }
}
