//! A running job, seen from the host: its warden's socket.

use super::host::Line;
use super::wire::{Order, PACKET_BYTES, REPLY_BYTES, Reply};
use crate::handle::Exit;
use crate::sys::streams::watch_for;
use crate::sys::{Ended, Held, LaunchError, Stage};
use rustix::fd::OwnedFd;
use rustix::net::{SendFlags, send};
use sandgate_protocol::{DenialEvidence, DenialRule, Denials, DeniedOperation};
use sandgate_sandbox::linux::{rule_seen_from_outside, syscall_name};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// A command and everything it started. Dropping it ends them all.
pub(crate) struct Job {
    // Closed before the cage is let go, which waits for those that this ends.
    control: Arc<AsyncFd<OwnedFd>>,
    /// The cage that it is in, if there is one.
    cage: Option<Arc<Line>>,
    pid: i32,
    held: Held,
    denials: Denials,
    /// The same and all before, for whoever asks while it runs.
    so_far: Arc<Mutex<Denials>>,
    /// The command has ended, and nothing of it is left.
    is_over: bool,
    /// How many of its processes could not be ended, once the warden has said so.
    left: Option<u32>,
}

/// Sends signals to a job for as long as it is there, without keeping it.
pub(crate) struct Remote(Weak<AsyncFd<OwnedFd>>);

impl Remote {
    /// Sends a signal to the command's process group.
    pub(crate) fn signal(&self, signal: i32) {
        if let Some(control) = self.0.upgrade() {
            order(&control, Order::Signal(signal));
        }
    }
}

/// What came of a request.
pub(super) enum First {
    /// The command runs, or has run.
    Running(Job),
    /// Nobody took the request: a warden or the nursery was killed before.
    Lost,
    /// Nobody took the request for a long time.
    Unmoved,
}

/// How long a request may wait to be taken. Wardens take them in a fraction of a millisecond.
const TAKEN: Duration = Duration::from_secs(10);

/// What a warden said.
#[derive(Debug)]
pub(super) enum Word {
    Taken,
    Started { pid: i32, held: Held },
    Failed(LaunchError),
    Stopped,
    Denied(DenialEvidence),
    MoreDenied(u64),
    Ended(Ended),
    Gone { left: u32 },
}

impl Word {
    /// Understands a message; `None` when it is none.
    pub(super) fn hear(message: &[u8]) -> Option<Self> {
        Some(match Reply::decode(message)? {
            Reply::Taken => Self::Taken,
            Reply::Started { pid, held } => Self::Started { pid, held },
            Reply::Failed { stage, errno, step } => Self::Failed(failed(stage, errno, step)),
            Reply::Stopped => Self::Stopped,
            Reply::Denied { operation, rule, syscall, target } => Self::Denied(DenialEvidence {
                operation: *DeniedOperation::ALL.get(operation as usize)?,
                target: String::from_utf8_lossy(target).into_owned(),
                syscall: syscall_name(syscall).to_owned(),
                rule: rule_seen_from_outside(*DenialRule::ALL.get(rule as usize)?, target),
            }),
            Reply::MoreDenied { count } => Self::MoreDenied(count),
            Reply::Ended(ended) => Self::Ended(ended),
            Reply::Gone { left } => Self::Gone { left },
        })
    }
}

fn failed(stage: u32, errno: i32, step: &[u8]) -> LaunchError {
    let stage = Stage::from_wire(stage);
    let source = io::Error::from_raw_os_error(errno);
    let error = LaunchError::new(stage, source);
    match step {
        [] => error,
        step => error.at_step(&String::from_utf8_lossy(step)),
    }
}

impl Job {
    /// Sends the rest of a request and waits until the command runs or has failed to.
    pub(super) async fn started(
        cage: Option<Arc<Line>>,
        control: OwnedFd,
        unsent: &[u8],
    ) -> Result<First, LaunchError> {
        // Who has sent everything does not want to hear of every packet that is read.
        let interest = match unsent {
            [] => Interest::READABLE,
            _ => Interest::READABLE | Interest::WRITABLE,
        };
        let control = watch_for(control, interest);
        let control = control.map_err(|e| LaunchError::new(Stage::SetUp, e))?;
        let taken = async {
            for packet in unsent.chunks(PACKET_BYTES) {
                // Whoever stops listening half way has said why.
                if send_packet(&control, packet).await.is_err() {
                    break;
                }
            }
            next_word(&control).await
        };
        match timeout(TAKEN, taken).await {
            Ok(Ok(Some(Word::Taken))) => {}
            Ok(Ok(Some(Word::Failed(error)))) => return Err(error),
            Ok(Ok(_) | Err(_)) => return Ok(First::Lost),
            Err(_) => return Ok(First::Unmoved),
        }
        let (pid, held) = match next_word(&control).await {
            Ok(Some(Word::Started { pid, held })) => (pid, held),
            Ok(Some(Word::Failed(error))) => return Err(error),
            // The warden was killed; whether the command ran before that nobody knows, so it must
            // not be run again.
            _ => (0, Held::default()),
        };
        let (denials, so_far) = Default::default();
        let (is_over, left) = (false, None);
        Ok(First::Running(Self { control, cage, pid, held, denials, so_far, is_over, left }))
    }

