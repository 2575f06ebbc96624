//! A process that makes the namespaces of a cage while the cage is being built.
//!
//! Making namespaces and searching the roots for protected names both take as long as a small program
//! does, and neither needs the other. The forerunner shares the memory and the descriptors of whoever
//! sends it ahead: making it copies nothing, and the process that it forks in the end has all that was
//! found meanwhile. That process is its maker's child, not its own. The forerunner of a session then makes the
//! network, which takes longest, while that process lays out the files; and goes.
//!
//! Which namespaces a cage has depends on hardly anything, so a program that is about to confine something
//! can send one ahead before it knows what.

use super::host::packet_pair;
use super::nursery::Allowed;
use super::processor;
use super::raw::{self, ChildStack, Forked, NeverReturn};
use crate::sys::{LaunchError, Stage};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sandgate_protocol::NetworkAccess;
use sandgate_sandbox::linux::{Entry, Mode, Of, Patience, Stuck, join_network};
use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Such a process, seen from its maker.
pub(crate) struct Forerunner {
    /// Until it has been waited for.
    pid: Option<Pid>,
    /// What it makes namespaces for.
    network: NetworkAccess,
    of: Of,
    /// Ours to free, once the other process has ended.
    errand: NonNull<Errand>,
    /// For the process that it forks.
    network_to_come: Option<NetworkToCome>,
    stack: ChildStack,
}

/// Who forks the process that lives in a cage.
pub(super) enum Ahead {
    /// A forerunner, into namespaces.
    Forerunner(Forerunner),
    /// We, because there are none to be had.
    Nobody,
}

impl Allowed {
    /// Has the namespaces of a cage made, if they may be and `sent` is not one that does so already.
    pub(super) fn send_ahead(
        self,
        sent: Option<Forerunner>,
        network: NetworkAccess,
        of: Of,
    ) -> Result<Ahead, LaunchError> {
        let fits = |sent: &Forerunner| (sent.network, sent.of) == (network, of);
        match (self, sent.filter(fits)) {
            (Self::Namespaces, Some(sent)) => Ok(Ahead::Forerunner(sent)),
            (Self::Namespaces, None) => Forerunner::send(network, of)
                .map(Ahead::Forerunner)
                .map_err(|errno| LaunchError::new(Stage::Fork, errno)),
            (Self::Nothing, _) => Ok(Ahead::Nobody),
        }
    }
}

impl Ahead {
    /// What the process that is forked has to join, if it is in namespaces. Whoever forks keeps it as long.
    pub(super) fn network_to_come(&mut self) -> Option<NetworkToCome> {
        match self {
            Self::Forerunner(forerunner) => forerunner.network_to_come.take(),
            Self::Nobody => None,
        }
    }

    /// Forks a process that does `task`, which is told what holds it. Says which process that is.
    ///
    /// # Safety
    /// `task` must make only kernel calls and never return.
    pub(super) unsafe fn fork(self, task: &mut impl FnMut(Mode)) -> Result<Pid, LaunchError> {
        match self {
            // SAFETY: the caller's promise.
            Self::Forerunner(forerunner) => unsafe { forerunner.fork(task) },
            // SAFETY: the caller's promise.
            Self::Nobody => match unsafe { raw::fork_host() } {
                Ok(Forked::Child) => {
                    task(Mode::LandlockOnly);
                    raw::exit_now(70);
                }
                Ok(Forked::Parent(pid)) => Pid::from_raw(pid).ok_or(Errno::CHILD),
                Err(errno) => Err(errno),
            }
            .map_err(|errno| LaunchError::new(Stage::Fork, errno)),
        }
    }
}

/// Where a process hears of the network that is being made for it.
pub(super) struct NetworkToCome(OwnedFd);

impl NetworkToCome {
    /// Waits until it is made, and leaves the host's for it.
    pub(super) fn join(self) -> Result<(), Stuck> {
        let lost =
            |errno: Errno| Stuck { step: "wait for the network", errno: errno.raw_os_error() };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut errno = [0u8; size_of::<i32>()];
        let flags = RecvFlags::CMSG_CLOEXEC;
        rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut errno)], &mut ancillary, flags)
        })
        .map_err(lost)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut made) = message
                && let Some(made) = made.next()
            {
                return join_network(&made);
            }
        }
        Err(match i32::from_ne_bytes(errno) {
            0 => lost(Errno::CHILD),
            refused @ 1.. => Stuck { step: Stuck::NO_NETWORK, errno: refused },
            half_way => Stuck { step: "bring the loopback up", errno: half_way.saturating_neg() },
        })
    }
}

