//! Replaces a file of a project whole or not at all, and meets no link on the way to it: a repository can hold
//! any, and whoever works in it can put one there at any time.

#[cfg(not(unix))]
pub(super) use by_path::HeldBelow;
#[cfg(unix)]
pub(super) use unix::HeldBelow;

#[cfg(unix)]
mod unix {
    use crate::edit::replace::{PATIENCE, hold};
    use crate::file::{FileError, read_text};
    use rustix::fs::{
        AtFlags, CWD, Mode, OFlags, fchmod, mkdirat, openat, renameat, statat, unlinkat,
    };
    use rustix::io::Errno;
    use std::fs::File;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// A file in a directory that was opened, which no other writer changes meanwhile.
    pub(in crate::edit) struct HeldBelow {
        directory: File,
        name: String,
        path: PathBuf,
    }

    impl HeldBelow {
        /// Opens the directories on the way, and makes those that are missing.
        pub(in crate::edit) fn open(root: &Path, names: &[&str]) -> Result<Self, FileError> {
            let (name, above) = names.split_last().unwrap_or((&"", &[]));
            let mut path = root.to_owned();
            let mut directory = openat(CWD, root, DIRECTORY, Mode::empty())
                .map_err(|errno| FileError::doing("open", root)(errno.into()))?;
            for name in above {
                path.push(name);
                match mkdirat(&directory, *name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(FileError::doing("make", &path)(errno.into())),
                }
                directory = openat(&directory, *name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
                    .map_err(|errno| refused(&path, "open", errno))?;
            }
            let directory = File::from(directory);
            hold(&directory, &path, PATIENCE)?;
            path.push(name);
            Ok(Self { directory, name: (*name).to_owned(), path })
        }

        pub(in crate::edit) fn path(&self) -> &Path {
            &self.path
        }

        /// The text; none if the file is not there.
        pub(in crate::edit) fn read(&self) -> Result<Option<String>, FileError> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
            match openat(&self.directory, &*self.name, flags, Mode::empty()) {
                Ok(file) => read_text(File::from(file), &self.path).map(Some),
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(refused(&self.path, "open", errno)),
            }
        }

        /// Puts a new text in the place of the old one.
        pub(in crate::edit) fn replace(&self, text: &str) -> Result<(), FileError> {
            let beside = format!(".{}.new", self.name);
            // Only a writer who died has left it there: we hold the lock.
            let _ = unlinkat(&self.directory, &*beside, AtFlags::empty());
            let written = self.write(&beside, text).and_then(|()| {
                renameat(&self.directory, &*beside, &self.directory, &*self.name)
                    .map_err(|errno| refused(&self.path, "replace", errno))
            });
            if written.is_err() {
                let _ = unlinkat(&self.directory, &*beside, AtFlags::empty());
            }
            written?;
            self.directory.sync_all().map_err(FileError::doing("sync", &self.path))
        }

        fn write(&self, beside: &str, text: &str) -> Result<(), FileError> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(&self.directory, beside, flags, Mode::from_raw_mode(0o644));
            let mut file = File::from(made.map_err(|errno| refused(&self.path, "write", errno))?);
            if let Ok(old) = statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
                fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777))
                    .map_err(|errno| refused(&self.path, "write", errno))?;
            }
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(FileError::doing("write", &self.path))
        }
    }

    /// Why it was not done: a link is said to be one.
    fn refused(path: &Path, action: &'static str, errno: Errno) -> FileError {
        match path.is_symlink() {
            true => FileError::Link { path: path.to_owned() },
            false => FileError::doing(action, path)(errno.into()),
        }
    }
}

/// By paths, for systems where a directory cannot be held on to.
#[cfg(not(unix))]
mod by_path {
    use crate::edit::EditError;
    use crate::edit::replace::Held;
    use crate::file::{FileError, read_below};
    use std::path::{Path, PathBuf};

    pub(in crate::edit) struct HeldBelow(Held);

    impl HeldBelow {
        pub(in crate::edit) fn open(root: &Path, names: &[&str]) -> Result<Self, EditError> {
            // It refuses links.
            read_below(root, names)?;
            let path: PathBuf = std::iter::once(root).chain(names.iter().map(Path::new)).collect();
            let name = names.last().copied().unwrap_or_default();
            Held::open(path.parent().unwrap_or(root), name).map(Self)
        }

        pub(in crate::edit) fn path(&self) -> &Path {
            self.0.path()
        }

        pub(in crate::edit) fn read(&self) -> Result<Option<String>, FileError> {
            self.0.read()
        }

        pub(in crate::edit) fn replace(&self, text: &str) -> Result<(), FileError> {
            self.0.replace(text)
        }
    }
}
