//! The files that a login shell reads, and whether they are still what they were.
//!
//! Known are the files that the shells' manuals name, those of `/etc/profile.d`, and the files that these read
//! with `source` or `.` as far as their names can be told from the text: words with `~`, `$HOME` and
//! other variables in them, not the outcome of commands. Of the environment, the variables count that these
//! files ask for with `$`. What a start-up file finds out in another way is not seen; a snapshot is
//! therefore used for a day at most.

use super::PASSING;
use super::kept::hex;
use sandgate_process::ShellType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many files are looked at.
const MOST_FILES: usize = 256;

/// How many variables are.
const MOST_VARIABLES: usize = 4096;

/// How much of a file is searched for others.
const MOST_TEXT: u64 = 256 << 10;

/// Files, and what they were when somebody looked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    files: BTreeMap<PathBuf, Option<Stamp>>,
    /// The variables that they ask for, each with a digest of the value that it had; none if there was none.
    variables: BTreeMap<String, Option<String>>,
}

/// What a file is known by. Any change gives it another `ctime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|found| Self::from(&found))
    }
}

impl From<&std::fs::Metadata> for Stamp {
    fn from(found: &std::fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl Seen {
    /// The files that a shell is known to read, also those that are not there. `variable` gives the
    /// value that a variable has when the shell starts.
    pub(super) fn known(
        shell: ShellType,
        home: &Path,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> Self {
        let mut files: Vec<PathBuf> = Vec::new();
        let mut add = |directory: &Path, names: &[&str]| {
            files.extend(names.iter().map(|name| directory.join(name)));
        };
        match shell {
            ShellType::Zsh => {
                let names = [".zshenv", ".zprofile", ".zshrc", ".zlogin"];
                add(home, &names);
                if let Some(directory) = variable("ZDOTDIR") {
                    add(&directory, &names);
                }
                for directory in ["/etc", "/etc/zsh"] {
                    add(Path::new(directory), &["zshenv", "zprofile", "zshrc", "zlogin"]);
                }
            }
            _ => {
                add(home, &[".bash_profile", ".bash_login", ".profile", ".bashrc"]);
                add(Path::new("/etc"), &["profile", "bash.bashrc", "bashrc", "profile.d"]);
                files.extend(variable("BASH_ENV"));
                let more = std::fs::read_dir("/etc/profile.d").into_iter().flatten().flatten();
                files.extend(more.map(|entry| entry.path()));
            }
        }
        files.truncate(MOST_FILES);
        files.retain(|file| file.to_str().is_some());
        let stamped = files.into_iter().map(|file| (file.clone(), Stamp::of(&file)));
        Self { files: stamped.collect(), variables: BTreeMap::new() }
    }

    /// Adds the files that these read, as they are now, and the variables of `env` that all of them ask for.
    /// `variable` gives the value that a variable has in the end.
    pub(super) fn add_sourced(
        &mut self,
        home: &Path,
        env: &BTreeMap<OsString, OsString>,
        variable: impl Fn(&str) -> Option<String>,
    ) {
        let mut left: Vec<PathBuf> = self.files.keys().cloned().collect();
        let mut looked: BTreeSet<PathBuf> = BTreeSet::new();
        while let Some(file) = left.pop() {
            if !looked.insert(file.clone()) {
                continue;
            }
            let Some(text) = text_of(&file) else { continue };
            for name in asked_for(&text) {
                if self.variables.len() < MOST_VARIABLES {
                    self.variables.insert(name.to_owned(), digest_of(name, env));
                }
            }
            for word in sourced(&text) {
                let Some(name) = expand(&word, home, &variable) else { continue };
                let found = home.join(name);
                if self.files.len() < MOST_FILES && !self.files.contains_key(&found) {
                    self.files.insert(found.clone(), Stamp::of(&found));
                    left.push(found);
                }
            }
        }
    }

    /// Adds others.
    pub(super) fn add(&mut self, others: Self) {
        for (file, stamp) in others.files {
            self.files.entry(file).or_insert(stamp);
        }
    }

    /// Whether the variables that they ask for are as they were.
    pub(super) fn fits(&self, env: &BTreeMap<OsString, OsString>) -> bool {
        self.variables.iter().all(|(name, digest)| digest_of(name, env) == *digest)
    }

    /// Whether all of them are as they were.
    pub(super) fn is_current(&self) -> bool {
        self.files.iter().all(|(file, stamp)| Stamp::of(file) == *stamp)
    }
}

fn text_of(file: &Path) -> Option<String> {
    // To open a pipe would be to wait for its other end.
    let file = std::fs::metadata(file)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| std::fs::File::open(file).ok())?;
    let mut bytes = Vec::new();
    file.take(MOST_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The names of variables that a text asks for with `$`.
fn asked_for(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('$').skip(1).map(|behind| {
        let behind = behind.strip_prefix('{').unwrap_or(behind);
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &behind[..end.unwrap_or(behind.len())]
    });
    names.filter(|name| !name.is_empty() && name.len() <= 64 && !PASSING.contains(name))
}

/// What a value is known by, without being it.
fn digest_of(name: &str, env: &BTreeMap<OsString, OsString>) -> Option<String> {
    let value = env.get(OsStr::new(name))?;
    Some(hex(&Sha256::digest(value.as_bytes())[..8]))
}

/// The words behind `source` and `.`, with their quotes.
fn sourced(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words =
            line.split([' ', '\t', ';', '&', '|', '(', ')']).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if word.starts_with('#') {
                break;
            }
            if matches!(word, "." | "\\." | "source" | "\\source") {
                found.extend(words.next().map(str::to_owned));
            }
        }
    }
    found
}

/// What a word stands for, if that can be told.
fn expand(word: &str, home: &Path, variable: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut rest = word.trim_matches(['"', '\'']);
    let mut text = String::new();
    if let Some(below) = rest.strip_prefix("~/") {
        text = format!("{}/", home.to_str()?);
        rest = below;
    }
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let (name, behind) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                after.split_at(end.unwrap_or(after.len()))
            }
        };
        text.push_str(&variable(name)?);
        rest = behind;
    }
    text.push_str(rest);
    let is_plain = !text.is_empty() && !text.contains(['*', '?', '`', '\0', '\\']);
    is_plain.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_that_are_sourced_are_found() {
        let text = "  . \"$HOME/.cargo/env\"\n# . no\n[ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"$NVM_DIR/nvm.sh\"  # it\n\
                    source ~/.aliases; . ${UNKNOWN}/x\nif true; then . plain.sh; fi\n. \"$(command)\"\necho a . b";
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "NVM_DIR" => Some("/opt/nvm".to_owned()),
            _ => None,
        };
        let home = Path::new("/home/me");
        let words = sourced(text);
        let found: Vec<_> = words.iter().filter_map(|word| expand(word, home, &variable)).collect();
        let expected =
            ["/home/me/.cargo/env", "/opt/nvm/nvm.sh", "/home/me/.aliases", "plain.sh", "b"];
        assert_eq!(found, expected);
    }

    #[test]
    fn variables_count_that_are_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let text = "export EDITOR=${EDITOR:-vi} B=\"$B:x\"; [ -n \"$PWD\" ]\n";
        std::fs::write(home.path().join(".bash_profile"), text).unwrap();
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<OsString, OsString> {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let mut seen = Seen::known(ShellType::Bash, home.path(), |_| None);
        seen.add_sourced(home.path(), &env(&[("B", "1"), ("PWD", "/a")]), |_| None);
        assert!(seen.fits(&env(&[("B", "1"), ("PWD", "/b"), ("RUN_ID", "7")])));
        assert!(!seen.fits(&env(&[("B", "2")])));
        assert!(!seen.fits(&env(&[("B", "1"), ("EDITOR", "emacs")])));
        assert!(!serde_json::to_string(&seen).unwrap().contains("emacs"));
    }

    #[test]
    fn a_ring_of_files_is_walked_once() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".bash_profile"), ". ~/a\n").unwrap();
        std::fs::write(home.path().join("a"), ". ~/b\n").unwrap();
        std::fs::write(home.path().join("b"), ". ~/a; . ~/missing\n").unwrap();
        let mut seen = Seen::known(ShellType::Bash, home.path(), |_| None);
        seen.add_sourced(home.path(), &BTreeMap::new(), |_| None);
        assert!(seen.is_current());
        std::fs::write(home.path().join("missing"), "").unwrap();
        assert!(!seen.is_current(), "what was not there is there now");
    }

    proptest! {
        #[test]
        fn any_text_is_searched(text in "([ .;&|$~/{}\"'a-z\n]|source|\\PC){0,200}") {
            prop_assert!(asked_for(&text).all(|name| text.contains(name)));
            for word in sourced(&text) {
                let _ = expand(&word, Path::new("/home/me"), &|_| Some("v".to_owned()));
            }
        }
    }
}
