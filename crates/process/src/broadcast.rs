//! Output for whoever wants to listen, live. A listener that is too slow is told how much it missed.

use crate::drive::OutputSink;
use bytes::Bytes;
use sandgate_protocol::OutputStream;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::{self, error::RecvError};

/// The largest piece that is handed out at once.
const CHUNK_BYTES: usize = 8 * 1024;

/// How many pieces wait for a slow listener: one MiB at the most.
const WAITING_CHUNKS: usize = 128;

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Where it was written to.
    pub stream: OutputStream,
    /// How much came before it, on both streams together.
    pub offset: u64,
    /// What was written.
    pub bytes: Bytes,
}

/// What a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The next piece.
    Chunk(OutputChunk),
    /// The listener was too slow: so many bytes were not kept for it.
    Missed {
        /// How many.
        bytes: u64,
    },
}

/// A listener.
#[derive(Debug)]
pub struct OutputReceiver {
    rx: Option<broadcast::Receiver<OutputChunk>>,
    /// Where the next piece should begin.
    expected: u64,
    /// A piece that is due after word of what was missed.
    due: Option<OutputChunk>,
}

impl OutputReceiver {
    /// Where the next piece begins: how much was printed before this one listens.
    pub fn position(&self) -> u64 {
        self.expected
    }

    /// The next piece; `None` when there will be no more. Can be dropped and called again.
    pub async fn recv(&mut self) -> Option<Received> {
        let chunk = match self.due.take() {
            Some(chunk) => chunk,
            None => self.next().await?,
        };
        let missed = chunk.offset.saturating_sub(self.expected);
        if missed > 0 {
            self.expected = chunk.offset;
            self.due = Some(chunk);
            return Some(Received::Missed { bytes: missed });
        }
        self.expected = chunk.offset + chunk.bytes.len() as u64;
        Some(Received::Chunk(chunk))
    }

    async fn next(&mut self) -> Option<OutputChunk> {
        let rx = self.rx.as_mut()?;
        loop {
            match rx.recv().await {
                Ok(chunk) => return Some(chunk),
                // The offset of the next piece says how much this was.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// The speaking end.
#[derive(Debug, Clone)]
pub(crate) struct Broadcast {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// `None` once the process has said all it will say.
    tx: Option<broadcast::Sender<OutputChunk>>,
    offset: u64,
}

impl Broadcast {
    pub(crate) fn new() -> Self {
        let tx = Some(broadcast::Sender::new(WAITING_CHUNKS));
        Self { state: Arc::new(Mutex::new(State { tx, offset: 0 })) }
    }

    /// A new listener, who hears what comes from now on.
    pub(crate) fn subscribe(&self) -> OutputReceiver {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let rx = state.tx.as_ref().map(broadcast::Sender::subscribe);
        OutputReceiver { rx, expected: state.offset, due: None }
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tx = None;
    }

    fn send(&self, stream: OutputStream, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { tx: Some(tx), offset } = &mut *state else { return };
        for piece in bytes.chunks(CHUNK_BYTES) {
            if tx.receiver_count() > 0 {
                let bytes = Bytes::copy_from_slice(piece);
                // Nobody listening is no error.
                let _ = tx.send(OutputChunk { stream, offset: *offset, bytes });
            }
            *offset += piece.len() as u64;
        }
    }
}

impl OutputSink for Broadcast {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.send(stream, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_that_keeps_up_hears_everything() {
        let broadcast = Broadcast::new();
        let mut listener = broadcast.subscribe();
        let text = vec![b'x'; CHUNK_BYTES + 1];
        broadcast.send(OutputStream::Stdout, &text);
        broadcast.close();
        let mut heard = 0;
        while let Some(received) = listener.recv().await {
            let Received::Chunk(chunk) = received else { panic!("missed something") };
            assert_eq!(chunk.offset, heard);
            heard += chunk.bytes.len() as u64;
        }
        assert_eq!(heard, text.len() as u64);
    }
}