impl AsFd for NetworkToCome {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Tells the process that waits for it of a network, or why there is none: by the number of the error, or by its
/// negative if one was made and is of no use.
fn hand_over(network: &Result<OwnedFd, Stuck>, to: &OwnedFd) {
    let errno = match network {
        Ok(_) => 0,
        Err(Stuck { step: Stuck::NO_NETWORK, errno }) => *errno,
        Err(Stuck { errno, .. }) => errno.saturating_neg(),
    };
    let errno = errno.to_ne_bytes();
    let made = network.as_ref().ok().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // There is room for one. If it is gone, nobody waits.
    let _ = ancillary.push(SendAncillaryMessage::ScmRights(made.as_slice()));
    let _ = sendmsg(to, &[IoSlice::new(&errno)], &mut ancillary, SendFlags::NOSIGNAL);
}

/// What both processes use, each in its turn.
struct Errand {
    orders: Orders,
    /// What the process that it forks does. Written by the maker before the forerunner is told to.
    task: Option<Task>,
    /// Written by the forerunner before it ends: how far it came, and the process that it forked.
    entered: Result<Mode, Stuck>,
    forked: Result<c_int, Errno>,
}

/// What does not change.
struct Orders {
    entry: Entry,
    of: Of,
    maker: Pid,
    /// Its maker has more to do than it.
    patience: Patience,
    /// Tells the forerunner to fork.
    go: OwnedFd,
    /// Where it hands the network over that it makes afterwards, if it is to.
    network: Option<OwnedFd>,
}

/// The life of a process in a cage, which is told what holds it there.
struct Task {
    life: *mut c_void,
    /// Knows what kind of thing that is.
    live: unsafe fn(*mut c_void, Mode),
}

impl Task {
    fn new<F: FnMut(Mode)>(life: &mut F) -> Self {
        /// # Safety
        /// `life` must point to an `F` that nobody else uses.
        unsafe fn live<F: FnMut(Mode)>(life: *mut c_void, mode: Mode) {
            // SAFETY: the caller's promise.
            let life = unsafe { &mut *life.cast::<F>() };
            life(mode);
        }
        Self { life: std::ptr::from_mut(life).cast(), live: live::<F> }
    }
}

impl Forerunner {
    /// Sends one ahead. It ends with the thread that does so.
    pub(crate) fn send(network: NetworkAccess, of: Of) -> Result<Self, Errno> {
        let go = eventfd(0, EventfdFlags::CLOEXEC)?;
        let entry = Entry::new(network);
        let later = of == Of::Session && entry.has_network_of_its_own();
        let (hands_over, waits) = later.then(packet_pair).transpose()?.unzip();
        let maker = rustix::process::getpid();
        let stack = ChildStack::roomy()?;
        // It must be ended below, whatever happens.
        let patience = Patience::begin();
        let errand = Box::new(Errand {
            orders: Orders { entry, of, maker, patience, go, network: hands_over },
            task: None,
            entered: Ok(Mode::LandlockOnly),
            forked: Err(Errno::CHILD),
        });
        let errand = NonNull::from(Box::leak(errand));
        let network_to_come = waits.map(NetworkToCome);
        let mut ahead = Self { pid: None, network, of, errand, network_to_come, stack };
        let arg = errand.as_ptr().cast();
        // No handler of the host's may run in it.
        let started = raw::with_signals_blocked(|| {
            // SAFETY: `run_ahead` makes only kernel calls, which do not use `errno` until its maker
            // waits for it, never returns, and closes no descriptor but those that it opened. What it
            // is given and its stack stay until it has ended: dropping this waits for it.
            unsafe { raw::start_beside(&ahead.stack, run_ahead, arg) }
        });
        if let Ok(pid) = started {
            ahead.pid = Pid::from_raw(pid);
        }
        if let Some(pid) = ahead.pid {
            processor::send_apart(pid);
        }
        patience.end();
        started.map(|_| ahead)
    }

