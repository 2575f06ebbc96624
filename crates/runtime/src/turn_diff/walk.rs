//! One look at the files of a workspace: their names and what the file system says about them, and
//! nothing of what they hold.

use crate::tools::careful_walk;
use ignore::WalkState;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The most files that are looked at.
pub(super) const MOST_FILES: usize = 200_000;

/// How long a look may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(750);

/// What kind of thing a name stands for. Only these two are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
}

/// What the file system says about a file. If it says the same again, the file is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) kind: Kind,
    pub(super) executable: bool,
    pub(super) size: u64,
    /// In seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    /// The change of anything about it, which no program can set.
    pub(super) changed: (i64, i64),
    pub(super) inode: u64,
}

/// How much of the workspace was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Whole,
    /// There was more than may be looked at, or it took too long.
    Partial,
}

/// The files of a workspace, by their paths from its top, in order.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) files: Vec<(PathBuf, Stamp)>,
    pub(super) reach: Reach,
    /// The directories in which nothing was looked at, because of what stands for their ignore files.
    pub(super) left_out: Vec<PathBuf>,
}

impl Walk {
    /// Looks at what git does not ignore, until it is done or may not go on.
    pub(super) fn of(root: &Path, most: usize, patience: Duration) -> Self {
        let deadline = Instant::now() + patience;
        let (count, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let files: Mutex<Vec<(PathBuf, Stamp)>> = Mutex::default();
        let (mut walk, left_out) = careful_walk(root);
        let walk = walk
            .ignore(false)
            .threads(std::thread::available_parallelism().map_or(1, |n| n.get().min(4)))
            .build_parallel();
        walk.run(|| {
            Box::new(|entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                let of_interest =
                    entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
                if !of_interest {
                    return WalkState::Continue;
                }
                if count.fetch_add(1, Ordering::Relaxed) >= most || Instant::now() > deadline {
                    over.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                let stamp = entry.metadata().ok().and_then(|found| Stamp::of(&found));
                if let Some((stamp, inside)) = stamp.zip(entry.path().strip_prefix(root).ok()) {
                    let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                    files.push((inside.to_owned(), stamp));
                }
                WalkState::Continue
            })
        });
        let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let reach = if over.into_inner() { Reach::Partial } else { Reach::Whole };
        Self { files, reach, left_out: left_out.beneath(root) }
    }
}

impl Stamp {
    /// What is said about a name itself; nothing if it stands for something that is not followed.
    pub(super) fn of(found: &Metadata) -> Option<Self> {
        let kind = match found.file_type() {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_file() => Kind::File,
            _ => return None,
        };
        let size = found.len();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Some(Self {
                kind,
                executable: kind == Kind::File && found.mode() & 0o100 != 0,
                size,
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
                inode: found.ino(),
            })
        }
        #[cfg(not(unix))]
        {
            let modified = found.modified().map_or((0, 0), seconds);
            Some(Self { kind, executable: false, size, modified, changed: modified, inode: 0 })
        }
    }

    /// What is said about a path itself.
    pub(super) fn at(path: &Path) -> Option<Self> {
        Self::of(&std::fs::symlink_metadata(path).ok()?)
    }

    /// Whether it was changed at this moment or later. The clock of a file system goes in steps, and the
    /// moment may be before the step that it lies in.
    pub(super) fn changed_since(&self, moment: SystemTime) -> bool {
        /// Longer than a step, where there is a real clock behind it.
        const STEP: Duration = Duration::from_millis(50);
        self.changed >= seconds(moment - STEP)
    }
}

/// A moment as the file system writes it.
fn seconds(moment: SystemTime) -> (i64, i64) {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
}
