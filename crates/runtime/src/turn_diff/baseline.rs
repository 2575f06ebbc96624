//! The workspace as it was before the first command of a turn.

use super::walk::{Kind, MOST_FILES, PATIENCE, Reach, Stamp, Walk};
use crate::git::{ObjectName, TrackedFiles};
use crate::tools::open_regular;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The largest file whose contents are remembered, and shown.
pub(super) const LARGEST_FILE: u64 = 256 << 10;

/// The most that is remembered of all files together.
const MOST_BYTES: u64 = 32 << 20;

/// How long remembering contents may take, once the files have been looked at.
const READING: Duration = Duration::from_millis(500);

/// The workspace as it was.
#[derive(Debug)]
pub(super) struct Baseline {
    pub(super) files: BTreeMap<PathBuf, Seen>,
    pub(super) reach: Reach,
    /// The directories in which nothing was looked at.
    pub(super) left_out: Vec<PathBuf>,
    pub(super) began: SystemTime,
}

/// A file as it was.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) stamp: Stamp,
    pub(super) held: Held,
    /// It was changed so shortly before that its stamp would not tell another change.
    pub(super) unsettled: bool,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    Contents(Arc<[u8]>),
    /// What git has under this name.
    Object(ObjectName),
    /// Nobody knows any more.
    NotKept,
}

/// What is remembered of files from one turn to the next, so that each is read once.
#[derive(Debug, Default)]
pub(crate) struct KeptContents {
    kept: Mutex<HashMap<PathBuf, Kept>>,
}

/// What a file held that looked like this.
#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    contents: Arc<[u8]>,
}

impl Baseline {
    /// Looks at a workspace.
    pub(super) fn take(root: &Path, kept: &KeptContents) -> Self {
        let began = SystemTime::now();
        let walk = Walk::of(root, MOST_FILES, PATIENCE);
        let tracked = TrackedFiles::around(root);
        let mut before = kept.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut after = HashMap::new();
        let (mut left, deadline) = (MOST_BYTES, Instant::now() + READING);
        let mut files = BTreeMap::new();
        for (path, stamp) in walk.files {
            let unsettled = stamp.changed_since(began);
            let object = tracked.as_ref().and_then(|tracked| clean(tracked, &path, &stamp));
            let held = if let Some(object) = object.filter(|_| !unsettled) {
                Held::Object(object)
            } else {
                let remembered = before.remove(&path);
                let same = remembered.filter(|kept| kept.stamp == stamp && !unsettled);
                let fits = stamp.size <= LARGEST_FILE.min(left);
                let contents = match same {
                    Some(kept) if fits => Some(kept.contents),
                    _ if !fits || Instant::now() > deadline => None,
                    _ => read(&root.join(&path), stamp.kind),
                };
                match contents {
                    Some(contents) => {
                        left = left.saturating_sub(contents.len() as u64);
                        let kept = Kept { stamp, contents: Arc::clone(&contents) };
                        after.insert(path.clone(), kept);
                        Held::Contents(contents)
                    }
                    None => Held::NotKept,
                }
            };
            files.insert(path, Seen { stamp, held, unsettled });
        }
        *before = after;
        Self { files, reach: walk.reach, left_out: walk.left_out, began }
    }
}

/// The object that holds what a file holds, if git has seen the file just as it is.
fn clean(tracked: &TrackedFiles, path: &Path, stamp: &Stamp) -> Option<ObjectName> {
    if stamp.kind != Kind::File {
        return None;
    }
    // Git keeps the last 32 bits of each.
    let low = |number: i64| number as u32;
    let clean = tracked.get(path)?;
    let same = clean.modified == (low(stamp.modified.0), low(stamp.modified.1))
        && clean.changed == (low(stamp.changed.0), low(stamp.changed.1))
        && clean.inode == stamp.inode as u32
        && u64::from(clean.size) == stamp.size;
    // Who changes a file in the moment in which git looks at it is not seen by its times.
    let settled = clean.modified < tracked.written;
    (same && settled).then_some(clean.object)
}

/// What a file holds, if it is no more than is shown; where a link leads, as git sees it.
pub(super) fn read(path: &Path, kind: Kind) -> Option<Arc<[u8]>> {
    match kind {
        Kind::Link => {
            let target = fs::read_link(path).ok()?;
            Some(target.as_os_str().as_encoded_bytes().into())
        }
        Kind::File => {
            let Ok(file) = open_regular(path) else { return nothing_in(path) };
            let mut contents = Vec::new();
            let read = file.take(LARGEST_FILE + 1).read_to_end(&mut contents).ok()? as u64;
            (read <= LARGEST_FILE).then(|| contents.into())
        }
    }
}

/// What an empty file holds is known, also if nobody may read it, as our locks.
fn nothing_in(path: &Path) -> Option<Arc<[u8]>> {
    let found = fs::symlink_metadata(path).ok()?;
    (found.is_file() && found.len() == 0).then(|| Arc::from([]))
}

/// Whether a file says what is ignored.
pub(super) fn says_what_is_ignored(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(".gitignore"))
}
