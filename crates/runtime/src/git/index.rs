//! The list of a repository's files that git keeps in `.git/index`: which of them are repositories of
//! their own, and which are just as they were committed or staged.
//!
//! Versions 2 to 4 are read, in both lengths of object names. An index that is split over two files is
//! not.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;

/// The most that is read of one.
const LARGEST: u64 = 128 << 20;

/// Longer than any path that a system takes.
const LONGEST_PATH: usize = 4096;

/// The most repositories inside of one that are followed.
const MOST_GITLINKS: usize = 1000;

/// Paths may share their beginnings, so that a small index could stand for a very large one. An honest
/// one is not so many times smaller than its paths.
const MOST_EXPANSION: usize = 16;

/// So long is the part of an entry in front of the object's name.
const STAT: usize = 40;

const GITLINK: u32 = 0o160_000;

/// A file as git last saw it, with the name of the object that holds what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clean {
    pub(crate) modified: (u32, u32),
    pub(crate) changed: (u32, u32),
    pub(crate) inode: u32,
    pub(crate) size: u32,
    pub(crate) object: ObjectName,
}

/// The name of an object, which is made from what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectName {
    bytes: [u8; 32],
    length: usize,
}

impl ObjectName {
    fn of(name: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { bytes, length: name.len() })
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes[..self.length].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What an index says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Paths, from the top of the work tree, of repositories in the repository.
    pub(crate) gitlinks: Vec<Vec<u8>>,
    /// The files, by their paths from the top of the work tree.
    pub(crate) files: HashMap<Vec<u8>, Clean>,
}

/// What is wanted of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Gitlinks,
    Everything,
}

impl Index {
    /// Reads the index of a git directory; an empty one if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or not be understood to the end.
    pub(crate) fn read(git_directory: &Path, wanted: Wanted, name: NameLength) -> io::Result<Self> {
        match super::read_bounded(&git_directory.join("index"), LARGEST) {
            Ok(bytes) => parse(&bytes, wanted, name).ok_or(io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }
}

/// How long the names of objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameLength {
    Sha1,
    Sha256,
}

fn parse(bytes: &[u8], wanted: Wanted, name_length: NameLength) -> Option<Index> {
    let hash = match name_length {
        NameLength::Sha1 => 20,
        NameLength::Sha256 => 32,
    };
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut index = Index::default();
    let mut at = 12;
    let mut path: Vec<u8> = Vec::new();
    let mut written_out = 0;
    for _ in 0..count {
        let start = at;
        let mode = number(start + 24)?;
        let flags_at = start + STAT + hash;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let extended = version >= 3 && flags & 0x4000 != 0;
        at = flags_at + if extended { 4 } else { 2 };
        if version == 4 {
            let (strip, behind) = varint(bytes, at)?;
            path.truncate(path.len().checked_sub(strip)?);
            at = behind;
        } else {
            path.clear();
        }
        let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&bytes[at..at + length]);
        // Git believes the length that is written; where that is another, it sees other paths.
        if usize::from(flags & 0xfff) != path.len().min(0xfff) {
            return None;
        }
        at += length + 1;
        written_out += path.len();
        if path.len() > LONGEST_PATH
            || written_out / MOST_EXPANSION > bytes.len()
            || index.gitlinks.len() > MOST_GITLINKS
        {
            return None;
        }
        if version < 4 {
            // Entries are padded with one to eight NULs.
            at = start + (at - start).next_multiple_of(8);
        }
        if mode & 0o170_000 == GITLINK {
            index.gitlinks.push(path.clone());
        } else if wanted == Wanted::Everything && mode & 0o170_000 == 0o100_000 {
            let stage = (flags >> 12) & 3;
            let object = bytes.get(start + STAT..start + STAT + hash)?;
            let clean = Clean {
                changed: (number(start)?, number(start + 4)?),
                modified: (number(start + 8)?, number(start + 12)?),
                inode: number(start + 20)?,
                size: number(start + 36)?,
                object: ObjectName::of(object)?,
            };
            // What is being merged is in it up to three times, and is none of them.
            if stage == 0 {
                index.files.insert(path.clone(), clean);
            }
        }
    }
    extensions_are_known(bytes.get(at..bytes.len().checked_sub(hash)?)?).then_some(index)
}

