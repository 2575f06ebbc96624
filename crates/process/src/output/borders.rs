//! Where a stream of bytes may be cut so that both sides stay readable.
//!
//! A cut falls on a line border when one is near, else between two characters of the encoding.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::{memchr_iter, memrchr};
use std::str::Utf8Error;

/// How far a cut may move to reach a line border.
const LINE_SEARCH_BYTES: usize = 4 * 1024;

/// The longest character of any encoding here is four bytes, so a cut leaves at most three of it.
const MAX_PARTIAL_BYTES: usize = 3;

/// How many of the bytes before a cut are kept.
pub(super) fn end_of_head(encoding: &'static Encoding, head: &[u8]) -> usize {
    let window = head.len() - LINE_SEARCH_BYTES.min(head.len() / 2);
    match last_newline(encoding, head) {
        Some(end) if end > window => end,
        _ => head.len() - partial_at_end(encoding, head),
    }
}

/// How many of the bytes after a cut are left out. `offset` is where they stood in the stream.
pub(super) fn start_of_tail(encoding: &'static Encoding, tail: &[u8], offset: u64) -> usize {
    let window = LINE_SEARCH_BYTES.min(tail.len() / 2);
    let aligned = usize::from(is_utf16(encoding) && offset % 2 == 1).min(tail.len());
    match after_newline(encoding, &tail[aligned..], 0) {
        Some(start) if aligned + start < window => aligned + start,
        _ => aligned + partial_at_start(encoding, &tail[aligned..]),
    }
}

/// The length of a character of UTF-8 at the end of which more could follow: three bytes at most.
pub fn incomplete_utf8_at_end(bytes: &[u8]) -> usize {
    let could_go_on = |length: &usize| {
        let wants_more = |error: Utf8Error| error.valid_up_to() == 0 && error.error_len().is_none();
        std::str::from_utf8(&bytes[bytes.len() - length..]).is_err_and(wants_more)
    };
    (1..=bytes.len().min(MAX_PARTIAL_BYTES)).find(could_go_on).unwrap_or(0)
}

