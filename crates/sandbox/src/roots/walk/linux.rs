//! The walk by descriptors and whole blocks of directory entries. Nothing is allocated for an entry,
//! and a directory costs its name.
//!
//! Most directories hold no others. Where the file system counts the directories in a directory, such
//! a leaf is not read: it is asked for the protected names only, which costs half as much. So is a
//! directory that lies as deep as the walk goes, however much it holds.
//!
//! Where a level has many directories, or a directory many that may be leaves, a few threads look at once:
//! somebody waits for the first command of a session.

use super::kept::{Batch, Directory, Tree};
use super::{Limits, Walked};
use crate::roots::protected::{PROTECTED, is_protected_bytes};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, FsWord, Mode, OFlags, RawDir, Stat};
use rustix::fs::{fstat, fstatfs, openat, statat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
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

/// From so many directories on a level is shared among threads: with 75 of them, making a thread and waiting
/// for it took as long as it saved.
const WORTH_SHARING: usize = 100;

/// From so many on those that are only asked are: that takes half as long.
const WORTH_ASKING_TOGETHER: usize = 200;

/// How many of the directories in one are kept until they are asked.
const BATCH: usize = 2_000;

/// The most threads that share a level.
const MOST_THREADS: usize = 4;

/// Looks for protected names beneath a root, but not in those of `elsewhere` that lie in it.
pub(in crate::roots) fn walk(root: &Path, limits: Limits, elsewhere: &BTreeSet<PathBuf>) -> Walked {
    walk_by(|| processors().min(MOST_THREADS), root, limits, elsewhere)
}

/// The same by so many threads, if there is enough for them to do.
pub(super) fn walk_by(
    threads: fn() -> usize,
    root: &Path,
    limits: Limits,
    elsewhere: &BTreeSet<PathBuf>,
) -> Walked {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = match openat(CWD, root, flags, Mode::empty()) {
        Ok(descriptor) => descriptor,
        Err(Errno::NOENT | Errno::NOTDIR) => return Walked::default(),
        Err(_) => return Walked { unread: vec![root.to_owned()], ..Walked::default() },
    };
    let counts = fstatfs(&descriptor).is_ok_and(|found| COUNTING.contains(&found.f_type));
    let inside = elsewhere.iter().filter_map(|path| path.strip_prefix(root).ok());
    let ground = Ground {
        root,
        counting: fstat(&descriptor).ok().filter(|_| counts),
        descriptor,
        limits,
        elsewhere: inside.filter(|path| !path.as_os_str().is_empty()).collect(),
    };
    let mut walker = Walker {
        ground: &ground,
        threads,
        tree: Tree::default(),
        looked_into: 0,
        next: 0,
        overfull: Vec::new(),
        left: Left { entries: limits.entries, asks: limits.directories.saturating_mul(ASKED) },
        walked: Walked { complete: true, ..Walked::default() },
        asked: Vec::new(),
    };
    if walker.run().is_err() {
        walker.walked.complete = false;
        let unread = walker.unread();
        walker.walked.unread.extend(unread);
        walker.ask_unread();
    }
    let Walker { mut walked, asked, .. } = walker;
    walked.protected.extend(asked);
    walked
}

/// What is walked, and how far. It does not change on the way.
struct Ground<'a> {
    root: &'a Path,
    descriptor: OwnedFd,
    limits: Limits,
    /// What is walked by itself, relative to the root.
    elsewhere: BTreeSet<&'a Path>,
    /// The root, if its file system counts the directories in a directory.
    counting: Option<Stat>,
}

struct Walker<'a> {
    ground: &'a Ground<'a>,
    threads: fn() -> usize,
    tree: Tree,
    /// How many directories have been looked into.
    looked_into: usize,
    /// Those of the tree in front of this one have been dealt with.
    next: usize,
    /// Those that hold others which there was no room for.
    overfull: Vec<usize>,
    left: Left,
    walked: Walked,
    /// The protected names in directories that there was no room or time for.
    asked: Vec<PathBuf>,
}

