//! What Sandgate itself reads of git repositories, without git: their settings and their index.
//!
//! Both are text and bytes that somebody else may have written. Whatever is not understood to the end
//! counts as the worst that it could be.

mod config;
mod index;
mod runs;
mod tracked;

#[cfg(all(test, unix))]
mod canary_tests;

pub(crate) use index::ObjectName;
pub(crate) use runs::{ELSEWHERE, Repositories};
pub(crate) use tracked::TrackedFiles;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// What a file holds, if it is a file and not larger than this.
fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut contents = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    let read = file.take(most + 1).read_to_end(&mut contents)? as u64;
    if read > most { Err(io::ErrorKind::InvalidData.into()) } else { Ok(contents) }
}

/// Opens a file to read it. A pipe that stands in its place does not hold us up.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

/// Where a `.git` leads: itself if it is a directory, or what it says if it is a file.
fn git_directory(dot_git: &Path) -> io::Result<PathBuf> {
    /// Longer than any path.
    const LONGEST: u64 = 64 << 10;
    if std::fs::metadata(dot_git)?.is_dir() {
        return Ok(dot_git.to_owned());
    }
    let text = read_bounded(dot_git, LONGEST)?;
    let target = text.strip_prefix(b"gitdir:").ok_or(io::ErrorKind::InvalidData)?;
    let above = dot_git.parent().ok_or(io::ErrorKind::InvalidData)?;
    Ok(above.join(path_of(target)?))
}

/// Where a repository keeps what its work trees share.
fn common_directory(git_directory: &Path) -> io::Result<PathBuf> {
    const LONGEST: u64 = 64 << 10;
    match read_bounded(&git_directory.join("commondir"), LONGEST) {
        Ok(text) => Ok(git_directory.join(path_of(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(git_directory.to_owned()),
        Err(error) => Err(error),
    }
}

/// The files in which a repository says what it ignores, with those that lead to them.
pub(crate) fn rule_files(dot_git: &Path) -> Vec<PathBuf> {
    let exclude = |directory: &Path| directory.join("info").join("exclude");
    match std::fs::symlink_metadata(dot_git) {
        Err(_) => Vec::new(),
        Ok(found) if found.is_dir() => vec![exclude(dot_git)],
        Ok(_) => {
            let Ok(directory) = git_directory(dot_git) else { return Vec::new() };
            let common = common_directory(&directory).map(|common| exclude(&common));
            [Some(directory.join("commondir")), common.ok()].into_iter().flatten().collect()
        }
    }
}

/// A path as git writes it into its own files.
fn path_of(text: &[u8]) -> io::Result<PathBuf> {
    let text = std::str::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData)?;
    // Git takes away the ends of lines and, in one of them, the space in front. We take both ways for
    // the same; a path that has spaces around it is not found then, and that counts as odd.
    Ok(PathBuf::from(text.trim_matches([' ', '\n', '\r'])))
}
