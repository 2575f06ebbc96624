//! A walk through directories that somebody else may write in.
//!
//! A walk opens `.gitignore` and its kin by itself and reads each to its end, and a pipe in the place of one
//! has none. So they are looked at before: a directory that has something else there than a file of
//! sensible size is left out, and that is said. Somebody may still put it there in between, so whoever
//! walks does it where nobody has to wait for it.

use super::is_listed;
use crate::git;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a directory says in what it ignores.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The largest file of such rules that is read.
const LARGEST_RULES: u64 = 4 << 20;

/// The most that a walk keeps.
const MOST_ENTRIES: usize = 500_000;

/// How much a walk met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    All,
    /// There was more than is kept, or it took too long.
    Part,
}

/// How many directories are named that were left out.
const MOST_NAMED: usize = 20;

/// The directories that a walk left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut(Arc<Mutex<Vec<PathBuf>>>);

/// Begins a walk through what is listed beneath a directory and what git does not ignore there.
pub(crate) fn careful_walk(root: &Path) -> (WalkBuilder, LeftOut) {
    let left_out = LeftOut::default();
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false).follow_links(false);
    let whole = dunce::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    // Without rules more is seen, and nothing is hidden. Those of the directories above are read whatever
    // is said about them alone, so it is all or none.
    if !whole.ancestors().all(has_plain_rules) {
        walk.standard_filters(false);
    }
    let unread = left_out.clone();
    walk.filter_entry(move |entry| {
        if !is_listed(entry) {
            return false;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if entry.depth() == 0 || !is_directory || has_plain_rules(entry.path()) {
            return true;
        }
        unread.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
        false
    });
    (walk, left_out)
}

/// All that a walk meets, its top first, in the order of the paths, and whether that is all that there
/// is. Several threads look, so it is put in order afterwards.
pub(super) fn entries(
    walk: &WalkBuilder,
    is_over: impl Fn() -> bool + Sync,
) -> (Vec<DirEntry>, Reached) {
    let (met, cut) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    walk.build_parallel().run(|| {
        Box::new(|entry| {
            // What cannot be read is not met, like anything else that is not ours.
            let Ok(entry) = entry else { return WalkState::Continue };
            let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
            if met.len() >= MOST_ENTRIES || is_over() {
                cut.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            met.push(entry);
            WalkState::Continue
        })
    });
    let mut met: Vec<DirEntry> = met.into_inner().unwrap_or_else(PoisonError::into_inner);
    met.sort_unstable_by(|one, other| one.path().cmp(other.path()));
    (met, if cut.into_inner() { Reached::Part } else { Reached::All })
}

impl LeftOut {
    /// The directories, by their paths from the top of the walk, in order.
    pub(crate) fn beneath(&self, root: &Path) -> Vec<PathBuf> {
        let directories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = directories.iter().filter_map(|path| path.strip_prefix(root).ok());
        let mut inside: Vec<PathBuf> = inside.map(Path::to_owned).collect();
        inside.sort_unstable();
        inside
    }
}

/// What is said about directories that were left out.
pub(crate) fn said_of(left_out: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| sandgate_protocol::visible_line(&path.display().to_string());
    let say = |path| format!("{}/ was left out: its ignore files are not plain files", name(path));
    let mut said: Vec<String> = left_out.iter().take(MOST_NAMED).map(say).collect();
    if left_out.len() > MOST_NAMED {
        said.push(format!("{} more directories were left out", left_out.len() - MOST_NAMED));
    }
    said
}

/// Whether all that a directory says about what it ignores can be read without waiting.
fn has_plain_rules(directory: &Path) -> bool {
    RULE_FILES.iter().all(|name| is_plain_or_absent(&directory.join(name)))
        && git::rule_files(&directory.join(".git")).iter().all(|path| is_plain_or_absent(path))
}

fn is_plain_or_absent(path: &Path) -> bool {
    // What cannot be found or looked at cannot be opened either.
    let Ok(found) = fs::symlink_metadata(path) else { return true };
    if !found.is_symlink() {
        // A directory can be opened, and cannot be read.
        return found.is_dir() || (found.is_file() && found.len() <= LARGEST_RULES);
    }
    let Ok(target) = dunce::canonicalize(path) else { return true };
    // What the kernel makes up may look like a file, and wait.
    let is_made_up = ["/proc", "/sys", "/dev"].iter().any(|top| target.starts_with(top));
    let is_plain = |found: fs::Metadata| found.is_file() && found.len() <= LARGEST_RULES;
    !is_made_up && fs::metadata(target).is_ok_and(is_plain)
}
