//! The repositories that a repository says are in it: git looks for them where its index has a link to
//! a commit, whether somebody has fetched them or not.

use super::read::read_whole;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The largest index that is read. Those of the largest repositories there are have half of it.
const LARGEST: u64 = 1 << 30;

/// The most that are told apart in one repository, and the most directories that hold those after them.
const MOST: usize = 10_000;

/// No place has a longer path.
const LONGEST: usize = 4096;

/// So long is the part of an entry in front of the object's name.
const STAT: usize = 40;

const GITLINK: u32 = 0o160_000;

/// What a repository's index says of others in its work tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gitlinks {
    /// Their places.
    pub(super) places: BTreeSet<PathBuf>,
    /// Directories in which there are more.
    pub(super) crowded: BTreeSet<PathBuf>,
    /// Why there may be others.
    pub(super) doubt: Option<String>,
}

/// The places of repositories in a work tree, as its git directory knows them.
pub(super) fn gitlinks(git_directory: &Path, work_tree: &Path) -> Gitlinks {
    let mut found = Links::default();
    let doubt = read_all(git_directory, &mut found).err();
    let inside = |path: &PathBuf| {
        path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    let absolute = |paths: BTreeSet<PathBuf>| {
        paths.into_iter().filter(inside).map(|path| work_tree.join(path)).collect()
    };
    let doubt = doubt.or((found.crowded.len() > MOST).then(|| "it has too many submodules".into()));
    Gitlinks { places: absolute(found.links), crowded: absolute(found.crowded), doubt }
}

/// Reads an index, and the one that it is split from: what is taken from there is most of what there is.
fn read_all(git_directory: &Path, found: &mut Links) -> Result<(), String> {
    if let Some(index) = read_whole(&git_directory.join("index"), LARGEST)? {
        readings(&index, found)?;
    }
    for name in std::mem::take(&mut found.shared) {
        if let Some(index) = read_whole(&git_directory.join(name), LARGEST)? {
            readings(&index, found)?;
        }
    }
    Ok(())
}

/// What indexes say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Links {
    links: BTreeSet<PathBuf>,
    /// The directories of those that there was no room for.
    crowded: BTreeSet<PathBuf>,
    /// The files beside one that hold the rest, where it is split in two.
    shared: BTreeSet<String>,
}

impl Links {
    fn add(&mut self, path: &[u8]) {
        // One more than there is room for says that there are too many.
        if path.is_empty() || path.len() > LONGEST || self.crowded.len() > MOST {
            return;
        }
        let Some(path) = super::find::as_path(path) else { return };
        match path.parent().filter(|_| self.links.len() >= MOST) {
            Some(above) => self.crowded.insert(above.to_owned()),
            None => self.links.insert(path),
        };
    }
}

/// Object names have one of two lengths, and as a rule only the right one makes sense to the end. Where both do,
/// both count: a place that is kept free for nothing harms nobody, one that is not may be made a repository.
///
/// # Errors
/// When it is an index, and nobody knows what it says.
fn readings(index: &[u8], found: &mut Links) -> Result<(), String> {
    let read = [20, 32].map(|hash| parse(index, hash, found));
    let is_index = index.starts_with(b"DIRC");
    let is_read = !is_index || read.iter().any(Option::is_some);
    is_read.then_some(()).ok_or_else(|| "it cannot be understood".to_owned())
}

/// Takes whatever git would: what is refused here and not there would hide the rest.
fn parse(bytes: &[u8], hash: usize, found: &mut Links) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut path = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let start = at;
        let mode = number(start + 24)?;
        let flags_at = start + STAT + hash;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let extended = version >= 3 && flags & 0x4000 != 0;
        at = flags_at + if extended { 4 } else { 2 };
        let mut kept = 0;
        if version == 4 {
            let (strip, behind) = varint(bytes, at)?;
            kept = path.len().checked_sub(strip)?;
            at = behind;
        }
        path.truncate(kept);
        // As git does: the length that is written counts, and a NUL only where it is too long to be.
        let rest = match usize::from(flags & 0xfff) {
            0xfff => until_nul(bytes, at)?,
            length => bytes.get(at..at + length.checked_sub(kept)?)?,
        };
        path.extend_from_slice(rest);
        at += rest.len() + 1;
        if version < 4 {
            // Entries are padded with one to eight NULs.
            at = start + (at - start).next_multiple_of(8);
        }
        if mode & 0o170_000 == GITLINK {
            found.add(&path);
        }
    }
    found.shared.extend(shared(bytes.get(at..).unwrap_or_default(), hash));
    Some(())
}

/// The name of the file that the rest of an index is in, if one of its extensions says so.
fn shared(mut extensions: &[u8], hash: usize) -> Option<String> {
    loop {
        let (name, rest) = extensions.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        if name == b"link" {
            let object = rest.get(..hash)?.iter().map(|byte| format!("{byte:02x}"));
            return Some(format!("sharedindex.{}", object.collect::<String>()));
        }
        extensions = rest.get(length..)?;
    }
}

fn until_nul(bytes: &[u8], from: usize) -> Option<&[u8]> {
    let rest = bytes.get(from..)?;
    rest.get(..rest.iter().position(|byte| *byte == 0)?)
}

/// A number in as many bytes as it needs, and where it ends.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = (value.checked_add(1)?.checked_mul(128)?).checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(all(test, unix))]
#[path = "gitlinks_tests.rs"]
mod tests;
