//! The text of a stream, taken apart where its middle is missing.
//!
//! A section remembers the bytes behind its text. Whatever is left out of it later is counted by
//! those, exactly, in whichever encoding they are.

use super::borders;
use super::gap::{Gap, around};
use super::head_tail::count_newlines;
use super::raw::RawStream;
use super::text::{decode_as, detect, mark_length, source_length};
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use sandgate_protocol::{Spilled, StreamOutput};
use std::ops::Range;

/// A stream as text.
#[derive(Debug)]
pub(super) struct Sections {
    /// Everything before the gap, or everything.
    pub(super) head: Section,
    /// What is missing of the middle, if something is. The bytes include those that were cut off to
    /// reach a border; the lines are the newline bytes among them.
    pub(super) gap: Option<Gap>,
    /// Everything after the gap.
    pub(super) tail: Section,
    total_bytes: u64,
}

impl Sections {
    pub(super) fn of(raw: &RawStream) -> Self {
        let total_bytes = raw.total_bytes();
        if raw.omitted_bytes() > 0 {
            return Self::around_the_gap(raw);
        }
        let bytes = match raw.tail().is_empty() {
            true => raw.head().clone(),
            false => Bytes::from([&raw.head()[..], raw.tail()].concat()),
        };
        let encoding = detect(&bytes);
        let head = Section::read(encoding, bytes.slice(mark_length(encoding, &bytes)..));
        Self { head, gap: None, tail: Section::read(encoding, Bytes::new()), total_bytes }
    }

    fn around_the_gap(raw: &RawStream) -> Self {
        let (head, tail, total_bytes) = (raw.head(), raw.tail(), raw.total_bytes());
        let encoding = encoding_around(head, tail);
        let head_end = borders::end_of_head(encoding, head);
        let tail_offset = total_bytes - tail.len() as u64;
        let tail_start = borders::start_of_tail(encoding, tail, tail_offset);
        let cut_off = [&head[head_end..], &tail[..tail_start]];
        let gap = Gap {
            lines: raw.omitted_newlines() + cut_off.map(count_newlines).iter().sum::<u64>(),
            bytes: raw.omitted_bytes() + (head.len() - head_end + tail_start) as u64,
        };
        let head = head.slice(..head_end);
        Self {
            head: Section::read(encoding, head.slice(mark_length(encoding, &head)..)),
            gap: Some(gap),
            tail: Section::read(encoding, tail.slice(tail_start..)),
            total_bytes,
        }
    }

    /// The text in one piece; where something is missing a line says how much, and what `spill` has.
    pub(super) fn to_stream_output(&self, spill: Option<Spilled>) -> StreamOutput {
        let (head, total_bytes) = (&self.head.text, self.total_bytes);
        let Some(gap) = self.gap else {
            let text = head.clone();
            return StreamOutput { text, total_bytes, spill, ..StreamOutput::default() };
        };
        StreamOutput {
            text: around(head, &gap.line(spill.as_ref()), &self.tail.text),
            truncated_after_lines: Some(u32::try_from(head.lines().count()).unwrap_or(u32::MAX)),
            total_bytes,
            omitted_bytes: gap.bytes,
            spill,
        }
    }

    /// The gap if nothing were shown: no other has more digits.
    pub(super) fn widest_gap(&self) -> Gap {
        let shown = self.head.gap(0..self.head.text.len());
        self.gap.unwrap_or_default().and(shown).and(self.tail.gap(0..self.tail.text.len()))
    }
}

/// One encoding for both sides of a gap.
fn encoding_around(head: &[u8], tail: &[u8]) -> &'static Encoding {
    let of_head = detect(head);
    if of_head == UTF_16LE || of_head == UTF_16BE || mark_length(of_head, head) > 0 {
        return of_head;
    }
    // Characters that the gap cut in two must not count as bad ones.
    let head_end = head.len() - borders::incomplete_utf8_at_end(head);
    let tail_start = borders::utf8_partial_at_start(tail);
    detect(&[&head[..head_end], &tail[tail_start..]].concat())
}

/// Text, and the bytes that it was read from.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) text: String,
    bytes: Bytes,
    encoding: &'static Encoding,
}

impl Section {
    fn read(encoding: &'static Encoding, bytes: Bytes) -> Self {
        let (text, _) = decode_as(encoding, &bytes);
        Self { text, bytes, encoding }
    }

    /// The gap that leaving out this part of the text makes.
    pub(super) fn gap(&self, left_out: Range<usize>) -> Gap {
        let lines = count_newlines(&self.text.as_bytes()[left_out.clone()]);
        let bytes = self.source_of(left_out.end) - self.source_of(left_out.start);
        Gap { lines, bytes: bytes as u64 }
    }

    /// How many bytes the text before this place was read from.
    fn source_of(&self, end: usize) -> usize {
        if end == self.text.len() {
            return self.bytes.len();
        }
        if self.encoding == UTF_8 && self.text.len() == self.bytes.len() {
            return end;
        }
        // Lines are the same in text and bytes, so only the last one has to be read again.
        let (lines, rest) = match memchr::memrchr(b'\n', &self.text.as_bytes()[..end]) {
            Some(at) => (count_newlines(&self.text.as_bytes()[..=at]), end - at - 1),
            None => (0, end),
        };
        let line = match lines.checked_sub(1) {
            Some(others) => borders::after_newline(self.encoding, &self.bytes, others as usize),
            None => Some(0),
        };
        let line = line.unwrap_or(self.bytes.len());
        line + source_length(self.encoding, &self.bytes[line..], rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{EUC_KR, GBK, SHIFT_JIS, WINDOWS_1252};
    use proptest::prelude::*;

    /// Every place between two characters of a section's text, with the bytes before it.
    fn places(section: &Section) -> impl Iterator<Item = (&str, &[u8])> {
        let ends = section.text.char_indices().map(|(at, _)| at).chain([section.text.len()]);
        ends.map(|end| (&section.text[..end], &section.bytes[..section.source_of(end)]))
    }

    #[test]
    fn a_place_in_text_is_found_in_the_bytes_of_every_encoding() {
        for encoding in [SHIFT_JIS, GBK, EUC_KR, WINDOWS_1252, UTF_16LE, UTF_16BE] {
            let text = match encoding {
                _ if encoding == WINDOWS_1252 => "naïve café\n\nGrüße – „Käse“\n",
                _ if encoding == EUC_KR => "지정된 파일을\n\n찾을 수 없습니다. a\n",
                _ => "ファイルが\n\n見つかりません a\n",
            };
            let bytes: Vec<u8> = match encoding {
                _ if encoding == UTF_16LE => {
                    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
                }
                _ if encoding == UTF_16BE => {
                    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
                }
                _ => encoding.encode(text).0.into_owned(),
            };
            let section = Section::read(encoding, bytes.into());
            assert_eq!(section.text, text);
            for (before, bytes) in places(&section) {
                assert_eq!(decode_as(encoding, bytes).0, before, "{}", encoding.name());
            }
        }
    }

    proptest! {
        #[test]
        fn a_place_is_found_among_bad_bytes_too(bytes in "([a-z\n]|🦀|é){0,200}", bad: Vec<(prop::sample::Index, u8)>) {
            let mut bytes = bytes.into_bytes();
            for (at, byte) in bad {
                bytes.insert(at.index(bytes.len() + 1), byte);
            }
            let section = Section::read(UTF_8, bytes.into());
            for (before, bytes) in places(&section) {
                prop_assert_eq!(String::from_utf8_lossy(bytes), before);
            }
        }
    }
}
