//! Collects what is protected in some roots.

use super::Layout;
use super::git::{Guarded, guarded, is_git_directory};
use super::home;
use super::protected::{PROTECTED, has_protected_part, is_placeholder};
use super::seen::Seen;
use super::walk::{Limits, Walked, walk};
use sandgate_protocol::WritableRoot;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// How many links are followed to a place that is not there; the kernel gives up there too.
const MAX_LINKS: usize = 40;

/// No path is longer.
const LONGEST_POINTER: u64 = 8 * 1024;

/// The roots, and what was found in them so far.
#[derive(Default)]
pub(super) struct Finder {
    roots: BTreeSet<PathBuf>,
    protected: BTreeSet<PathBuf>,
    pinned: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
    unfinished: BTreeSet<PathBuf>,
    seen: Vec<Seen>,
}

impl Finder {
    pub(super) fn new(roots: BTreeSet<PathBuf>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// Protects what must be in a root that was named: what is there, and the names of its own that
    /// are not.
    pub(super) fn search_root(&mut self, root: &Path) {
        self.seen.push(Seen::root(root));
        for name in PROTECTED {
            let path = root.join(name);
            self.seen.push(Seen::name(&path));
            self.reserve(path);
        }
        self.search(root, Limits::ROOT);
    }

    /// The same for a directory for temporary files, where commands may make repositories.
    pub(super) fn search_scratch(&mut self, root: &Path) {
        self.seen.push(Seen::root(root));
        self.search(root, Limits::SCRATCH);
    }

    /// Looks for repositories beneath a root. Those beneath another are found when that one is
    /// searched.
    fn search(&mut self, root: &Path, limits: Limits) {
        let Walked { protected, closed, complete } = walk(root, limits, &self.roots);
        for path in protected {
            self.protect(path);
        }
        for path in closed {
            self.protect_far(path);
        }
        if !complete {
            self.unfinished.insert(root.to_owned());
        }
    }

    /// Makes one more path writable, absolute and canonical, if it is not already. Of a git directory that
    /// is not what git obeys there, but for what is in `named` itself.
    pub(super) fn open(&mut self, path: &Path, named: &BTreeSet<PathBuf>) {
        let decides =
            |above: &&Path| self.roots.contains(*above) || self.protected.contains(*above);
        let nearest = path.ancestors().find(decides);
        if nearest.is_some_and(|nearest| self.roots.contains(nearest)) {
            return;
        }
        // What is protected was meant as it is.
        let whole = nearest.is_some() || has_protected_part(path) || !path.is_dir();
        self.roots.insert(path.to_owned());
        if whole {
            self.seen.push(Seen::root(path));
            if is_git_directory(path) {
                self.guard(path, named);
            }
        } else {
            self.search_root(path);
        }
    }

    /// Protects what git obeys in a directory of its own.
    fn guard(&mut self, directory: &Path, named: &BTreeSet<PathBuf>) {
        let Guarded { reserved, there } = guarded(directory);
        for path in reserved.into_iter().filter(|path| !named.contains(path)) {
            self.seen.push(Seen::name(&path));
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    self.protect_place(&path);
                    self.protect_far(path);
                }
                Ok(found) if !is_placeholder(&found) => self.protect_far(path),
                _ => self.keep_free(&path),
            }
        }
        for path in there.into_iter().filter(|path| !named.contains(path)) {
            self.seen.push(Seen::name(&path));
            self.protect_far(path);
        }
    }

    /// Protects a name that is there, where it is, and what it leads to.
    fn protect(&mut self, path: PathBuf) {
        let directory = path.parent().map(Path::to_owned);
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) => {
                // It may not be looked at now, but a command could change that.
                let closed = directory.filter(|_| error.kind() == ErrorKind::PermissionDenied);
                closed.into_iter().for_each(|directory| self.protect_far(directory));
                return;
            }
        };
        self.pinned.extend(directory);
        if metadata.is_symlink() {
            self.protect_place(&path);
        } else if metadata.is_file() {
            self.protect_pointed_to(&path);
        }
        self.protected.insert(path);
    }

    /// Protects something that a path elsewhere leads to, and every step of the way.
    fn protect_far(&mut self, path: PathBuf) {
        self.pin_above(&path);
        self.protected.insert(path);
    }

    /// Protects what a path leads to; a place that is not there yet is kept free.
    fn protect_place(&mut self, path: &Path) {
        let Ok(target) = path.canonicalize() else { return self.keep_free(path) };
        if target.is_file() {
            self.protect_pointed_to(&target);
        }
        self.protect_far(target);
    }

    /// Protects the directories that a `.git` file leads to: a worktree's own, and the one it shares.
    fn protect_pointed_to(&mut self, file: &Path) {
        let Some(own) = first_line(file, "gitdir: ") else { return };
        let own = file.with_file_name("").join(own);
        match own.canonicalize() {
            Ok(own) => {
                if let Some(shared) = first_line(&own.join("commondir"), "") {
                    self.protect_directory(&own.join(shared));
                }
                self.protect_far(own);
            }
            Err(_) => self.keep_free(&own),
        }
    }

    fn protect_directory(&mut self, path: &Path) {
        match path.canonicalize() {
            Ok(target) => self.protect_far(target),
            Err(_) => self.keep_free(path),
        }
    }

    /// Keeps everything free that a path which leads nowhere needs, so that it goes on to lead
    /// nowhere: the first step of it that is not there, and the same for the links on the way.
    fn keep_free(&mut self, path: &Path) {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let mut steps = path.ancestors().zip(path.ancestors().skip(1));
            let Some((missing, above)) = steps.find(|(_, above)| above.is_dir()) else { return };
            let Ok(above) = above.canonicalize() else { return };
            // A path that ends in `..` has no name to keep free, and needs none.
            let Some(name) = missing.file_name() else { return };
            let place = above.join(name);
            self.reserve(place.clone());
            match place.read_link() {
                Ok(target) => path = above.join(target),
                Err(_) => return,
            }
        }
    }

    /// Protects the person's own settings.
    pub(super) fn protect_codex_home(&mut self, home: &Path) {
        self.seen.push(Seen::name(home));
        match home.canonicalize() {
            Ok(home) if !self.roots.contains(&home) => self.protect_far(home),
            Ok(_) => {}
            Err(_) => self.keep_free(home),
        }
    }

    /// Protects what programs obey in a person's home.
    pub(super) fn protect_home(&mut self, home: &Path) {
        for path in home::obeyed(home) {
            self.seen.push(Seen::name(&path));
            if path.is_symlink() {
                self.protect_place(&path);
            }
            self.protect_far(path);
        }
        for path in home::kept_free(home) {
            self.reserve(path);
        }
    }

    /// Protects a name that may not be there.
    fn reserve(&mut self, path: PathBuf) {
        self.pin_above(&path);
        if path.symlink_metadata().map_or(true, |found| is_placeholder(&found)) {
            self.absent.insert(path.clone());
        }
        self.protected.insert(path);
    }

    fn pin_above(&mut self, path: &Path) {
        self.pinned.extend(path.ancestors().skip(1).map(Path::to_owned));
    }

    /// Keeps what lies in the roots and is not protected by something above it already.
    pub(super) fn finish(mut self, sockets: BTreeSet<PathBuf>) -> Layout {
        for root in self.roots.clone() {
            self.pin_above(&root);
        }
        let Self { roots, protected, pinned, absent, unfinished, seen } = self;
        let in_roots = |path: &Path| {
            let above = path.ancestors().skip(1);
            let nearest = above.into_iter().find(|a| roots.contains(*a) || protected.contains(*a));
            !roots.contains(path) && nearest.is_some_and(|nearest| roots.contains(nearest))
        };
        let keep = |set: &BTreeSet<PathBuf>| -> Vec<PathBuf> {
            set.iter().filter(|path| in_roots(path)).cloned().collect()
        };
        let read_only = keep(&protected);
        let pinned = keep(&pinned).into_iter().filter(|path| !protected.contains(path)).collect();
        let absent = keep(&absent);
        let beneath = |root: &Path| {
            read_only.iter().filter(|path| path.starts_with(root)).cloned().collect::<Vec<_>>()
        };
        let roots = roots
            .iter()
            .map(|root| WritableRoot { path: root.clone(), read_only_subpaths: beneath(root) })
            .collect();
        let sockets = sockets.into_iter().collect();
        let unfinished = unfinished.into_iter().collect();
        Layout { roots, pinned, absent, sockets, unfinished, seen }
    }
}

/// The path that a file of git's holds, after a word: all of its text but the line's end.
fn first_line(file: &Path, word: &str) -> Option<PathBuf> {
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).ok()?;
    opened.take(LONGEST_POINTER).read_to_end(&mut text).ok()?;
    let path = text.strip_prefix(word.as_bytes())?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    as_path(&path[..=end])
}

#[cfg(unix)]
fn as_path(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn as_path(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
