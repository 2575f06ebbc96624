//! Lines of JSON on a socket, none longer than a limit.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Whoever does not read for so long has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The lines that come.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: OwnedReadHalf,
    read: Vec<u8>,
    /// How much of it has no end of a line.
    searched: usize,
    /// The longest line, in bytes.
    longest: usize,
}

/// The lines that go.
#[derive(Debug)]
pub(crate) struct Writer {
    stream: OwnedWriteHalf,
}

/// A line that came.
#[derive(Debug)]
pub(crate) enum Line<T> {
    /// One that makes sense.
    Read(T),
    /// One that does not, and why.
    Wrong(String),
}

/// Both directions of a connection, on which no line that comes is longer than this.
pub(crate) fn split(stream: UnixStream, longest: usize) -> (Lines, Writer) {
    let (reading, writing) = stream.into_split();
    let lines = Lines { stream: reading, read: Vec::new(), searched: 0, longest };
    (lines, Writer { stream: writing })
}

impl Lines {
    /// The next line; none at the end. Can be dropped and called again.
    ///
    /// # Errors
    /// When the connection fails, or a line is too long to be one.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<Line<T>>> {
        loop {
            let new = self.read.get(self.searched..).unwrap_or_default();
            let end = new.iter().position(|&byte| byte == b'\n').map(|end| self.searched + end);
            if end.unwrap_or(self.read.len()) > self.longest {
                let message = format!("a line is longer than {} bytes", self.longest);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if let Some(end) = end {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                self.searched = 0;
                let understood = serde_json::from_slice(&line);
                return Ok(Some(match understood {
                    Ok(line) => Line::Read(line),
                    Err(error) => Line::Wrong(error.to_string()),
                }));
            }
            self.searched = self.read.len();
            self.read.reserve(PIECE_BYTES);
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }
}

impl Writer {
    /// Writes a line.
    ///
    /// # Errors
    /// When nobody reads it.
    pub(crate) async fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let written = tokio::time::timeout(PATIENCE, self.write_at_leisure(line)).await;
        written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The same for a reader who may take any time: nothing waits for it.
    ///
    /// # Errors
    /// When it has gone.
    pub(crate) async fn write_at_leisure(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.stream.write_all(&text).await
    }
}
