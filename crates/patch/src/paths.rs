//! Paths as a patch has them, made absolute. Nothing is looked up here.

use std::path::{Component, Path, PathBuf};

/// What is wrong with a path before anybody looks for its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPath {
    #[error("the path is empty")]
    Empty,
    #[error("the path has a NUL byte in it")]
    Nul,
    #[error("the path is that of a directory, not of a file")]
    Directory,
    #[error("the path leads above the root of the file system")]
    AboveRoot,
}

/// The absolute path that something written in a patch stands for. `.` and `..` are taken away from the
/// text: `a/../b` is `b`, even if `a` is a link to somewhere else.
pub(crate) fn absolute(base: &Path, written: &str) -> Result<PathBuf, BadPath> {
    if written.is_empty() {
        return Err(BadPath::Empty);
    }
    if written.contains('\0') {
        return Err(BadPath::Nul);
    }
    let names_directory = written.ends_with(std::path::is_separator)
        || matches!(Path::new(written).components().next_back(), Some(Component::ParentDir))
        || Path::new(written).file_name().is_none();
    if names_directory {
        return Err(BadPath::Directory);
    }
    let mut path = PathBuf::new();
    for component in base.join(written).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !path.pop() {
                    return Err(BadPath::AboveRoot);
                }
            }
            other => path.push(other),
        }
    }
    Ok(path)
}

/// A path as people are shown it: from the base if it lies beneath it. Always with `/`.
pub(crate) fn shown(path: &Path, base: &Path) -> String {
    let text = path.strip_prefix(base).unwrap_or(path).to_string_lossy().into_owned();
    if cfg!(windows) { text.replace('\\', "/") } else { text }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_base_and_lose_their_dots() {
        for (written, expected) in [
            ("a/b", Ok("/work/here/a/b")),
            ("./a/./b", Ok("/work/here/a/b")),
            ("../b", Ok("/work/b")),
            ("a/../../../etc/x", Ok("/etc/x")),
            ("/etc/x", Ok("/etc/x")),
            ("/a//b", Ok("/a/b")),
            ("../../../x", Err(BadPath::AboveRoot)),
            ("", Err(BadPath::Empty)),
            ("a\0b", Err(BadPath::Nul)),
            ("a/", Err(BadPath::Directory)),
            ("..", Err(BadPath::Directory)),
            (".", Err(BadPath::Directory)),
            ("/", Err(BadPath::Directory)),
        ] {
            let found = absolute(Path::new("/work/here"), written);
            assert_eq!(found, expected.map(PathBuf::from), "{written:?}");
        }
    }
}