    /// Its number, until it has been waited for.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    /// Has it fork a process that does `task` and is our child. Says which process that is.
    ///
    /// # Safety
    /// `task` must make only kernel calls and never return.
    unsafe fn fork(mut self, task: &mut impl FnMut(Mode)) -> Result<Pid, LaunchError> {
        // SAFETY: the other process does not look at it before it is told to, and has ended when this
        // returns.
        unsafe { (*self.errand.as_ptr()).task = Some(Task::new(task)) };
        // SAFETY: nobody writes to these.
        let orders = unsafe { &(*self.errand.as_ptr()).orders };
        let told = rustix::io::write(&orders.go, &1u64.to_ne_bytes());
        told.map_err(|errno| LaunchError::new(Stage::SetUp, errno))?;
        self.wait();
        // SAFETY: the other process has ended.
        let Errand { entered, forked, .. } = unsafe { self.errand.as_ref() };
        if let Err(Stuck { step, errno }) = *entered {
            let errno = Errno::from_raw_os_error(errno);
            return Err(LaunchError::new(Stage::Cage, errno).at_step(step));
        }
        let forked = forked.and_then(|pid| Pid::from_raw(pid).ok_or(Errno::CHILD));
        forked.map_err(|errno| LaunchError::new(Stage::Fork, errno))
    }

    fn wait(&mut self) {
        if let Some(pid) = self.pid.take() {
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}

impl Drop for Forerunner {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            // It was not needed. Nobody may share our memory longer than we know of. It says nothing at its end, so
            // that only who knows its number waits for it, which is us.
            let _ = kill_process(pid, Signal::KILL);
            self.wait();
        }
        // SAFETY: the only other process that used it has ended.
        unsafe { self.stack.unmap() };
        // SAFETY: as above; it came from a `Box`.
        drop(unsafe { Box::from_raw(self.errand.as_ptr()) });
    }
}

/// The life of the process.
extern "C" fn run_ahead(errand: *mut c_void) -> c_int {
    let _never = NeverReturn;
    let errand = errand.cast::<Errand>();
    // SAFETY: `Forerunner::send` passed a pointer to this and keeps it, and nobody writes to these.
    let Orders { entry, of, maker, patience, go, network } = unsafe { &(*errand).orders };
    patience.end();
    let entered = die_with(*maker).and_then(|()| {
        let entered = entry.enter(*of);
        // Other rights may have made the kernel forget it.
        die_with(*maker).and(entered)
    });
    // SAFETY: the maker reads it when we have ended.
    unsafe { (*errand).entered = entered };
    let Ok(mode) = entered else { raw::exit_now(1) };
    if !is_told(go) {
        raw::exit_now(1);
    }
    // SAFETY: it was written before we were told, and the maker waits for us.
    let task = unsafe { (*errand).task.take() };
    // SAFETY: the child goes to the task, which makes only kernel calls and never returns. The maker
    // waits, so that `errno` is ours.
    let forked = match unsafe { raw::fork_sibling() } {
        Ok(Forked::Child) => {
            if let Some(Task { life, live }) = task {
                // SAFETY: the maker made it of something that it keeps until we have ended, and this
                // process has a copy of that to itself.
                unsafe { live(life, mode) };
            }
            raw::exit_now(70);
        }
        Ok(Forked::Parent(pid)) => Ok(pid),
        Err(errno) => Err(errno),
    };
    // SAFETY: the maker reads it when we have ended.
    unsafe { (*errand).forked = forked };
    if let (Mode::Namespaces, Ok(forked), Some(to)) = (mode, forked, network) {
        // It has work to do meanwhile, and forks nothing before it has heard from us.
        if let Some(forked) = Pid::from_raw(forked) {
            processor::send_apart(forked);
        }
        hand_over(&entry.make_network(), to);
    }
    raw::exit_now(0);
}

/// Ends with the process that made this one.
fn die_with(maker: Pid) -> Result<(), Stuck> {
    let stuck = |errno: Errno| Stuck { step: "end with sandgate", errno: errno.raw_os_error() };
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(stuck)?;
    match rustix::process::getppid() == Some(maker) {
        true => Ok(()),
        // It was gone before the line above could take effect.
        false => raw::exit_now(137),
    }
}

fn is_told(go: &OwnedFd) -> bool {
    rustix::io::retry_on_intr(|| rustix::io::read(go, &mut [0u8; 8])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
    use rustix::process::test_kill_process;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    #[test]
    fn what_it_forks_knows_what_was_found_meanwhile_and_is_our_child() {
        let ahead = Forerunner::send(NetworkAccess::Restricted, Of::Session).unwrap();
        let found = "found meanwhile".repeat(1000);
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut tell = |_| {
            let _ = rustix::io::write(&write, found.as_bytes());
            raw::exit_now(3);
        };
        // SAFETY: it makes two kernel calls and does not return.
        let child = unsafe { ahead.fork(&mut tell) }.unwrap();
        drop(write);
        let mut told = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(read), &mut told).unwrap();
        assert_eq!(told, found.as_bytes());
        let (_, status) = waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(3));
    }

