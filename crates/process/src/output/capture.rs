//! What a command wrote: to each of its two streams, and to both in the order of arrival.
//!
//! Most commands write to one stream only. As long as that is so the aggregate *is* that stream, and
//! no byte is copied twice; the first byte on the other stream makes it a buffer of its own.

use super::head_tail::{HeadTailBuffer, count_newlines};
use super::raw::{RawOutput, RawStream};
use sandgate_protocol::OutputStream;

/// The bounded output of one command, while it runs.
#[derive(Debug, Clone)]
pub struct OutputCapture {
    stdout: HeadTailBuffer,
    stderr: HeadTailBuffer,
    /// `None` while at most one stream has written: that stream is the aggregate then.
    aggregated: Option<HeadTailBuffer>,
}

impl Default for OutputCapture {
    fn default() -> Self {
        Self::new(HeadTailBuffer::STREAM_MAX_BYTES)
    }
}

impl OutputCapture {
    /// Keeps at most `limit` bytes of each stream and of the aggregate.
    pub const fn new(limit: usize) -> Self {
        Self {
            stdout: HeadTailBuffer::new(limit),
            stderr: HeadTailBuffer::new(limit),
            aggregated: None,
        }
    }

    /// Takes what arrived next, on whichever stream.
    pub fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (own, other) = match stream {
            OutputStream::Stdout => (&mut self.stdout, &self.stderr),
            OutputStream::Stderr => (&mut self.stderr, &self.stdout),
        };
        if self.aggregated.is_none() && other.total_bytes() > 0 {
            self.aggregated = Some(other.clone());
        }
        let newlines = count_newlines(bytes);
        own.push_counted(bytes, newlines);
        if let Some(aggregated) = &mut self.aggregated {
            aggregated.push_counted(bytes, newlines);
        }
    }

    /// What was written to standard output.
    pub fn stdout(&self) -> &HeadTailBuffer {
        &self.stdout
    }

    /// What was written to standard error.
    pub fn stderr(&self) -> &HeadTailBuffer {
        &self.stderr
    }

    /// Both, in the order of arrival.
    pub fn aggregated(&self) -> &HeadTailBuffer {
        match &self.aggregated {
            Some(aggregated) => aggregated,
            None if self.stderr.total_bytes() > 0 => &self.stderr,
            None => &self.stdout,
        }
    }

    /// The output is complete: hands out what was kept of it.
    pub fn finish(self) -> RawOutput {
        let stdout = RawStream::from(self.stdout);
        let stderr = RawStream::from(self.stderr);
        let aggregated = match self.aggregated {
            Some(aggregated) => RawStream::from(aggregated),
            // The pieces are shared, not copied.
            None if stderr.total_bytes() > 0 => stderr.clone(),
            None => stdout.clone(),
        };
        RawOutput { stdout, stderr, aggregated }
    }
}
