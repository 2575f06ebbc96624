//! Follows one job from its start to its very end: its output, its exit, and what it leaves.

use crate::stop::{Cause, Step, Watch};
use crate::sys::{Ended, Job, Reader};
use sandgate_protocol::OutputStream;
use std::io;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// How long output is waited for after the command itself has ended, when something that it
/// started still holds its pipes open.
const DRAIN: Duration = Duration::from_millis(250);

/// How long the end of a job's last processes is waited for.
const GONE: Duration = Duration::from_secs(2);

/// Most commands write little, and some write nothing to one of their streams.
const FIRST_READ_BYTES: usize = 4 * 1024;

/// Later reads take at most this much. It is what a pipe holds: measured, neither a larger buffer nor
/// a larger pipe moves a gigabyte faster.
const READ_BYTES: usize = 64 * 1024;

/// Takes output as it arrives. The command is held up while it does.
pub trait OutputSink: Send {
    /// Takes one piece of output. An error ends the command: nobody is listening any more.
    fn write(
        &mut self,
        stream: OutputStream,
        bytes: &[u8],
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// What becomes of processes that a command leaves behind when it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stragglers {
    /// They end with it.
    #[default]
    Kill,
    /// They live on, also after this program has ended.
    Leave,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// How the command itself ended; an error if nobody knows.
    pub(crate) ended: io::Result<Ended>,
    /// Why it was ended from outside, if it was.
    pub(crate) cause: Option<Cause>,
    pub(crate) pipes_still_open: bool,
    pub(crate) left_running: u32,
    /// From the first look to the command's own end.
    pub(crate) duration: Duration,
}

/// Runs a job to its end. `on_exit` is called when the command itself has ended, before the rest of
/// its output has arrived.
pub(crate) async fn drive(
    mut job: Job,
    readers: [Option<Reader>; 2],
    sink: &mut impl OutputSink,
    mut watch: Watch<'_>,
    stragglers: Stragglers,
    on_exit: impl FnOnce(&io::Result<Ended>),
) -> Finished {
    let began = Instant::now();
    let (draining, clock) = watch::channel(None);
    let pump = pump(readers, sink, clock);
    tokio::pin!(pump);
    let mut pumped = None;
    let mut cause = None;
    let ended = loop {
        tokio::select! {
            ended = job.ended() => break ended,
            outcome = &mut pump, if pumped.is_none() => {
                if outcome == Pumped::NobodyListens {
                    cause.get_or_insert(Cause::Cancelled);
                    job.kill();
                }
                pumped = Some(outcome);
            }
            step = watch.step(), if cause.is_none() => match step {
                Step::Interrupt => job.signal(INTERRUPT_SIGNAL),
                Step::Kill(why) => {
                    cause = Some(why);
                    job.kill();
                }
            },
        }
    };
    let duration = began.elapsed();
    on_exit(&ended);
    if watch.interrupted() {
        cause.get_or_insert(Cause::Cancelled);
    }
    draining.send_replace(Some(Instant::now()));
    // Who cancelled does not wait for a sink that does not take anything.
    let patience = match cause {
        Some(Cause::Cancelled) => Some(DRAIN),
        Some(Cause::Timeout) | None => None,
    };
    let first = match pumped {
        Some(outcome) => outcome,
        None => within(patience, &mut pump).await.unwrap_or(Pumped::StillOpen),
    };
    let left_behind = ended.as_ref().map_or(true, |ended| ended.stragglers);
    let mut left_running = 0;
    if cause.is_none() && stragglers == Stragglers::Leave {
        job.leave();
    } else if left_behind {
        job.kill();
        left_running = timeout(GONE, job.gone()).await.unwrap_or(1);
    }
    Finished { ended, cause, pipes_still_open: first == Pumped::StillOpen, left_running, duration }
}

async fn within<T>(patience: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => timeout(patience, future).await.ok(),
        None => Some(future.await),
    }
}

/// SIGINT, whose number is the same wherever it exists.
const INTERRUPT_SIGNAL: i32 = 2;

/// How the reading of a job's output came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pumped {
    /// All of it was read.
    End,
    /// The command has ended, but something still holds its output open.
    StillOpen,
    /// The sink failed.
    NobodyListens,
}

/// Moves output from the readers to the sink until both have ended, or until [`DRAIN`] after the
/// moment of the command's end that `clock` names. Time that the sink takes does not count.
async fn pump(
    readers: [Option<Reader>; 2],
    sink: &mut impl OutputSink,
    mut clock: watch::Receiver<Option<Instant>>,
) -> Pumped {
    let [mut stdout, mut stderr] = readers;
    let mut out = Buffer::new();
    let mut err = Buffer::new();
    let mut held_up = Duration::ZERO;
    loop {
        let (stream, buffer, read) = tokio::select! {
            n = next(&mut stdout, &mut out) => (OutputStream::Stdout, &mut out, n),
            n = next(&mut stderr, &mut err) => (OutputStream::Stderr, &mut err, n),
            () = expired(&mut clock, held_up) => return Pumped::StillOpen,
        };
        // A pipe that cannot be read has nothing more to say.
        let n = read.unwrap_or(0);
        if n == 0 {
            match stream {
                OutputStream::Stdout => stdout = None,
                OutputStream::Stderr => stderr = None,
            }
            if stdout.is_none() && stderr.is_none() {
                return Pumped::End;
            }
            continue;
        }
        let handed_over = Instant::now();
        if sink.write(stream, buffer.filled(n)).await.is_err() {
            return Pumped::NobodyListens;
        }
        if let Some(end) = *clock.borrow() {
            held_up += handed_over.max(end).elapsed();
        }
        buffer.grow_after(n);
    }
}

async fn next(reader: &mut Option<Reader>, buffer: &mut Buffer) -> io::Result<usize> {
    match reader {
        Some(reader) => reader.read(buffer.space()).await,
        None => std::future::pending().await,
    }
}

/// Waits until the command has ended and the time after that is over.
async fn expired(clock: &mut watch::Receiver<Option<Instant>>, held_up: Duration) {
    match clock.wait_for(Option::is_some).await.map(|instant| *instant) {
        Ok(Some(instant)) => sleep_until(instant + DRAIN + held_up).await,
        _ => std::future::pending().await,
    }
}

/// A read buffer that is small until it proves too small.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        Self(vec![0; FIRST_READ_BYTES])
    }

    fn space(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn filled(&self, n: usize) -> &[u8] {
        &self.0[..n]
    }

    fn grow_after(&mut self, n: usize) {
        if n == self.0.len() && n < READ_BYTES {
            self.0.resize(READ_BYTES, 0);
        }
    }
}
