//! The messages of an editor: a line each, none too long.
//!
//! A line that can be no message is answered as one that makes no sense, by a sentence that takes its place, and the next
//! one is read as if nothing had been. What the end of the input cuts off is no message.

use bytes::{Buf as _, BytesMut};
use std::io;
use tokio_util::codec::Decoder;

/// Cuts what comes into lines.
#[derive(Debug)]
pub(super) struct Frames {
    /// The longest, in bytes.
    longest: usize,
    /// How much of what is there has no end of a line.
    searched: usize,
    /// Whether the line that is being read is too long.
    is_too_long: bool,
}

impl Frames {
    /// None is longer than this.
    pub(super) fn up_to(longest: usize) -> Self {
        Self { longest, searched: 0, is_too_long: false }
    }
}

impl Decoder for Frames {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, read: &mut BytesMut) -> io::Result<Option<String>> {
        let new = read.get(self.searched..).unwrap_or_default();
        let end = new.iter().position(|&byte| byte == b'\n').map(|end| self.searched + end);
        self.is_too_long |= end.unwrap_or(read.len()) > self.longest;
        let Some(end) = end else {
            if self.is_too_long {
                read.clear();
            }
            self.searched = read.len();
            return Ok(None);
        };
        let line = read.split_to(end);
        read.advance(1);
        self.searched = 0;
        if std::mem::take(&mut self.is_too_long) {
            return Ok(Some(format!("this line is longer than {} bytes", self.longest)));
        }
        let text = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(&line));
        Ok(Some(text.map_or_else(|error| format!("this line is no text: {error}"), str::to_owned)))
    }

    fn decode_eof(&mut self, read: &mut BytesMut) -> io::Result<Option<String>> {
        let whole = self.decode(read)?;
        if whole.is_none() {
            read.clear();
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: usize = 24;

    /// What is read of bytes that come in pieces.
    fn read(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let (mut frames, mut buffer) = (Frames::up_to(LONGEST), BytesMut::new());
        let (mut rest, mut lines) = (bytes, Vec::new());
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (piece, later) = rest.split_at(cut.min(rest.len()));
            rest = later;
            buffer.extend_from_slice(piece);
            lines.extend(std::iter::from_fn(|| frames.decode(&mut buffer).unwrap()));
            assert!(buffer.len() <= LONGEST + 1, "more is kept than a line may have");
        }
        assert_eq!(frames.decode_eof(&mut buffer).unwrap(), None);
        assert!(buffer.is_empty());
        lines
    }

    proptest! {
        /// spec ACP.15: A line that is too long, no text or no message is answered by an error, also in pieces, and the
        /// next one as if it had not been there; what the end of the input cuts off is no message.
        #[test]
        fn lines_are_the_same_wherever_bytes_are_cut(
            bytes in prop::collection::vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'\r')], 0..200),
            cuts in prop::collection::vec(0_usize..40, 0..12),
        ) {
            let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            expected.pop();
            let told = read(&bytes, &cuts);
            prop_assert_eq!(told.len(), expected.len());
            for (told, line) in told.iter().zip(expected) {
                match std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
                    _ if line.len() > LONGEST => prop_assert!(told.contains("is longer than 24")),
                    Ok(text) => prop_assert_eq!(told, text),
                    Err(_) => prop_assert!(told.contains("is no text")),
                }
            }
        }
    }
}
