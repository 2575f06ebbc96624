//! The host's side: starts the nursery, sends it requests, and starts it anew if it was killed.

use super::job::{First, Job};
use super::nursery::become_nursery;
use super::raw::{self, Forked};
use super::wire::Request;
use crate::sys::streams::{End, Ends};
use crate::sys::{Launch, LaunchError, Launched, Stage};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How many requests may wait for a warden at once: the kernel bounds the descriptors in flight.
const MAX_IN_FLIGHT: usize = 16;

/// Starts jobs, by way of a nursery that it keeps alive.
pub(crate) struct Nursery {
    line: Mutex<Arc<Line>>,
    null: OwnedFd,
    in_flight: Semaphore,
}

/// A nursery's process and the socket to it. Dropping it ends the process.
struct Line {
    requests: Option<OwnedFd>,
    pid: Pid,
}

impl Nursery {
    /// Forks a nursery. Best done early, while the host is small and has one thread.
    pub(crate) fn start() -> io::Result<Self> {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        Ok(Self {
            null: rustix::fs::open(c"/dev/null", flags, rustix::fs::Mode::empty())?,
            line: Mutex::new(Arc::new(Line::open()?)),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
        })
    }

    /// Starts a job and waits until its program runs.
    pub(crate) async fn launch(&self, launch: Launch<'_>) -> Result<Launched, LaunchError> {
        // The semaphore is never closed.
        let _in_flight = self.in_flight.acquire().await;
        for attempt in 0..2 {
            let line = Arc::clone(&self.line.lock().unwrap_or_else(PoisonError::into_inner));
            match self.try_launch(&line, &launch).await? {
                Some(launched) => return Ok(launched),
                None if attempt == 0 => self.replace(&line).map_err(set_up)?,
                None => break,
            }
        }
        Err(set_up(io::Error::other("the process that starts commands was killed twice")))
    }

    /// `None` when the nursery is gone.
    async fn try_launch(
        &self,
        line: &Line,
        launch: &Launch<'_>,
    ) -> Result<Option<Launched>, LaunchError> {
        let (mut request, strings) = Request::write(launch.env).map_err(set_up)?;
        let (control, theirs) = packet_pair().map_err(set_up)?;
        let ends = Ends::connect(launch.stdio).map_err(set_up)?;
        request.terminal = u32::from(ends.terminal.is_some());
        let [stdin, stdout, stderr] = ends.theirs.each_ref().map(|end| match end {
            End::Null => self.null.as_fd(),
            End::HostStdin => rustix::stdio::stdin(),
            End::Owned(fd) => fd.as_fd(),
        });
        let fds = [strings.as_fd(), theirs.as_fd(), stdin, stdout, stderr];
        if !line.send(request, &fds).map_err(set_up)? {
            return Ok(None);
        }
        // Our copies must go now, or the pipes would never end and the warden's end never be missed.
        drop((ends.theirs, theirs, strings));
        match Job::started(control).await? {
            First::NobodyThere => Ok(None),
            First::Running(job) => Ok(Some(Launched {
                job,
                stdin: ends.stdin,
                stdout: Some(ends.stdout),
                stderr: ends.stderr,
                terminal: ends.terminal,
            })),
        }
    }

    /// Starts a new nursery in place of one that is gone, unless somebody else has.
    fn replace(&self, gone: &Arc<Line>) -> io::Result<()> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&line, gone) {
            *line = Arc::new(Line::open()?);
        }
        Ok(())
    }
}

impl Line {
    fn open() -> io::Result<Self> {
        let (ours, theirs) = packet_pair()?;
        // SAFETY: the child goes straight to `become_nursery`, which allocates nothing, makes only
        // kernel calls and never returns.
        match unsafe { raw::fork_host() }? {
            // SAFETY: this is the process that was just forked.
            Forked::Child => unsafe { become_nursery(theirs.as_fd()) },
            Forked::Parent(pid) => {
                let pid = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
                Ok(Self { requests: Some(ours), pid })
            }
        }
    }

    /// Sends a request; `false` when nobody is there to take it.
    fn send(&self, request: Request, fds: &[rustix::fd::BorrowedFd<'_>]) -> io::Result<bool> {
        let Some(requests) = &self.requests else { return Ok(false) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("too many descriptors for one request"));
        }
        let bytes = request.encode();
        let flags = SendFlags::NOSIGNAL;
        let sent = rustix::io::retry_on_intr(|| {
            sendmsg(requests, &[IoSlice::new(&bytes)], &mut ancillary, flags)
        });
        match sent {
            Ok(_) => Ok(true),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.requests = None;
        // It sees its socket close and goes at once; waiting for it leaves no zombie.
        let _ = rustix::io::retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
    }
}

fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

fn set_up(source: io::Error) -> LaunchError {
    LaunchError::new(Stage::SetUp, source)
}
