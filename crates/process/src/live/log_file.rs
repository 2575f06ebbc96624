//! The file of one log, which need not be open to be there.
//!
//! It has a name, in a directory that belongs to the session, and is removed with this. Whatever has that name
//! when it is opened again must be the file that was made.

use crate::output::SpillPolicy;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempPath;

/// A file that is written to while its process lives, and read from afterwards.
#[derive(Debug)]
pub(super) struct LogFile {
    path: TempPath,
    is: Identity,
    /// None when the process has ended.
    open: Mutex<Option<Arc<File>>>,
}

impl LogFile {
    /// A new one, open.
    pub(super) fn create(policy: &SpillPolicy) -> io::Result<Self> {
        let (file, path) = policy.create_temporary()?.into_parts();
        let is = identity(&file)?;
        Ok(Self { path, is, open: Mutex::new(Some(Arc::new(file))) })
    }

    /// The file, opened for the moment if it is not open.
    pub(super) fn open(&self) -> io::Result<Arc<File>> {
        if let Some(file) = &*self.held() {
            return Ok(Arc::clone(file));
        }
        let file = open_plainly(&self.path)?;
        if identity(&file)? != self.is {
            return Err(io::Error::other("another file has taken its place"));
        }
        Ok(Arc::new(file))
    }

    /// Nothing more will be written to it.
    pub(super) fn close(&self) {
        *self.held() = None;
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.held().is_some()
    }

    fn held(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a file is known by whatever its name.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(file: &File) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let about = file.metadata()?;
    Ok((about.dev(), about.ino()))
}

/// Opens a file for reading, follows no link, and waits for nobody who would have to open the other end.
#[cfg(unix)]
fn open_plainly(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Elsewhere the directory, which is the session's own, is all there is to go by.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(_: &File) -> io::Result<Identity> {
    Ok(())
}

#[cfg(not(unix))]
fn open_plainly(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn another_file_under_its_name_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = LogFile::create(&SpillPolicy::new(dir.path())).unwrap();
        file.close();
        assert!(file.open().is_ok());
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::fs::remove_file(&file.path).unwrap();
        std::os::unix::fs::symlink(&secret, &file.path).unwrap();
        assert!(file.open().is_err());
        std::fs::remove_file(&file.path).unwrap();
        std::fs::hard_link(&secret, &file.path).unwrap();
        assert!(file.open().is_err());
    }
}
