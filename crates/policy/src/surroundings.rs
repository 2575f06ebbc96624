//! Where a command would run, as far as judging it needs to know: resolved by the caller, who looks
//! at the file system so that nothing here has to.

use std::path::{Component, Path, PathBuf};

/// Where a command would run.
///
/// ```
/// use sandgate_policy::Surroundings;
/// use std::path::PathBuf;
///
/// let around = Surroundings {
///     cwd: Some("/work/src".into()),
///     roots: vec!["/work".into()],
///     home: Some("/home/me".into()),
///     ..Surroundings::default()
/// };
/// let path = around.absolute("../README.md").unwrap();
/// assert_eq!(path, PathBuf::from("/work/README.md"));
/// assert!(around.in_roots(&path));
/// assert!(!around.in_roots(&around.absolute("~/.ssh/config").unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// The working directory, absolute and canonical. Without it no relative path is known to lie
    /// anywhere.
    pub cwd: Option<PathBuf>,
    /// The directories that the session may write to, absolute and canonical.
    pub roots: Vec<PathBuf>,
    /// The person's home directory, absolute.
    pub home: Option<PathBuf>,
    /// What of the repository around the working directory has git run programs although it was told
    /// to only read: settings such as `filter.x.clean`. Empty if nothing has.
    pub git_runs: Vec<String>,
}

impl Surroundings {
    /// The absolute path that a word names, `.` and `..` undone by its letters alone. None if that
    /// is not known. Links are not followed: whoever needs more than a guess asks the sandbox.
    pub fn absolute(&self, word: &str) -> Option<PathBuf> {
        let path = match word.strip_prefix('~') {
            Some("") => self.home.clone()?,
            Some(rest) if rest.starts_with('/') => {
                self.home.as_ref()?.join(rest.trim_start_matches('/'))
            }
            _ if Path::new(word).is_absolute() => PathBuf::from(word),
            _ => self.cwd.as_ref()?.join(word),
        };
        Some(without_dots(&path))
    }

    /// Whether a path, absolute and without dots, lies in a root or is one.
    pub fn in_roots(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
