//! What was kept of a command's output: the bytes as they were written.

use super::head_tail::HeadTailBuffer;
use super::sections::Sections;
use bytes::Bytes;
use sandgate_protocol::{Spilled, StreamOutput};
use std::sync::{Arc, OnceLock};

/// The whole output of one command, as bytes.
#[derive(Debug, Clone)]
pub struct RawOutput {
    /// What it wrote to standard output.
    pub stdout: RawStream,
    /// What it wrote to standard error.
    pub stderr: RawStream,
    /// Both, in the order of arrival.
    pub aggregated: RawStream,
}

/// The bytes that were kept of one stream, and the exact size of what was not. Copies are cheap.
#[derive(Debug, Clone)]
pub struct RawStream(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    head: Bytes,
    tail: Bytes,
    total_bytes: u64,
    omitted_newlines: u64,
    /// The same as text, read once for all copies and for everybody who asks.
    sections: OnceLock<Sections>,
}

impl From<HeadTailBuffer> for RawStream {
    fn from(buffer: HeadTailBuffer) -> Self {
        let total_bytes = buffer.total_bytes();
        let omitted_newlines = buffer.omitted_newlines();
        let (head, tail) = buffer.into_parts();
        Self(Arc::new(Kept {
            head: head.into(),
            tail: tail.into(),
            total_bytes,
            omitted_newlines,
            sections: OnceLock::new(),
        }))
    }
}

/// A stream of which nothing is missing.
impl From<Vec<u8>> for RawStream {
    fn from(all: Vec<u8>) -> Self {
        Self(Arc::new(Kept {
            total_bytes: all.len() as u64,
            head: all.into(),
            tail: Bytes::new(),
            omitted_newlines: 0,
            sections: OnceLock::new(),
        }))
    }
}

impl RawStream {
    /// A stream of which the beginning and the end were kept. What is missing counts as bytes only.
    pub(crate) fn of_ends(head: Vec<u8>, tail: Vec<u8>, total_bytes: u64) -> Self {
        let omitted_newlines = 0;
        let (head, tail, sections) = (head.into(), tail.into(), OnceLock::new());
        Self(Arc::new(Kept { head, tail, total_bytes, omitted_newlines, sections }))
    }

    /// The first bytes of the stream.
    pub fn head(&self) -> &Bytes {
        &self.0.head
    }

    /// The bytes that came last. They follow the head directly when nothing was omitted.
    pub fn tail(&self) -> &Bytes {
        &self.0.tail
    }

    /// Everything the command wrote to this stream, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.0.total_bytes
    }

    /// How many bytes are missing between head and tail.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes() - (self.head().len() + self.tail().len()) as u64
    }

    /// How many newlines are among the missing bytes.
    pub fn omitted_newlines(&self) -> u64 {
        self.0.omitted_newlines
    }

    /// The stream as text. Where its middle is missing, one line says how much: of lines, as the
    /// newline bytes in it, and of bytes, including those that were cut off to reach a border. The
    /// line also says what the file has that the output was spilled to, if there is one.
    pub fn to_stream_output(&self, spill: Option<Spilled>) -> StreamOutput {
        self.sections().to_stream_output(spill)
    }

    pub(super) fn sections(&self) -> &Sections {
        self.0.sections.get_or_init(|| Sections::of(self))
    }
}
