//! The events of a response, within limits: of what may come, and of how long nothing may come.

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use sse_stream::SseByteStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// What a response may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How long nothing at all may come.
    pub(super) idle: Duration,
    /// The largest event, in bytes.
    pub(super) event: u64,
    /// The largest response, in bytes.
    pub(super) response: u64,
}

/// How many times as long a provider may only say that it is there.
const LIFE_WITHOUT_WORK: u32 = 6;

/// Why no more events come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    #[error("{0}")]
    Cut(String),
    #[error("{0}")]
    Unreadable(String),
}

/// The events of a response.
pub(super) struct Events {
    events: SseByteStream<BoxStream<'static, Result<Bytes, Stopped>>>,
    meter: Arc<Meter>,
}

/// What is counted while bytes come. One task counts and reads; it is shared only because the decoder
/// in between owns the bytes.
struct Meter {
    begun: Instant,
    /// Bytes since the last event.
    of_event: AtomicU64,
    /// Milliseconds from the beginning to the last sign of work.
    last_work_ms: AtomicU64,
}

impl Events {
    /// Reads the events of a body.
    pub(super) fn of(
        body: impl Stream<Item = Result<Bytes, String>> + Send + 'static,
        limits: Limits,
    ) -> Self {
        let (of_event, last_work_ms) = (AtomicU64::new(0), AtomicU64::new(0));
        let meter = Arc::new(Meter { begun: Instant::now(), of_event, last_work_ms });
        let metered = Metered { body: body.boxed(), limits, meter: Arc::clone(&meter), total: 0 };
        let bytes = stream::try_unfold(metered, |mut metered| async {
            Ok(metered.next().await?.map(|bytes| (bytes, metered)))
        });
        Self { events: SseByteStream::new(bytes.boxed()), meter }
    }

    /// The data of the next event that has any; none at the end.
    pub(super) async fn next(&mut self) -> Option<Result<String, Stopped>> {
        loop {
            let event = self.events.next().await?;
            self.meter.of_event.store(0, Ordering::Relaxed);
            match event {
                Ok(event) => match event.data {
                    Some(data) if !data.is_empty() => return Some(Ok(data)),
                    _ => {}
                },
                Err(sse_stream::Error::Body(error)) => {
                    let stopped = error.downcast::<Stopped>();
                    return Some(Err(match stopped {
                        Ok(stopped) => *stopped,
                        Err(error) => Stopped::Cut(error.to_string()),
                    }));
                }
                Err(error) => return Some(Err(Stopped::Unreadable(error.to_string()))),
            }
        }
    }

    /// The last event was about the response.
    pub(super) fn works(&self) {
        let ms = u64::try_from(self.meter.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.meter.last_work_ms.store(ms, Ordering::Relaxed);
    }
}

struct Metered {
    body: BoxStream<'static, Result<Bytes, String>>,
    limits: Limits,
    meter: Arc<Meter>,
    total: u64,
}

impl Metered {
    async fn next(&mut self) -> Result<Option<Bytes>, Stopped> {
        let idle = self.limits.idle;
        let next = timeout(idle, self.body.next()).await.map_err(|_| Stopped::Silent(idle))?;
        let Some(bytes) = next.transpose().map_err(Stopped::Cut)? else { return Ok(None) };
        let length = bytes.len() as u64;
        self.total += length;
        let of_event = self.meter.of_event.fetch_add(length, Ordering::Relaxed) + length;
        for (what, length, limit) in [
            ("an event", of_event, self.limits.event),
            ("the response", self.total, self.limits.response),
        ] {
            if length > limit {
                let why = format!("{what} has more than {limit} bytes");
                return Err(Stopped::Unreadable(why));
            }
        }
        let worked = Duration::from_millis(self.meter.last_work_ms.load(Ordering::Relaxed));
        let most = idle.saturating_mul(LIFE_WITHOUT_WORK);
        match self.meter.begun.elapsed().saturating_sub(worked) > most {
            true => Err(Stopped::Silent(most)),
            false => Ok(Some(bytes)),
        }
    }
}
