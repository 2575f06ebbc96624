//! Snapshots on the disk, so that the next program of the person need not take them again.
//!
//! Each is one file in a directory of its own: the first line is a comment that says what it is a snapshot of, the
//! rest is the script. They lie in the person's settings, because later commands obey them, unconfined ones
//! too: no cage can write there, whoever started it. Directories are their owner's only, files too. A file that
//! is anything else, or that was cut off, counts as none.

use super::start_up::{Seen, Stamp};
use crate::private::{make_new_file, make_private, open_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What the first line begins with.
const OPENING: &str = "# sandgate snapshot ";

/// What the names of files begin with that are being written.
const NEW: &str = "new-";

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;

/// How long a snapshot holds if no file has changed. What start-up files look at besides is not known.
const OLDEST: Duration = Duration::from_hours(24);

/// How long nobody tries again where there was none: the machine may only have been slow.
const OLDEST_FAILURE: Duration = Duration::from_mins(10);

/// What a snapshot was taken of, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// What it was taken with, as a digest.
    pub(super) key: String,
    /// When, in seconds of the system's clock.
    taken: u64,
    /// The files that it was taken from.
    pub(super) seen: Seen,
    /// Why there is none.
    pub(super) failure: Option<String>,
    /// Of the script.
    sha256: String,
}

/// A snapshot that can be used, or the reason why there is none.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) about: About,
    /// The script.
    pub(super) file: PathBuf,
    /// What the file was.
    stamp: Stamp,
}

impl Kept {
    /// Whether it still holds.
    pub(super) fn is_current(&self) -> bool {
        self.about.is_fresh()
            && Stamp::of(&self.file) == Some(self.stamp)
            && self.about.seen.is_current()
    }
}

impl About {
    pub(super) fn new(key: String, seen: Seen, failure: Option<String>, script: &[u8]) -> Self {
        Self { key, taken: now(), seen, failure, sha256: digest(script) }
    }

    fn is_fresh(&self) -> bool {
        let oldest = if self.failure.is_some() { OLDEST_FAILURE } else { OLDEST };
        now().checked_sub(self.taken).is_some_and(|age| age < oldest.as_secs())
    }
}

/// The place of one snapshot.
#[derive(Debug, Clone)]
pub(super) struct Place {
    directory: PathBuf,
    file: &'static str,
}

impl Place {
    /// The one for a key in a directory that no command can write to. The directories are made if they are not
    /// there.
    pub(super) fn make(safe: &Path, key: &str, file: &'static str) -> io::Result<Self> {
        let all = safe.join("snapshots");
        let directory = all.join(key);
        for directory in [&all, &directory] {
            make_private(directory)?;
        }
        // The cage has others of its own in their place.
        let hidden = ["/dev", "/proc"].iter().any(|hidden| directory.starts_with(hidden));
        match hidden || directory.to_str().is_none() {
            true => Err(io::Error::other("commands cannot read what lies there")),
            false => Ok(Self { directory, file }),
        }
    }

    /// Where all of them lie.
    fn all(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(self.file)
    }

    /// What is kept here, if it is whole, the person's own, and still holds.
    pub(super) fn load(&self, key: &str) -> Option<Kept> {
        let file = self.path();
        let opened = open_file(&file).ok()?;
        let found = opened.metadata().ok()?;
        let is_private =
            found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
        if !is_private || found.nlink() != 1 || found.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        opened.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let about: About =
            serde_json::from_slice(bytes[..line].strip_prefix(OPENING.as_bytes())?).ok()?;
        let is_whole = about.key == key && about.sha256 == digest(&bytes[line + 1..]);
        let kept = Kept { about, file, stamp: Stamp::from(&found) };
        (is_whole && kept.is_current()).then_some(kept)
    }

    /// Keeps a snapshot, in the place of the one that is there. Whoever reads meanwhile finds a whole one.
    pub(super) fn store(&self, about: About, script: &[u8]) -> io::Result<Kept> {
        let new = self.directory.join(format!("{NEW}{}", uuid::Uuid::now_v7().simple()));
        let written = self.write(&new, &about, script);
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        let stamp = written?;
        Ok(Kept { about, file: self.path(), stamp })
    }

    fn write(&self, new: &Path, about: &About, script: &[u8]) -> io::Result<Stamp> {
        let mut text = OPENING.as_bytes().to_vec();
        serde_json::to_writer(&mut text, about)?;
        text.push(b'\n');
        text.extend_from_slice(script);
        if text.len() as u64 > LARGEST {
            return Err(io::Error::other("it is too large to be kept"));
        }
        let mut file = make_new_file(new)?;
        file.write_all(&text)?;
        std::fs::rename(new, self.path())?;
        // To be renamed is a change.
        Ok(Stamp::from(&file.metadata()?))
    }

    /// Removes what nobody can use any more, and what was never finished.
    pub(super) fn sweep(&self) {
        let entries = |directory| std::fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries(self.all()).filter(|entry| entry.path() != self.directory) {
            if is_old(&entry) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let is_new = |entry: &std::fs::DirEntry| {
            entry.file_name().as_encoded_bytes().starts_with(NEW.as_bytes())
        };
        for entry in entries(&self.directory).filter(is_new) {
            if is_old(&entry) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether it is so old that nobody can be at work on it.
fn is_old(entry: &std::fs::DirEntry) -> bool {
    let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
    age.is_some_and(|age| age > OLDEST * 2)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    /// spec SNAP.23: A snapshot that has not been used for two days is removed when another is taken, and so is what a
    /// program that was killed left of one.
    #[test]
    fn what_is_old_is_swept() {
        let own = tempfile::tempdir().unwrap();
        let place = Place::make(own.path(), "key", "script").unwrap();
        let other = Place::make(own.path(), "other", "script").unwrap();
        let file = |name: &str| place.directory.join(name);
        for name in ["script", "new-old", "new-young"] {
            std::fs::write(file(name), "").unwrap();
        }
        let long_ago = FileTimes::new().set_modified(SystemTime::now() - OLDEST * 3);
        for path in [file("script"), file("new-old"), other.directory.clone()] {
            File::open(path).unwrap().set_times(long_ago).unwrap();
        }
        place.sweep();
        assert!(!other.directory.exists() && !file("new-old").exists());
        assert!(file("script").exists(), "it is replaced, and not missed meanwhile");
        assert!(file("new-young").exists(), "somebody may be at work on it");
    }
}
