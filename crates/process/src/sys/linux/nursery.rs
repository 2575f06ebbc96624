//! The process that always has an idle warden ready, and two once commands come one after the other.
//!
//! It is forked from the host once and knows nothing of it but a socket. When the host is gone,
//! so is it.

use super::children::{self, Reaped};
use super::forerunner::NetworkToCome;
use super::plan::Failure;
use super::raw::{self, Forked, NeverReturn};
use super::rooms::Rooms;
use super::warden::{Caged, Taken};
use super::wire::{REQUEST_FDS, Reply, Request};
use super::{forget, processor, warden};
use crate::sys::Stage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process};
use sandgate_sandbox::linux::{Cage, HostProc, Leftovers, Mode, Of, Reservations, Stuck};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;

/// How many jobs may be alive at once. More are refused, not queued.
const MAX_WARDENS: usize = 4096;

/// How many wait at once. Making one takes longer than a small command does: with one only, whoever runs many in a row
/// would wait for each.
const MOST_IDLE: usize = 2;

/// How long to wait before trying again to make a process, when the system refused one.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// While strays are being ended they are looked for at least this often.
const NEXT_PASS: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// How often a nursery that is going looks for strays and wardens: for five seconds at the most.
const DISMISS_PASSES: u32 = 2_500;

/// After so many looks without a change the wardens that are left were told to stay.
const QUIET_PASSES: u32 = 25;

/// The cage that a nursery's commands go into, in whose namespaces it is, if they can be had.
pub(super) struct Cell<'a> {
    pub(super) cage: &'a Cage,
    pub(super) names: &'a mut Reservations,
    pub(super) leftovers: Leftovers<'a>,
    pub(super) mode: Mode,
    /// What is still being made, if it has one of its own.
    pub(super) network: Option<NetworkToCome>,
}

/// Whether namespaces may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Namespaces,
    Nothing,
}

impl<'a> Cell<'a> {
    /// Furnishes the cage. Some of what that needs is memory of the host's.
    fn enter(self) -> Result<(Caged<'a>, Option<NetworkToCome>), Failure> {
        if self.mode == Mode::Namespaces {
            self.names.take()?;
        }
        self.cage.settle(Of::Session, self.mode, self.names)?;
        raw::forbid_inspection();
        let network = self.network.filter(|_| self.mode == Mode::Namespaces);
        Ok((Caged { inside: self.cage.inside(), mode: self.mode }, network))
    }
}

/// Becomes the nursery. `requests` is where the host's requests arrive, and `keep` are the descriptors
/// that it needs, that one among them, in order.
///
/// # Safety
/// Must be called in a process that was just forked and has nothing else to do: it closes every
/// other descriptor and drops the memory that it does not need.
pub(super) unsafe fn become_nursery(
    requests: BorrowedFd<'_>,
    keep: &[RawFd],
    cell: Option<Cell<'_>>,
) -> ! {
    let _never = NeverReturn;
    raw::take_over_signals();
    // SAFETY: the host's descriptors are of no use here; nothing in this process refers to them.
    unsafe { raw::close_all_but(keep) };
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir(c"/");
    let _ = rustix::thread::set_name(c"sg-nursery");
    if fill_stdio().is_err() {
        raw::exit_now(1);
    }
    let leftovers = cell.as_ref().map(|cell| cell.leftovers);
    // Three streams, and a lock for each name that is kept free.
    let open = 3 + keep.len() + leftovers.map_or(0, |leftovers| leftovers.count());
    let give_up = |Failure { stage, errno, step }: Failure| -> ! {
        // Whoever it is told to may be gone.
        remove_names(leftovers, Some(requests));
        let (stage, errno) = (stage as u32, errno.raw_os_error());
        let message = Reply::Failed { stage, errno, step: step.as_bytes() }.encode();
        let _ = rustix::io::write(requests, message.as_bytes());
        raw::exit_now(1)
    };
    let cell = match cell.map(Cell::enter).transpose() {
        Ok(cell) => cell,
        Err(failure) => give_up(failure),
    };
    // SAFETY: from here on nothing of the host's heap is read.
    unsafe { forget::drop_host_memory() };
    let (caged, network) = cell.unzip();
    let network = network.flatten();
    let nursery = match Nursery::new(requests, caged, open) {
        Ok(nursery) => nursery,
        Err(failure) => give_up(failure),
    };
    // Whoever makes it has had all of the time above.
    if let Err(stuck) = network.map_or(Ok(()), NetworkToCome::join) {
        give_up(stuck.into());
    }
    nursery.run();
    remove_names(leftovers, None);
    raw::exit_now(0);
}