/// How much more may be looked at.
#[derive(Debug, Clone, Copy)]
struct Left {
    entries: usize,
    /// How many more directories are asked.
    asks: usize,
}

/// A limit was reached.
struct Exhausted;

impl Walker<'_> {
    /// Level by level. What is found in one does not depend on how many threads look.
    fn run(&mut self) -> Result<(), Exhausted> {
        self.tree.plant();
        let mut level = 0..1;
        while !level.is_empty() {
            let next = level.end;
            if self.share(level.clone()) {
                self.next = next;
            } else {
                self.look_into(level)?;
            }
            level = next..self.tree.directories.len();
        }
        Ok(())
    }

    /// Looks into some directories, one after the other.
    fn look_into(&mut self, level: Range<usize>) -> Result<(), Exhausted> {
        let mut room = Room::default();
        for at in level {
            let mut finds = Finds::new(self.ground, self.left, self.threads);
            let looked = finds.look_into(&self.tree, at..at + 1, &mut room);
            if self.looked_into + finds.looked_into > self.ground.limits.directories {
                return Err(Exhausted);
            }
            self.keep(finds);
            looked?;
            self.next = at + 1;
        }
        Ok(())
    }

    /// Has threads look into some directories at once. Says whether they did: they do not where a limit
    /// may be reached, because what it cuts off must not depend on who was faster.
    fn share(&mut self, level: Range<usize>) -> bool {
        let enough = level.len() >= WORTH_SHARING;
        if !enough || self.looked_into + level.len() > self.ground.limits.directories {
            return false;
        }
        let threads = (self.threads)();
        let Some(shares) = look_together(self.ground, self.left, &self.tree, level, threads) else {
            return false;
        };
        let sum = |of: fn(&Left) -> usize| -> usize {
            shares.iter().map(|finds| of(&self.left) - of(&finds.left)).sum()
        };
        if sum(|left| left.entries) > self.left.entries || sum(|left| left.asks) > self.left.asks {
            return false;
        }
        shares.into_iter().for_each(|finds| self.keep(finds));
        true
    }

    fn keep(&mut self, finds: Finds<'_>) {
        let Finds { before, left, looked_into, names, children, overfull, walked, asked, .. } =
            finds;
        self.asked.extend(asked);
        self.left.entries -= before.entries - left.entries;
        self.left.asks -= before.asks - left.asks;
        self.looked_into += looked_into;
        self.walked.protected.extend(walked.protected);
        self.walked.closed.extend(walked.closed);
        self.walked.unread.extend(walked.unread);
        self.walked.complete &= walked.complete;
        for Directory { parent, name, level } in children {
            if self.has_room() {
                self.tree.add(parent, level, &names[name]);
            } else {
                if level == 1 {
                    self.ask_left_out(&names[name]);
                }
                self.overfull.push(parent);
            }
        }
        self.overfull.extend(overfull);
        self.overfull.dedup();
    }

    /// What has not been looked into.
    fn unread(&self) -> Vec<PathBuf> {
        let (mut path, mut way) = (Vec::new(), Vec::new());
        let known = self.next..self.tree.directories.len();
        let unread = self.overfull.iter().copied().chain(known).filter_map(|at| {
            self.tree.path_of(at, &mut path, &mut way);
            let relative = Path::new(OsStr::from_bytes(&path));
            let by_itself = self.ground.elsewhere.contains(relative);
            (!by_itself).then(|| absolute(self.ground.root, &path))
        });
        unread.collect()
    }

    /// Asks the directories right in the root that there was no time to look into for protected names: where somebody has
    /// filled it, a person's repositories are still among them.
    fn ask_unread(&mut self) {
        let (mut path, mut way) = (Vec::new(), Vec::new());
        for at in self.next..self.tree.directories.len() {
            self.tree.path_of(at, &mut path, &mut way);
            let by_itself = self.ground.elsewhere.contains(Path::new(OsStr::from_bytes(&path)));
            if self.tree.directories[at].level == 1 && !by_itself {
                self.ask_left_out(&path);
            }
        }
    }

    fn ask_left_out(&mut self, path: &[u8]) {
        self.left.asks = self.left.asks.saturating_sub(1);
        if let (Ok(name), true) = (CString::new(path), self.left.asks > 0) {
            let Ground { descriptor, root, .. } = self.ground;
            self.asked.extend(protected_in(descriptor, &name, &absolute(root, path)));
        }
    }

    /// Whether one more directory is worth keeping: one past the limit is, which shows that there are
    /// more.
    fn has_room(&self) -> bool {
        self.tree.directories.len() <= self.ground.limits.directories + self.ground.elsewhere.len()
    }
}

