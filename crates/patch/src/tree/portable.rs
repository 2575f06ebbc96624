//! Directories by their paths, for systems without descriptors of directories.
//!
//! Weaker than the rest of the crate says: a link that is made between the look and the act is
//! followed. Windows lets only administrators and developers make links.

use super::Entry;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A directory that was there.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

/// What a new version of a file has from the old one.
#[derive(Debug, Clone)]
pub(crate) struct Likeness(Permissions);

impl Directory {
    /// Finds a directory beneath a root, neither of them by way of a link.
    pub(crate) fn open(root: &Path, inside: &Path) -> io::Result<Self> {
        let path = root.join(inside);
        for above in path.ancestors().filter(|above| above.file_name().is_some()) {
            if !fs::symlink_metadata(above)?.is_dir() {
                return Err(ErrorKind::NotADirectory.into());
            }
        }
        Ok(Self(path))
    }

    /// What a name stands for.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<Entry> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {
                let like = Likeness(found.permissions());
                Ok(Entry::File { contents: fs::read(&path)?, like })
            }
            Ok(_) => Ok(Entry::Other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Entry::Absent),
            Err(error) => Err(error),
        }
    }

    /// Makes a file that is not there, complete and on the disk when this returns.
    pub(crate) fn create(
        &self,
        name: &OsStr,
        contents: &[u8],
        like: Option<&Likeness>,
    ) -> io::Result<()> {
        let path = self.0.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(contents)?;
        file.sync_all()?;
        match like {
            Some(Likeness(permissions)) => file.set_permissions(permissions.clone()),
            None => Ok(()),
        }
    }

    /// Whether an existing file may be written to.
    pub(crate) fn ensure_writable(&self, name: &OsStr) -> io::Result<()> {
        match fs::symlink_metadata(self.0.join(name))?.permissions().readonly() {
            true => Err(ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }

    /// There is no such step here.
    pub(crate) fn exchange(&self, _one: &OsStr, _other: &OsStr) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Renames, if nothing has the new name.
    pub(crate) fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match fs::symlink_metadata(self.0.join(to)) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.rename_over(from, to),
            Err(error) => Err(error),
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    /// Renames, whatever has the new name.
    pub(crate) fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Makes a directory; one that is there is fine.
    pub(crate) fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        match fs::create_dir(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// Removes a directory that is empty. Others, and what is no directory, stay.
    pub(crate) fn remove_empty_directory(&self, name: &OsStr) -> io::Result<()> {
        use ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound};
        match fs::remove_dir(self.0.join(name)) {
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotADirectory | NotFound) => {
                Ok(())
            }
            done => done,
        }
    }

    /// Directories cannot be flushed here.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether something else than directories is in the way to a directory.
pub(crate) fn is_blocked(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotADirectory
}

/// Makes a directory, if it is not there.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Opens a file that is there only to be locked.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// How a file is opened that is its owner's only; here that is up to its directory.
pub(crate) fn private_file() -> OpenOptions {
    OpenOptions::new()
}
