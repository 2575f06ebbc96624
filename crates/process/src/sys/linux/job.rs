//! A running job, seen from the host: its warden's socket.

use super::wire::{Order, Reply};
use crate::sys::streams::watch;
use crate::sys::{Ended, LaunchError, Stage};
use rustix::fd::OwnedFd;
use rustix::net::{SendFlags, send};
use std::io;
use std::sync::{Arc, Weak};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A command and everything it started. Dropping it ends them all.
pub(crate) struct Job {
    control: Arc<AsyncFd<OwnedFd>>,
    pid: i32,
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

/// What came of waiting for the warden's first word.
pub(super) enum First {
    /// The command runs.
    Running(Job),
    /// Nobody took the request: the nursery is gone.
    NobodyThere,
}

impl Job {
    /// Waits until the command runs or has failed to.
    pub(super) async fn started(control: OwnedFd) -> Result<First, LaunchError> {
        let set_up = |e: io::Error| LaunchError::new(Stage::SetUp, e);
        let mut job = Self { control: watch(control).map_err(set_up)?, pid: 0 };
        match job.reply().await.map_err(set_up)? {
            Some(Reply::Started { pid }) => {
                job.pid = pid;
                Ok(First::Running(job))
            }
            Some(Reply::Failed { stage, errno }) => {
                Err(LaunchError::new(Stage::from_wire(stage), io::Error::from_raw_os_error(errno)))
            }
            Some(Reply::Ended(_) | Reply::Gone { .. }) | None => Ok(First::NobodyThere),
        }
    }

    /// The command's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Waits for the command itself to end. Can be dropped and called again.
    pub(crate) async fn ended(&mut self) -> io::Result<Ended> {
        loop {
            match self.reply().await? {
                Some(Reply::Ended(ended)) => return Ok(ended),
                // Told to end everything, the warden may have nothing left to wait for.
                Some(_) => {}
                None => {
                    return Err(io::Error::other(
                        "the process that watched over the command was killed, and the command with it",
                    ));
                }
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
            match self.reply().await {
                Ok(Some(Reply::Gone { left })) => return left,
                Ok(Some(_)) => {}
                // A warden goes when nothing is left.
                Ok(None) | Err(_) => return 0,
            }
        }
    }

    /// Lets the rest of the job live on.
    pub(crate) fn leave(self) {
        order(&self.control, Order::Leave);
    }

    async fn reply(&self) -> io::Result<Option<Reply>> {
        let mut bytes = [0u8; 16];
        let read =
            self.control.async_io(Interest::READABLE, |fd| {
                match rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut bytes)) {
                    Err(rustix::io::Errno::CONNRESET) => Ok(0),
                    other => Ok(other?),
                }
            });
        let n = read.await?;
        Ok(if n == 0 { None } else { Reply::decode(&bytes[..n]) })
    }
}

/// A warden that cannot hear has nothing left to watch over.
fn order(control: &AsyncFd<OwnedFd>, order: Order) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = send(control.get_ref(), &order.encode(), flags);
}
