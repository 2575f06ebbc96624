//! A directory of rules, opened once: everything in it is reached from there, and no link on the way
//! from the person's settings to a file is followed.

#[cfg(not(unix))]
pub(super) use elsewhere::RulesDirectory;
#[cfg(unix)]
pub(super) use unix::RulesDirectory;

use super::RulesFileError;
use sandgate_policy::rules::MAX_RULES_BYTES;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The file that writers lock.
const LOCK: &str = ".lock";

/// All of an opened file, if it is text and not too large.
pub(super) fn read_text(file: File, path: &Path) -> Result<String, RulesFileError> {
    let mut bytes = Vec::new();
    file.take(MAX_RULES_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(RulesFileError::doing("read", path))?;
    if bytes.len() > MAX_RULES_BYTES {
        return Err(RulesFileError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| RulesFileError::NotText { path: path.to_owned() })
}

#[cfg(unix)]
mod unix {
    use super::{File, LOCK, Path, RulesFileError, read_text};
    use crate::locks;
    use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
    use rustix::io::Errno;
    use std::ffi::{OsStr, OsString};
    use std::fs::DirBuilder;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
    use std::path::PathBuf;

    pub(in super::super) struct RulesDirectory {
        path: PathBuf,
        opened: OwnedFd,
    }

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    impl RulesDirectory {
        /// Opens a directory some names below another. None if it is not there.
        pub(in super::super) fn open(
            base: &Path,
            below: &[&str],
        ) -> Result<Option<Self>, RulesFileError> {
            let mut path = base.to_owned();
            let mut opened = match rustix::fs::openat(CWD, base, DIRECTORY, Mode::empty()) {
                Ok(opened) => opened,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => {
                    return Err(refused(CWD, base.as_os_str(), &path, errno, "directory"));
                }
            };
            for name in below {
                path.push(name);
                let flags = DIRECTORY | OFlags::NOFOLLOW;
                opened = match rustix::fs::openat(&opened, *name, flags, Mode::empty()) {
                    Ok(inner) => inner,
                    Err(Errno::NOENT) => return Ok(None),
                    Err(errno) => {
                        return Err(refused(&opened, OsStr::new(name), &path, errno, "directory"));
                    }
                };
            }
            Ok(Some(Self { path, opened }))
        }

        /// Opens a directory to write in it, and makes it and those above it that are not there, for
        /// their owner only.
        pub(in super::super) fn make(base: &Path, name: &str) -> Result<Self, RulesFileError> {
            let path = base.join(name);
            if Self::open(base, &[name])?.is_none() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&path)
                    .map_err(RulesFileError::doing("make", &path))?;
            }
            let opened = Self::open(base, &[name])?.ok_or_else(|| {
                RulesFileError::doing("open", &path)(std::io::ErrorKind::NotFound.into())
            })?;
            let found = rustix::fs::fstat(&opened.opened)
                .map_err(|errno| RulesFileError::doing("look at", &path)(errno.into()))?;
            if found.st_uid != rustix::process::geteuid().as_raw() {
                return Err(RulesFileError::OfAnother { path });
            }
            Ok(opened)
        }

        pub(in super::super) fn path(&self) -> &Path {
            &self.path
        }

        /// Whether two are the same directory by different names.
        pub(in super::super) fn is_same(&self, other: &Self) -> bool {
            let identity = |directory: &Self| {
                rustix::fs::fstat(&directory.opened).map(|found| (found.st_dev, found.st_ino)).ok()
            };
            identity(self).is_some_and(|one| Some(one) == identity(other))
        }

        pub(in super::super) fn names(&self) -> Result<Vec<OsString>, RulesFileError> {
            let failed = |errno: Errno| RulesFileError::doing("list", &self.path)(errno.into());
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.opened).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                names.push(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
            }
            Ok(names)
        }

        /// The text of a file. None if there is none.
        pub(in super::super) fn read(
            &self,
            name: &OsStr,
        ) -> Result<Option<String>, RulesFileError> {
            let path = self.path.join(name);
            match self.open_file(name)? {
                Some(file) => read_text(file, &path).map(Some),
                None => Ok(None),
            }
        }

        fn open_file(&self, name: &OsStr) -> Result<Option<File>, RulesFileError> {
            let path = self.path.join(name);
            // A pipe in the place of a file must not make us wait for its writer.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let flags = flags | OFlags::CLOEXEC;
            let file = match rustix::fs::openat(&self.opened, name, flags, Mode::empty()) {
                Ok(opened) => File::from(opened),
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(refused(&self.opened, name, &path, errno, "file")),
            };
            let found = file.metadata().map_err(RulesFileError::doing("look at", &path))?;
            if !found.is_file() {
                return Err(RulesFileError::WrongKind { path, wanted: "file" });
            }
            Ok(Some(file))
        }

        /// Waits until no other writer is at work. The lock lasts as long as what is given back.
        pub(in super::super) fn lock(&self) -> Result<File, RulesFileError> {
            let path = self.path.join(LOCK);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let opened =
                rustix::fs::openat(&self.opened, LOCK, flags | OFlags::CLOEXEC, Mode::WUSR)
                    .map_err(|errno| {
                        refused(&self.opened, OsStr::new(LOCK), &path, errno, "file")
                    })?;
            let file = File::from(opened);
            locks::close_to_readers(&file)
                .and_then(|()| locks::hold(&file))
                .map_err(RulesFileError::doing("lock", &path))?;
            Ok(file)
        }

        /// Makes a file that is not there, with the mode of one that it is to replace; without
        /// that one, for its owner only.
        pub(in super::super) fn create(
            &self,
            name: &OsStr,
            like: &OsStr,
        ) -> Result<File, RulesFileError> {
            let path = self.path.join(name);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let opened = rustix::fs::openat(&self.opened, name, flags, mode)
                .map_err(|errno| RulesFileError::doing("make", &path)(errno.into()))?;
            let file = File::from(opened);
            if let Some(old) = self.open_file(like)? {
                let same = old.metadata().and_then(|found| {
                    let mode = found.mode() & 0o777;
                    file.set_permissions(std::fs::Permissions::from_mode(mode))
                });
                same.map_err(RulesFileError::doing("make", &path))?;
            }
            Ok(file)
        }

        /// Puts one file in the place of another, and waits until that is on the disk.
        pub(in super::super) fn rename(
            &self,
            from: &OsStr,
            to: &OsStr,
        ) -> Result<(), RulesFileError> {
            rustix::fs::renameat(&self.opened, from, &self.opened, to)
                .and_then(|()| rustix::fs::fsync(&self.opened))
                .map_err(|errno| RulesFileError::doing("replace", self.path.join(to))(errno.into()))
        }

        /// Removes a file, if it is there.
        pub(in super::super) fn remove(&self, name: &OsStr) -> Result<(), RulesFileError> {
            match rustix::fs::unlinkat(&self.opened, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => {
                    Err(RulesFileError::doing("remove", self.path.join(name))(errno.into()))
                }
            }
        }
    }

    /// Why something was not opened, as a person would say it.
    fn refused(
        at: impl std::os::fd::AsFd,
        name: &OsStr,
        path: &Path,
        errno: Errno,
        wanted: &'static str,
    ) -> RulesFileError {
        let path = path.to_owned();
        let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
        let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
        let right = if wanted == "file" { FileType::RegularFile } else { FileType::Directory };
        match kind {
            Ok(FileType::Symlink) => RulesFileError::Link { path },
            Ok(kind) if kind != right => RulesFileError::WrongKind { path, wanted },
            _ => RulesFileError::Io { action: "open", path, source: errno.into() },
        }
    }
}

