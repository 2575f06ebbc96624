//! Connects that are under way: their callers wait, the supervisor does not.

use super::address::Address;
use super::thread::{Interruption, interruption};
use crate::sys::notify;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, socket_timeout};
use std::time::{Duration, Instant};

/// How many there may be at once.
pub(super) const MOST: usize = 64;

/// How soon a socket whose queue was full is tried again: nothing says when it has room.
const NEXT_TRY: Duration = Duration::from_millis(4);

/// How soon to look whether a caller is gone, or wanted by a signal, or has waited long enough.
const NEXT_LOOK: Duration = Duration::from_millis(50);

/// What the kernel does on the way out of a call that a signal has ended: the handler runs and the
/// call is made again, or fails, as the program has asked for.
const RESTART: i32 = 512;

/// One socket on its way to one address. Both are ours: what the process does to its descriptors
/// and its memory meanwhile changes neither.
pub(super) struct Connect {
    pub(super) socket: OwnedFd,
    pub(super) address: Address,
    /// The file that the address stands for.
    pub(super) held: Option<OwnedFd>,
    /// Whether somebody could have to wait.
    pub(super) is_stream: bool,
}

/// How an attempt came out.
pub(super) enum Attempt {
    Done(Result<(), Errno>),
    /// It goes on, and its caller meant to wait.
    Waits(Waits),
}

/// What a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// An answer of the other side's.
    ForAnswer,
    /// Room in the other side's queue.
    ForRoom,
}

impl Connect {
    /// Connects, without waiting.
    pub(super) fn attempt(&self) -> Attempt {
        let flags = match fcntl_getfl(&self.socket) {
            Ok(flags) => flags,
            Err(errno) => return Attempt::Done(Err(errno)),
        };
        let waits = self.is_stream && !flags.contains(OFlags::NONBLOCK);
        // The flag belongs to the socket, whoever has it open; it is back before anybody is
        // answered.
        if waits && let Err(errno) = fcntl_setfl(&self.socket, flags | OFlags::NONBLOCK) {
            return Attempt::Done(Err(errno));
        }
        let result = notify::connect(self.socket.as_fd(), self.address.as_bytes());
        if waits {
            let _ = fcntl_setfl(&self.socket, flags);
        }
        match result {
            Err(Errno::INPROGRESS | Errno::ALREADY) if waits => Attempt::Waits(Waits::ForAnswer),
            Err(Errno::AGAIN) if waits && self.held.is_some() => Attempt::Waits(Waits::ForRoom),
            Err(Errno::AGAIN) if waits && self.address.family() == libc::AF_UNIX => {
                Attempt::Waits(Waits::ForRoom)
            }
            result => Attempt::Done(result),
        }
    }
}

struct Waiting {
    id: u64,
    thread: i32,
    connect: Connect,
    waits: Waits,
    next_try: Instant,
    next_look: Instant,
    /// When the caller wants to wait no longer.
    until: Option<Instant>,
}

/// All connects that are under way.
pub(super) struct Pending {
    waiting: [Option<Waiting>; MOST],
    /// How many there are: almost always none, and then the many places need not be looked at.
    count: usize,
}

impl Pending {
    pub(super) const fn new() -> Self {
        Self { waiting: [const { None }; MOST], count: 0 }
    }

    /// Takes one over. Gives it back when there are too many.
    pub(super) fn add(&mut self, id: u64, thread: i32, connect: Connect, waits: Waits) -> bool {
        let Some(free) = self.waiting.iter_mut().find(|waiting| waiting.is_none()) else {
            return false;
        };
        let now = Instant::now();
        // The limit that a program sets for sending holds for connecting too.
        let limit = socket_timeout(&connect.socket, Timeout::Send).ok().flatten();
        let until = limit.and_then(|limit| now.checked_add(limit));
        let (next_try, next_look) = (now + NEXT_TRY, now + NEXT_LOOK);
        *free = Some(Waiting { id, thread, connect, waits, next_try, next_look, until });
        self.count += 1;
        true
    }

    /// What to poll for.
    pub(super) fn poll_fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let answered = self.all().filter(|one| one.waits == Waits::ForAnswer);
        answered.map(|one| (one.connect.socket.as_fd(), PollFlags::OUT))
    }

    /// How long nothing needs to be looked at unless it is polled for.
    pub(super) fn patience(&self) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let now = Instant::now();
        let next = |one: &Waiting| match one.waits {
            Waits::ForAnswer => one.next_look,
            Waits::ForRoom => one.next_try.min(one.next_look),
        };
        let times = self.all().map(|one| next(one).min(one.until.unwrap_or(now + NEXT_LOOK)));
        times.min().map(|next| next.saturating_duration_since(now))
    }

    fn all(&self) -> impl Iterator<Item = &Waiting> {
        let places = if self.count == 0 { &[] } else { self.waiting.as_slice() };
        places.iter().flatten()
    }

    /// Goes on with all that can go on, and answers those that have come to an end.
    pub(super) fn go_on(&mut self, listener: BorrowedFd<'_>) {
        if self.count == 0 {
            return;
        }
        for slot in &mut self.waiting {
            let Some(waiting) = slot else { continue };
            let Some(reply) = waiting.go_on(listener) else { continue };
            // Who is gone needs no answer.
            let _ = notify::reply(listener, waiting.id, reply);
            *slot = None;
            self.count -= 1;
        }
    }
}

impl Waiting {
    fn go_on(&mut self, listener: BorrowedFd<'_>) -> Option<notify::Reply> {
        let now = Instant::now();
        let due = match self.waits {
            Waits::ForRoom => now >= self.next_try,
            Waits::ForAnswer => is_ready(self.connect.socket.as_fd()),
        };
        if due {
            self.next_try = now + NEXT_TRY;
            // Once more with the same address says how the first came out.
            match self.connect.attempt() {
                Attempt::Done(Ok(())) => return Some(notify::Reply::Success),
                Attempt::Done(Err(errno)) => return Some(error(errno)),
                Attempt::Waits(waits) => self.waits = waits,
            }
        }
        if self.until.is_some_and(|until| now >= until) {
            let late = match self.waits {
                Waits::ForAnswer => Errno::INPROGRESS,
                Waits::ForRoom => Errno::AGAIN,
            };
            return Some(error(late));
        }
        if now < self.next_look {
            return None;
        }
        self.next_look = now + NEXT_LOOK;
        if !notify::still_waits(listener, self.id) {
            return Some(error(Errno::SRCH));
        }
        match interruption(self.thread)? {
            // What has a limit would begin it anew each time.
            Interruption::Certain if self.until.is_none() => Some(notify::Reply::Error(RESTART)),
            Interruption::Certain | Interruption::Possible => Some(error(Errno::INTR)),
        }
    }
}

fn error(errno: Errno) -> notify::Reply {
    notify::Reply::Error(errno.raw_os_error())
}

fn is_ready(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
