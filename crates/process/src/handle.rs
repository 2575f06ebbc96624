//! A process that lives on while its owner does other things.

use crate::broadcast::{Broadcast, OutputReceiver};
use crate::drive::{Finished, OutputSink, Stragglers, drive};
use crate::spawner::TerminalSize;
use crate::stop::{Stop, Watch};
use crate::sys::{Job, Launched, Remote, Terminal, Writer};
use bytes::Bytes;
use sandgate_protocol::{
    Denials, EXIT_CODE_SIGNAL_BASE, ExecExpiration, OutputStream, SIGNAL_KILL,
};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How many pieces of input may wait for a process that does not read.
const WAITING_INPUTS: usize = 64;

/// What ends the input of a terminal: Ctrl-D.
const END_OF_TRANSMISSION: &[u8] = b"\x04";

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// What becomes of a command that is ended from outside.
    pub(crate) const KILLED: Self = Self::Signal(SIGNAL_KILL);

    /// The exit code as a shell would give it: 128 + n for signal n.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => EXIT_CODE_SIGNAL_BASE + signal,
        }
    }

    /// The signal that ended it, if one did.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

/// What starting a process gives.
#[derive(Debug)]
pub struct SpawnedProcess {
    /// The process.
    pub session: ProcessHandle,
    /// Everything it writes, from its first byte on.
    pub output_rx: OutputReceiver,
    /// Its exit code, as soon as it has ended.
    pub exit_rx: oneshot::Receiver<i32>,
}

/// A running process. Dropping it ends the process and everything that it started.
pub struct ProcessHandle {
    pid: u32,
    exit: Arc<OnceLock<Exit>>,
    broadcast: Broadcast,
    input: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// Cancelled when no more input is to come, whoever still has a sender.
    end_of_input: CancellationToken,
    /// Its terminal, which is closed when it has ended.
    terminal: Option<Weak<Terminal>>,
    remote: Remote,
    stop: Stop,
    /// How much was sent to it, and how much of that its terminal or pipe has taken.
    sent: AtomicU64,
    taken: watch::Receiver<u64>,
    denials: Arc<Mutex<Denials>>,
}

impl std::fmt::Debug for ProcessHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessHandle")
            .field("pid", &self.pid)
            .field("exit", &self.exit.get())
            .finish()
    }
}

impl ProcessHandle {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where to send its input; `None` when it has none, or when that was closed.
    pub fn writer_sender(&self) -> Option<mpsc::Sender<Bytes>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends its input, after what was sent before. A pipe is closed. A terminal is sent what Ctrl-D
    /// sends, which is the end for whoever reads it just then, and can be typed on afterwards.
    pub async fn close_stdin(&self) {
        if self.terminal.is_none() {
            self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.end_of_input.cancel();
        } else if let Some(input) = self.writer_sender() {
            // It may have ended already.
            let _ = input.send(Bytes::from_static(END_OF_TRANSMISSION)).await;
        }
    }

    /// Sends it something, and waits until its terminal or pipe has taken that, for at most `limit`.
    /// Whether it has.
    pub(crate) async fn write(&self, bytes: Bytes, limit: Duration) -> bool {
        let Some(input) = self.writer_sender() else { return false };
        let length = bytes.len() as u64;
        let mut taken = self.taken.clone();
        let all = async {
            // What was counted and never sent would be waited for by everybody after.
            let Ok(place) = input.reserve().await else { return false };
            let until = self.sent.fetch_add(length, Ordering::SeqCst) + length;
            place.send(bytes);
            taken.wait_for(|&taken| taken >= until).await.is_ok()
        };
        timeout(limit, all).await.unwrap_or(false)
    }

    /// What was refused to it until now.
    pub(crate) fn denials(&self) -> Denials {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new listener, who hears what the process writes from now on.
    pub fn output_receiver(&self) -> OutputReceiver {
        self.broadcast.subscribe()
    }

    /// Whether the process itself has ended.
    pub fn has_exited(&self) -> bool {
        self.exit.get().is_some()
    }

    /// Its exit code, once it has ended.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit.get().map(|exit| exit.code())
    }

    /// How it ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }

    /// Ends the process and everything that it started.
    pub fn terminate(&self) {
        self.stop.cancel.cancel();
    }

    /// Sends a signal to its process group.
    pub fn signal(&self, signal: i32) {
        self.remote.signal(signal);
    }

