//! How output is cut into the pieces that events carry.

use sandgate_process::incomplete_utf8_at_end;

/// The most bytes of output that one event carries.
pub const MAX_DELTA_BYTES: usize = 8 * 1024;

/// The most output events of one call. One notice follows them; the rest is only in the result.
pub const MAX_EXEC_OUTPUT_DELTAS_PER_CALL: u32 = 10_000;

/// Cuts one stream into pieces, never inside a character.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// The beginning of a character whose rest has not arrived: three bytes at most.
    held: Vec<u8>,
}

impl Cutter {
    /// What must be cut now: what was held back, and then what arrived.
    pub(crate) fn join(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.held.is_empty() {
            return None;
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(bytes);
        Some(joined)
    }

    /// Cuts off as many whole pieces as there are, and holds back what is left.
    pub(crate) fn cut<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut rest = bytes;
        let mut pieces = Vec::with_capacity(bytes.len() / MAX_DELTA_BYTES + 1);
        loop {
            let window = &rest[..rest.len().min(MAX_DELTA_BYTES)];
            let (piece, _) = window.split_at(window.len() - incomplete_utf8_at_end(window));
            if piece.is_empty() {
                self.held = rest.to_vec();
                return pieces;
            }
            pieces.push(piece);
            rest = &rest[piece.len()..];
        }
    }

    /// The stream has ended: hands out what was held back.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a stream that arrives in pieces and collects what the events would carry.
    fn deltas_of(arrivals: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::default();
        let mut deltas = Vec::new();
        for arrival in arrivals {
            let joined = cutter.join(arrival);
            let bytes = joined.as_deref().unwrap_or(arrival);
            deltas.extend(cutter.cut(bytes).into_iter().map(<[u8]>::to_vec));
        }
        let last = cutter.finish();
        deltas.extend((!last.is_empty()).then_some(last));
        deltas
    }

    #[test]
    fn a_character_that_arrives_in_two_halves_goes_out_whole() {
        let crab = "🦀".as_bytes();
        for border in 1..4 {
            let (first, second) = crab.split_at(border);
            assert_eq!(
                deltas_of(&[b"a", first, second, b"b"]),
                [b"a".to_vec(), crab.to_vec(), b"b".to_vec()]
            );
        }
    }

    #[test]
    fn what_is_no_character_is_not_held_back() {
        for broken in [&b"\xff"[..], b"\x80", b"\xc0", b"\xe2\x28", b"\xf5", b"\xed\xa0"] {
            assert_eq!(deltas_of(&[broken, b"!"])[0], broken, "{broken:?}");
        }
    }

    #[test]
    fn what_stays_incomplete_goes_out_at_the_end() {
        assert_eq!(deltas_of(&[b"caf\xe9"]), [b"caf".to_vec(), b"\xe9".to_vec()]);
    }

    fn arrivals(text: &[u8], borders: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut borders: Vec<usize> =
            borders.iter().map(|border| border.index(text.len() + 1)).collect();
        borders.sort_unstable();
        borders.push(text.len());
        let mut start = 0;
        let piece = |end: usize| text[std::mem::replace(&mut start, end)..end].to_vec();
        borders.into_iter().map(piece).collect()
    }

    fn check(deltas: &[Vec<u8>], all: &[u8]) -> Result<(), TestCaseError> {
        prop_assert_eq!(deltas.concat(), all);
        prop_assert!(
            deltas.iter().all(|delta| !delta.is_empty() && delta.len() <= MAX_DELTA_BYTES)
        );
        Ok(())
    }

    proptest! {
        /// spec RUN.41: The output events of a stream, put together, are the stream to the byte; each
        /// carries at most 8 KiB.
        #[test]
        fn any_bytes_come_together_again(
            bytes in prop::collection::vec(any::<u8>(), 0..40_000),
            borders in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let arrivals = arrivals(&bytes, &borders);
            let slices: Vec<&[u8]> = arrivals.iter().map(Vec::as_slice).collect();
            check(&deltas_of(&slices), &bytes)?;
        }

        /// spec RUN.42: No output event begins or ends inside a character of UTF-8 text, however the
        /// text arrived.
        #[test]
        fn no_character_of_text_is_cut(
            text in "[a🦀é漢\n]{0,9000}",
            borders in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let arrivals = arrivals(text.as_bytes(), &borders);
            let slices: Vec<&[u8]> = arrivals.iter().map(Vec::as_slice).collect();
            let deltas = deltas_of(&slices);
            check(&deltas, text.as_bytes())?;
            for delta in &deltas {
                prop_assert!(std::str::from_utf8(delta).is_ok());
            }
        }
    }
}
