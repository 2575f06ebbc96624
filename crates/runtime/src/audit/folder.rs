//! The files of the log: where they are, and how they are opened.
//!
//! Nothing here follows a link that stands in a file's place, and what is made is for its owner only.

use super::error::AuditError;
use crate::locks::{self, WhenMissing};
use crate::private::{is_in_place, make_private, make_private_in_place};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The head record beside the log.
pub(super) const HEAD: &str = "HEAD.json";

/// Whoever writes holds the lock on this.
const LOCK: &str = "lock";

/// How the name of every day's file ends.
const DAY_SUFFIX: &str = ".jsonl";

/// The file of the day, in UTC, that a time lies in.
pub(super) fn day_of(time: Timestamp) -> String {
    format!("{}{DAY_SUFFIX}", time.to_zoned(TimeZone::UTC).date())
}

/// Whether a name is one that we give to a day's file. Such names sort like their days.
pub(super) fn is_day(name: &str) -> bool {
    let Some(date) = name.strip_suffix(DAY_SUFFIX) else { return false };
    date.len() == 10 && date.parse::<jiff::civil::Date>().is_ok_and(|day| day.to_string() == date)
}

/// The directory of a log.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the directory, private, unless it is there.
    pub(super) fn make(path: &Path) -> Result<Self, AuditError> {
        make_private(path).map_err(|cause| AuditError::Directory { cause })?;
        Ok(Self::at(path))
    }

    /// Makes the directory anew, if what it lies in is there. A person who removed their settings wants none.
    pub(super) fn make_again(path: &Path) -> Result<Self, AuditError> {
        make_private_in_place(path).map_err(|cause| AuditError::Directory { cause })?;
        Ok(Self::at(path))
    }

    /// A directory as it is, which may not exist.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens the head record for reading and writing.
    pub(super) fn open_head(&self) -> Result<File, AuditError> {
        open_to_write(&self.file(HEAD), Access::Anywhere)
    }

    /// Opens a day's file for reading and appending.
    pub(super) fn open_day(&self, name: &str) -> Result<File, AuditError> {
        open_to_write(&self.file(name), Access::AtTheEnd)
    }

    /// Opens the lock.
    pub(super) fn open_lock(&self) -> Result<Lock, AuditError> {
        let path = self.file(LOCK);
        match locks::open(&path, WhenMissing::Made) {
            Ok(file) => Ok(Lock { file, path }),
            Err(cause) => Err(refused(path, cause)),
        }
    }

    /// Opens the lock if that is possible without making it. Somebody who only reads goes without:
    /// a copy on a read-only disk has no writers.
    pub(super) fn find_lock(&self) -> Option<Lock> {
        let path = self.file(LOCK);
        let file = locks::open(&path, WhenMissing::NotFound).ok()?;
        Some(Lock { file, path })
    }

    /// Opens one of the files to read it; `None` when it is not there.
    pub(super) fn open_to_read(&self, name: &str) -> Result<Option<File>, AuditError> {
        let path = self.file(name);
        match open_to_read(&path) {
            Ok(file) => check_kind(&path, &file).map(|()| Some(file)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(refused(path, cause)),
        }
    }

    /// The names of all days' files, in the order of the days.
    pub(super) fn days(&self) -> Result<Vec<String>, AuditError> {
        let unreadable = |cause| AuditError::Read { path: self.path.clone(), cause };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(unreadable(cause)),
        };
        let mut days = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            days.extend(name.to_str().filter(|name| is_day(name)).map(str::to_owned));
        }
        days.sort();
        Ok(days)
    }

    /// Has the directory itself written to the disk, so that new files in it outlive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        // Other systems do not open directories as files.
        if cfg!(unix) { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }
}