/// Removes what keeps names free, for a process that does nothing afterwards but use the descriptor that is kept.
fn remove_names(leftovers: Option<Leftovers<'_>>, keep: Option<BorrowedFd<'_>>) {
    let Some(leftovers) = leftovers else { return };
    let mut parents = [0; Leftovers::MOST];
    let mut kept = [0; Leftovers::MOST + 1];
    let parents = leftovers.descriptors(&mut parents);
    let all = parents.iter().copied().chain(keep.map(|keep| keep.as_raw_fd()));
    let mut count = 0;
    for (to, from) in kept.iter_mut().zip(all) {
        *to = from;
        count += 1;
    }
    let kept = kept.get_mut(..count).unwrap_or_default();
    kept.sort_unstable();
    // Whoever removes them must not hold them.
    // SAFETY: nothing below uses another descriptor.
    unsafe { raw::close_all_but(kept) };
    leftovers.remove();
}

/// Occupies descriptors 0 to 2, so that nothing that arrives later lands on them.
fn fill_stdio() -> Result<(), Errno> {
    loop {
        let null =
            rustix::fs::open(c"/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
        if null.as_raw_fd() > 2 {
            return Ok(());
        }
        // It stays open for the life of this process.
        std::mem::forget(null);
    }
}

struct Nursery<'a> {
    requests: BorrowedFd<'a>,
    /// A warden writes its chair here when its command is executed, takes long to be, or cannot be.
    taken: OwnedFd,
    taken_writer: OwnedFd,
    child_signals: OwnedFd,
    /// Who sits in which chair.
    idle: [Option<Pid>; MOST_IDLE],
    /// A warden was killed, and there may be processes of its job to end.
    strays: bool,
    /// An idle warden went by itself: making the next one at once may only repeat that.
    pausing: bool,
    /// How many requests there have been, as far as it matters.
    served: u8,
    caged: Option<Caged<'a>>,
    rooms: Rooms,
    wardens: [Option<Pid>; MAX_WARDENS],
}

/// Why there are no mounts for jobs.
fn no_proc(errno: Errno) -> Failure {
    Stuck { step: Stuck::NO_PROC, errno: errno.raw_os_error() }.into()
}

/// Why no warden could be made.
struct Refusal {
    stage: Stage,
    errno: Errno,
}

