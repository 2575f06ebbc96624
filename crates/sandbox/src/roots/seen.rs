//! What was there when a layout was worked out, to tell whether it still is.
//!
//! A mount holds on to the file that it was made of. If a person replaces a `.git` meanwhile, the new
//! one has no mount on it and would not be protected.

use super::protected::is_placeholder;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// One path, and what was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    path: PathBuf,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// A root: what it is, whatever is in it.
    Root(Option<Identity>),
    /// A protected name; `None` when it is not there, or only kept free.
    Name(Option<Name>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    identity: Identity,
    /// For a file or a link, which say where the real thing is: when that was last changed.
    changed: Option<Changed>,
    /// What a link leads to.
    target: Option<Identity>,
}

/// What tells one file from another. A number is used again when a file is gone, so the time at which
/// it was made belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    number: Number,
    made: Option<SystemTime>,
}

/// The number of a file, and of the file system that it is on.
#[cfg(unix)]
pub(crate) type Number = (u64, u64);
#[cfg(unix)]
type Changed = (i64, i64);
#[cfg(not(unix))]
pub(crate) type Number = ();
#[cfg(not(unix))]
type Changed = SystemTime;

impl Seen {
    /// Looks at a root.
    pub(super) fn root(path: &Path) -> Self {
        Self { path: path.to_owned(), what: look_at_root(path) }
    }

    /// Looks at a protected name, which may not be there.
    pub(super) fn name(path: &Path) -> Self {
        Self { path: path.to_owned(), what: look_at_name(path) }
    }

    /// Whether the same is still there.
    pub(super) fn is_current(&self) -> bool {
        match self.what {
            What::Root(_) => look_at_root(&self.path) == self.what,
            What::Name(_) => look_at_name(&self.path) == self.what,
        }
    }
}

fn look_at_root(path: &Path) -> What {
    What::Root(path.symlink_metadata().ok().as_ref().map(identity))
}

fn look_at_name(path: &Path) -> What {
    let found = path.symlink_metadata().ok().filter(|found| !is_placeholder(found));
    What::Name(found.map(|found| {
        let follow = || path.metadata().ok().as_ref().map(identity);
        Name {
            identity: identity(&found),
            changed: if found.is_dir() { None } else { changed(&found) },
            target: if found.is_symlink() { follow() } else { None },
        }
    }))
}

fn identity(found: &Metadata) -> Identity {
    Identity { number: number(found), made: found.created().ok() }
}

#[cfg(unix)]
pub(super) fn number(found: &Metadata) -> Number {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

#[cfg(unix)]
fn changed(found: &Metadata) -> Option<Changed> {
    use std::os::unix::fs::MetadataExt as _;
    Some((found.ctime(), found.ctime_nsec()))
}

#[cfg(not(unix))]
pub(super) fn number(_found: &Metadata) -> Number {}

#[cfg(not(unix))]
fn changed(found: &Metadata) -> Option<Changed> {
    found.modified().ok()
}