    #[test]
    fn one_that_is_not_needed_is_gone_at_once() {
        let ahead = Forerunner::send(NetworkAccess::Restricted, Of::Job).unwrap();
        let pid = ahead.pid.unwrap();
        assert_eq!(test_kill_process(pid), Ok(()));
        drop(ahead);
        assert_eq!(test_kill_process(pid), Err(Errno::SRCH));
    }

    /// Whichever one it began on: what it forks would be held to that.
    #[test]
    fn what_it_forks_may_use_the_processors_that_its_maker_may() {
        let used = |set: &CpuSet| (0..CpuSet::MAX_CPU).find(|number| set.is_set(*number));
        let mine = sched_getaffinity(None).unwrap();
        let mut only = CpuSet::new();
        only.set(used(&mine).unwrap());
        let mut fewer = mine;
        fewer.unset(used(&mine).unwrap());
        for allowed in [mine, only, fewer].iter().filter(|set| set.count() > 0) {
            // This thread's own, which ends with the test.
            sched_setaffinity(None, allowed).unwrap();
            let ahead = Forerunner::send(NetworkAccess::Restricted, Of::Job).unwrap();
            assert_eq!(sched_getaffinity(ahead.pid).as_ref(), Ok(allowed));
        }
    }

    /// The usual one, or the one that its maker was told to run in.
    #[test]
    fn what_it_forks_is_given_turns_as_its_maker_is() {
        let stat = || openat(CWD, c"/proc/thread-self/stat", OFlags::RDONLY, FileMode::empty());
        // The number is the 41st; the second is in brackets and may be anything.
        let policy = |stat: &[u8]| {
            let (_, rest) = std::str::from_utf8(stat).unwrap().rsplit_once(") ").unwrap();
            rest.split(' ').nth(38).unwrap().parse::<i32>().unwrap()
        };
        let mine = || policy(&std::fs::read("/proc/thread-self/stat").unwrap());
        let own = mine();
        let patient = (own == libc::SCHED_OTHER).then_some(libc::SCHED_BATCH);
        for expected in [Some(own), patient].into_iter().flatten() {
            assert_eq!(mine(), expected);
            let ahead = Forerunner::send(NetworkAccess::Restricted, Of::Job).unwrap();
            assert_eq!(mine(), expected);
            let (read, write) = rustix::pipe::pipe().unwrap();
            let mut tell = |_| {
                let mut bytes = [0u8; 1024];
                let length = stat().and_then(|stat| rustix::io::read(stat, &mut bytes));
                let told = bytes.get(..length.unwrap_or(0)).unwrap_or_default();
                let _ = rustix::io::write(&write, told);
                raw::exit_now(0);
            };
            // SAFETY: it makes a few kernel calls and does not return.
            let child = unsafe { ahead.fork(&mut tell) }.unwrap();
            drop(write);
            let mut told = Vec::new();
            std::io::Read::read_to_end(&mut std::fs::File::from(read), &mut told).unwrap();
            let _ = waitpid(Some(child), WaitOptions::empty());
            assert_eq!(policy(&told), expected);
            // This thread's own, which ends with the test.
            let _ = Patience::begin();
        }
    }

    #[test]
    fn one_that_was_sent_for_something_else_is_not_used() {
        let sent = || Forerunner::send(NetworkAccess::Restricted, Of::Job).unwrap();
        for (network, of, fits) in [
            (NetworkAccess::Restricted, Of::Job, true),
            (NetworkAccess::Enabled, Of::Job, false),
            (NetworkAccess::Restricted, Of::Session, false),
        ] {
            let sent = sent();
            let pid = sent.pid;
            let ahead = Allowed::Namespaces.send_ahead(Some(sent), network, of).unwrap();
            let Ahead::Forerunner(ahead) = ahead else { panic!("somebody is ahead") };
            assert_eq!(ahead.pid == pid, fits, "{network:?} {of:?}");
            assert_eq!((ahead.network, ahead.of), (network, of));
            assert_eq!(test_kill_process(pid.unwrap()).is_ok(), fits, "nobody is left behind");
        }
    }
}
