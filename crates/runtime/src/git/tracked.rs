//! The files that git tracks in a directory, as it last saw them.

use super::git_directory;
use super::index::{Clean, Index, NameLength, Wanted};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The files that git tracks in a directory.
#[derive(Debug)]
pub(crate) struct TrackedFiles {
    index: Index,
    /// Where the directory is in the work tree: empty, or a path with a slash behind it.
    prefix: Vec<u8>,
    /// When git wrote this down, in seconds and nanoseconds.
    pub(crate) written: (u32, u32),
}

impl TrackedFiles {
    /// Those of the repository around a directory, if there is one that can be read.
    pub(crate) fn around(directory: &Path) -> Option<Self> {
        let has_git = |above: &&Path| fs::symlink_metadata(above.join(".git")).is_ok();
        let top = directory.ancestors().find(has_git)?;
        let git = git_directory(&top.join(".git")).ok()?;
        let found = fs::metadata(git.join("index")).ok()?;
        let since = found.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        // An index does not say how long its names are; with the wrong length it makes no sense.
        let read = |length| Index::read(&git, Wanted::Everything, length);
        let index = read(NameLength::Sha1).or_else(|_| read(NameLength::Sha256)).ok()?;
        let mut prefix = bytes(directory.strip_prefix(top).ok()?);
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        // Git compares the last 32 bits.
        Some(Self { index, prefix, written: (since.as_secs() as u32, since.subsec_nanos()) })
    }

    /// A file of the directory, if git tracks it.
    pub(crate) fn get(&self, path: &Path) -> Option<&Clean> {
        let mut name = self.prefix.clone();
        name.extend(bytes(path));
        self.index.files.get(&name)
    }
}

/// A relative path as git writes it.
fn bytes(path: &Path) -> Vec<u8> {
    let parts = path.components().map(|part| part.as_os_str().as_encoded_bytes());
    parts.collect::<Vec<_>>().join(&b'/')
}