/// Has each of some threads, this one among them, look into its share of some directories. `None` when
/// one of them came to a limit, or could not be made.
fn look_together<'a>(
    ground: &'a Ground<'a>,
    left: Left,
    tree: &Tree,
    level: Range<usize>,
    threads: usize,
) -> Option<Vec<Finds<'a>>> {
    if threads < 2 {
        return None;
    }
    let share = level.len().div_ceil(threads);
    let mut shares = level.clone().step_by(share).map(|from| from..level.end.min(from + share));
    let look = move |share| {
        let mut finds = Finds::new(ground, left, || 1);
        finds.look_into(tree, share, &mut Room::default()).map(|()| finds)
    };
    let own = shares.next()?;
    std::thread::scope(|scope| {
        let spawn = |share| std::thread::Builder::new().spawn_scoped(scope, move || look(share));
        let others: Vec<_> = shares.map(spawn).collect();
        let own = look(own).ok();
        // All are waited for, whatever became of one.
        let others: Vec<_> =
            others.into_iter().map(|other| other.ok()?.join().ok()?.ok()).collect();
        std::iter::once(own).chain(others).collect()
    })
}

/// How many processors this process may use.
fn processors() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    usize::try_from(allowed).unwrap_or(1)
}

/// Room for what is needed for one directory after the other.
#[derive(Default)]
struct Room {
    block: Vec<u8>,
    path: Vec<u8>,
    way: Vec<usize>,
    batch: Batch,
}

/// What is known of a directory without looking into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing: it may hold others.
    NotAsked,
    /// As little: it did not answer.
    None,
    /// Which of the protected names are in it, and that nothing else there counts.
    Holds([bool; PROTECTED.len()]),
}

/// What was found in some directories.
struct Finds<'a> {
    ground: &'a Ground<'a>,
    threads: fn() -> usize,
    before: Left,
    left: Left,
    looked_into: usize,
    /// The directories in them that are looked into later, and their names.
    names: Vec<u8>,
    children: Vec<Directory>,
    /// Those of them that hold more than there was room for.
    overfull: Vec<usize>,
    walked: Walked,
    /// The protected names in directories that there was no room for.
    asked: Vec<PathBuf>,
}

impl<'a> Finds<'a> {
    fn new(ground: &'a Ground<'a>, left: Left, threads: fn() -> usize) -> Self {
        Self {
            ground,
            threads,
            before: left,
            left,
            looked_into: 0,
            names: Vec::new(),
            children: Vec::new(),
            overfull: Vec::new(),
            walked: Walked { complete: true, ..Walked::default() },
            asked: Vec::new(),
        }
    }

    fn look_into(
        &mut self,
        tree: &Tree,
        directories: Range<usize>,
        room: &mut Room,
    ) -> Result<(), Exhausted> {
        let Room { block, path, way, batch } = room;
        block.reserve(BLOCK);
        for at in directories {
            tree.path_of(at, path, way);
            if !self.ground.elsewhere.contains(Path::new(OsStr::from_bytes(path))) {
                self.looked_into += 1;
                let level = tree.directories[at].level;
                self.read(at, level, path, block, batch)?;
            }
        }
        Ok(())
    }

