//! The files by which a project has a say: its settings and its rules, each with a fingerprint.

use crate::file::{FileError, names_below, read_below};
use crate::loosen::Loosening;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The most rules files of a project that are read.
const MAX_RULES_FILES: usize = 100;

/// One file of a project, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its name below `.codex`, like `rules/build.toml`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What is in it. Whoever uses the file uses this text: the file may have changed since.
    pub text: String,
}

impl ProjectFile {
    /// Its name and the SHA-256 of its text, as it is noted when a person has seen it.
    pub fn fingerprint(&self) -> String {
        let mut hex = String::new();
        for byte in Sha256::digest(self.text.as_bytes()) {
            // Writing to a text cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        format!("{} sha256:{hex}", self.name)
    }

    /// The same with something that the file loosens, as it is noted when a person was told of it.
    pub(crate) fn noted(&self, loosening: &Loosening) -> String {
        format!("{} loosens {}", self.fingerprint(), loosening.key)
    }
}

/// The files of a project.
#[derive(Debug, Default)]
pub struct ProjectFiles {
    /// `.codex/config.toml`.
    pub config: Option<ProjectFile>,
    /// `.codex/rules/*.toml`, in the order of their names.
    pub rules: Vec<ProjectFile>,
    /// What could not be read.
    pub broken: Vec<FileError>,
}

impl ProjectFiles {
    /// Reads the files of the project at this root. `config_home` is the directory of the person's own
    /// settings: who works in their home directory has the one in the place of the other, and then
    /// the project has none.
    pub fn read(root: &Path, config_home: Option<&Path>) -> Self {
        let mut files = Self::default();
        let own = config_home.and_then(|home| dunce::canonicalize(home).ok());
        if own.is_some() && dunce::canonicalize(root.join(".codex")).ok() == own {
            return files;
        }
        files.config = files.file(root, &["config.toml"]);
        let names = names_below(root, &[".codex", "rules"]).unwrap_or_else(|error| {
            files.broken.push(error);
            Vec::new()
        });
        if names.len() > MAX_RULES_FILES {
            let path = root.join(".codex/rules");
            files.broken.push(FileError::TooManyFiles { path, max: MAX_RULES_FILES });
        }
        for name in names.iter().take(MAX_RULES_FILES) {
            let file = files.file(root, &["rules", name]);
            files.rules.extend(file);
        }
        files
    }

    fn file(&mut self, root: &Path, names: &[&str]) -> Option<ProjectFile> {
        let below: Vec<&str> = [".codex"].iter().chain(names).copied().collect();
        match read_below(root, &below) {
            Ok(text) => {
                let path = below.iter().fold(root.to_owned(), |path, name| path.join(name));
                text.map(|text| ProjectFile { name: names.join("/"), path, text })
            }
            Err(error) => {
                self.broken.push(error);
                None
            }
        }
    }

    /// What is noted when a person has seen all that was read and was told that it loosens this.
    pub(crate) fn noted(&self, loosenings: &[Loosening]) -> Vec<String> {
        let files = self.config.iter().chain(&self.rules).map(ProjectFile::fingerprint);
        let config = self.config.iter();
        let told = config.flat_map(|file| loosenings.iter().map(|loosening| file.noted(loosening)));
        files.chain(told).collect()
    }
}
