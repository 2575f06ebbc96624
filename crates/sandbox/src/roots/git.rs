//! What in a git directory is run, or says what is run, the next time that anybody uses git there.
//!
//! A grant of a git directory is meant for its objects, its index and its branches. Who can write these as
//! well leaves a command behind that the person's next `git status` runs, outside of every sandbox.

use super::protected::is_git;
use std::fs;
use std::path::{Path, PathBuf};

/// What a git directory is known to obey, and whether its name is kept free where it is not there. A
/// directory in the place of `commondir` would stop git altogether, so that one is protected only where
/// it is.
const OBEYED: &[(&str, bool)] = &[
    ("hooks", true),
    ("config", true),
    ("config.worktree", true),
    ("info/attributes", true),
    ("commondir", false),
];

/// What git ends the name of a file with while it writes it anew.
const LOCK: &str = ".lock";

/// How many submodules and worktrees are guarded name by name. What comes after them is not opened.
const MOST: usize = 32;

/// How many directories beneath each other a submodule's name can be.
const DEEPEST: usize = 6;

/// What stays as it is in a git directory that a grant opens.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    /// Paths that are there, or whose names are kept free.
    pub(super) reserved: Vec<PathBuf>,
    /// Paths that are there.
    pub(super) there: Vec<PathBuf>,
}

/// Whether this is a directory of git's own.
pub fn is_git_directory(path: &Path) -> bool {
    path.is_dir() && (is_git(path) || path.join("HEAD").is_file())
}

/// What a git directory obeys, those of its submodules and worktrees included.
pub(super) fn guarded(directory: &Path) -> Guarded {
    let mut found = Guarded::default();
    let mut inner = Vec::new();
    submodules(&directory.join("modules"), 0, &mut inner);
    inner.extend(directories(&directory.join("worktrees")));
    let beyond = inner.split_off(inner.len().min(MOST));
    for directory in std::iter::once(directory.to_owned()).chain(inner) {
        for (name, reserved) in OBEYED {
            let path = directory.join(name);
            match reserved {
                true => found.reserved.push(path),
                false if path.symlink_metadata().is_ok() => found.there.push(path),
                false => {}
            }
        }
    }
    found.there.extend(beyond);
    found
}

/// The part that a path names of what a git directory obeys, if it names one: `.git/config` for
/// `.git/config.lock`, `.git/hooks` for `.git/hooks/pre-commit`.
pub(super) fn obeyed_part(path: &Path, git: &Path) -> Option<PathBuf> {
    let name = path.to_str()?;
    let plain = Path::new(name.strip_suffix(LOCK).unwrap_or(name));
    let is_one = |above: &&Path| OBEYED.iter().any(|(obeyed, _)| above.ends_with(obeyed));
    let within = plain.ancestors().take_while(|above| *above != git);
    let part = within.filter(is_one).last()?;
    let inside = part.strip_prefix(git).ok()?;
    // A branch can be called `hooks`.
    let of_git = |obeyed: &str| inside == Path::new(obeyed);
    let further = inside.starts_with("modules") || inside.starts_with("worktrees");
    (further || OBEYED.iter().any(|(obeyed, _)| of_git(obeyed))).then(|| part.to_owned())
}

fn submodules(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth > DEEPEST || found.len() > MOST {
        return;
    }
    for path in directories(directory) {
        match is_git_directory(&path) {
            true => {
                submodules(&path.join("modules"), depth + 1, found);
                found.push(path);
            }
            false => submodules(&path, depth + 1, found),
        }
    }
}

/// The directories in a directory, in the order of their names.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<PathBuf> = directories.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
