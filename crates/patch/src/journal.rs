//! What is about to be done, written down before it is: one file for each patch that is under way, in
//! a directory of the caller's.
//!
//! Its first line says everything that undoing or finishing needs. A second line says that all new
//! files are ready and that names are being changed, a third that all of them were, so that only what
//! was kept for undoing is left to be removed. Whoever works with the directory holds its lock, so a
//! journal that somebody finds is one whose writer is dead.

use crate::tree::{Place, make_private_directory, open_lock, private_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOCK: &str = "lock";
const EXTENSION: &str = "journal";
const READY: &str = "ready\n";
const COMMITTED: &str = "ready\ncommitted\n";
const VERSION: u32 = 1;

/// How long another who applies a patch is waited for. One who takes so long has been stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// One patch that is being applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    version: u32,
    id: String,
    /// Directories that are made, the outer before the inner.
    pub(crate) directories: Vec<Place>,
    /// In the order in which they are done.
    pub(crate) tasks: Vec<Task>,
}

/// One file that is made, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) place: Place,
    /// What it holds before; nothing if it is not there.
    pub(crate) before: Option<Digest>,
    /// What it holds after; nothing if it is gone then.
    pub(crate) after: Option<Digest>,
}

/// What tells contents apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(String);

impl Digest {
    pub(crate) fn of(contents: &[u8]) -> Self {
        let mut text = String::new();
        for byte in Sha256::digest(contents) {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }
}

impl Journal {
    pub(crate) fn new(directories: Vec<Place>, tasks: Vec<Task>) -> Self {
        let id = uuid::Uuid::now_v7().simple().to_string();
        Self { version: VERSION, id, directories, tasks }
    }

    /// Puts the names in every directory that it changes on the disk.
    pub(crate) fn flush_directories(&self) -> Result<(), (PathBuf, io::Error)> {
        let mut flushed = BTreeSet::new();
        for place in self.tasks.iter().map(|task| &task.place).chain(&self.directories) {
            let path = place.path();
            if flushed.insert(path.parent().map(Path::to_owned)) {
                let done = place.directory().and_then(|directory| directory.sync());
                done.map_err(|error| (path, error))?;
            }
        }
        Ok(())
    }

    /// The name that the new contents of a task have beside the file, until they are the file's.
    pub(crate) fn staged(&self, task: usize) -> OsString {
        format!(".sandgate-{}-{task}.new", self.id).into()
    }

    /// The name that the old file has beside its place, until it is no longer needed.
    pub(crate) fn aside(&self, task: usize) -> OsString {
        format!(".sandgate-{}-{task}.old", self.id).into()
    }
}

/// The directory of the journals, held by its lock.
#[derive(Debug)]
pub(crate) struct Journals {
    directory: PathBuf,
    _lock: File,
}

/// The file of a patch that is under way.
#[derive(Debug)]
pub(crate) struct OpenJournal {
    path: PathBuf,
    file: File,
    /// Where that ends which is never taken back.
    end: u64,
    phase: Phase,
}

/// How far a patch has come that may still be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// New files are being written beside their places. No file has been touched.
    Preparing,
    /// Names are being changed.
    Changing,
}

/// What a file in the directory says.
#[derive(Debug)]
pub(crate) enum Written {
    /// It was not finished, so nothing it says was begun.
    Unfinished,
    /// What it says was begun, and came so far.
    Begun(Journal, Phase),
    /// What it says was done.
    Committed(Journal),
    /// It was not written by this version.
    Unreadable,
}

impl Journals {
    /// Makes the directory if it is not there, and waits until nobody else works with it.
    pub(crate) fn lock(directory: &Path) -> io::Result<Self> {
        Self::lock_within(directory, PATIENCE)
    }

