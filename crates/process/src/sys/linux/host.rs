//! The host's side: starts the nursery, sends it requests, and starts it anew if it was killed.

use super::job::{First, Job};
use super::nursery::become_nursery;
use super::raw::{self, Forked};
use super::wire::{REQUEST_FDS, Request};
use crate::sys::streams::{End, Ends};
use crate::sys::{Launch, LaunchError, Launched, Stage};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};
use rustix::process::{kill_process, waitid, waitpid};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How many requests may wait for a warden at once: the kernel bounds the descriptors in flight.
const MAX_IN_FLIGHT: usize = 16;

/// How often a request that nobody took is sent again.
const ATTEMPTS: usize = 4;

/// How long a nursery may take to go.
const DISMISSAL: Duration = Duration::from_secs(6);

/// Starts jobs, by way of a nursery that it keeps alive.
pub(crate) struct Nursery {
    line: Mutex<Arc<Line>>,
    null: OwnedFd,
    in_flight: Semaphore,
}

/// What came of sending a request.
enum Attempt {
    Launched(Box<Launched>),
    /// Nobody took it; it can be sent again.
    Lost,
    /// Nobody took it for a long time.
    Unmoved,
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
        if launch.env.cage().is_some() {
            // Never run without it what was granted only with it.
            let why = "confined commands cannot be captured yet; run them in the terminal";
            let source = io::Error::new(io::ErrorKind::Unsupported, why);
            return Err(LaunchError::new(Stage::Cage, source));
        }
        // The semaphore is never closed.
        let _in_flight = self.in_flight.acquire().await;
        for _ in 0..ATTEMPTS {
            let line = Arc::clone(&self.line.lock().unwrap_or_else(PoisonError::into_inner));
            match self.try_launch(&line, &launch).await? {
                Attempt::Launched(launched) => return Ok(*launched),
                Attempt::Lost if line.is_there() => {}
                Attempt::Lost | Attempt::Unmoved => self.replace(&line).map_err(set_up)?,
            }
        }
        let why = "the processes that start commands are being killed";
        Err(set_up(io::Error::other(why)))
    }

    async fn try_launch(&self, line: &Line, launch: &Launch<'_>) -> Result<Attempt, LaunchError> {
        let (mut request, strings) = Request::describe(launch.env).map_err(set_up)?;
        let (control, theirs) = packet_pair().map_err(set_up)?;
        let ends = Ends::connect(launch.stdio).map_err(set_up)?;
        request.terminal = u32::from(ends.terminal.is_some());
        let [stdin, stdout, stderr] = ends.theirs.each_ref().map(|end| match end {
            End::Null => self.null.as_fd(),
            End::HostStdin => rustix::stdio::stdin(),
            End::Owned(fd) => fd.as_fd(),
        });
        let fds = [theirs.as_fd(), stdin, stdout, stderr];
        if !line.send(request, &fds).map_err(set_up)? {
            return Ok(Attempt::Lost);
        }
        // Our copies must go now, or the pipes would never end and the warden's end never be missed.
        drop((ends.theirs, theirs));
        match Job::started(control, &strings).await? {
            First::Lost => Ok(Attempt::Lost),
            First::Unmoved => Ok(Attempt::Unmoved),
            First::Running(job) => Ok(Attempt::Launched(Box::new(Launched {
                job,
                stdin: ends.stdin,
                stdout: Some(ends.stdout),
                stderr: ends.stderr,
                terminal: ends.terminal,
            }))),
        }
    }

    /// Starts a new nursery in place of one that is gone, unless somebody else has.
    fn replace(&self, gone: &Arc<Line>) -> io::Result<()> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&line, gone) {
            // If it is there after all, it does not move.
            gone.signal(Signal::KILL);
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

    /// Whether the nursery's process has not ended. One that has is not waited for here: until this
    /// is dropped its id must not be given to anybody else.
    fn is_there(&self) -> bool {
        matches!(self.look(), Ok(None))
    }

    /// Signals the nursery, unless something else of the host has waited for it already.
    fn signal(&self, signal: Signal) {
        if self.look().is_ok() {
            let _ = kill_process(self.pid, signal);
        }
    }

    fn look(&self) -> Result<Option<WaitIdStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.pid), options))
    }

    /// Sends a request; `false` when nobody is there to take it.
    fn send(&self, request: Request, fds: &[BorrowedFd<'_>; REQUEST_FDS]) -> io::Result<bool> {
        let Some(requests) = &self.requests else { return Ok(false) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REQUEST_FDS))];
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
    /// The nursery sees its socket close and goes at once; waiting for it leaves no zombie.
    fn drop(&mut self) {
        self.requests = None;
        // Somebody may have stopped it.
        self.signal(Signal::CONT);
        let limit = Instant::now() + DISMISSAL;
        while let Ok(None) = waitpid(Some(self.pid), WaitOptions::NOHANG) {
            if Instant::now() > limit {
                let _ = kill_process(self.pid, Signal::KILL);
                let _ = rustix::io::retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

fn set_up(source: io::Error) -> LaunchError {
    LaunchError::new(Stage::SetUp, source)
}
