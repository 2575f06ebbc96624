//! The only way in which this crate changes files: names in directories that were opened.
//!
//! A [`Place`] is a path without links, and a root above it. Opening it starts at the root of the file
//! system and meets no link on the way, neither above that root nor beneath it; should there be one by
//! then, it fails. Everything else is done to a name in the directory that was opened, so that a
//! path which was checked is never looked up a second time.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;
#[cfg(not(unix))]
mod portable;
#[cfg(not(unix))]
use portable as system;

pub(crate) use system::{
    Directory, Likeness, is_blocked, make_private_directory, open_lock, private_file,
};

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Where a file or a directory is, or will be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    /// A directory above it that it may not leave, absolute and without links.
    pub(crate) root: PathBuf,
    /// The way from there, of names only.
    pub(crate) inside: PathBuf,
}

/// What a name stands for in a directory.
#[derive(Debug)]
pub(crate) enum Entry {
    Absent,
    File {
        contents: Vec<u8>,
        like: Likeness,
    },
    /// A directory, a link, a pipe: nothing that a patch works on.
    Other,
}

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    /// The name that it has in its directory.
    pub(crate) fn name(&self) -> io::Result<&OsStr> {
        self.inside.file_name().ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Opens the directory that it is in.
    pub(crate) fn directory(&self) -> io::Result<Directory> {
        Directory::open(&self.root, self.inside.parent().unwrap_or(Path::new("")))
    }

    /// The directories that are missing above it, the outermost first.
    pub(crate) fn missing_directories(&self) -> io::Result<Vec<Self>> {
        let mut missing = Vec::new();
        for above in self.inside.ancestors().skip(1) {
            match Directory::open(&self.root, above) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound && above != Path::new("") => {
                    missing.push(Self { root: self.root.clone(), inside: above.to_owned() });
                }
                Err(error) => return Err(error),
            }
        }
        missing.reverse();
        Ok(missing)
    }
}

impl Entry {
    pub(crate) fn is(&self, expected: &[u8]) -> bool {
        matches!(self, Self::File { contents, .. } if contents == expected)
    }
}