    /// Changes the size of its terminal.
    ///
    /// # Errors
    /// When it has no terminal, or has ended, or the system refuses.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        match self.terminal.as_ref().map(Weak::upgrade) {
            Some(Some(terminal)) => terminal.resize(size),
            Some(None) => Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended")),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "the process has no terminal")),
        }
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Watches over a job in the background until it has ended.
pub(crate) fn supervise(launched: Launched) -> SpawnedProcess {
    let broadcast = Broadcast::new();
    let output_rx = broadcast.subscribe();
    let (exit_tx, exit_rx) = oneshot::channel();
    let on_exit = |exit: Exit| {
        // Nobody may be waiting for it.
        let _ = exit_tx.send(exit.code());
    };
    let session = start(launched, broadcast, Nobody, on_exit, |_, _| async {});
    SpawnedProcess { session, output_rx, exit_rx }
}

/// Watches over a job in the background. All that it prints goes to `sink`, and to whoever listens then.
/// `on_exit` is called when the process itself has ended, `on_end` when all that it printed was told.
pub(crate) fn start<S: OutputSink + 'static, E: Future<Output = ()> + Send>(
    launched: Launched,
    broadcast: Broadcast,
    sink: S,
    on_exit: impl FnOnce(Exit) + Send + 'static,
    on_end: impl FnOnce(S, Finished) -> E + Send + 'static,
) -> ProcessHandle {
    let Launched { job, stdin, stdout, stderr, terminal } = launched;
    let exit = Arc::new(OnceLock::new());
    let stop = Stop::default();
    let end_of_input = CancellationToken::new();
    let (taking, taken) = watch::channel(0);
    let terminal = terminal.map(Arc::new);
    let (input, feeding) = match stdin {
        Some(writer) => {
            let (input, feeding) = feed(writer, end_of_input.clone(), taking);
            (Some(input), Some(feeding))
        }
        None => (None, None),
    };
    let session = ProcessHandle {
        pid: job.pid(),
        exit: Arc::clone(&exit),
        broadcast: broadcast.clone(),
        input: Mutex::new(input),
        end_of_input,
        terminal: terminal.as_ref().map(Arc::downgrade),
        remote: job.remote(),
        stop: stop.clone(),
        sent: AtomicU64::new(0),
        taken,
        denials: refused_so_far(&job),
    };
    tokio::spawn(async move {
        let mut sink = (broadcast, sink);
        let watch = Watch::new(&stop, ExecExpiration::Cancellation);
        let on_exit = |how: Exit| {
            let _ = exit.set(how);
            on_exit(how);
        };
        let stragglers = Stragglers::Kill;
        let finished = drive(job, [stdout, stderr], &mut sink, watch, stragglers, on_exit).await;
        // Whoever keeps the handle keeps what is known of the process, and no descriptor.
        drop(terminal);
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        let (broadcast, sink) = sink;
        broadcast.close();
        on_end(sink, finished).await;
    });
    session
}

/// What is refused to a job while it runs.
#[cfg(target_os = "linux")]
fn refused_so_far(job: &Job) -> Arc<Mutex<Denials>> {
    job.denials_so_far()
}

/// Elsewhere nobody knows.
#[cfg(not(target_os = "linux"))]
fn refused_so_far(_job: &Job) -> Arc<Mutex<Denials>> {
    Arc::default()
}

/// Nobody else wants the output.
struct Nobody;

impl OutputSink for Nobody {
    async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// First the one, then the other.
impl<A: OutputSink, B: OutputSink> OutputSink for (A, B) {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.0.write(stream, bytes).await?;
        self.1.write(stream, bytes).await
    }
}

/// Writes what is sent to a process, until nobody can send any more or `end` says so. It is to be aborted when
/// the process has ended: one that waits for room would wait for ever.
fn feed(
    mut writer: Writer,
    end: CancellationToken,
    taken: watch::Sender<u64>,
) -> (mpsc::Sender<Bytes>, AbortHandle) {
    let (tx, mut rx) = mpsc::channel::<Bytes>(WAITING_INPUTS);
    let task = tokio::spawn(async move {
        loop {
            let bytes = tokio::select! {
                bytes = rx.recv() => bytes,
                // What was sent before still goes; after it the channel is empty.
                () = end.cancelled(), if !rx.is_closed() => {
                    rx.close();
                    continue;
                }
            };
            let Some(bytes) = bytes else { return };
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
            taken.send_modify(|taken| *taken += bytes.len() as u64);
        }
    });
    (tx, task.abort_handle())
}
