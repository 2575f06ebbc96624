//! The links in what is protected. Whoever obeys a directory obeys what a link in it leads to, wherever that lies.
//!
//! Nothing is followed here, and of a git directory only that is looked into which git runs or obeys, never its
//! objects: a workspace may have thousands of repositories.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What git runs or obeys in a directory of its own.
const OBEYED_BY_GIT: [&str; 8] =
    ["HEAD", "commondir", "config", "config.worktree", "hooks", "info", "modules", "worktrees"];

/// What programs keep in the person's settings and do not go by: conversations, records and whole work trees, which grow.
const KEPT_IN_SETTINGS: [&str; 7] =
    [".tmp", "archived_sessions", "audit", "log", "sessions", "tmp", "worktrees"];

/// What of a directory is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Obeyed {
    /// All that lies in it, as deep as that is.
    All,
    /// The same of the person's settings, but for what is only kept there.
    Settings,
    /// What git obeys in a directory of its own, and in those of its submodules and worktrees.
    Git,
    /// The same in the git directories that lie in it, under names of several parts.
    ManyGits,
}

/// How much more is looked at. What a repository holds must not hold up every command.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) directories: usize,
    pub(super) entries: usize,
}

impl Default for Left {
    fn default() -> Self {
        Self { directories: 200_000, entries: 4_000_000 }
    }
}

impl Left {
    /// For directories that hold everybody's temporary files.
    pub(super) const SCRATCH: Self = Self { directories: 5_000, entries: 100_000 };
}

/// What was found in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// The links, and what is obeyed of a directory that they lead to.
    pub(super) links: Vec<(PathBuf, Obeyed)>,
    /// The files by which a git directory names the one that it shares.
    pub(super) pointers: Vec<PathBuf>,
}

/// A directory that was not looked into, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) place: PathBuf,
    pub(super) why: String,
}

/// The links in a directory, as far as they are obeyed, but for those in roots that lie in it.
///
/// # Errors
/// When there may be others.
pub(super) fn links_in(
    directory: &Path,
    obeyed: Obeyed,
    roots: &BTreeSet<PathBuf>,
    left: &mut Left,
) -> Result<Links, Unread> {
    let mut found = Links::default();
    let mut directories = VecDeque::from([(directory.to_owned(), obeyed)]);
    while let Some((directory, obeyed)) = directories.pop_front() {
        let entries = entries(&directory, left)?;
        let has_head = || entries.iter().any(|entry| entry.is("HEAD"));
        let is_git = obeyed == Obeyed::Git || (obeyed == Obeyed::ManyGits && has_head());
        for entry in entries {
            let within = match obeyed {
                Obeyed::All => Some(Obeyed::All),
                Obeyed::Settings => {
                    let is_kept = KEPT_IN_SETTINGS.iter().any(|name| entry.is(name));
                    (!is_kept).then_some(Obeyed::All)
                }
                Obeyed::Git | Obeyed::ManyGits if is_git => obeyed_by_git(&entry),
                Obeyed::Git | Obeyed::ManyGits => Some(Obeyed::ManyGits),
            };
            let Some(within) = within else { continue };
            if is_git && entry.is("commondir") {
                found.pointers.push(entry.path.clone());
            }
            match entry.kind {
                Kind::Link => found.links.push((entry.path, within)),
                Kind::Directory if !roots.contains(&entry.path) => {
                    directories.push_back((entry.path, within));
                }
                Kind::Directory | Kind::Other => {}
            }
        }
    }
    Ok(found)
}

fn obeyed_by_git(entry: &Entry) -> Option<Obeyed> {
    let name = OBEYED_BY_GIT.into_iter().find(|name| entry.is(name))?;
    let holds_gits = matches!(name, "modules" | "worktrees");
    Some(if holds_gits { Obeyed::ManyGits } else { Obeyed::All })
}

struct Entry {
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Link,
    Directory,
    Other,
}

impl Entry {
    /// Whether it has a name, on file systems too that know no capital letters.
    fn is(&self, name: &str) -> bool {
        self.path.file_name().is_some_and(|own: &OsStr| own.eq_ignore_ascii_case(name))
    }
}

/// What lies in a directory. What went away meanwhile is empty, and so is what nobody can pass: who obeys a directory
/// can at least do that.
fn entries(directory: &Path, left: &mut Left) -> Result<Vec<Entry>, Unread> {
    let unread = |why: String| Unread { place: directory.to_owned(), why };
    let failed = |error: io::Error| unread(format!("it cannot be searched for links ({error})"));
    let too_much = || unread("it holds too much to be searched for links".to_owned());
    left.directories = left.directories.checked_sub(1).ok_or_else(too_much)?;
    let listing = match std::fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !may_be_passed(directory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error)),
    };
    let mut entries = Vec::new();
    for entry in listing {
        left.entries = left.entries.checked_sub(1).ok_or_else(too_much)?;
        let entry = entry.map_err(failed)?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => Kind::Link,
            Ok(kind) if kind.is_dir() => Kind::Directory,
            Ok(_) => Kind::Other,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        entries.push(Entry { path: entry.path(), kind });
    }
    Ok(entries)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether this user can obey what lies in a directory, or could be made to by a command: that may change the mode of what
/// is its user's.
#[cfg(target_os = "linux")]
fn may_be_passed(directory: &Path) -> bool {
    use super::protected::is_placeholder;
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let Ok(found) = directory.symlink_metadata() else { return false };
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let passes = || accessat(CWD, directory, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    // Nobody passes ours either: it keeps a name free, and is empty.
    ((is_own && found.permissions().mode() & 0o111 != 0) || passes()) && !is_placeholder(&found)
}

#[cfg(not(target_os = "linux"))]
fn may_be_passed(_directory: &Path) -> bool {
    true
}
