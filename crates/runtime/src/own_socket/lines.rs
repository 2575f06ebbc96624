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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: usize = 24;

    /// What is read of bytes that come in pieces, up to the first error.
    async fn read(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (mut lines, _writer) = split(near, LONGEST);
        let mut told = Vec::new();
        let write = async move {
            let mut rest = bytes;
            for cut in cuts {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                rest = later;
                // Whoever reads may have gone at a line that is too long.
                let _ = far.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            let _ = far.write_all(rest).await;
        };
        let read = async {
            loop {
                match lines.next::<serde_json::Value>().await {
                    Ok(Some(Line::Read(value))) => told.push(value.to_string()),
                    Ok(Some(Line::Wrong(_))) => told.push("wrong".to_owned()),
                    Ok(None) => break,
                    Err(_) => {
                        told.push("too long".to_owned());
                        break;
                    }
                }
            }
        };
        tokio::join!(write, read);
        told
    }

    proptest! {
        #[test]
        fn lines_are_the_same_wherever_bytes_are_cut(
            lines in prop::collection::vec("[ -~é]{0,26}|\\{\"a\":[0-9]{1,3}\\}|\"[a-z]{0,20}\"", 0..8),
            rest in "[a-z]{0,20}",
            cuts in prop::collection::vec(0_usize..30, 0..12),
        ) {
            let mut expected = Vec::new();
            for line in &lines {
                if line.len() > LONGEST {
                    expected.push("too long".to_owned());
                    break;
                }
                let value = serde_json::from_str::<serde_json::Value>(line);
                expected.push(value.map_or("wrong".to_owned(), |value| value.to_string()));
            }
            let ended: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let bytes = ended + &rest;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            prop_assert_eq!(runtime.block_on(read(bytes.as_bytes(), &cuts)), expected);
        }
    }
}
