//! What stays as it is in a home that is a root: what shells, logins, git and other programs obey, and keys.

use sandgate_policy::danger::obeyed_in_home;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What the judge lets pass and a script must not write unasked: programs that shells find, and keys.
const BESIDES: &[&[&str]] = &[&[".cargo", "bin"], &[".docker"], &[".local", "bin"]];

/// What of it is a directory, so that a directory in its place does no harm where it is not there. A file's
/// name cannot be kept free like that: a shell that finds a directory called `.bash_profile` does not look
/// for `.profile`.
const KEPT_FREE: &[&str] =
    &[".ssh", ".config/autostart", ".config/fish", ".config/git", ".config/systemd"];

/// What is obeyed in a home and is there.
pub(super) fn obeyed(home: &Path) -> Vec<PathBuf> {
    let names = obeyed_in_home().chain(BESIDES.iter().copied());
    let mut found: Vec<PathBuf> = names.flat_map(|names| there(home, names)).collect();
    found.sort();
    found.dedup();
    found
}

/// What is obeyed in a home, is not there and can be kept free.
pub(super) fn kept_free(home: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = KEPT_FREE.iter().map(|name| home.join(name));
    // What is missing further up would keep all of `.config` from being made.
    paths.filter(|path| path.parent().is_some_and(Path::is_dir) && path.symlink_metadata().is_err())
}

/// Whether a path can be one that is kept free in a home.
pub(super) fn can_be_kept_free(path: &Path) -> bool {
    KEPT_FREE.iter().any(|name| path.ends_with(name))
}

fn there(home: &Path, names: &[&str]) -> Vec<PathBuf> {
    let path: PathBuf =
        std::iter::once(home.as_os_str()).chain(names.iter().map(AsRef::as_ref)).collect();
    let last = names.last().and_then(|last| last.strip_suffix('*'));
    let Some((start, directory)) = last.zip(path.parent()) else {
        return path.symlink_metadata().is_ok().then_some(path).into_iter().collect();
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let begins = |name: &OsString| name.as_encoded_bytes().starts_with(start.as_bytes());
    entries.filter(|entry| begins(&entry.file_name())).map(|entry| entry.path()).collect()
}
