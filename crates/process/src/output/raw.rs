//! What was kept of a command's output: the bytes as they were written, and how they become text.

use super::borders;
use super::gap::Gap;
use super::head_tail::{HeadTailBuffer, count_newlines};
use super::text::{decode, decode_as, detect, without_mark};
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use sandgate_protocol::StreamOutput;

/// The whole output of one command, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOutput {
    /// What it wrote to standard output.
    pub stdout: RawStream,
    /// What it wrote to standard error.
    pub stderr: RawStream,
    /// Both, in the order of arrival.
    pub aggregated: RawStream,
}

/// The bytes that were kept of one stream, and the exact size of what was not. Copies are cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawStream {
    head: Bytes,
    tail: Bytes,
    total_bytes: u64,
    omitted_newlines: u64,
}

impl From<HeadTailBuffer> for RawStream {
    fn from(buffer: HeadTailBuffer) -> Self {
        let total_bytes = buffer.total_bytes();
        let omitted_newlines = buffer.omitted_newlines();
        let (head, tail) = buffer.into_parts();
        Self { head: head.into(), tail: tail.into(), total_bytes, omitted_newlines }
    }
}

impl RawStream {
    /// The first bytes of the stream.
    pub fn head(&self) -> &Bytes {
        &self.head
    }

    /// The bytes that came last. They follow the head directly when nothing was omitted.
    pub fn tail(&self) -> &Bytes {
        &self.tail
    }

    /// Everything the command wrote to this stream, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// How many bytes are missing between head and tail.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// How many newlines are among the missing bytes.
    pub fn omitted_newlines(&self) -> u64 {
        self.omitted_newlines
    }

    /// The stream as text. Where its middle is missing, one line says how much: of lines, as the
    /// newline bytes in it, and of bytes, including those that were cut off to reach a border.
    /// `spill` is the id of the file that holds everything, if there is one.
    pub fn to_stream_output(&self, spill: Option<&str>) -> StreamOutput {
        let whole = StreamOutput {
            text: String::new(),
            truncated_after_lines: None,
            total_bytes: self.total_bytes,
            omitted_bytes: 0,
            spill: spill.map(str::to_owned),
        };
        if self.omitted_bytes() > 0 {
            return self.around_the_gap(whole);
        }
        let text = match self.tail.is_empty() {
            true => decode(&self.head).text,
            false => decode(&[&*self.head, &*self.tail].concat()).text,
        };
        StreamOutput { text, ..whole }
    }

    fn around_the_gap(&self, whole: StreamOutput) -> StreamOutput {
        let encoding = self.encoding();
        let tail_offset = self.total_bytes - self.tail.len() as u64;
        let head_end = borders::end_of_head(encoding, &self.head);
        let tail_start = borders::start_of_tail(encoding, &self.tail, tail_offset);
        let (head, head_cut) = self.head.split_at(head_end);
        let (tail_cut, tail) = self.tail.split_at(tail_start);
        let gap = Gap {
            lines: self.omitted_newlines + count_newlines(head_cut) + count_newlines(tail_cut),
            bytes: self.omitted_bytes() + (head_cut.len() + tail_cut.len()) as u64,
        };

        let (mut text, _) = decode_as(encoding, without_mark(encoding, head));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let lines_before = count_newlines(text.as_bytes());
        text.push_str(&gap.line(whole.spill.as_deref()));
        text.push('\n');
        text.push_str(&decode_as(encoding, tail).0);
        StreamOutput {
            text,
            truncated_after_lines: Some(u32::try_from(lines_before).unwrap_or(u32::MAX)),
            omitted_bytes: gap.bytes,
            ..whole
        }
    }

    /// One encoding for both sides of the gap.
    fn encoding(&self) -> &'static Encoding {
        let of_head = detect(&self.head);
        if of_head == UTF_16LE || of_head == UTF_16BE || Encoding::for_bom(&self.head).is_some() {
            return of_head;
        }
        // Characters that the gap cut in two must not count as bad ones.
        let head_end = self.head.len() - borders::utf8_partial_at_end(&self.head);
        let tail_start = borders::utf8_partial_at_start(&self.tail);
        detect(&[&self.head[..head_end], &self.tail[tail_start..]].concat())
    }
}