    /// Reads one directory, and keeps the directories in it for later.
    fn read(
        &mut self,
        at: usize,
        level: usize,
        path: &[u8],
        block: &mut Vec<u8>,
        batch: &mut Batch,
    ) -> Result<(), Exhausted> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let here = if path.is_empty() { b"." } else { path };
        let directory = match openat(&self.ground.descriptor, here, flags, Mode::empty()) {
            Ok(directory) => directory,
            // It went away, or something else came in its place.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.close(path);
                return Ok(());
            }
            Err(_) => {
                self.leave(path);
                return Ok(());
            }
        };
        let mut read = Ok(());
        let mut entries = RawDir::new(directory.as_fd(), block.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else {
                self.leave(path);
                break;
            };
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let Some(left) = self.left.entries.checked_sub(1) else {
                read = Err(Exhausted);
                break;
            };
            self.left.entries = left;
            if is_protected_bytes(bytes) {
                self.walked.protected.push(self.absolute(path).join(OsStr::from_bytes(bytes)));
                continue;
            }
            let is_directory = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(true, |stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
                kind => kind.is_dir(),
            };
            if is_directory && level < self.ground.limits.depth {
                batch.add(name);
            }
            if batch.starts.len() == BATCH {
                self.sort(at, level, path, &directory, batch);
            }
        }
        self.sort(at, level, path, &directory, batch);
        read
    }

    /// Asks the directories in one, and keeps those for later that have to be looked into.
    fn sort(
        &mut self,
        at: usize,
        level: usize,
        path: &[u8],
        directory: &OwnedFd,
        batch: &mut Batch,
    ) {
        let which = match level + 1 == self.ground.limits.depth {
            true => Which::All,
            false => Which::Leaves,
        };
        let answers = self.ask_all(directory, batch, which);
        for (c_name, answer) in batch.names(&batch.starts).zip(answers) {
            let name = c_name.to_bytes();
            if answer != Answer::NotAsked {
                self.left.asks = self.left.asks.saturating_sub(1);
            }
            if let Answer::Holds(found) = answer {
                for (_, protected) in found.iter().zip(PROTECTED).filter(|(found, _)| **found) {
                    let leaf = self.absolute(path).join(OsStr::from_bytes(name));
                    self.walked.protected.push(leaf.join(protected));
                }
            } else if self.has_room() {
                let start = self.names.len();
                self.names.extend_from_slice(name);
                let name = start..self.names.len();
                self.children.push(Directory { parent: at, name, level: level + 1 });
            } else {
                self.left.asks = self.left.asks.saturating_sub(1);
                if level == 0 && self.left.asks > 0 {
                    let leaf = self.absolute(path).join(OsStr::from_bytes(name));
                    self.asked.extend(protected_in(directory, c_name, &leaf));
                }
                if self.overfull.last() != Some(&at) {
                    self.overfull.push(at);
                }
            }
        }
        batch.clear();
    }

    /// Asks those of some directories that there is no need to look into, by several threads if they are
    /// many and no limit can be reached.
    fn ask_all(&self, directory: &OwnedFd, batch: &Batch, which: Which) -> Vec<Answer> {
        let (ground, most) = (self.ground, self.left.asks);
        let ask_some = move |starts: &[usize]| -> Vec<Answer> {
            let mut asked = Vec::new();
            let mut left = most;
            let answer = |name: &CStr| {
                if left == 0 || (which == Which::Leaves && !ground.is_leaf(directory, name)) {
                    return Answer::NotAsked;
                }
                left -= 1;
                ask(directory, name, &mut asked)
            };
            batch.names(starts).map(answer).collect()
        };
        let all = batch.starts.as_slice();
        let enough = all.len() >= WORTH_ASKING_TOGETHER && all.len() <= most;
        let threads = if enough { (self.threads)() } else { 1 };
        if threads < 2 {
            return ask_some(all);
        }
        let (own, others) = all.split_at(all.len().div_ceil(threads));
        std::thread::scope(|scope| {
            let spawn = |share| {
                (share, std::thread::Builder::new().spawn_scoped(scope, move || ask_some(share)))
            };
            let others: Vec<_> = others.chunks(own.len()).map(spawn).collect();
            let mut answers = ask_some(own);
            for (share, other) in others {
                let told = other.ok().and_then(|other| other.join().ok());
                answers.extend(told.unwrap_or_else(|| ask_some(share)));
            }
            answers
        })
    }

    /// Whether one more directory could be of use: no more than this are ever looked into.
    fn has_room(&self) -> bool {
        self.children.len() <= self.ground.limits.directories + self.ground.elsewhere.len()
    }

    /// Notes a directory that may not be read: if it is this user's own, its commands could make it
    /// readable, and if others may pass it they could go on to what they know the name of. If it cannot even be looked
    /// at, the same is true of the directory that it is in.
    fn close(&mut self, path: &[u8]) {
        const PASSED_BY_OTHERS: u32 = 0o011;
        let closed = Path::new(OsStr::from_bytes(path));
        for path in closed.ancestors().take_while(|path| !path.as_os_str().is_empty()) {
            match statat(&self.ground.descriptor, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
                    if is_own || stat.st_mode & PASSED_BY_OTHERS != 0 {
                        self.walked.closed.push(self.ground.root.join(path));
                    }
                    return;
                }
                Err(Errno::ACCESS | Errno::PERM) => {}
                Err(Errno::NOENT | Errno::NOTDIR) => return,
                Err(_) => return self.leave(path.as_os_str().as_bytes()),
            }
        }
        self.leave(b"");
    }

    /// Notes a directory of which nobody knows what is in it.
    fn leave(&mut self, path: &[u8]) {
        self.walked.complete = false;
        self.walked.unread.push(self.absolute(path));
    }

    fn absolute(&self, path: &[u8]) -> PathBuf {
        absolute(self.ground.root, path)
    }
}

