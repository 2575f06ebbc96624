//! Writes to standard output and standard error without ever standing still for them.
//!
//! A terminal that is held, or a reader that does not read, blocks whoever writes. Signals must be
//! heard all the same, so one thread does the writing, in order, fed by a short queue: a slow reader
//! holds the command up, never this program. Files never block for long and are written to at once.
//! Nothing is gathered to lines: half a line appears when it was written.

use sandgate_protocol::OutputStream;
use sandgate_runtime::Stop;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many pieces may wait. A piece is what was read at once, 64 KiB at most, or one event.
const QUEUED_PIECES: usize = 4;

/// How long a reader is waited for when the person wants us to end now.
const PATIENCE: Duration = Duration::from_millis(250);

/// The way to both streams.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Piece>,
    /// The streams that need no queue.
    stdout: Option<Arc<Stream>>,
    stderr: Option<Arc<Stream>>,
    failure: Arc<OnceLock<io::Error>>,
    stop: Stop,
}

enum Piece {
    /// What must arrive: if it cannot, all is in vain.
    Output(OutputStream, Vec<u8>),
    /// What is good to know.
    Note(Vec<u8>),
    /// Everything before this has been written.
    Mark(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread. When output cannot be written any more the command is ended.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub(crate) fn start(stop: &Stop) -> io::Result<Self> {
        let (queue, mut pieces) = mpsc::channel(QUEUED_PIECES);
        let (stdout, stderr) = (Stream::stdout()?, Stream::stderr()?);
        let writer = Self {
            queue,
            stdout: stdout.never_blocks().then(|| Arc::new(stdout)),
            stderr: stderr.never_blocks().then(|| Arc::new(stderr)),
            failure: Arc::default(),
            stop: stop.clone(),
        };
        let (failure, stop) = (Arc::clone(&writer.failure), stop.clone());
        std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            if let Err(error) = write_all(&mut pieces) {
                // The reason must be known before the queue closes and somebody asks for it.
                let _ = failure.set(error);
                stop.cancel.cancel();
            }
        })?;
        Ok(writer)
    }

    /// Writes output of the command. Waits while the reader is slow.
    pub(crate) async fn output(&self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let at_once = match stream {
            OutputStream::Stdout => &self.stdout,
            OutputStream::Stderr => &self.stderr,
        };
        match at_once {
            Some(stream) => stream.write_all(bytes).map_err(|error| {
                let kind = error.kind();
                let _ = self.failure.set(error);
                kind.into()
            }),
            None => self.send(Piece::Output(stream, bytes.to_vec())).await,
        }
    }

    /// Writes a note of our own to standard error. Nothing depends on it.
    pub(crate) async fn note(&self, bytes: Vec<u8>) {
        let _ = match &self.stderr {
            Some(stream) => stream.write_all(&bytes),
            None => self.send(Piece::Note(bytes)).await,
        };
    }

    /// Waits until everything has been written, or cannot be.
    pub(crate) async fn finish(&self) {
        let (mark, written) = oneshot::channel();
        if self.send(Piece::Mark(mark)).await.is_ok() {
            tokio::select! {
                // An error means that the thread is gone, and so that there is nothing to wait for.
                _ = written => {}
                () = self.patience() => {}
            }
        }
    }

    /// Why writing failed, if it did.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get()
    }

    async fn send(&self, piece: Piece) -> io::Result<()> {
        tokio::select! {
            biased;
            sent = self.queue.send(piece) => sent.map_err(|_| io::ErrorKind::BrokenPipe.into()),
            () = self.patience() => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn patience(&self) {
        self.stop.cancel.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    }
}

fn write_all(pieces: &mut mpsc::Receiver<Piece>) -> io::Result<()> {
    let (stdout, stderr) = (Stream::stdout()?, Stream::stderr()?);
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Output(OutputStream::Stdout, bytes) => stdout.write_all(&bytes)?,
            Piece::Output(OutputStream::Stderr, bytes) => stderr.write_all(&bytes)?,
            Piece::Note(bytes) => {
                let _ = stderr.write_all(&bytes);
            }
            Piece::Mark(mark) => {
                let _ = mark.send(());
            }
        }
    }
    Ok(())
}

/// A standard stream itself, without the buffer that the standard library puts before it.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Stream(std::fs::File);

#[cfg(unix)]
impl Stream {
    fn stdout() -> io::Result<Self> {
        Self::of(&io::stdout())
    }

    pub(crate) fn stderr() -> io::Result<Self> {
        Self::of(&io::stderr())
    }

    fn of(stream: &impl std::os::fd::AsFd) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(|owned| Self(owned.into()))
    }

    /// Whether it is a file, or the device that swallows everything.
    fn never_blocks(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let swallows = std::fs::metadata("/dev/null").map(|null| null.rdev()).ok();
        self.0.metadata().is_ok_and(|found| found.is_file() || Some(found.rdev()) == swallows)
    }

    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }
}

/// On Windows only the standard library knows how to write to a console.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

#[cfg(not(unix))]
impl Stream {
    fn stdout() -> io::Result<Self> {
        Ok(Self::Stdout)
    }

    pub(crate) fn stderr() -> io::Result<Self> {
        Ok(Self::Stderr)
    }

    fn never_blocks(&self) -> bool {
        false
    }

    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Self::Stderr => io::stderr().write_all(bytes),
        }
    }
}
