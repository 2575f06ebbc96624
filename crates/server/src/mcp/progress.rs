//! What a running command prints, in pieces that a client can bear: few a second, none large, and not for
//! ever.

use sandgate_protocol::visible_piece;
use std::collections::VecDeque;
use std::time::Duration;

/// The time between two pieces.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// The largest piece, in bytes as they were printed.
const PIECE_BYTES: usize = 4096;

/// How much waits to be sent.
const WAITING_BYTES: usize = 64 * 1024;

/// How much of one call is sent at all.
const MOST_BYTES: usize = 1024 * 1024;

/// What was printed and not sent yet.
#[derive(Debug, Default)]
pub(super) struct Printed {
    waiting: VecDeque<u8>,
    /// How much was thrown away since the last piece.
    lost: usize,
    sent: usize,
    told_end: bool,
}

impl Printed {
    /// More was printed.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        let excess = self.waiting.len().saturating_sub(WAITING_BYTES);
        self.waiting.drain(..excess);
        self.lost += excess;
    }

    /// Whether there is something to send.
    pub(super) fn is_empty(&self) -> bool {
        self.told_end || (self.waiting.is_empty() && self.lost == 0)
    }

    /// The next piece as text in which everything shows itself. A character that is not complete waits for
    /// its rest, unless nothing more will come.
    pub(super) fn piece(&mut self, over: bool) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        if self.sent >= MOST_BYTES {
            self.told_end = true;
            return Some("[further output is in the result only]\n".to_owned());
        }
        let bytes: Vec<u8> = self.waiting.iter().copied().take(PIECE_BYTES).collect();
        let whole =
            if over && bytes.len() == self.waiting.len() { bytes.len() } else { whole(&bytes) };
        let bytes = &bytes[..whole];
        if bytes.is_empty() && self.lost == 0 {
            return None;
        }
        self.waiting.drain(..whole);
        self.sent += whole;
        let mut text = match std::mem::take(&mut self.lost) {
            0 => String::new(),
            lost => format!("[{lost} bytes are in the result only]\n"),
        };
        let lines = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        text.push_str(&visible_piece(&lines));
        Some(text)
    }
}

/// How many of these bytes are whole characters, or none at all.
fn whole(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for at in (tail..bytes.len()).rev() {
        let needs = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => return bytes.len(),
        };
        return if at + needs > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(printed: &mut Printed) -> String {
        std::iter::from_fn(|| printed.piece(true)).collect()
    }

    proptest! {
        /// spec MCPS.12: However output is cut into pieces, what is sent is what was printed, in pieces of at
        /// most 4 KiB, with everything visible.
        #[test]
        fn nothing_is_lost_between_pieces(text in "\\PC{0,2000}", cuts in prop::collection::vec(1usize..50, 1..200)) {
            let mut printed = Printed::default();
            let (mut rest, mut sent) = (text.as_bytes(), String::new());
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                printed.push(now);
                rest = later;
                if let Some(piece) = printed.piece(false) {
                    sent.push_str(&piece);
                }
            }
            printed.push(rest);
            sent.push_str(&all(&mut printed));
            prop_assert_eq!(sent, visible_piece(&text));
        }

        #[test]
        fn any_bytes_become_harmless_text(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let mut printed = Printed::default();
            printed.push(&bytes);
            let sent = all(&mut printed);
            prop_assert!(sent.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()));
        }
    }

    /// spec MCPS.13: A call sends at most a mebibyte of output as progress, and what it leaves out it counts.
    #[test]
    fn output_without_end_is_cut() {
        let mut printed = Printed::default();
        printed.push(&vec![b'x'; WAITING_BYTES + 10]);
        let first = printed.piece(false).unwrap();
        assert!(first.starts_with("[10 bytes are in the result only]\n"), "{first:.60}");
        let mut sent = first.len();
        while sent < 2 * MOST_BYTES {
            printed.push(&[b'x'; PIECE_BYTES]);
            let Some(piece) = printed.piece(false) else { break };
            assert!(piece.len() <= PIECE_BYTES + 60);
            sent += piece.len();
        }
        assert!(sent <= MOST_BYTES + 2 * PIECE_BYTES, "{sent}");
        printed.push(b"more");
        assert!(printed.is_empty() && printed.piece(true).is_none());
    }
}
