//! Files that are there only to be locked.
//!
//! Whoever can open a file can hold a lock on it, and a confined command can open what its owner can read. So nobody may
//! read these, not even their owner; and since a writer can be stopped as well, nobody waits for one of them for ever.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is waited for. Who is at work has it for a moment, and one who has it for so long has been stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// What becomes of a lock that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenMissing {
    Made,
    NotFound,
}

/// Opens a file that is there only to be locked, makes it where it is missing, and waits until nobody else holds it.
/// It is held until it is closed.
///
/// # Errors
/// When it cannot be opened, is no file, or somebody holds it and goes on to.
pub fn hold_lock(path: &Path) -> io::Result<File> {
    let lock = open(path, WhenMissing::Made)?;
    hold(&lock)?;
    Ok(lock)
}

/// Opens a lock that nobody can read, whatever its mode was before.
///
/// # Errors
/// When it cannot be opened, or is no file.
pub(crate) fn open(path: &Path, when_missing: WhenMissing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(when_missing == WhenMissing::Made).truncate(false).write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // A pipe or a link in its place holds nobody up, and leads nowhere.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o200).custom_flags(flags.bits().cast_signed());
    }
    let lock = options.open(path)?;
    close_to_readers(&lock)?;
    Ok(lock)
}

/// Takes away what an older version let its owner do: to read it.
///
/// # Errors
/// When it is no file, or somebody else's.
pub(crate) fn close_to_readers(lock: &File) -> io::Result<()> {
    let found = lock.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        if found.mode() & 0o777 != 0o200 {
            lock.set_permissions(std::fs::Permissions::from_mode(0o200))?;
        }
    }
    Ok(())
}

/// Waits until nobody else holds a lock, and holds it.
///
/// # Errors
/// When somebody holds it and goes on to.
pub(crate) fn hold(lock: &File) -> io::Result<()> {
    hold_within(lock, File::try_lock, PATIENCE)
}

/// The same for one of those who hold it together.
///
/// # Errors
/// When somebody holds it alone and goes on to.
pub(crate) fn hold_shared(lock: &File) -> io::Result<()> {
    hold_within(lock, File::try_lock_shared, PATIENCE)
}

/// There is no lock with a time limit, so it is tried again and again. Nearly always the first attempt succeeds.
fn hold_within(
    lock: &File,
    attempt: fn(&File) -> Result<(), TryLockError>,
    patience: Duration,
) -> io::Result<()> {
    let start = Instant::now();
    for tries in 0_u32.. {
        match attempt(lock) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() >= patience => break,
            Err(TryLockError::WouldBlock) if tries < 20 => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(200)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let why = "another program holds it and goes on to; end that, then try again";
    Err(io::Error::new(io::ErrorKind::WouldBlock, why))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// spec LOCKS.1: A file that is there only to be locked can be opened by nobody who may only read, so that a confined
    /// command holds nobody up by it.
    #[test]
    fn a_lock_is_closed_to_readers_whoever_made_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        for _ in ["as an older version left it", "as it was made anew"] {
            let lock = open(&path, WhenMissing::Made).unwrap();
            assert_eq!(lock.metadata().unwrap().permissions().mode() & 0o777, 0o200);
            fs::remove_file(&path).unwrap();
        }
        assert!(open(&path, WhenMissing::NotFound).is_err());
        symlink("elsewhere", &path).unwrap();
        assert!(open(&path, WhenMissing::Made).is_err());
        assert!(!directory.path().join("elsewhere").exists());
    }

    /// spec LOCKS.2: Nobody waits for ever for a lock that somebody holds: it is said that one does.
    #[test]
    fn who_holds_a_lock_for_ever_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let [first, second] = [(), ()].map(|()| open(&path, WhenMissing::Made).unwrap());
        hold(&first).unwrap();
        for attempt in [File::try_lock, File::try_lock_shared] {
            let error = hold_within(&second, attempt, Duration::ZERO).unwrap_err();
            assert!(error.to_string().contains("another program holds it"), "{error}");
        }
        drop(first);
        hold_shared(&second).unwrap();
    }
}
