//! The head record: how far the log reaches, kept beside it.
//!
//! A chain alone cannot tell that its last lines were cut off. The head is written after every line,
//! in place and always with the same length: one write within one block of the disk, so that it is
//! the old head or the new one, and needs no more room on a disk that is full.

use super::folder::{is_day, read_at, write_at_beginning};
use super::line::{BEGINNING, Hash};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;

/// The length of a head on disk. It is filled up with spaces.
const HEAD_BYTES: usize = 256;

/// How far the log reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The file that is written to.
    pub(super) file: String,
    /// How long it is.
    pub(super) length: u64,
    /// The number of the last line.
    pub(super) seq: u64,
    /// The hash of the last line.
    pub(super) hash: Hash,
    /// The file that has the last line, as long as `file` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
}

/// A head as it was found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There is none, or only its empty file.
    Nothing,
    /// Something that we did not write.
    Unreadable,
    /// It reads as one.
    Head(Head),
}

/// A head in the form that it has on disk.
pub(super) type HeadBytes = [u8; HEAD_BYTES];

impl Head {
    /// Before there is any line.
    pub(super) fn beginning(file: String) -> Self {
        Self { file, length: 0, seq: 0, hash: BEGINNING, after: None }
    }

    /// The form on disk.
    pub(super) fn to_bytes(&self) -> HeadBytes {
        let json = serde_json::to_vec(self).expect("names and numbers are valid JSON");
        let mut bytes = [b' '; HEAD_BYTES];
        bytes[HEAD_BYTES - 1] = b'\n';
        bytes[..json.len()].copy_from_slice(&json);
        bytes
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        write_at_beginning(file, &self.to_bytes())
    }
}

impl Found {
    /// Reads a head, and the bytes that it was read from.
    pub(super) fn read(file: &File) -> io::Result<(Self, HeadBytes)> {
        // One byte more than there should be, to see that there is no more.
        let mut bytes = [0; HEAD_BYTES + 1];
        let length = read_at(file, &mut bytes, 0)?;
        let head = &bytes[..length];
        let found = match serde_json::from_slice::<Head>(head) {
            _ if head.is_empty() => Self::Nothing,
            // What we wrote we would write again in the same way: nothing in it can be changed.
            Ok(read) if is_day(&read.file) && read.to_bytes()[..] == *head => Self::Head(read),
            _ => Self::Unreadable,
        };
        let mut kept = [0; HEAD_BYTES];
        kept.copy_from_slice(&bytes[..HEAD_BYTES]);
        Ok((found, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read_back(bytes: &[u8]) -> Found {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Found::read(&file).unwrap().0
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_in_no_other_form() {
        let head = Head {
            length: u64::MAX,
            seq: u64::MAX,
            after: Some("2026-10-31.jsonl".to_owned()),
            ..Head::beginning("2026-11-01.jsonl".to_owned())
        };
        let bytes = head.to_bytes();
        assert_eq!(read_back(&bytes), Found::Head(head));
        assert_eq!(read_back(b""), Found::Nothing);
        assert_eq!(read_back(&bytes[..255]), Found::Unreadable);
        assert_eq!(read_back(&[&bytes[..], b" "].concat()), Found::Unreadable);
        for place in 0..bytes.len() {
            let mut changed = bytes;
            changed[place] ^= 1;
            assert_ne!(read_back(&changed), read_back(&bytes), "byte {place}");
        }
    }

    #[test]
    fn a_head_names_no_file_outside_the_log() {
        let head = Head::beginning("../../x.jsonl".to_owned());
        assert_eq!(read_back(&head.to_bytes()), Found::Unreadable);
    }
}
