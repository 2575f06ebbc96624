//! The names that are protected, and how they are known.

use super::home::can_be_kept_free;
use sandgate_protocol::{may_be_protected, protected_name};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) use sandgate_protocol::PROTECTED_NAMES as PROTECTED;

/// The mode of the empty directories that stand for absent names while a cage is in use: nobody may
/// write to them, and they have a bit that only means something where somebody may.
#[cfg(unix)]
pub(crate) const PLACEHOLDER_MODE: u32 = 0o1555;

/// Whether a name is one of those. Some file systems take `.GIT` or `git~1` for the same, so we do everywhere: a
/// mount of another kind may lie anywhere in a root, and a grant is to open no more by one spelling than by another.
pub(super) fn is_protected(name: &OsStr) -> bool {
    may_be_protected(name)
}

/// The same, for a name as a directory lists it.
#[cfg(target_os = "linux")]
pub(crate) fn is_protected_bytes(name: &[u8]) -> bool {
    may_be_protected(std::os::unix::ffi::OsStrExt::from_bytes(name))
}

/// Whether a path is that of a repository's own directory, or of what leads there.
pub(super) fn is_git(path: &Path) -> bool {
    path.file_name().and_then(protected_name) == Some(".git")
}

/// Whether a protected name is part of a path.
pub(super) fn has_protected_part(path: &Path) -> bool {
    path.iter().any(is_protected)
}

/// The protected name that a path is, or lies in: the nearest one.
pub(super) fn protected_part(path: &Path) -> Option<PathBuf> {
    let is_one = |path: &&Path| path.file_name().is_some_and(is_protected);
    path.ancestors().find(is_one).map(Path::to_owned)
}

/// Whether a path is a directory of ours that keeps a protected name free while a cage is in use. To
/// everybody else there is nothing.
pub fn keeps_a_name_free(path: &Path) -> bool {
    (path.file_name().is_some_and(is_protected) || can_be_kept_free(path))
        && path.symlink_metadata().is_ok_and(|found| is_placeholder(&found))
}

/// Whether this is a directory of ours, which stands for an absent name: of a cage that is in use, or
/// left behind by a crash.
#[cfg(unix)]
pub(super) fn is_placeholder(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHER_BITS: u32 = 0o5777 & !PLACEHOLDER_MODE;
    const MARK: u32 = 0o1000;
    found.is_dir() && found.permissions().mode() & (MARK | OTHER_BITS) == MARK
}

#[cfg(not(unix))]
pub(super) fn is_placeholder(_found: &std::fs::Metadata) -> bool {
    false
}
