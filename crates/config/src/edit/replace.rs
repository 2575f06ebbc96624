//! Replaces a file whole or not at all, while no other writer does.
//!
//! The new text is written beside the file, forced to the disk and renamed over it. Writers lock the
//! directory (`flock`, which the kernel releases when they die), so nothing of ours is left beside
//! the file. Readers take no lock: a rename is all or nothing.

use super::EditError;
use crate::file::{FileError, check_owner, read_own};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

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
        let named = directory.join(name);
        // A person keeps settings elsewhere and has a link here. The link stays, its target changes.
        let path = match named.is_symlink() {
            true => dunce::canonicalize(&named)
                .map_err(|_| EditError::DeadLink { path: named.clone() })?,
            false => named,
        };
        let directory = path.parent().unwrap_or(directory).to_owned();
        let lock = lock(&directory)?;
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

#[cfg(unix)]
fn lock(directory: &Path) -> Result<File, FileError> {
    let opened = File::open(directory).map_err(FileError::doing("open", directory))?;
    opened.lock().map_err(FileError::doing("lock", directory))?;
    Ok(opened)
}

/// Where a directory cannot be locked, a file in it is.
#[cfg(not(unix))]
fn lock(directory: &Path) -> Result<File, FileError> {
    let path = directory.join(".config.lock");
    let mut options = OpenOptions::new();
    let opened = options.create(true).truncate(false).write(true).open(&path);
    let opened = opened.map_err(FileError::doing("open", &path))?;
    opened.lock().map_err(FileError::doing("lock", &path))?;
    Ok(opened)
}