    fn lock_within(directory: &Path, patience: Duration) -> io::Result<Self> {
        make_private_directory(directory)?;
        let path = directory.join(LOCK);
        let (lock, start) = (open_lock(&path)?, Instant::now());
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { directory: directory.to_owned(), _lock: lock }),
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(
                        io::ErrorKind::WouldBlock,
                        format!(
                            "another program holds {}; end that, then try again",
                            path.display()
                        ),
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Writes down what is about to be done. It is on the disk when this returns.
    pub(crate) fn begin(&self, journal: &Journal) -> io::Result<OpenJournal> {
        let mut line = serde_json::to_vec(journal)?;
        line.push(b'\n');
        let path = self.directory.join(&journal.id).with_extension(EXTENSION);
        let mut file = private_file().create_new(true).write(true).open(&path)?;
        file.write_all(&line)?;
        file.sync_all()?;
        sync_directory(&self.directory)?;
        Ok(OpenJournal { path, file, end: line.len() as u64, phase: Phase::Preparing })
    }

    /// The journals that others left, the newest first: that is the order to undo them in.
    pub(crate) fn left(&self) -> io::Result<Vec<(PathBuf, Written)>> {
        let mut paths: Vec<PathBuf> = fs::read_dir(&self.directory)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort_unstable_by(|one, other| other.cmp(one));
        paths
            .into_iter()
            .map(|path| {
                let written = read(&fs::read(&path)?);
                Ok((path, written))
            })
            .collect()
    }

    /// Removes the journal of a patch that is settled.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        sync_directory(&self.directory)
    }
}

impl OpenJournal {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Says that names will be changed from here on.
    pub(crate) fn ready(&mut self) -> io::Result<()> {
        self.file.write_all(READY.as_bytes())?;
        self.file.sync_all()?;
        self.end += READY.len() as u64;
        self.phase = Phase::Changing;
        Ok(())
    }

    /// Says that everything was done.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.file.write_all(COMMITTED.strip_prefix(READY).unwrap_or_default().as_bytes())?;
        self.file.sync_all()
    }

    /// Takes that back, if it was said. What follows is undoing, and somebody who finds the journal
    /// then must go on with that.
    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.sync_all()
    }
}

fn read(text: &[u8]) -> Written {
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return Written::Unfinished;
    };
    match serde_json::from_slice::<Journal>(&text[..end]) {
        Ok(journal) if journal.version != VERSION => Written::Unreadable,
        Ok(journal) => match &text[end + 1..] {
            marks if marks == COMMITTED.as_bytes() => Written::Committed(journal),
            marks if marks.starts_with(READY.as_bytes()) => {
                Written::Begun(journal, Phase::Changing)
            }
            _ => Written::Begun(journal, Phase::Preparing),
        },
        Err(_) => Written::Unreadable,
    }
}

/// Not every system has a way to flush a directory.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

#[cfg(all(test, unix))]
mod lock_tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// spec LOCKS.1: A file that is there only to be locked can be opened by nobody who may only read, so that a confined
    /// command holds nobody up by it.
    ///
    /// spec LOCKS.2: Nobody waits for ever for a lock that somebody holds: it is said that one does.
    #[test]
    fn who_holds_the_journals_is_told_of_and_is_no_reader() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join(LOCK);
        fs::write(&lock, "").unwrap();
        let held = Journals::lock(directory.path()).unwrap();
        assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o200);
        let error = Journals::lock_within(directory.path(), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("another program holds"), "{error}");
        drop(held);
        Journals::lock_within(directory.path(), Duration::ZERO).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_believed_only_as_far_as_it_was_written() {
        let journal = Journal::new(Vec::new(), Vec::new());
        let line = serde_json::to_string(&journal).unwrap();
        assert!(matches!(read(b""), Written::Unfinished));
        assert!(matches!(read(&line.as_bytes()[..10]), Written::Unfinished));
        assert!(matches!(read(line.as_bytes()), Written::Unfinished));
        for (marks, phase) in [
            ("\n", Phase::Preparing),
            ("\nrea", Phase::Preparing),
            ("\nready", Phase::Preparing),
            ("\nready\n", Phase::Changing),
            ("\nready\ncommitted", Phase::Changing),
        ] {
            let found = read(format!("{line}{marks}").as_bytes());
            assert!(matches!(found, Written::Begun(_, found) if found == phase), "{marks:?}");
        }
        let committed = format!("{line}\nready\ncommitted\n");
        assert!(matches!(read(committed.as_bytes()), Written::Committed(read) if read == journal));
        assert!(matches!(read(b"something else\n"), Written::Unreadable));
        let newer = line.replace("\"version\":1", "\"version\":2");
        assert!(matches!(read(format!("{newer}\n").as_bytes()), Written::Unreadable));
    }
}
