//! Finds the root that trust is given to, without running git.
//!
//! A repository is its own root, also inside of another one. A worktree belongs to its main
//! repository, but only if that repository says so too: a directory that merely points at a trusted
//! repository must not be trusted for it.

use crate::file::open_without_waiting;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes of one of git's little files that are read.
const MAX_POINTER_BYTES: u64 = 8192;

/// Where a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its root, where its `.codex` is: that of the repository or the worktree; outside of both, the
    /// directory itself. Canonical.
    pub root: PathBuf,
    /// What trust is given to: the root, or for a worktree that of its main repository. Canonical.
    pub trust_root: PathBuf,
}

/// The project that a directory is in.
///
/// # Errors
/// When there is no such directory.
pub fn find_project(directory: &Path) -> io::Result<Project> {
    let directory = dunce::canonicalize(directory)?;
    for candidate in directory.ancestors() {
        let dot_git = candidate.join(".git");
        let Ok(found) = dot_git.symlink_metadata() else { continue };
        // Git passes over a directory that is no repository. Such a one keeps the name free while a command is confined.
        if found.is_dir() && dot_git.join("HEAD").symlink_metadata().is_err() {
            continue;
        }
        let root = candidate.to_owned();
        let main = if found.is_file() { main_repository(candidate) } else { None };
        return Ok(Project { trust_root: main.unwrap_or_else(|| root.clone()), root });
    }
    Ok(Project { root: directory.clone(), trust_root: directory })
}

/// The root of the repository that a directory is a worktree of, if both say so.
fn main_repository(worktree: &Path) -> Option<PathBuf> {
    let dot_git = worktree.join(".git");
    let admin = pointer(&dot_git)?.strip_prefix("gitdir:").map(|path| path.trim().to_owned())?;
    let admin = dunce::canonicalize(worktree.join(admin)).ok()?;
    let shared = dunce::canonicalize(admin.join(pointer(&admin.join("commondir"))?)).ok()?;
    // What git keeps about a worktree is inside of the repository: nobody else can have put it there.
    if admin.parent() != Some(shared.join("worktrees").as_path()) {
        return None;
    }
    let back = dunce::canonicalize(admin.join(pointer(&admin.join("gitdir"))?)).ok()?;
    if back != dunce::canonicalize(dot_git).ok()? {
        return None;
    }
    match shared.file_name().is_some_and(|name| name == ".git") {
        true => shared.parent().map(Path::to_owned),
        // A bare repository has no directory of its own around it.
        false => Some(shared),
    }
}

/// The text of one of git's little files.
fn pointer(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    // Since then a pipe may have been put in its place, which must not make us wait.
    let file = open_without_waiting(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_POINTER_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_POINTER_BYTES).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
}