/// The same by paths, for systems where a directory cannot be held on to.
#[cfg(not(unix))]
mod elsewhere {
    use super::{File, LOCK, Path, RulesFileError, read_text};
    use crate::locks;
    use std::ffi::{OsStr, OsString};
    use std::fs;
    use std::io;
    use std::path::PathBuf;

    pub(in super::super) struct RulesDirectory {
        path: PathBuf,
    }

    impl RulesDirectory {
        pub(in super::super) fn open(
            base: &Path,
            below: &[&str],
        ) -> Result<Option<Self>, RulesFileError> {
            let mut path = base.to_owned();
            for name in below {
                path.push(name);
                if !is_there(&path, "directory")? {
                    return Ok(None);
                }
            }
            Ok(Some(Self { path }))
        }

        pub(in super::super) fn make(base: &Path, name: &str) -> Result<Self, RulesFileError> {
            let path = base.join(name);
            fs::create_dir_all(&path).map_err(RulesFileError::doing("make", &path))?;
            is_there(&path, "directory")?;
            Ok(Self { path })
        }

        pub(in super::super) fn path(&self) -> &Path {
            &self.path
        }

        pub(in super::super) fn is_same(&self, other: &Self) -> bool {
            let identity = |directory: &Self| fs::canonicalize(&directory.path).ok();
            identity(self).is_some_and(|one| Some(one) == identity(other))
        }

        pub(in super::super) fn names(&self) -> Result<Vec<OsString>, RulesFileError> {
            fs::read_dir(&self.path)
                .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
                .map_err(RulesFileError::doing("list", &self.path))
        }

        pub(in super::super) fn read(
            &self,
            name: &OsStr,
        ) -> Result<Option<String>, RulesFileError> {
            let path = self.path.join(name);
            if !is_there(&path, "file")? {
                return Ok(None);
            }
            let file = File::open(&path).map_err(RulesFileError::doing("open", &path))?;
            read_text(file, &path).map(Some)
        }

        pub(in super::super) fn lock(&self) -> Result<File, RulesFileError> {
            let path = self.path.join(LOCK);
            locks::hold_lock(&path).map_err(RulesFileError::doing("lock", &path))
        }

        pub(in super::super) fn create(
            &self,
            name: &OsStr,
            _like: &OsStr,
        ) -> Result<File, RulesFileError> {
            let path = self.path.join(name);
            File::create_new(&path).map_err(RulesFileError::doing("make", &path))
        }

        pub(in super::super) fn rename(
            &self,
            from: &OsStr,
            to: &OsStr,
        ) -> Result<(), RulesFileError> {
            let to = self.path.join(to);
            fs::rename(self.path.join(from), &to).map_err(RulesFileError::doing("replace", &to))
        }

        pub(in super::super) fn remove(&self, name: &OsStr) -> Result<(), RulesFileError> {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(RulesFileError::doing("remove", path)(error))
                }
                _ => Ok(()),
            }
        }
    }

    fn is_there(path: &Path, wanted: &'static str) -> Result<bool, RulesFileError> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(RulesFileError::doing("open", path)(error)),
        };
        let path = path.to_owned();
        match wanted {
            _ if found.is_symlink() => Err(RulesFileError::Link { path }),
            "file" if !found.is_file() => Err(RulesFileError::WrongKind { path, wanted }),
            "directory" if !found.is_dir() => Err(RulesFileError::WrongKind { path, wanted }),
            _ => Ok(true),
        }
    }
}
