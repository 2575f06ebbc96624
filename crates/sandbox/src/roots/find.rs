//! Collects what is protected in some roots.

mod linked;

use super::Layout;
use super::git::{Guarded, guarded, is_git_directory};
use super::gitlinks::{Gitlinks, gitlinks};
use super::home;
use super::links::{Left, Obeyed};
#[cfg(target_os = "linux")]
use super::mounts::{Mounted, OfTheKernel, Watch};
use super::protected::{PROTECTED, has_protected_part, is_git, is_placeholder};
use super::read::read_bounded;
#[cfg(target_os = "linux")]
use super::resolve::is_on_a_kernel_file_system;
use super::resolve::shown;
use super::seen::{Seen, number};
use super::walk::{Limits, Walked, walk};
use super::way::{End, Way};
use sandgate_protocol::WritableRoot;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// No file of git's that holds a path is longer. No path is nearly as long, but git ignores line ends after it.
const LONGEST_POINTER: u64 = 16 << 20;

/// The longest path at which something is mounted. Nobody can go by one of more than 4096 bytes, but only step by step.
const LONGEST_PATH: usize = 3_900;

/// The most names that are kept free at once: each needs up to two descriptors while a cage is in use.
pub(crate) const MOST_KEPT_FREE: usize = 400;

/// The roots, and what was found in them so far.
#[derive(Default)]
pub(super) struct Finder {
    roots: BTreeSet<PathBuf>,
    /// Those of them that nobody named.
    scratch: BTreeSet<PathBuf>,
    protected: BTreeSet<PathBuf>,
    pinned: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
    unfinished: BTreeSet<PathBuf>,
    too_large: BTreeSet<PathBuf>,
    kernel: BTreeSet<PathBuf>,
    unfit: Option<(PathBuf, String)>,
    seen: Vec<Seen>,
    #[cfg(target_os = "linux")]
    watch: Option<Watch>,
    /// What the links in protected directories lead to.
    linked: BTreeSet<PathBuf>,
    /// The protected directories that were searched for links.
    looked_into: BTreeSet<(PathBuf, Obeyed)>,
    /// Names that are kept free because a submodule is to lie there, and the work trees that say so.
    of_submodules: BTreeMap<PathBuf, PathBuf>,
    /// Names that are kept free because a link leads there that a command could have made.
    of_links: BTreeSet<PathBuf>,
    /// How much more is searched for links, in directories for temporary files and elsewhere.
    left_in_scratch: Left,
    left: Left,
    notes: BTreeSet<String>,
}

impl Finder {
    pub(super) fn new(roots: BTreeSet<PathBuf>) -> Self {
        Self { roots, left_in_scratch: Left::SCRATCH, ..Self::default() }
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
        // Programs look for them further up too, as far as somebody could make them there.
        let writable: Vec<_> =
            root.ancestors().skip(1).filter(|above| self.is_writable(above)).collect();
        for above in writable {
            PROTECTED.iter().for_each(|name| self.reserve(above.join(name)));
        }
        self.search(root, Limits::ROOT);
    }

