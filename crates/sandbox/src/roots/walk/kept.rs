//! The directories that a walk has found and not looked into yet. Nothing is allocated for one: their names are in one
//! place.

use std::ffi::CStr;
use std::ops::Range;

/// Some of the directories in one, by their names, each ended by a NUL.
#[derive(Default)]
pub(super) struct Batch {
    names: Vec<u8>,
    pub(super) starts: Vec<usize>,
}

impl Batch {
    pub(super) fn add(&mut self, name: &CStr) {
        self.starts.push(self.names.len());
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.starts.clear();
    }

    /// Those that begin there.
    pub(super) fn names<'a>(&'a self, starts: &'a [usize]) -> impl Iterator<Item = &'a CStr> {
        starts.iter().filter_map(|start| CStr::from_bytes_until_nul(self.names.get(*start..)?).ok())
    }
}

/// The directories that were found, in the order in which they are looked into.
#[derive(Default)]
pub(super) struct Tree {
    names: Vec<u8>,
    pub(super) directories: Vec<Directory>,
}

pub(super) struct Directory {
    pub(super) parent: usize,
    pub(super) name: Range<usize>,
    pub(super) level: usize,
}

impl Tree {
    /// The root, which has no name.
    pub(super) fn plant(&mut self) {
        self.add(0, 0, b"");
    }

    pub(super) fn add(&mut self, parent: usize, level: usize, name: &[u8]) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.directories.push(Directory { parent, name: start..self.names.len(), level });
    }

    /// Puts the path of a directory together, relative to the root. `way` is room for the way to it.
    pub(super) fn path_of(&self, mut at: usize, path: &mut Vec<u8>, way: &mut Vec<usize>) {
        way.clear();
        while at != 0 {
            way.push(at);
            at = self.directories[at].parent;
        }
        path.clear();
        for &step in way.iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&self.names[self.directories[step].name.clone()]);
        }
    }
}
