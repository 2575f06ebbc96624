//! A running job, seen from the host: its warden's socket.

use super::wire::{Order, PACKET_BYTES, Reply};
use crate::handle::Exit;
use crate::sys::streams::watch;
use crate::sys::{Ended, LaunchError, Stage};
use rustix::fd::OwnedFd;
use rustix::net::{SendFlags, send};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// A command and everything it started. Dropping it ends them all.
pub(crate) struct Job {
    control: Arc<AsyncFd<OwnedFd>>,
    pid: i32,
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

impl Job {
    /// Sends the rest of a request and waits until the command runs or has failed to.
    pub(super) async fn started(control: OwnedFd, strings: &[u8]) -> Result<First, LaunchError> {
        let control = watch(control).map_err(|e| LaunchError::new(Stage::SetUp, e))?;
        let taken = async {
            for packet in strings.chunks(PACKET_BYTES) {
                // Whoever stops listening half way has said why.
                if send_packet(&control, packet).await.is_err() {
                    break;
                }
            }
            reply(&control).await
        };
        match timeout(TAKEN, taken).await {
            Ok(Ok(Some(Reply::Taken))) => {}
            Ok(Ok(Some(Reply::Failed { stage, errno }))) => return Err(failed(stage, errno)),
            Ok(Ok(_) | Err(_)) => return Ok(First::Lost),
            Err(_) => return Ok(First::Unmoved),
        }
        match reply(&control).await {
            Ok(Some(Reply::Started { pid })) => {
                Ok(First::Running(Self { control, pid, left: None }))
            }
            Ok(Some(Reply::Failed { stage, errno })) => Err(failed(stage, errno)),
            // The warden was killed; whether the command ran before that nobody knows, so it must
            // not be run again.
            _ => Ok(First::Running(Self { control, pid: 0, left: None })),
        }
    }

    /// The command's process id; 0 if it was killed before it could be told.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Waits for the command itself to end. Can be dropped and called again.
    pub(crate) async fn ended(&mut self) -> Ended {
        loop {
            match reply(&self.control).await {
                Ok(Some(Reply::Ended(ended))) => return ended,
                // The command is one of those that could not be ended.
                Ok(Some(Reply::Gone { left })) => self.left = Some(left),
                Ok(Some(Reply::Taken | Reply::Started { .. } | Reply::Failed { .. })) => {}
                // The warden is gone without a word on the command: it was killed, and the command
                // with it, or the command is out of its reach.
                Ok(None) | Err(_) => return Ended { exit: Exit::KILLED, stragglers: true },
            }
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
            match (self.left, reply(&self.control).await) {
                (_, Ok(Some(Reply::Gone { left }))) => return left,
                (_, Ok(Some(_))) => {}
                // A warden goes when nothing is left that it could end.
                (left, Ok(None) | Err(_)) => return left.unwrap_or(0),
            }
        }
    }

    /// Lets the rest of the job live on.
    pub(crate) fn leave(self) {
        order(&self.control, Order::Leave);
    }
}

fn failed(stage: u32, errno: i32) -> LaunchError {
    LaunchError::new(Stage::from_wire(stage), io::Error::from_raw_os_error(errno))
}

async fn send_packet(control: &AsyncFd<OwnedFd>, packet: &[u8]) -> io::Result<()> {
    let sent = control.async_io(Interest::WRITABLE, |fd| {
        Ok(rustix::io::retry_on_intr(|| send(fd, packet, SendFlags::NOSIGNAL))?)
    });
    sent.await.map(|_| ())
}

/// The warden's next word; `None` when it is gone.
async fn reply(control: &AsyncFd<OwnedFd>) -> io::Result<Option<Reply>> {
    let mut bytes = [0u8; 16];
    let read = control.async_io(Interest::READABLE, |fd| {
        let mut read = || rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut bytes));
        match read() {
            // It went without hearing our last word. That is said once, and before its own last one.
            Err(rustix::io::Errno::CONNRESET) => Ok(read()?),
            other => Ok(other?),
        }
    });
    let n = read.await?;
    Ok(if n == 0 { None } else { Reply::decode(&bytes[..n]) })
}

/// A warden that cannot hear has nothing left to watch over.
fn order(control: &AsyncFd<OwnedFd>, order: Order) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = send(control.get_ref(), &order.encode(), flags);
}
