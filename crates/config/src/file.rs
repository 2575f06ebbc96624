//! Opens files with settings: the person's own, if nobody else can have written them, and those of a
//! project, without following a link and without waiting for a pipe.

use crate::check::{MAX_CONFIG_BYTES, Owner};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Somebody else can write it, or put another in its place.
    #[error("{} can be written by other users, so it is not used; take that away with: chmod go-w {}", .path.display(), .path.display())]
    OthersMayWrite {
        /// The file, or the directory that it is in.
        path: PathBuf,
    },
    /// It is somebody else's.
    #[error("{} belongs to another user, so it is not used", .path.display())]
    OfAnother {
        /// The file.
        path: PathBuf,
    },
    /// Another program holds its lock, and goes on to.
    #[error("another program is changing the settings and holds {}; end it, then try again", .path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// A link stands in its place.
    #[error("{} is a link, and a project's settings are neither read nor changed through links", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// It is no file.
    #[error("{} is not a file; move it away", .path.display())]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// It is larger than a person would write.
    #[error("{} has more than {MAX_CONFIG_BYTES} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not text.
    #[error("{} is not UTF-8 text; save it as that", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There are more files than a person would write.
    #[error("{} holds more than {max} rules files, and only the first are read", .path.display())]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// How many are read.
        max: usize,
    },
    /// The system did not let us.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl FileError {
    /// For `map_err`: what was tried, with what.
    pub(crate) fn doing(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// The text of one of the person's own files; none if it is not there. A link is followed: it is the
/// person's, if what it leads to is.
///
/// # Errors
/// When it cannot be read, or somebody else can have written it.
pub fn read_own(path: &Path) -> Result<Option<String>, FileError> {
    let file = match open_without_waiting(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::doing("open", path)(error)),
    };
    check_owner(&file, path)?;
    read_text(file, path).map(Some)
}

/// The text of a file that a person wants to have looked at, by the rules for whoever it belongs to.
///
/// # Errors
/// When it would not be read, or is not there.
pub fn read_settings(path: &Path, owner: Owner) -> Result<String, FileError> {
    let missing = || FileError::doing("open", path)(io::ErrorKind::NotFound.into());
    let root = path.parent().and_then(Path::parent).filter(|_| owner == Owner::Project);
    match root {
        Some(root) => read_below(root, &[".codex", "config.toml"])?.ok_or_else(missing),
        None => read_own(path)?.ok_or_else(missing),
    }
}

/// All of an opened file, if it is text and not too large.
pub(crate) fn read_text(file: File, path: &Path) -> Result<String, FileError> {
    let found = file.metadata().map_err(FileError::doing("look at", path))?;
    if !found.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let most = MAX_CONFIG_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(FileError::doing("read", path))?;
    if bytes.len() > MAX_CONFIG_BYTES {
        return Err(FileError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.to_owned() })
}

/// Opens a file for reading. A pipe is not waited for.
#[cfg(unix)]
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Refuses a file that somebody else has written or can write, or can put another in the place of.
#[cfg(unix)]
pub(crate) fn check_owner(file: &File, path: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt as _;
    let found = file.metadata().map_err(FileError::doing("look at", path))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(FileError::OfAnother { path: path.to_owned() });
    }
    if found.mode() & 0o022 != 0 {
        return Err(FileError::OthersMayWrite { path: path.to_owned() });
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Some(directory) = directory else { return Ok(()) };
    let found = directory.metadata().map_err(FileError::doing("look at", directory))?;
    // In a directory with the sticky bit nobody can replace what is another's.
    if found.mode() & 0o1002 == 0o002 {
        return Err(FileError::OthersMayWrite { path: directory.to_owned() });
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn check_owner(_file: &File, _path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// The text of a file below a project's root; none if it is not there. No link below the root is
/// followed.
///
/// # Errors
/// When it cannot be read, or a link or something else than a file stands in its place.
#[cfg(unix)]
pub fn read_below(root: &Path, names: &[&str]) -> Result<Option<String>, FileError> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use rustix::io::Errno;
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut path = root.to_owned();
    let mut opened = openat(CWD, root, directory, Mode::empty())
        .map_err(|errno| FileError::doing("open", root)(errno.into()))?;
    for (index, name) in names.iter().enumerate() {
        path.push(name);
        let last = index + 1 == names.len();
        let kind = if last { OFlags::NONBLOCK | OFlags::NOCTTY } else { OFlags::DIRECTORY };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | kind;
        opened = match openat(&opened, *name, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(_) if path.is_symlink() => return Err(FileError::Link { path }),
            Err(errno) => return Err(FileError::doing("open", &path)(errno.into())),
        };
    }
    read_text(File::from(opened), &path).map(Some)
}

/// The same by paths, for systems where a directory cannot be held on to.
///
/// # Errors
/// When it cannot be read, or a link or something else than a file stands in its place.
#[cfg(not(unix))]
pub fn read_below(root: &Path, names: &[&str]) -> Result<Option<String>, FileError> {
    let mut path = root.to_owned();
    for name in names {
        path.push(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(FileError::Link { path }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::doing("look at", &path)(error)),
        }
    }
    let file = File::open(&path).map_err(FileError::doing("open", &path))?;
    read_text(file, &path).map(Some)
}

/// The names of the files in a directory below a project's root that end in `.toml`, sorted; none if
/// it is not there.
pub(crate) fn names_below(root: &Path, names: &[&str]) -> Result<Vec<String>, FileError> {
    let mut path = root.to_owned();
    for name in names {
        path.push(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(FileError::Link { path }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::doing("look at", &path)(error)),
        }
    }
    let mut found = Vec::new();
    for entry in path.read_dir().map_err(FileError::doing("list", &path))? {
        let name = entry.map_err(FileError::doing("list", &path))?.file_name();
        // A name that is not text could not be written down as seen.
        if let Ok(name) = name.into_string()
            && name.ends_with(".toml")
            && !name.starts_with('.')
        {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}