    /// The command's process id; 0 if it was killed before it could be told.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// What holds it.
    pub(crate) fn held(&self) -> Held {
        self.held
    }

    /// What was refused to it until now.
    pub(crate) fn take_denials(&mut self) -> Denials {
        std::mem::take(&mut self.denials)
    }

    /// Waits for the command itself to end. Can be dropped and called again.
    pub(crate) async fn ended(&mut self) -> Ended {
        loop {
            match next_word(&self.control).await {
                Ok(Some(Word::Ended(ended))) => {
                    self.is_over = !ended.stragglers;
                    return ended;
                }
                // The command is one of those that could not be ended.
                Ok(Some(Word::Gone { left })) => self.left = Some(left),
                Ok(Some(word)) => self.note(word),
                // The warden is gone without a word on the command: it was killed, and the command
                // with it, or the command is out of its reach.
                Ok(None) | Err(_) => return Ended { exit: Exit::KILLED, stragglers: true },
            }
        }
    }

    /// What was refused to it, as long as it runs.
    pub(crate) fn denials_so_far(&self) -> Arc<Mutex<Denials>> {
        Arc::clone(&self.so_far)
    }

    fn note(&mut self, word: Word) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        match word {
            Word::Denied(denial) => {
                so_far.evidence.push(denial.clone());
                self.denials.evidence.push(denial);
            }
            Word::MoreDenied(count) => {
                so_far.more += count;
                self.denials.more += count;
            }
            _ => {}
        }
    }

    /// A way to signal the job from elsewhere.
    pub(crate) fn remote(&self) -> Remote {
        Remote(Arc::downgrade(&self.control))
    }

    /// Sends a signal to the command's process group.
    pub(crate) fn signal(&self, signal: i32) {
        order(&self.control, Order::Signal(signal));
    }

    /// Ends every process of the job. [`Job::gone`] waits for that.
    pub(crate) fn kill(&self) {
        order(&self.control, Order::Kill);
    }

    /// Waits until all processes of a job that was killed are gone; how many could not be ended.
    pub(crate) async fn gone(&mut self) -> u32 {
        loop {
            match (self.left, next_word(&self.control).await) {
                (_, Ok(Some(Word::Gone { left }))) => return left,
                (_, Ok(Some(word))) => self.note(word),
                // A warden goes when nothing is left that it could end.
                (left, Ok(None) | Err(_)) => return left.unwrap_or(0),
            }
        }
    }

    /// Lets the rest of the job live on.
    pub(crate) fn leave(self) {
        order(&self.control, Order::Leave);
        if let Some(cage) = self.cage.as_ref().filter(|_| !self.is_over) {
            cage.stays();
        }
    }
}

/// Sends what there is room for of a request's strings, before anybody reads them. Gives back the rest.
pub(super) fn send_ahead<'a>(control: &OwnedFd, strings: &'a [u8]) -> &'a [u8] {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let mut unsent = strings;
    for packet in strings.chunks(PACKET_BYTES) {
        if rustix::io::retry_on_intr(|| send(control, packet, flags)).is_err() {
            break;
        }
        unsent = unsent.get(packet.len()..).unwrap_or_default();
    }
    unsent
}

async fn send_packet(control: &AsyncFd<OwnedFd>, packet: &[u8]) -> io::Result<()> {
    let sent = control.async_io(Interest::WRITABLE, |fd| {
        Ok(rustix::io::retry_on_intr(|| send(fd, packet, SendFlags::NOSIGNAL))?)
    });
    sent.await.map(|_| ())
}

/// The warden's next word; `None` when it is gone.
async fn next_word(control: &AsyncFd<OwnedFd>) -> io::Result<Option<Word>> {
    let read = control.async_io(Interest::READABLE, |fd| {
        let mut bytes = [0u8; REPLY_BYTES];
        let mut read = || rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut bytes));
        let n = match read() {
            // It went without hearing our last word. That is said once, and before its own last one.
            Err(rustix::io::Errno::CONNRESET) => read()?,
            other => other?,
        };
        Ok(bytes.get(..n).filter(|bytes| !bytes.is_empty()).map(Word::hear))
    });
    Ok(read.await?.flatten())
}

/// A warden that cannot hear has nothing left to watch over.
fn order(control: &AsyncFd<OwnedFd>, order: Order) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = send(control.get_ref(), &order.encode(), flags);
}