/// The length of the rest of a UTF-8 sequence at the start.
pub(super) fn utf8_partial_at_start(bytes: &[u8]) -> usize {
    bytes.iter().take(MAX_PARTIAL_BYTES).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// One code unit, from two bytes.
fn unit(encoding: &'static Encoding, pair: [u8; 2]) -> u16 {
    if encoding == UTF_16LE { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
}

/// The position after the last newline. In every encoding that is not UTF-16 the byte of a newline
/// is never part of another character.
fn last_newline(encoding: &'static Encoding, bytes: &[u8]) -> Option<usize> {
    if !is_utf16(encoding) {
        return memrchr(b'\n', bytes).map(|at| at + 1);
    }
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().rposition(|pair| unit(encoding, *pair) == 0x0A).map(|at| 2 * at + 2)
}

/// The position after the newline that so many others stand before.
pub(super) fn after_newline(
    encoding: &'static Encoding,
    bytes: &[u8],
    others: usize,
) -> Option<usize> {
    if !is_utf16(encoding) {
        return memchr_iter(b'\n', bytes).nth(others).map(|at| at + 1);
    }
    let (pairs, _) = bytes.as_chunks::<2>();
    let is_newline = |(_, pair): &(usize, &[u8; 2])| unit(encoding, **pair) == 0x0A;
    pairs.iter().enumerate().filter(is_newline).nth(others).map(|(at, _)| 2 * at + 2)
}

fn partial_at_end(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    if encoding == UTF_8 {
        return incomplete_utf8_at_end(bytes);
    }
    if is_utf16(encoding) {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let high = pairs.last().is_some_and(|p| (0xD800..0xDC00).contains(&unit(encoding, *p)));
        return rest.len() + 2 * usize::from(high);
    }
    if encoding.is_single_byte() {
        return 0;
    }
    // What a byte means depends on all bytes before it, so the whole piece is read.
    let ends_well = |cut: &usize| {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[..bytes.len() - cut]);
        !text.ends_with('\u{fffd}')
    };
    (0..=MAX_PARTIAL_BYTES.min(bytes.len())).find(ends_well).unwrap_or(0)
}

fn partial_at_start(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    if encoding == UTF_8 {
        return utf8_partial_at_start(bytes);
    }
    if is_utf16(encoding) {
        let (pairs, _) = bytes.as_chunks::<2>();
        let low = pairs.first().is_some_and(|p| (0xDC00..0xE000).contains(&unit(encoding, *p)));
        return 2 * usize::from(low);
    }
    if encoding.is_single_byte() {
        return 0;
    }
    let sample = &bytes[..bytes.len().min(256)];
    // Bytes below the digits are whole characters in every double-byte encoding.
    if let Some(border) = sample.iter().position(|byte| *byte < b'0') {
        return border;
    }
    // Else it can only be guessed. Read from the middle of a character, text makes less sense: the
    // start that gives the fewest unreadable places is taken, the earliest of them when several do.
    let unreadable = |start: &usize| {
        let mut text = String::with_capacity(4 * sample.len());
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let _ = decoder.decode_to_string(&sample[*start..], &mut text, false);
        text.matches('\u{fffd}').count()
    };
    (0..=MAX_PARTIAL_BYTES.min(sample.len())).min_by_key(unreadable).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{SHIFT_JIS, WINDOWS_1252};

    #[test]
    fn a_cut_falls_on_the_line_border_near_it() {
        assert_eq!(end_of_head(UTF_8, b"one\ntwo\nthr"), 8);
        assert_eq!(end_of_head(UTF_8, b"one\ntwo\n"), 8);
        assert_eq!(start_of_tail(UTF_8, b"e\nfour\nfive\n", 0), 2);
    }

    #[test]
    fn a_line_border_that_is_far_away_is_not_worth_what_lies_between() {
        let mut head = b"one\n".to_vec();
        head.resize(20_000, b'x');
        assert_eq!(end_of_head(UTF_8, &head), 20_000);
        head.reverse();
        assert_eq!(start_of_tail(UTF_8, &head, 0), 0);
    }

    #[test]
    fn a_cut_inside_a_character_moves_to_its_border() {
        let crab = "ab🦀".as_bytes();
        for cut in 2..6 {
            assert_eq!(end_of_head(UTF_8, &crab[..cut]), 2, "after {cut} bytes");
        }
        assert_eq!(end_of_head(UTF_8, crab), 6);
        let rest = "🦀abcd".as_bytes();
        for cut in 1..4 {
            assert_eq!(start_of_tail(UTF_8, &rest[cut..], 0), 4 - cut);
        }
        assert_eq!(start_of_tail(UTF_8, rest, 0), 0);
        assert_eq!(end_of_head(WINDOWS_1252, b"caf\xe9"), 4);
    }

    #[test]
    fn utf16_is_cut_between_its_code_units_and_never_inside_a_pair() {
        let bytes: Vec<u8> = "a🦀b".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(end_of_head(UTF_16LE, &bytes[..3]), 2);
        assert_eq!(end_of_head(UTF_16LE, &bytes[..5]), 2);
        assert_eq!(end_of_head(UTF_16LE, &bytes[..6]), 6);
        assert_eq!(start_of_tail(UTF_16LE, &bytes[3..], 3), 3);
        assert_eq!(start_of_tail(UTF_16LE, &bytes[1..], 1), 1);
        let lines: Vec<u8> = "x\nabcdef".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(start_of_tail(UTF_16LE, &lines, 0), 4);
        assert_eq!(end_of_head(UTF_16LE, &lines[..6]), 4);
    }

    #[test]
    fn double_byte_text_is_cut_between_its_characters() {
        let (bytes, _, _) = SHIFT_JIS.encode("日本語表示テスト十分");
        for cut in 0..bytes.len() {
            let head = end_of_head(SHIFT_JIS, &bytes[..cut]);
            assert_eq!(head % 2, 0, "head of {cut}");
        }
        let (bytes, _, _) = SHIFT_JIS.encode("ファイル ファイルファイル");
        for cut in 0..8 {
            assert_eq!(start_of_tail(SHIFT_JIS, &bytes[cut..], 0), 8 - cut, "tail of {cut}");
        }
        assert_eq!(start_of_tail(SHIFT_JIS, &bytes[9..], 0), 0);
    }
}
