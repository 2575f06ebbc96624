//! The way that a path leads, step by step.
//!
//! Who can replace something on the way decides where the path ends, so whoever protects the end has to
//! know all of it: every directory that is passed, and every link that is followed.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links are followed; the kernel gives up there too.
const MAX_LINKS: usize = 40;

/// Where a path leads, and by what. All paths in it are absolute, and have no link in them but at their
/// ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// The directories that it passes, those that it leaves by `..` again among them.
    pub(super) passed: BTreeSet<PathBuf>,
    /// The links that it follows.
    pub(super) links: Vec<PathBuf>,
    pub(super) end: End,
}

/// Where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Here: at something that is no link.
    There(PathBuf),
    /// Here there is nothing.
    Missing(PathBuf),
    /// At something that leads no further: a file in the middle, a circle of links, or a directory that
    /// may not be looked into.
    Stuck(PathBuf),
}

impl Way {
    /// Follows an absolute path.
    pub(super) fn of(path: &Path) -> Self {
        let mut way =
            Self { passed: BTreeSet::new(), links: Vec::new(), end: End::Stuck(PathBuf::new()) };
        way.end = way.follow(path);
        way
    }

    /// The path that it ends at, if there is something.
    pub(super) fn canonical(&self) -> Option<&Path> {
        match &self.end {
            End::There(path) => Some(path),
            End::Missing(_) | End::Stuck(_) => None,
        }
    }

    fn follow(&mut self, path: &Path) -> End {
        let mut here = PathBuf::new();
        let mut steps: VecDeque<Part> = parts(path).collect();
        while let Some(step) = steps.pop_front() {
            let name = match step {
                Part::Start(start) => {
                    here = start;
                    continue;
                }
                Part::Up => {
                    self.passed.insert(here.clone());
                    here.pop();
                    continue;
                }
                Part::Name(name) => name,
            };
            self.passed.insert(here.clone());
            let place = here.join(&name);
            let found = match place.symlink_metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return End::Missing(place);
                }
                Err(_) => return End::Stuck(here),
            };
            if !found.is_symlink() {
                if !found.is_dir() && !steps.is_empty() {
                    return End::Stuck(place);
                }
                here = place;
                continue;
            }
            let target = place.read_link();
            self.links.push(place.clone());
            let (Ok(target), true) = (target, self.links.len() <= MAX_LINKS) else {
                return End::Stuck(place);
            };
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                steps.push_front(part);
            }
        }
        End::There(settled(here))
    }
}

/// A path in the form that the system itself gives it.
fn settled(path: PathBuf) -> PathBuf {
    match cfg!(windows) {
        true => path.canonicalize().unwrap_or(path),
        false => path,
    }
}

/// A part of a path.
enum Part {
    /// The root of a file system.
    Start(PathBuf),
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> impl Iterator<Item = Part> {
    let mut start = PathBuf::new();
    path.components().filter_map(move |part| match part {
        Component::Prefix(_) => {
            start.push(part);
            None
        }
        Component::RootDir => {
            start.push(part);
            Some(Part::Start(start.clone()))
        }
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_link_and_every_directory_is_met() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("store/a/git")).unwrap();
        fs::create_dir_all(root.join("side")).unwrap();
        symlink("store/a", root.join("mid")).unwrap();
        symlink("side/../mid/git", root.join("start")).unwrap();
        let way = Way::of(&root.join("start"));
        assert_eq!(way.canonical(), Some(&*root.join("store/a/git")));
        assert_eq!(way.links, [root.join("start"), root.join("mid")]);
        for passed in ["", "side", "store", "store/a"] {
            let passed = if passed.is_empty() { root.clone() } else { root.join(passed) };
            assert!(way.passed.contains(&passed), "{passed:?}");
        }
        assert!(!way.passed.contains(&root.join("mid")));
    }

    #[test]
    fn ways_that_lead_nowhere_say_where() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink("gone/deep", root.join("dangling")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(Way::of(&root.join("dangling")).end, End::Missing(root.join("gone")));
        assert_eq!(Way::of(&root.join("circle")).end, End::Stuck(root.join("circle")));
        assert_eq!(Way::of(&root.join("file/in")).end, End::Stuck(root.join("file")));
        assert_eq!(Way::of(Path::new("/")).end, End::There("/".into()));
        let same = root.join("file");
        assert_eq!(Way::of(&same).canonical(), Some(&*same.canonicalize().unwrap()));
    }
}
