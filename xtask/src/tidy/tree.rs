//! The files of the workspace, as the checks see them.
//!
//! The tree is read once. Checks ask it for files by path and never touch the disk, so their tests
//! are small trees written in place.

use super::rust::RustFile;
use proc_macro2::{LexError, TokenStream};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Directories that hold nothing of ours.
const SKIPPED_DIRECTORIES: &[&str] = &[".git", "target", "node_modules"];

/// Files whose text the checks read: these endings, and everything in these directories.
const TEXT_ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".txt"];
const SCRIPT_DIRECTORIES: &[&str] = &["scripts/", ".ci/"];

/// Every file of the workspace, by its path from the root with `/` between the names.
#[derive(Default)]
pub(crate) struct Tree {
    texts: BTreeMap<String, String>,
    /// The tokens of the Rust files among the texts.
    tokens: BTreeMap<String, Result<TokenStream, LexError>>,
    /// Files that no check reads.
    others: BTreeSet<String>,
}

impl Tree {
    /// Reads the workspace from the disk. Links are not followed: what they lead to is either ours
    /// and read in its own place, or not ours.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_directory(root, "")?;
        Ok(tree)
    }

    /// A tree that exists only in memory.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add_text((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len() + self.others.len()
    }

    /// The text of the file at a path, if it is there and is one that the checks read.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// All files that the checks read, in the order of their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust sources of the workspace's own packages. Those that are not Rust at all are left to
    /// [`super::rust::check`].
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = RustFile<'_>> {
        self.tokens.iter().filter_map(|(path, tokens)| {
            Some(RustFile { path, text: &self.texts[path], tokens: tokens.as_ref().ok()? })
        })
    }

    /// The Rust sources that cannot be read as such, and why.
    pub(crate) fn broken_rust_files(&self) -> impl Iterator<Item = (&str, &LexError)> {
        self.tokens
            .iter()
            .filter_map(|(path, tokens)| Some((path.as_str(), tokens.as_ref().err()?)))
    }

    /// Whether a path is a file or a directory of the tree.
    pub(crate) fn has(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        path.is_empty()
            || self.texts.contains_key(path)
            || self.others.contains(path)
            || self
                .texts
                .range(inside.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&inside))
            || self.others.range(inside.clone()..).next().is_some_and(|p| p.starts_with(&inside))
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED_DIRECTORIES.contains(&name.as_str()) {
                    self.read_directory(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() && is_text(&path) {
                let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
                self.add_text(path, text);
            } else {
                self.others.insert(path);
            }
        }
        Ok(())
    }

    fn add_text(&mut self, path: String, text: String) {
        if path.ends_with(".rs") && package_of(&path).is_some() {
            self.tokens.insert(path.clone(), text.parse());
        }
        self.texts.insert(path, text);
    }
}

/// The package that a path belongs to: `policy` for `crates/policy/…`, `model-server` for
/// `testing/model-server/…`, `xtask` for `xtask/…`.
pub(crate) fn package_of(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    let within = path.strip_prefix("crates/").or_else(|| path.strip_prefix("testing/"))?;
    within.split_once('/').map(|(name, _)| name)
}

fn is_text(path: &str) -> bool {
    TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending))
        || SCRIPT_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sources_and_knows_of_other_files_but_not_of_build_products() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("crates/policy/src/lib.rs", "//! Judges.\n"),
            ("docs/picture.png", "\u{1}"),
            ("scripts/test", "#!/bin/sh\n"),
            ("target/debug/build.rs", "not ours\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tree = Tree::read(root.path()).unwrap();
        let texts: Vec<&str> = tree.texts().map(|(path, _)| path).collect();
        assert_eq!(texts, ["crates/policy/src/lib.rs", "scripts/test"]);
        assert!(tree.has("docs/picture.png"));
        assert!(tree.has("docs"));
        assert!(!tree.has("target/debug/build.rs"));
        assert!(!tree.has("doc"));
    }

    #[test]
    fn a_path_belongs_to_the_package_it_is_in() {
        assert_eq!(package_of("crates/cli/tests/run.rs"), Some("cli"));
        assert_eq!(package_of("testing/model-server/src/lib.rs"), Some("model-server"));
        assert_eq!(package_of("xtask/src/main.rs"), Some("xtask"));
        assert_eq!(package_of("docs/spec/tidy.md"), None);
    }
}