impl<'a> Nursery<'a> {
    fn new(
        requests: BorrowedFd<'a>,
        caged: Option<Caged<'a>>,
        open: usize,
    ) -> Result<Self, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let (taken, taken_writer) = rustix::pipe::pipe_with(flags).map_err(&set_up)?;
        // When a warden is killed, what it watched over comes here.
        let this = Some(rustix::process::getpid());
        rustix::process::set_child_subreaper(this).map_err(&set_up)?;
        let rooms = match caged {
            Some(Caged { mode: Mode::Namespaces, .. }) => {
                let rooms = HostProc::hold().and_then(|mounts| Rooms::with(mounts, open));
                rooms.map_err(no_proc)?
            }
            _ => Rooms::none(),
        };
        Ok(Self {
            requests,
            taken,
            taken_writer,
            child_signals: raw::child_signal_fd().map_err(&set_up)?,
            idle: [None; MOST_IDLE],
            strays: false,
            pausing: false,
            served: 0,
            caged,
            rooms,
            wardens: [None; MAX_WARDENS],
        })
    }

    fn run(mut self) {
        loop {
            let pausing = std::mem::take(&mut self.pausing);
            let refused = if pausing { None } else { self.hire_enough() };
            let listen = if refused.is_some() { PollFlags::IN } else { PollFlags::empty() };
            let mut fds = [
                PollFd::from_borrowed_fd(self.requests, listen),
                PollFd::new(&self.taken, PollFlags::IN),
                PollFd::new(&self.child_signals, PollFlags::IN),
            ];
            let again = match (self.strays, pausing || refused.is_some()) {
                (true, _) => Some(&NEXT_PASS),
                (false, true) => Some(&RETRY),
                (false, false) => None,
            };
            if poll(&mut fds, again).is_err_and(|e| e != Errno::INTR) {
                // There is no memory just now. Whoever is in there needs this process.
                let _ = rustix::thread::nanosleep(&RETRY);
                continue;
            }
            let [request, taken, child] = fds.map(|fd| fd.revents());
            if request.intersects(PollFlags::HUP | PollFlags::ERR) {
                self.dismiss();
                return;
            }
            if let Some(refusal) = refused
                && request.contains(PollFlags::IN)
            {
                self.answer(refusal);
            }
            if taken.contains(PollFlags::IN) {
                self.see_who_rose();
            }
            if child.contains(PollFlags::IN) {
                let _ = rustix::io::read(&self.child_signals, &mut [0u8; 512]);
                self.reap();
            }
            if self.strays {
                self.end_strays();
            }
        }
    }

    /// The host is gone. Ends what has nobody else, and waits for the wardens that go now, so that
    /// they do not become zombies of a first process that does not wait for strangers. Those that
    /// were told to stay are left alone; but a cage holds only as long as its names are kept, so its
    /// nursery stays with them.
    fn dismiss(&mut self) {
        let mut quiet = 0;
        let mut passes = 0;
        while passes < DISMISS_PASSES || self.caged.is_some() {
            passes += 1;
            self.reap();
            if self.strays {
                self.end_strays();
                quiet = 0;
            }
            let none_left = self.wardens.iter().all(Option::is_none);
            if !self.strays && (none_left || (quiet == QUIET_PASSES && self.caged.is_none())) {
                return;
            }
            let mut child = [PollFd::new(&self.child_signals, PollFlags::IN)];
            let patient = quiet >= QUIET_PASSES && !self.strays;
            match poll(&mut child, (!patient).then_some(&NEXT_PASS)) {
                Ok(0) => quiet += 1,
                _ => {
                    let _ = rustix::io::read(&self.child_signals, &mut [0u8; 512]);
                }
            }
        }
    }

    /// Those who wrote are not idle any more.
    fn see_who_rose(&mut self) {
        let mut chairs = [0u8; MOST_IDLE];
        let read = rustix::io::read(&self.taken, &mut chairs).unwrap_or(0);
        for chair in chairs.iter().take(read) {
            if let Some(idle) = self.idle.get_mut(usize::from(*chair)) {
                *idle = None;
            }
            self.served = self.served.saturating_add(1);
        }
    }

    /// Sees to it that there are idle wardens. Says why there is none.
    fn hire_enough(&mut self) -> Option<Refusal> {
        // The first command is not to share its processors with more than it must.
        let enough = if self.served > 1 { MOST_IDLE } else { 1 };
        for chair in 0..enough {
            let refusal = match self.idle.get(chair) {
                Some(None) => self.hire(chair),
                _ => None,
            };
            if refusal.is_some() {
                return refusal.filter(|_| self.idle.iter().all(Option::is_none));
            }
        }
        None
    }

    /// Forks an idle warden. Says why it could not.
    fn hire(&mut self, chair: usize) -> Option<Refusal> {
        let Some(slot) = self.wardens.iter().position(Option::is_none) else {
            return Some(Refusal { stage: Stage::Full, errno: Errno::AGAIN });
        };
        let place = match self.rooms.next() {
            Ok(place) => place,
            Err(Errno::AGAIN) => return Some(Refusal { stage: Stage::Full, errno: Errno::AGAIN }),
            Err(errno) => return Some(Refusal { stage: Stage::SetUp, errno }),
        };
        // The other processors have commands to run, once there are any.
        let pinned = (self.served > 0).then(processor::Pinned::here).flatten();
        // SAFETY: the child goes to `warden::serve`, which makes only kernel calls and never returns.
        let forked = unsafe { raw::fork_into(place.namespaces) };
        if let Some(pinned) = pinned {
            pinned.let_go();
        }
        match forked {
            Ok(Forked::Child) => {
                let proc = self.rooms.mounts().map(HostProc::directory);
                let taken = Taken::new(self.taken_writer.as_fd(), chair);
                warden::serve(self.requests, taken, self.caged, proc)
            }
            Ok(Forked::Parent(pid)) => {
                let pid = Pid::from_raw(pid);
                let kept = [self.idle.get_mut(chair), self.wardens.get_mut(slot)];
                kept.into_iter().flatten().for_each(|kept| *kept = pid);
                if let Some(pid) = pid {
                    self.rooms.let_to(place, pid);
                }
                None
            }
            Err(errno) => Some(Refusal { stage: Stage::Fork, errno }),
        }
    }

    /// Answers a request that no warden can be made for.
    fn answer(&self, Refusal { stage, errno }: Refusal) {
        if let Some((_, [control, ..])) = receive(self.requests, RecvFlags::DONTWAIT) {
            let failure = Failure::at(stage)(errno);
            warden::refuse(&control, failure);
        }
    }

    fn reap(&mut self) {
        loop {
            match children::reap() {
                Reaped::One(pid, status) => {
                    // Who has been waited for has said all that it ever will. Heard later, it would be about somebody else.
                    self.see_who_rose();
                    self.buried(pid, status.signaled());
                }
                // What waits for the next command beside it may have begun to execute one.
                Reaped::Stopped(pid) if self.idle.contains(&Some(pid)) => {
                    let _ = kill_process(pid, Signal::CONT);
                }
                // A warden that does not move cannot watch over anything. Nobody but this loop waits for it.
                Reaped::Stopped(pid) if self.wardens.contains(&Some(pid)) => {
                    let _ = kill_process(pid, Signal::KILL);
                }
                Reaped::Stopped(_) => {}
                Reaped::NoneYet | Reaped::NoChildren => return,
            }
        }
    }

    fn buried(&mut self, pid: Pid, killed: bool) {
        self.rooms.vacate(pid);
        if let Some(slot) = self.wardens.iter_mut().find(|slot| **slot == Some(pid)) {
            *slot = None;
            // A warden goes only when nothing is left of its job. If one was killed, the rest of its
            // job is now ours, and there is nobody else to end it. The kernel has, if they had namespaces.
            self.strays |= killed && !self.has_namespaces();
        }
        if let Some(idle) = self.idle.iter_mut().find(|idle| **idle == Some(pid)) {
            *idle = None;
            self.pausing = true;
        }
    }

    fn has_namespaces(&self) -> bool {
        matches!(self.caged, Some(Caged { mode: Mode::Namespaces, .. }))
    }

    fn end_strays(&mut self) {
        let found = children::kill_all(|pid| self.wardens.contains(&Some(pid)));
        self.strays = found.all > found.refused;
    }
}

/// Takes one request and its descriptors off the socket. `None` when there is none to be had.
pub(super) fn receive(
    requests: BorrowedFd<'_>,
    flags: RecvFlags,
) -> Option<(Request, [OwnedFd; REQUEST_FDS])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REQUEST_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0u8; Request::LEN];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(requests, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
    })
    .ok()?;
    let mut fds = [const { None }; REQUEST_FDS];
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            for (slot, fd) in fds.iter_mut().zip(rights) {
                *slot = Some(fd);
            }
        }
    }
    let request = Request::decode(bytes.get(..received.bytes)?)?;
    let [Some(a), Some(b), Some(c), Some(d)] = fds else { return None };
    Some((request, [a, b, c, d]))
}
