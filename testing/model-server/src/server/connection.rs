//! A connection that knows when its bytes came and went.

use super::answer::Service;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// When the bytes of the request that is being read came, and whose answer is being written.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    read: Option<(Instant, Instant)>,
    answering: Option<usize>,
}

impl Clock {
    /// When the first and the last byte of the request came that has now been read to its end.
    pub(super) fn take_read(&self) -> (Instant, Instant) {
        let now = Instant::now();
        self.lock().read.take().unwrap_or((now, now))
    }

    /// Says whose answer all that is written from now on belongs to.
    pub(super) fn answering(&self, request: usize) {
        self.lock().answering = Some(request);
    }

    fn note_read(&self) {
        let now = Instant::now();
        self.lock().read.get_or_insert((now, now)).1 = now;
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that tells a clock, and the record, what passes through it.
pub(super) struct Timed {
    stream: TcpStream,
    clock: Arc<Clock>,
    service: Arc<Service>,
}

impl Timed {
    pub(super) fn new(stream: TcpStream, clock: Arc<Clock>, service: Arc<Service>) -> Self {
        Self { stream, clock, service }
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.clock.note_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        let answering = self.clock.lock().answering;
        if let Some(request) = answering {
            self.service.record().note_sent(request);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