/// Which of the directories in one are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that hold no other directory.
    Leaves,
    /// All: nobody goes deeper.
    All,
}

impl Ground<'_> {
    /// Whether a directory certainly holds no other directory.
    fn is_leaf(&self, directory: &OwnedFd, name: &CStr) -> bool {
        self.counting.as_ref().is_some_and(|root| {
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                // The type of the count is not the same on every machine.
                .is_ok_and(|found| found.st_dev == root.st_dev && matches!(found.st_nlink, 2))
        })
    }
}

/// Asks a directory for the protected names. If it does not answer, it has to be looked into.
fn ask(directory: &OwnedFd, name: &CStr, asked: &mut Vec<u8>) -> Answer {
    let mut found = [false; PROTECTED.len()];
    for (found, protected) in found.iter_mut().zip(PROTECTED) {
        asked.clear();
        asked.extend_from_slice(name.to_bytes());
        asked.push(b'/');
        asked.extend_from_slice(protected.as_bytes());
        match statat(directory, asked.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => *found = true,
            Err(Errno::NOENT) => {}
            Err(_) => return Answer::None,
        }
    }
    Answer::Holds(found)
}

/// The protected names in a directory, as far as it answers.
fn protected_in(above: &OwnedFd, name: &CStr, path: &Path) -> impl Iterator<Item = PathBuf> {
    let found = match ask(above, name, &mut Vec::new()) {
        Answer::Holds(found) => found,
        Answer::NotAsked | Answer::None => Default::default(),
    };
    PROTECTED.iter().zip(found).filter(|(_, found)| *found).map(move |(name, _)| path.join(name))
}

/// The whole of a path that is relative to the root.
fn absolute(root: &Path, path: &[u8]) -> PathBuf {
    let relative = Path::new(OsStr::from_bytes(path));
    if path.is_empty() { root.to_owned() } else { root.join(relative) }
}
