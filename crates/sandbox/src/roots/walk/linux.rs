//! The walk by descriptors and whole blocks of directory entries. Nothing is allocated for an entry,
//! and a directory costs its name.
//!
//! Most directories hold no others. Where the file system counts the directories in a directory, such
//! a leaf is not read: it is asked for the protected names only, which costs half as much. So is a
//! directory that lies as deep as the walk goes, however much it holds.

use super::{Limits, Walked};
use crate::roots::protected::{PROTECTED, is_protected_bytes};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, FsWord, Mode, OFlags, RawDir, Stat};
use rustix::fs::{fstat, fstatfs, openat, statat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// File systems that count: a directory has a link to itself, one from above, and one from each
/// directory in it. In this order: ext2 to ext4, XFS, tmpfs.
const COUNTING: [FsWord; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

/// How many directories are asked for each one that may be looked into; more count as such.
const ASKED: usize = 10;

/// Room for a block of entries: more than one full of the longest names.
const BLOCK: usize = 32 * 1024;

/// Looks for protected names beneath a root, but not in those of `elsewhere` that lie in it.
pub(in crate::roots) fn walk(root: &Path, limits: Limits, elsewhere: &BTreeSet<PathBuf>) -> Walked {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(descriptor) = openat(CWD, root, flags, Mode::empty()) else {
        return Walked::default();
    };
    let counts = fstatfs(&descriptor).is_ok_and(|found| COUNTING.contains(&found.f_type));
    let inside = elsewhere.iter().filter_map(|path| path.strip_prefix(root).ok());
    let mut walker = Walker {
        root,
        counting: fstat(&descriptor).ok().filter(|_| counts),
        descriptor,
        limits,
        elsewhere: inside.filter(|path| !path.as_os_str().is_empty()).collect(),
        tree: Tree::default(),
        looked_at: 0,
        asked_of: 0,
        asked: Vec::new(),
        walked: Walked { complete: true, ..Walked::default() },
    };
    walker.run();
    walker.walked
}

struct Walker<'a> {
    root: &'a Path,
    descriptor: OwnedFd,
    limits: Limits,
    /// What is walked by itself, relative to the root.
    elsewhere: BTreeSet<&'a Path>,
    tree: Tree,
    /// How many entries have been looked at.
    looked_at: usize,
    /// The root, if its file system counts the directories in a directory.
    counting: Option<Stat>,
    /// How many directories have been asked.
    asked_of: usize,
    /// Room for a path that is asked for.
    asked: Vec<u8>,
    walked: Walked,
}

/// A limit was reached.
struct Exhausted;

impl Walker<'_> {
    fn run(&mut self) {
        let mut block = Vec::with_capacity(BLOCK);
        let mut path = Vec::new();
        let mut looked_into = 0;
        let mut next = 0;
        self.tree.plant();
        while next < self.tree.directories.len() {
            self.tree.path_of(next, &mut path);
            let relative = Path::new(OsStr::from_bytes(&path));
            if !self.elsewhere.contains(relative) {
                looked_into += 1;
                if looked_into > self.limits.directories {
                    self.walked.complete = false;
                    return;
                }
                let read = self.look_into(next, &path, &mut block);
                if read.is_err() {
                    self.walked.complete = false;
                    return;
                }
            }
            next += 1;
        }
    }

    /// Reads one directory, and keeps the directories in it for later.
    fn look_into(&mut self, at: usize, path: &[u8], block: &mut Vec<u8>) -> Result<(), Exhausted> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let here = if path.is_empty() { b"." } else { path };
        let directory = match openat(&self.descriptor, here, flags, Mode::empty()) {
            Ok(directory) => directory,
            // It went away, or something else came in its place.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.close(path);
                return Ok(());
            }
            Err(_) => {
                self.walked.complete = false;
                return Ok(());
            }
        };
        let level = self.tree.directories[at].level;
        let mut entries = RawDir::new(directory.as_fd(), block.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else {
                self.walked.complete = false;
                return Ok(());
            };
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            if self.looked_at == self.limits.entries {
                return Err(Exhausted);
            }
            self.looked_at += 1;
            if is_protected_bytes(bytes) {
                self.walked.protected.push(self.absolute(path).join(OsStr::from_bytes(bytes)));
                continue;
            }
            let is_directory = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
                kind => kind.is_dir(),
            };
            if !is_directory || level >= self.limits.depth {
                continue;
            }
            let is_last = level + 1 == self.limits.depth;
            let asked =
                (is_last || self.is_leaf(&directory, name)) && self.ask(&directory, path, name);
            if !asked && self.has_room() {
                self.tree.add(at, level + 1, bytes);
            }
        }
        Ok(())
    }

    /// Whether a directory certainly holds no other directory.
    fn is_leaf(&self, directory: &OwnedFd, name: &CStr) -> bool {
        self.counting.as_ref().is_some_and(|root| {
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                // The type of the count is not the same on every machine.
                .is_ok_and(|found| found.st_dev == root.st_dev && matches!(found.st_nlink, 2))
        })
    }

    /// Asks a directory for the protected names. If it does not answer, it has to be looked into.
    fn ask(&mut self, directory: &OwnedFd, path: &[u8], name: &CStr) -> bool {
        if self.asked_of == self.limits.directories.saturating_mul(ASKED) {
            return false;
        }
        self.asked_of += 1;
        let look = |path: &[u8]| statat(directory, path, AtFlags::SYMLINK_NOFOLLOW);
        let mut found = [false; PROTECTED.len()];
        for (found, protected) in found.iter_mut().zip(PROTECTED) {
            self.asked.clear();
            self.asked.extend_from_slice(name.to_bytes());
            self.asked.push(b'/');
            self.asked.extend_from_slice(protected.as_bytes());
            match look(&self.asked) {
                Ok(_) => *found = true,
                Err(Errno::NOENT) => {}
                Err(_) => return false,
            }
        }
        for (_, protected) in found.into_iter().zip(PROTECTED).filter(|(found, _)| *found) {
            let leaf = self.absolute(path).join(OsStr::from_bytes(name.to_bytes()));
            self.walked.protected.push(leaf.join(protected));
        }
        true
    }

    /// Whether one more directory is worth keeping: one past the limit is, which shows that there are
    /// more.
    fn has_room(&self) -> bool {
        self.tree.directories.len() <= self.limits.directories + self.elsewhere.len()
    }

    /// Notes a directory that may not be read: if it is this user's own, its commands could make it
    /// readable. If it cannot even be looked at, the same is true of the directory that it is in.
    fn close(&mut self, path: &[u8]) {
        let closed = Path::new(OsStr::from_bytes(path));
        for path in closed.ancestors().take_while(|path| !path.as_os_str().is_empty()) {
            match statat(&self.descriptor, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if stat.st_uid == rustix::process::geteuid().as_raw() => {
                    self.walked.closed.push(self.root.join(path));
                    return;
                }
                // Somebody else's: commands cannot open it either.
                Ok(_) => return,
                Err(Errno::ACCESS | Errno::PERM) => {}
                Err(_) => return,
            }
        }
        self.walked.complete = false;
    }

    fn absolute(&self, path: &[u8]) -> PathBuf {
        let relative = Path::new(OsStr::from_bytes(path));
        if path.is_empty() { self.root.to_owned() } else { self.root.join(relative) }
    }
}

/// The directories that were found, in the order in which they are looked into. All their names are
/// in one place.
#[derive(Default)]
struct Tree {
    names: Vec<u8>,
    directories: Vec<Directory>,
    /// The way to a directory, for as long as its path is put together.
    way: Vec<usize>,
}

struct Directory {
    parent: usize,
    name: Range<usize>,
    level: usize,
}

impl Tree {
    /// The root, which has no name.
    fn plant(&mut self) {
        self.add(0, 0, b"");
    }

    fn add(&mut self, parent: usize, level: usize, name: &[u8]) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.directories.push(Directory { parent, name: start..self.names.len(), level });
    }

    /// Puts the path of a directory together, relative to the root.
    fn path_of(&mut self, mut at: usize, path: &mut Vec<u8>) {
        self.way.clear();
        while at != 0 {
            self.way.push(at);
            at = self.directories[at].parent;
        }
        path.clear();
        for &step in self.way.iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&self.names[self.directories[step].name.clone()]);
        }
    }
}
