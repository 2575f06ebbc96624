//! The repositories that a repository says are in it: git looks for them where its index has a link to
//! a commit, whether somebody has fetched them or not.

use super::read::read_bounded;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The largest index that is read.
const LARGEST: u64 = 64 << 20;

/// The most that are looked for in one repository.
const MOST: usize = 1000;

/// The most bytes that all paths of an index have together, as a multiple of its own: paths may share
/// their beginnings, and a small index could stand for a very large one.
const MOST_EXPANSION: usize = 16;

/// So long is the part of an entry in front of the object's name.
const STAT: usize = 40;

const GITLINK: u32 = 0o160_000;

/// The places of repositories in a work tree, as its git directory knows them.
pub(super) fn gitlinks(git_directory: &Path, work_tree: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut shared = BTreeSet::new();
    if let Some(index) = read_bounded(&git_directory.join("index"), LARGEST) {
        for read in readings(&index) {
            paths.extend(read.links);
            shared.extend(read.shared);
        }
    }
    // What an index takes from the one it is split from is most of what there is.
    for name in shared {
        if let Some(index) = read_bounded(&git_directory.join(name), LARGEST) {
            paths.extend(readings(&index).into_iter().flat_map(|read| read.links));
        }
    }
    let inside = |path: &PathBuf| {
        path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    paths.into_iter().filter(inside).map(|path| work_tree.join(path)).collect()
}

/// What an index says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Links {
    links: Vec<PathBuf>,
    /// The file beside it that holds the rest, where it is split in two.
    shared: Option<String>,
}

/// Object names have one of two lengths, and as a rule only the right one makes sense to the end. Where both do,
/// both count: a place that is kept free for nothing harms nobody, one that is not may be made a repository.
fn readings(index: &[u8]) -> Vec<Links> {
    [20, 32].into_iter().filter_map(|hash| parse(index, hash)).collect()
}

fn parse(bytes: &[u8], hash: usize) -> Option<Links> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut links = Vec::new();
    let mut path = Vec::new();
    let (mut at, mut written) = (12, 0_usize);
    for _ in 0..count {
        let start = at;
        let mode = number(start + 24)?;
        if !matches!(mode >> 12, 0o4 | 0o10 | 0o12 | 0o16) {
            return None;
        }
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
        written += path.len();
        if written > bytes.len().saturating_mul(MOST_EXPANSION) {
            return None;
        }
        if mode & 0o170_000 == GITLINK && links.len() < MOST {
            links.extend(super::find::as_path(&path));
        }
    }
    let behind = bytes.get(at..).unwrap_or_default();
    Some(Links { links, shared: shared(behind, hash) })
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
