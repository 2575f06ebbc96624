//! The repositories that a repository says are in it: git looks for them where its index has a link to
//! a commit, whether somebody has fetched them or not.

use super::read::read_bounded;
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
    let Some(index) = read_bounded(&git_directory.join("index"), LARGEST) else {
        return Vec::new();
    };
    // Object names have one of two lengths, and only the right one makes sense to the end.
    let paths = [20, 32].into_iter().find_map(|hash| parse(&index, hash)).unwrap_or_default();
    let inside = |path: &PathBuf| {
        path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    paths.into_iter().filter(inside).map(|path| work_tree.join(path)).collect()
}

fn parse(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut found = Vec::new();
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
        let name: &[u8] = if version == 4 {
            let (strip, behind) = varint(bytes, at)?;
            path.truncate(path.len().checked_sub(strip)?);
            let rest = until_nul(bytes, behind)?;
            path.extend_from_slice(rest);
            written += path.len();
            if written > bytes.len().saturating_mul(MOST_EXPANSION) {
                return None;
            }
            at = behind + rest.len() + 1;
            &path
        } else {
            let name = match usize::from(flags & 0xfff) {
                0xfff => until_nul(bytes, at)?,
                length => bytes.get(at..at + length)?,
            };
            let length = at - start + name.len();
            at = start + (length / 8 + 1) * 8;
            name
        };
        if mode & 0o170_000 == GITLINK && found.len() < MOST {
            found.push(super::find::as_path(name)?);
        }
    }
    Some(found)
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
mod tests {
    use super::*;

    /// An index of version 2 with these entries.
    fn index(entries: &[(&str, u32)]) -> Vec<u8> {
        let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes()].concat();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        for (name, mode) in entries {
            let start = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; 12 + 20]);
            bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            bytes.extend(name.as_bytes());
            bytes.resize(start + ((bytes.len() - start) / 8 + 1) * 8, 0);
        }
        bytes
    }

    #[test]
    fn links_to_commits_are_found_and_nothing_else() {
        let entries =
            [("a", 0o100_644), ("deep/sub", GITLINK), ("link", 0o120_000), ("z", GITLINK)];
        let found = parse(&index(&entries), 20).unwrap();
        assert_eq!(found, [PathBuf::from("deep/sub"), PathBuf::from("z")]);
        assert_eq!(parse(&index(&entries)[..100], 20), None, "cut short");
        assert_eq!(parse(b"DIRC", 20), None);
    }

    #[test]
    fn no_path_leads_out_of_the_work_tree() {
        let directory = tempfile::tempdir().unwrap();
        let entries = [("../out", GITLINK), ("/etc", GITLINK), ("in", GITLINK)];
        std::fs::write(directory.path().join("index"), index(&entries)).unwrap();
        assert_eq!(gitlinks(directory.path(), Path::new("/ws")), [PathBuf::from("/ws/in")]);
    }
}
