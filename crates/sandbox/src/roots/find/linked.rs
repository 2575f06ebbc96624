//! Protects what the links in protected directories lead to.

use super::{End, Finder, MOST_CLOSED, Way, border, first_line};
use crate::roots::links::{Links, Obeyed, Unread, links_in};
use crate::roots::resolve::shown;
use std::path::{Path, PathBuf};

/// Who can have made a protected directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// It is right in a root, where commands make none, or outside of all.
    Roots,
    /// It is further down, where a command could.
    Deeper,
    /// It is where everybody may write.
    Anybodys,
}

/// Whether this process's user has made it.
#[cfg(target_os = "linux")]
fn is_own(link: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    link.symlink_metadata().is_ok_and(|found| found.uid() == own)
}

#[cfg(not(target_os = "linux"))]
fn is_own(_link: &Path) -> bool {
    true
}

impl Finder {
    /// Protects what is obeyed by way of a protected directory, and lies elsewhere. What a link leads to is searched in
    /// its turn if it lies in a root: nobody who is confined changes another place, and it can be as large as the machine.
    pub(in crate::roots) fn protect_links(&mut self, start: &Path, obeyed: Obeyed) {
        let whose = match (self.is_in_scratch(start), start.parent()) {
            (true, _) => Whose::Anybodys,
            (false, Some(above)) if self.is_writable(start) && !self.roots.contains(above) => {
                Whose::Deeper
            }
            (false, _) => Whose::Roots,
        };
        let mut directories = vec![(start.to_owned(), obeyed)];
        while let Some((directory, obeyed)) = directories.pop() {
            if !self.looked_into.insert((directory.clone(), obeyed)) {
                continue;
            }
            let left = match whose {
                Whose::Anybodys => &mut self.left_in_scratch,
                Whose::Deeper | Whose::Roots => &mut self.left,
            };
            let Links { links, pointers } = match links_in(&directory, obeyed, &self.roots, left) {
                Ok(found) => found,
                Err(unread) => {
                    self.refuse_unread(start, unread, whose);
                    continue;
                }
            };
            for (link, within) in links {
                let target = self.protect_linked(&directory, &link, whose);
                let is_new =
                    |target: &PathBuf| obeyed != Obeyed::All || !target.starts_with(&directory);
                let target = target.filter(|target| is_new(target) && self.is_writable(target));
                directories.extend(target.map(|target| (target, within)));
            }
            for pointer in pointers {
                let shared =
                    first_line(&pointer, "").map(|path| pointer.with_file_name("").join(path));
                if let Some(shared) = shared.and_then(|shared| self.follow(&shared)) {
                    self.protect_far(shared.clone());
                    directories.push((shared, Obeyed::Git));
                }
            }
        }
    }

    /// The same for something of which all is obeyed, and what it is or leads to.
    pub(super) fn protect_all_links(&mut self, path: &Path, leads_to: &Path) {
        if path == leads_to || !self.leads_around_a_root(path, leads_to) {
            self.protect_links(leads_to, Obeyed::All);
        }
    }

    /// Protects what a link leads to. Gives a directory that has to be searched for further links.
    fn protect_linked(&mut self, directory: &Path, link: &Path, whose: Whose) -> Option<PathBuf> {
        let way = Way::of(link);
        // What others put where everybody may is no reason to close something of this user's.
        if whose == Whose::Anybodys && !is_own(link) && !self.ends_in_scratch(&way) {
            return None;
        }
        if let End::Missing(name) = &way.end
            && whose != Whose::Roots
        {
            self.of_links.insert(name.clone());
        }
        let target = self.arrive(way)?;
        // What HEAD leads to is a branch as a rule, and a grant of the repository is meant for those.
        let is_branch = link.file_name().is_some_and(|name| name == "HEAD");
        if is_branch && target.starts_with(directory) {
            return None;
        }
        if self.leads_around_a_root(link, &target) {
            return None;
        }
        self.pin_above(&target);
        self.linked.insert(target.clone());
        target.is_dir().then_some(target)
    }

    /// Whether a link leads to something that a root lies in. That root was opened with all in it.
    pub(super) fn leads_around_a_root(&mut self, link: &Path, target: &Path) -> bool {
        if self.is_writable(target) && !self.roots.contains(target) {
            return false;
        }
        let root = self.roots.iter().find(|root| root.starts_with(target));
        let note = root.map(|root| {
            let (link, target, root) = (shown(link), shown(target), shown(root));
            format!(
                "{link} is a link to {target}: what is obeyed by way of it is as writable as the rest of {root}"
            )
        });
        self.notes.extend(note);
        root.is_some()
    }

    /// Nobody knows what a protected directory leads to. Others may have made that in a directory for temporary files,
    /// where nothing of it keeps a command from running; and no command has made what lies outside of all roots.
    fn refuse_unread(&mut self, start: &Path, Unread { place, why }: Unread, whose: Whose) {
        if whose == Whose::Anybodys {
            let nearest = start.ancestors().find(|above| self.scratch.contains(*above));
            self.unfinished.extend(nearest.map(Path::to_owned));
            return;
        }
        let by_way = match place.starts_with(start) {
            true => String::new(),
            false => format!(", which a link in {} leads to", shown(start)),
        };
        let why = format!("{}{by_way} is protected, and {why}", shown(&place));
        match place.ancestors().find(|above| self.roots.contains(*above)) {
            Some(root) => self.refuse(root.to_owned(), why),
            None => drop(self.notes.insert(format!("{why}: what its links lead to is not"))),
        }
    }

    /// Whether what a way leads to, or would, lies where everybody may write, or in no root at all.
    fn ends_in_scratch(&self, way: &Way) -> bool {
        let (End::There(place) | End::Missing(place) | End::Stuck(place)) = &way.end;
        !self.is_writable(place) || self.is_in_scratch(place)
    }

    /// Closes what links lead to: all of it by itself, or the directories that it lies in if it is very much.
    pub(super) fn close_linked(&mut self) {
        let linked = std::mem::take(&mut self.linked);
        let (inside, outside): (Vec<_>, Vec<_>) =
            linked.into_iter().partition(|path| self.is_writable(path) && !self.is_protected(path));
        self.protected.extend(outside);
        if inside.len() <= MOST_CLOSED {
            return self.protected.extend(inside);
        }
        for root in self.roots.clone() {
            let is_nearest = |path: &&PathBuf| {
                path.ancestors().find(|above| self.roots.contains(*above)) == Some(&*root)
            };
            let own: Vec<_> = inside.iter().filter(is_nearest).cloned().collect();
            match border(&root, own) {
                Some(border) => border.into_iter().for_each(|path| self.protect_far(path)),
                None => self.refuse(
                    root,
                    "links in protected directories lead to too much of it".to_owned(),
                ),
            }
        }
    }

    /// Whether something above a path is protected, and no root is nearer.
    fn is_protected(&self, path: &Path) -> bool {
        let mut above = path.ancestors();
        let decides =
            |above: &&Path| self.roots.contains(*above) || self.protected.contains(*above);
        above.find(decides).is_some_and(|nearest| !self.roots.contains(nearest))
    }

    /// Whether a path lies in a directory for temporary files, and in no root there that was named.
    pub(super) fn is_in_scratch(&self, path: &Path) -> bool {
        let nearest = path.ancestors().find(|above| self.roots.contains(*above));
        nearest.is_some_and(|root| self.scratch.contains(root))
    }

    /// No command is to run with this root.
    pub(super) fn refuse(&mut self, root: PathBuf, why: String) {
        self.unfit.get_or_insert((root, why));
    }
}
