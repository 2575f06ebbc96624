//! Follows one job from its start to its very end: its output, its exit, and what it leaves.

use crate::handle::Exit;
use crate::stop::{Cause, Step, Watch, until};
use crate::sys::{Ended, Held, Job, Reader};
use sandgate_protocol::{Denials, OutputStream, SIGNAL_INTERRUPT};
use std::io;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How long output is waited for after the command itself has ended, when something still holds its
/// pipes open.
const DRAIN: Duration = Duration::from_millis(250);

/// How long a sink may take for the rest of the output of a command that ran out of time.
const SINK: Duration = Duration::from_secs(10);

/// What two pipes can hold together, made as large as an ordinary user may.
const LARGEST_PIPES: usize = 2 << 20;

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
    /// How the command itself ended.
    pub(crate) exit: Exit,
    /// Why it was ended from outside, if it was.
    pub(crate) cause: Option<Cause>,
    pub(crate) pipes_still_open: bool,
    pub(crate) left_running: u32,
    /// From the first look to the command's own end.
    pub(crate) duration: Duration,
    pub(crate) held: Held,
    /// What was refused to it.
    pub(crate) denials: Denials,
}

/// Runs a job to its end. `on_exit` is called when the command itself has ended, before the rest of
/// its output has arrived.
pub(crate) async fn drive(
    mut job: Job,
    readers: [Option<Reader>; 2],
    sink: &mut impl OutputSink,
    mut watch: Watch<'_>,
    stragglers: Stragglers,
    on_exit: impl FnOnce(Exit),
) -> Finished {
    let began = Instant::now();
    let (draining, drain) = watch::channel(false);
    let pump = pump(readers, sink, drain);
    tokio::pin!(pump);
    let mut pumped = None;
    let mut cause = None;
    let mut patience_ends = None;
    let ended = loop {
        let kill = tokio::select! {
            ended = job.ended() => break ended,
            outcome = &mut pump, if pumped.is_none() => {
                pumped = Some(outcome);
                (outcome == Pumped::NobodyListens).then_some(Cause::Cancelled)
            }
            step = watch.step(), if cause.is_none() => match step {
                Step::Interrupt => {
                    job.signal(SIGNAL_INTERRUPT);
                    None
                }
                Step::Kill(why) => Some(why),
            },
            // A process that the kernel itself cannot end does not hold up the call.
            () = until(patience_ends) => break Ended { exit: Exit::KILLED, stragglers: true },
        };
        if let (Some(why), None) = (kill, cause) {
            cause = Some(why);
            patience_ends = Some(Instant::now() + GONE);
            job.kill();
        }
    };
    let duration = began.elapsed();
    on_exit(ended.exit);
    if watch.interrupted() {
        cause.get_or_insert(Cause::Cancelled);
    }
    // What the command left behind may finish its sentence.
    let mut pipes_still_open = false;
    if ended.stragglers && cause.is_none() && pumped.is_none() {
        tokio::select! {
            outcome = &mut pump => pumped = Some(outcome),
            () = watch.called_off() => cause = Some(Cause::Cancelled),
            () = sleep(DRAIN) => pipes_still_open = true,
        }
    }
    let mut left_running = 0;
    let (held, mut denials) = refused(&mut job);
    if cause.is_none() && stragglers == Stragglers::Leave {
        job.leave();
    } else if ended.stragglers {
        job.kill();
        // If nobody says how many, it is at least the one that is waited for.
        left_running = timeout(GONE, job.gone()).await.unwrap_or(1);
        denials.append(refused(&mut job).1);
    }
    // Nobody of the job writes any more, so what is in the pipes is all there is.
    draining.send_replace(true);
    let patience = async {
        match cause {
            Some(Cause::Cancelled) => {}
            Some(Cause::Timeout) => sleep(SINK).await,
            None => watch.called_off().await,
        }
        sleep(DRAIN).await;
    };
    if pumped.is_none() {
        tokio::select! {
            outcome = &mut pump => pipes_still_open |= outcome == Pumped::StillOpen,
            // The sink takes too long for somebody who wants to be done.
            () = patience => {}
        }
    }
    let exit = ended.exit;
    Finished { exit, cause, pipes_still_open, left_running, duration, held, denials }
}

/// What holds a job, and what was refused to it since it was last asked.
#[cfg(target_os = "linux")]
fn refused(job: &mut Job) -> (Held, Denials) {
    (job.held(), job.take_denials())
}

/// Elsewhere nobody knows.
#[cfg(not(target_os = "linux"))]
fn refused(_job: &mut Job) -> (Held, Denials) {
    Default::default()
}

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

/// Moves output from the readers to the sink until both have ended. Once `drain` is set nobody should
/// hold the other ends any more; if somebody does, silence or more than a pipe can hold is the end.
async fn pump(
    readers: [Option<Reader>; 2],
    sink: &mut impl OutputSink,
    mut drain: watch::Receiver<bool>,
) -> Pumped {
    let [mut stdout, mut stderr] = readers;
    let mut out = Buffer::new();
    let mut err = Buffer::new();
    let mut drained = 0;
    loop {
        let either = async {
            tokio::select! {
                n = next(&mut stdout, &mut out) => (OutputStream::Stdout, n),
                n = next(&mut stderr, &mut err) => (OutputStream::Stderr, n),
            }
        };
        let (stream, read) = tokio::select! {
            // It was not silent if there is something to read by the time that somebody looks, however
            // long it took until somebody did.
            biased;
            read = either => read,
            () = silence(&mut drain) => return Pumped::StillOpen,
        };
        let buffer = match stream {
            OutputStream::Stdout => &mut out,
            OutputStream::Stderr => &mut err,
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
        if sink.write(stream, buffer.filled(n)).await.is_err() {
            return Pumped::NobodyListens;
        }
        if *drain.borrow() {
            drained += n;
            if drained > LARGEST_PIPES {
                return Pumped::StillOpen;
            }
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

/// Waits until the job has ended and has been silent for a while.
async fn silence(drain: &mut watch::Receiver<bool>) {
    if drain.wait_for(|&draining| draining).await.is_ok() {
        sleep(DRAIN).await;
    } else {
        std::future::pending::<()>().await;
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;

    struct Kept(Vec<u8>);

    impl OutputSink for Kept {
        async fn write(&mut self, _: OutputStream, bytes: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
    }

    /// On a busy machine the time of silence can be over before anybody looked at the pipe even once.
    #[tokio::test]
    async fn output_that_is_there_is_read_however_late_somebody_looks() {
        for _ in 0..12 {
            let (reader, writer) = Reader::pipe().unwrap();
            let (_draining, drain) = watch::channel(true);
            let mut kept = Kept(Vec::new());
            let pumped = {
                let pump = pump([Some(reader), None], &mut kept, drain);
                tokio::pin!(pump);
                let waits = poll_fn(|cx| Poll::Ready(pump.as_mut().poll(cx).is_pending())).await;
                assert!(waits, "there is nothing to read yet");
                rustix::io::write(&writer, b"late").unwrap();
                drop(writer);
                // Nothing else of this runtime runs meanwhile.
                std::thread::sleep(DRAIN * 2);
                pump.await
            };
            assert_eq!((pumped, kept.0.as_slice()), (Pumped::End, b"late".as_slice()));
        }
    }
}