/// Keeps writers apart. Nobody can read it: a confined command that could would hold up every command after it.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Does something while nobody else writes.
    pub(super) fn hold<T>(
        &self,
        act: impl FnOnce() -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        self.acquire(locks::hold)?;
        let done = act();
        // What cannot be unlocked is unlocked when the file is closed.
        let _ = self.file.unlock();
        done
    }

    /// Does something while nobody writes.
    pub(super) fn hold_shared<T>(
        &self,
        act: impl FnOnce() -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        self.acquire(locks::hold_shared)?;
        let done = act();
        let _ = self.file.unlock();
        done
    }

    fn acquire(&self, hold: fn(&File) -> io::Result<()>) -> Result<(), AuditError> {
        let path = || self.path.clone();
        hold(&self.file).map_err(|cause| match cause.kind() {
            io::ErrorKind::WouldBlock => AuditError::Busy { path: path() },
            _ => AuditError::Open { path: path(), cause },
        })
    }

    /// Whether this is still the file that others lock too.
    pub(super) fn is_in_place(&self) -> bool {
        is_in_place(&self.path, &self.file)
    }
}

/// How a file is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Read and written.
    Anywhere,
    /// Read, and written at its end.
    AtTheEnd,
}

fn open_to_write(path: &Path, access: Access) -> Result<File, AuditError> {
    let file = open(path, access).map_err(|cause| refused(path.to_owned(), cause))?;
    check_kind(path, &file)?;
    close_to_others(&file).map_err(|cause| AuditError::Open { path: path.to_owned(), cause })?;
    Ok(file)
}

#[cfg(unix)]
fn open(path: &Path, access: Access) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // A pipe in the file's place must not hold us up before we see that it is one.
    let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = match access {
        Access::Anywhere => flags | OFlags::RDWR,
        Access::AtTheEnd => flags | OFlags::RDWR | OFlags::APPEND,
    };
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(not(unix))]
fn open(path: &Path, access: Access) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true);
    match access {
        Access::AtTheEnd => options.append(true).open(path),
        Access::Anywhere => options.write(true).open(path),
    }
}

#[cfg(unix)]
fn open_to_read(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_to_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Why a file could not be opened; a link in its place is said as such.
fn refused(path: PathBuf, cause: io::Error) -> AuditError {
    if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        return AuditError::InTheWay { path, what: "is a symbolic link" };
    }
    AuditError::Open { path, cause }
}

fn check_kind(path: &Path, file: &File) -> Result<(), AuditError> {
    let found =
        file.metadata().map_err(|cause| AuditError::Open { path: path.to_owned(), cause })?;
    if !found.is_file() {
        return Err(AuditError::InTheWay { path: path.to_owned(), what: "is not a file" });
    }
    Ok(())
}

/// Takes away what an older version, or a careless hand, let others do.
#[cfg(unix)]
fn close_to_others(file: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    if file.metadata()?.mode() & 0o777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close_to_others(_: &File) -> io::Result<()> {
    Ok(())
}

/// Reads from a place in a file, up to the file's end.
pub(super) fn read_at(file: &File, mut into: &mut [u8], mut from: u64) -> io::Result<usize> {
    let mut read = 0;
    while !into.is_empty() {
        match read_some_at(file, into, from) {
            Ok(0) => break,
            Ok(some) => {
                into = &mut into[some..];
                read += some;
                from += some as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(unix)]
use std::os::unix::fs::FileExt as _;
#[cfg(unix)]
fn read_some_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    file.read_at(into, from)
}
#[cfg(unix)]
pub(super) fn write_at_beginning(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)
}

#[cfg(windows)]
use std::os::windows::fs::FileExt as _;
#[cfg(windows)]
fn read_some_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    file.seek_read(into, from)
}
#[cfg(windows)]
pub(super) fn write_at_beginning(file: &File, bytes: &[u8]) -> io::Result<()> {
    match file.seek_write(bytes, 0)? {
        written if written == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_are_days() {
        assert!(is_day("2026-11-01.jsonl"));
        for name in ["2026-11-31.jsonl", "2026-11-01", "x.jsonl", "20261101.jsonl", ".jsonl"] {
            assert!(!is_day(name), "{name}");
        }
        assert_eq!(day_of("2026-11-01T23:59:59.999Z".parse().unwrap()), "2026-11-01.jsonl");
        assert_eq!(day_of("2026-11-01T23:30:00-01:00".parse().unwrap()), "2026-11-02.jsonl");
    }
}
