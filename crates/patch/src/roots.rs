//! Where a patch may write, and what of a plan lies elsewhere.

use crate::plan::{FileChange, Plan};
use sandgate_protocol::{WritableRoot, may_be_protected};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a patch may write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roots {
    /// The writable roots, canonical.
    writable: Vec<WritableRoot>,
    /// Single files that a person approved, canonical.
    approved: BTreeSet<PathBuf>,
    /// Whether all of this does not count.
    everywhere: bool,
}

/// A path that a plan writes to and may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outside {
    /// The path, absolute and without links: where a link led, if there was one.
    pub path: PathBuf,
    /// Why not.
    pub why: Why,
}

/// Why a path may not be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It lies in no writable root.
    OutsideWritableRoots,
    /// It lies in one, and is protected there.
    Protected,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::OutsideWritableRoots => "outside the writable roots",
            Why::Protected => "protected",
        };
        write!(f, "write {} ({why})", self.path.display())
    }
}

impl Plan {
    /// What it writes to and may not, each path once. Nothing if all of it may be done.
    pub fn check(&self, roots: &Roots) -> Vec<Outside> {
        let written = self.changes.iter().flat_map(FileChange::written);
        let refused = written.filter_map(|path| {
            let why = roots.admit(path).err()?;
            Some(Outside { path: path.to_owned(), why })
        });
        refused.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Roots {
    /// Writable roots, and single files beside them that a person approved. All are absolute and
    /// canonical.
    pub fn new(
        writable: impl IntoIterator<Item = WritableRoot>,
        approved: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let (writable, approved) = (writable.into_iter().collect(), approved.into_iter().collect());
        Self { writable, approved, everywhere: false }
    }

    /// Everything may be written to, what is protected as well: for those who chose to have no sandbox,
    /// and for a person who applies a patch by hand.
    pub fn everywhere() -> Self {
        Self { everywhere: true, ..Self::default() }
    }

    /// The directory that everything on the way to a path must stay beneath.
    pub(crate) fn admit<'a>(&'a self, path: &'a Path) -> Result<&'a Path, Why> {
        if self.everywhere || self.approved.contains(path) {
            return Ok(path.ancestors().last().unwrap_or(path));
        }
        let holding = || self.writable.iter().filter(|root| path.starts_with(&root.path));
        let allowing = holding()
            .filter(|root| root.is_path_writable(path))
            .filter(|root| !has_protected_part(path.strip_prefix(&root.path).unwrap_or(path)));
        match allowing.max_by_key(|root| root.path.as_os_str().len()) {
            // A root can be one file. It lies beneath its directory.
            Some(root) if root.path == path => Ok(path.parent().unwrap_or(path)),
            Some(root) => Ok(&root.path),
            None if holding().next().is_some() => Err(Why::Protected),
            None => Err(Why::OutsideWritableRoots),
        }
    }
}

/// Some file systems take `.GIT` for the same, so we do everywhere.
fn has_protected_part(path: &Path) -> bool {
    path.iter().any(may_be_protected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(path: &str, read_only: &[&str]) -> WritableRoot {
        let read_only_subpaths = read_only.iter().map(PathBuf::from).collect();
        WritableRoot { path: path.into(), read_only_subpaths }
    }

    /// spec PATCH.40: A path is written to only if it lies in a writable root, outside what is
    /// read-only in that root and not at or beneath a protected name in it, or if it is one that was
    /// approved by itself.
    #[test]
    fn only_what_lies_in_a_root_and_is_not_protected_there_is_admitted() {
        let roots = Roots::new(
            [
                root("/work", &["/work/.git", "/work/vendor"]),
                root("/granted/.git", &[]),
                root("/notes/today.txt", &[]),
            ],
            [PathBuf::from("/etc/hosts"), PathBuf::from("/work/.codex/config.toml")],
        );
        let (outside, protected) = (Err(Why::OutsideWritableRoots), Err(Why::Protected));
        for (path, expected) in [
            ("/work/src/main.rs", Ok("/work")),
            ("/work/.gitignore", Ok("/work")),
            ("/work/.git/config", protected),
            ("/work/vendor/lib.rs", protected),
            ("/work/sub/.git/hooks/pre-commit", protected),
            ("/work/sub/.GIT", protected),
            ("/work/.agents/skill", protected),
            ("/work/.codex/config.toml", Ok("/")),
            ("/work/.codex/other.toml", protected),
            ("/granted/.git/config", Ok("/granted/.git")),
            ("/granted/file", outside),
            ("/notes/today.txt", Ok("/notes")),
            ("/notes/tomorrow.txt", outside),
            ("/work2/file", outside),
            ("/etc/hosts", Ok("/")),
            ("/etc/passwd", outside),
        ] {
            assert_eq!(roots.admit(Path::new(path)), expected.map(Path::new), "{path}");
            assert_eq!(Roots::everywhere().admit(Path::new(path)), Ok(Path::new("/")));
        }
    }

    /// spec PATCH.49: A name that some file system takes for a protected one counts as that name: in another
    /// case, with dots, blanks or a stream behind it, in its short form, or with characters that do not count.
    #[test]
    fn another_spelling_of_a_protected_name_is_protected() {
        let roots = Roots::new([root("/work", &[])], []);
        for name in [
            ".GIT",
            ".git.",
            ".git ",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "git~1",
            "GIT~2",
            "codex~1",
            ".g\u{200c}it",
            ".git\u{feff}",
            ".agent\u{17f}",
            ".g\u{ad}it",
            ".git                                  . . ",
        ] {
            for path in [format!("/work/{name}/config"), format!("/work/a/{name}")] {
                assert_eq!(roots.admit(Path::new(&path)), Err(Why::Protected), "{path}");
            }
        }
        for name in
            [".gitignore", ".github", "git", "git~", "git~a", "x.git", ".gitmodules", ".agent"]
        {
            let path = format!("/work/{name}");
            assert_eq!(roots.admit(Path::new(&path)), Ok(Path::new("/work")), "{path}");
        }
    }
}