    /// Whether a directory is a root or lies in one.
    fn is_writable(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.roots.contains(above))
    }

    /// The same for a directory for temporary files, where commands may make repositories.
    pub(super) fn search_scratch(&mut self, root: &Path) {
        self.seen.push(Seen::root(root));
        self.scratch.insert(root.to_owned());
        self.search(root, Limits::SCRATCH);
    }

    /// Looks for repositories beneath a root. Those beneath another are found when that one is
    /// searched.
    fn search(&mut self, root: &Path, limits: Limits) {
        let Walked { protected, closed, unread, complete } = walk(root, limits, &self.roots);
        for path in protected {
            self.protect(path);
        }
        if !complete {
            self.unfinished.insert(root.to_owned());
        }
        let is_unreadable = unread.iter().any(|path| path == root);
        if let Some(error) = std::fs::read_dir(root).err().filter(|_| is_unreadable) {
            self.close(root, format!("it cannot be searched for repositories ({error})"));
            return;
        }
        // Others make as many as they like where temporary files are.
        let closed = match closed.len() > MOST_CLOSED && self.scratch.contains(root) {
            true => border(root, closed),
            false => Some(closed.into_iter().collect()),
        };
        for border in [closed, border(root, unread)] {
            match border {
                Some(border) => border.into_iter().for_each(|path| self.protect_far(path)),
                None if self.scratch.contains(root) => {}
                None => {
                    self.too_large.insert(root.to_owned());
                }
            }
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
                self.protect_links(path, Obeyed::Git);
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
                Ok(found) if is_placeholder(&found) => self.reserve(path),
                Ok(_) => self.protect_far(path),
                // It must go on to lead nowhere.
                Err(_) => drop(self.follow(&path)),
            }
        }
        for path in there.into_iter().filter(|path| !named.contains(path)) {
            self.seen.push(Seen::name(&path));
            self.protect_far(path);
        }
    }

    /// Protects a name that is there, where it is, and what it leads to. Nothing above it can be moved:
    /// who searches the root at the same time must not miss it.
    fn protect(&mut self, path: PathBuf) {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // It went away meanwhile.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Err(error) => {
                // It may not be looked at now, but a command could change that.
                if let Some(directory) = path.parent() {
                    self.close(directory, format!("nobody can look at {} ({error})", shown(&path)));
                }
                return;
            }
        };
        let leads_to = if metadata.is_symlink() {
            self.protect_place(&path)
        } else if metadata.is_file() {
            self.protect_pointed_to(&path)
        } else {
            Some(path.clone())
        };
        if let Some(leads_to) = leads_to {
            match path.parent().filter(|_| is_git(&path)) {
                Some(work_tree) => {
                    self.protect_links(&leads_to, Obeyed::Git);
                    self.reserve_in_gitlinks(&leads_to, work_tree);
                }
                None => self.protect_all_links(&path, &leads_to),
            }
        }
        self.protect_far(path);
    }

    /// Sees to it that nobody makes a repository where git looks for one. In a directory for temporary
    /// files nothing is kept free.
    fn reserve_in_gitlinks(&mut self, git: &Path, work_tree: &Path) {
        let nearest = work_tree.ancestors().find(|above| self.roots.contains(*above));
        if nearest.is_none_or(|root| self.scratch.contains(root)) {
            return;
        }
        let Gitlinks { places, crowded, doubt } = gitlinks(git, work_tree);
        for place in places {
            let way = Way::of(&place.join(PROTECTED[0]));
            if let End::Missing(missing) = &way.end {
                self.of_submodules.insert(missing.clone(), work_tree.to_owned());
            }
            self.arrive(way);
        }
        for place in crowded.iter().filter(|place| *place != work_tree) {
            self.follow(place).into_iter().for_each(|place| self.protect_far(place));
        }
        let doubt =
            doubt.or(crowded.contains(work_tree).then(|| "it has too many submodules".into()));
        if let Some(why) = doubt {
            let index = shown(&git.join("index"));
            self.close(work_tree, format!("nobody knows all submodules of {index}: {why}"));
        }
    }

    /// Closes a directory in which something may have to be protected that nobody knows of. A root cannot be closed: if
    /// somebody named it, nothing runs.
    fn close(&mut self, directory: &Path, why: String) {
        if !self.roots.contains(directory) {
            self.protect_far(directory.to_owned());
        } else if self.scratch.contains(directory) {
            self.unfinished.insert(directory.to_owned());
        } else {
            self.refuse(directory.to_owned(), why);
        }
    }

    /// Protects something, and every step of the way to it.
    fn protect_far(&mut self, path: PathBuf) {
        let is_short = |above: &&Path| above.as_os_str().len() <= LONGEST_PATH;
        let path = path.ancestors().find(is_short).map(Path::to_owned).unwrap_or(path);
        self.pin_above(&path);
        self.protected.insert(path);
    }

    /// Protects what a path leads to; a place that is not there yet is kept free.
    fn protect_place(&mut self, path: &Path) -> Option<PathBuf> {
        let target = self.follow(path)?;
        self.protect_far(target.clone());
        if target.is_file() { self.protect_pointed_to(&target) } else { Some(target) }
    }

    /// Protects the directories that a `.git` file leads to: a worktree's own, and the one it shares.
    fn protect_pointed_to(&mut self, file: &Path) -> Option<PathBuf> {
        let own = first_line(file, "gitdir: ")?;
        let own = self.follow(&file.with_file_name("").join(own))?;
        self.protect_far(own.clone());
        self.protect_links(&own, Obeyed::Git);
        Some(own)
    }

    /// Follows a path and sees to it that it goes on to lead where it does: the links on it stay, the
    /// directories that it passes too, and a place that is not there stays free.
    fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        self.arrive(Way::of(path))
    }

    fn arrive(&mut self, way: Way) -> Option<PathBuf> {
        self.keep(&way);
        match way.end {
            End::There(target) => return Some(target),
            End::Missing(place) => self.reserve(place),
            End::Stuck(place) => self.protect_far(place),
        }
        None
    }

    /// Sees to it that nothing on a way is replaced.
    pub(super) fn keep(&mut self, way: &Way) {
        self.pinned.extend(way.passed.iter().cloned());
        self.protected.extend(way.links.iter().cloned());
    }

    /// Protects the person's own settings.
    pub(super) fn protect_codex_home(&mut self, home: &Path) {
        self.seen.push(Seen::name(home));
        if let Some(home) = self.follow(home)
            && !self.roots.contains(&home)
        {
            self.protect_far(home.clone());
            self.protect_links(&home, Obeyed::Settings);
        }
    }

    /// Protects what programs obey in a person's home.
    pub(super) fn protect_home(&mut self, home: &Path) {
        for path in home::obeyed(home) {
            self.seen.push(Seen::name(&path));
            let leads_to = match path.is_symlink() {
                true => self.protect_place(&path),
                false => Some(path.clone()),
            };
            if let Some(leads_to) = leads_to {
                self.protect_all_links(&path, &leads_to);
            }
            self.protect_far(path);
        }
        for path in home::kept_free(home) {
            self.reserve(path);
        }
    }

    /// Makes read-only what is mounted in the roots and holds no files. What can not be looked at now is closed with the
    /// directory that it lies in: a command could open that. Of a root itself somebody has said that it is for files, so
    /// that only what is known to be the kernel's is refused.
    #[cfg(target_os = "linux")]
    pub(super) fn close_the_kernels(&mut self) {
        if self.roots.is_empty() {
            return;
        }
        match Watch::begin(&self.roots) {
            Ok(watch) => {
                self.close_mounted(watch.found().clone());
                self.watch = Some(watch);
            }
            Err(error) => {
                let why = format!("nobody says what is mounted there ({error})");
                self.roots
                    .first()
                    .cloned()
                    .into_iter()
                    .for_each(|root| self.refuse(root, why.clone()));
            }
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn close_mounted(&mut self, found: Mounted) {
        for (root, file_system) in found.roots {
            self.refuse(root, of_the_kernel(&file_system));
        }
        for OfTheKernel { place, is_read_only, file_system, is_unknown } in found.inside {
            if self.roots.contains(&place) && !is_on_a_kernel_file_system(&place) {
                continue;
            }
            if is_unknown && !is_read_only {
                let place = shown(&place);
                self.notes.insert(format!(
                    "{place} is read-only: its file system, {file_system}, is not known to hold files"
                ));
            }
            let nearest = super::mounts::nearest(&place).map(Path::to_owned);
            match nearest.filter(|at| self.is_writable(at) && !self.roots.contains(at)) {
                Some(nearest) => self.protect_far(nearest),
                None if is_read_only => {}
                None => self.refuse(place.clone(), of_the_kernel(&file_system)),
            }
            if !is_read_only {
                self.kernel.insert(place);
            }
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

    /// Where there are too many names to be kept free, makes the directories read-only that they would be
    /// in. The roots' own come first.
    fn keep_fewer_free(&mut self) {
        let is_of_a_root =
            |path: &&PathBuf| path.parent().is_some_and(|above| self.roots.contains(above));
        // What no command can make needs not to be kept free.
        let can_be_made = |path: &&PathBuf| self.is_writable(path);
        let is_first = |path: &&PathBuf| is_of_a_root(path) && !self.of_links.contains(*path);
        let (first, others): (Vec<_>, Vec<_>) =
            self.absent.iter().filter(can_be_made).partition(is_first);
        let why = (first.len() > MOST_KEPT_FREE).then(|| self.whose_submodules_are_gone(&first));
        let surplus = others.iter().skip(MOST_KEPT_FREE.saturating_sub(first.len()));
        let surplus: Vec<PathBuf> = surplus.map(|path| (*path).clone()).collect();
        for path in surplus {
            self.absent.remove(&path);
            self.protected.remove(&path);
            match path.parent() {
                // A root cannot be closed, and links that commands can make must not keep commands from running.
                Some(above) if self.roots.contains(above) => {
                    let above = shown(above);
                    self.notes.insert(format!(
                        "so many links in protected directories lead to names in {above} which are not there that \
                         not all of these are kept free"
                    ));
                }
                above => above.into_iter().for_each(|above| self.protect_far(above.to_owned())),
            }
        }
        if let Some((root, why)) = why.flatten() {
            self.refuse(root, why);
        }
    }

    /// The root in which too many names would have to be kept free, and why, if that is for submodules.
    fn whose_submodules_are_gone(&self, names: &[&PathBuf]) -> Option<(PathBuf, String)> {
        let mut of_each: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
        for name in names {
            if let Some(work_tree) = self.of_submodules.get(*name) {
                of_each.entry(work_tree).or_default().push(name);
            }
        }
        let (work_tree, gone) = of_each.into_iter().max_by_key(|(_, gone)| gone.len())?;
        let (root, work_tree) = (gone.first()?.parent()?, shown(work_tree));
        let why = format!(
            "the repository {work_tree} has {} submodules whose directories are gone, and so many names cannot be kept \
             free; make them again with `git -C {work_tree} submodule update --init`, or take them out with `git rm`",
            gone.len(),
        );
        Some((root.to_owned(), why))
    }

    fn pin_above(&mut self, path: &Path) {
        self.pinned.extend(path.ancestors().skip(1).map(Path::to_owned));
    }

    /// Keeps what lies in the roots and is not protected by something above it already.
    pub(super) fn finish(mut self, sockets: BTreeSet<PathBuf>, mut notes: Vec<String>) -> Layout {
        for root in self.roots.clone() {
            self.pin_above(&root);
        }
        self.close_linked();
        self.keep_fewer_free();
        let Self {
            roots,
            scratch,
            protected,
            pinned,
            absent,
            unfinished,
            too_large,
            kernel,
            unfit,
            seen,
            #[cfg(target_os = "linux")]
            watch,
            notes: own_notes,
            ..
        } = self;
        notes.extend(own_notes);
        let in_roots = |path: &Path| {
            let above = path.ancestors().skip(1);
            let nearest = above.into_iter().find(|a| roots.contains(*a) || protected.contains(*a));
            !roots.contains(path) && nearest.is_some_and(|nearest| roots.contains(nearest))
        };
        let keep = |set: &BTreeSet<PathBuf>| -> Vec<PathBuf> {
            set.iter().filter(|path| in_roots(path)).cloned().collect()
        };
        let read_only = keep(&protected);
        let pinned: Vec<_> =
            keep(&pinned).into_iter().filter(|path| !protected.contains(path)).collect();
        let absent = keep(&absent);
        let beneath = |root: &Path| {
            read_only.iter().filter(|path| path.starts_with(root)).cloned().collect::<Vec<_>>()
        };
        let there = read_only.iter().filter(|path| absent.binary_search(path).is_err());
        let numbers = there
            .chain(&pinned)
            .chain(&roots)
            .filter_map(|path| Some((path.clone(), number(&path.symlink_metadata().ok()?))))
            .collect();
        let roots = roots
            .iter()
            .map(|root| WritableRoot { path: root.clone(), read_only_subpaths: beneath(root) })
            .collect();
        let sockets = sockets.into_iter().collect();
        let unfinished: Vec<_> = unfinished.into_iter().collect();
        let too_large = too_large.into_iter().next();
        notes.extend(unfinished.iter().map(|root: &PathBuf| {
            format!(
                "{} is too large to be searched for repositories to the end: what was not looked \
                 into is read-only, or not protected if it is a directory for temporary files",
                shown(root)
            )
        }));
        Layout {
            roots,
            pinned,
            absent,
            sockets,
            unfinished,
            too_large,
            kernel: kernel.into_iter().collect(),
            unfit,
            seen,
            #[cfg(target_os = "linux")]
            watch,
            numbers,
            scratch,
            notes,
        }
    }
}

#[cfg(target_os = "linux")]
fn of_the_kernel(file_system: &str) -> String {
    format!("its file system, {file_system}, is one of the kernel's own")
}

/// The most directories that are read-only because nobody has looked into them.
const MOST_CLOSED: usize = 1000;

/// A few directories that hold all those that were not looked into; `None` when only the root itself
/// would do.
pub(super) fn border(root: &Path, unread: Vec<PathBuf>) -> Option<BTreeSet<PathBuf>> {
    let mut border: BTreeSet<_> = unread.into_iter().collect();
    while border.len() > MOST_CLOSED {
        let depth = |path: &PathBuf| path.components().count();
        let deepest = border.iter().map(depth).max()?;
        let up = |path: PathBuf| match depth(&path) == deepest {
            true => path.parent().map(Path::to_owned).unwrap_or(path),
            false => path,
        };
        border = border.into_iter().map(up).collect();
        if border.contains(root) {
            return None;
        }
    }
    (!border.contains(root)).then_some(border)
}

/// The path that a file of git's holds, after a word: all of its text but the line's end, and as for git nothing behind
/// a NUL.
fn first_line(file: &Path, word: &str) -> Option<PathBuf> {
    let text = read_bounded(file, LONGEST_POINTER)?;
    let path = text.strip_prefix(word.as_bytes())?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    as_path(path[..=end].split(|byte| *byte == 0).next()?)
}

#[cfg(unix)]
pub(super) fn as_path(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
pub(super) fn as_path(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