/// Whether what follows the files changes nothing about them. Another file with more of them does.
fn extensions_are_known(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let (Some(name), Some(length)) = (rest.get(..4), rest.get(4..8)) else { return false };
        // A small letter says that the index cannot be understood without it.
        let needed = name[0].is_ascii_lowercase();
        if needed && name != b"sdir" {
            return false;
        }
        let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        match length.checked_add(8).and_then(|end| rest.get(end..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// A number in the form in which version 4 says how much of the path before is not in this one.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An index of version 4 whose files all begin with the same long path.
    fn entry(strip: u8, more: &[u8], mode: u32, length: usize) -> Vec<u8> {
        let mut entry = vec![0; STAT + 20 + 2];
        entry[24..28].copy_from_slice(&mode.to_be_bytes());
        let length = u16::try_from(length.min(0xfff)).unwrap();
        entry[STAT + 20..].copy_from_slice(&length.to_be_bytes());
        entry.push(strip);
        entry.extend(more);
        entry.push(0);
        entry
    }

    fn index(entries: &[Vec<u8>]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).unwrap();
        let mut bytes = [b"DIRC", &4_u32.to_be_bytes()[..], &count.to_be_bytes()].concat();
        bytes.extend(entries.concat());
        bytes.extend([0; 20]);
        bytes
    }

    #[test]
    fn paths_that_share_their_beginning_are_found() {
        let entries = [
            entry(0, b"dir/one", 0o100_644, 7),
            entry(3, b"two", 0o160_000, 7),
            entry(7, b"z", 0o120_000, 1),
        ];
        let read = parse(&index(&entries), Wanted::Everything, NameLength::Sha1).unwrap();
        assert_eq!(read.gitlinks, [b"dir/two".to_vec()]);
        assert!(read.files.contains_key(&b"dir/one"[..]) && read.files.len() == 1);
    }

    #[test]
    fn an_index_whose_lengths_are_not_those_of_its_paths_makes_no_sense() {
        let decoy = index(&[entry(0, b"sub/decoy", 0o160_000, 3)]);
        assert_eq!(parse(&decoy, Wanted::Gitlinks, NameLength::Sha1), None);
    }

    #[test]
    fn an_index_that_stands_for_far_more_than_it_is_makes_no_sense() {
        let long = entry(0, &vec![b'x'; 4000], 0o100_644, 4000);
        let many: Vec<Vec<u8>> = std::iter::once(long)
            .chain((0..1000).map(|_| entry(1, b"y", 0o100_644, 4000)))
            .collect();
        assert_eq!(parse(&index(&many), Wanted::Everything, NameLength::Sha1), None);
        let links: Vec<Vec<u8>> =
            (0..1100).map(|n| entry(u8::from(n > 0), b"y", 0o160_000, 1)).collect();
        assert_eq!(parse(&index(&links), Wanted::Gitlinks, NameLength::Sha1), None);
        let too_long = entry(0, &vec![b'x'; 5000], 0o160_000, 5000);
        assert_eq!(parse(&index(&[too_long]), Wanted::Gitlinks, NameLength::Sha1), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_fail_badly(
            tail in prop::collection::vec(any::<u8>(), 0..400), version in 0_u32..6, count in any::<u32>(),
        ) {
            let head = [b"DIRC", &version.to_be_bytes()[..], &count.to_be_bytes()].concat();
            let bytes = [head, tail].concat();
            for length in [NameLength::Sha1, NameLength::Sha256] {
                let _ = parse(&bytes, Wanted::Everything, length);
            }
        }
    }
}
