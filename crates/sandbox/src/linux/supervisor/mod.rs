//! The supervisor: hears of what a confined command tries, and tells what was refused.
//!
//! The kernel holds a call up and asks. There are three answers. *Continue*, where the layers
//! beneath decide anyway. *Refuse*, with the error that they would give, so that what is told has
//! happened. *Do it here*, on copies of the arguments. It never continues a call that nobody but it
//! would have refused, so that a race with it wins nothing; and when it is gone, the calls that it
//! would have been asked about fail.
//!
//! All of it may run in a process that was forked from one with threads: nothing here allocates,
//! takes a lock or waits.

mod address;
pub(super) mod calls;
mod changes;
mod evidence;
mod files;
mod group;
mod listeners;
mod mounts;
mod names;
mod never;
mod pending;
mod place;
mod sockets;
#[cfg(test)]
mod tests;
mod text;
mod thread;
mod turns;

use super::Mode;
use super::seccomp::{self, Beneath};
use crate::roots::is_protected_bytes;
use crate::sys::notify::{self, Asked, Reply, Wake};
use evidence::Evidence;
use files::Files;
use mounts::Mounts;
use pending::Pending;
use place::is_beneath;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use sandgate_protocol::{DenialRule, DeniedOperation, NetworkAccess};
use sockets::Sockets;
use std::ffi::CStr;
use std::net::IpAddr;
use std::time::Duration;
use text::PathText;
use turns::Turns;

/// How many calls are answered before the caller gets a turn.
const MOST_IN_A_ROW: usize = 32;

/// What the cage of a command allows, as far as it is told here.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Which layers decide.
    pub mode: Mode,
    /// Whether the network is the host's.
    pub network: NetworkAccess,
    /// The writable roots, by their canonical paths.
    pub roots: &'a [&'a CStr],
    /// Unix sockets outside the roots that may be connected to, by their canonical paths.
    pub sockets: &'a [&'a CStr],
    /// The host's name servers. With the network off nobody is there, on a loopback neither.
    pub nameservers: [Option<IpAddr>; 3],
}

impl Scope<'_> {
    fn is_in_roots(&self, path: &[u8]) -> bool {
        self.roots.iter().any(|root| is_beneath(path, root.to_bytes()))
    }

    /// Whether a path in a root lies where nothing may be changed, as far as its name tells. The mounts
    /// tell better; this is for where there are none.
    fn is_protected_by_name(&self, path: &[u8]) -> bool {
        let beneath = self.roots.iter().map(|root| root.to_bytes());
        let nearest = beneath.filter(|root| is_beneath(path, root)).max_by_key(|root| root.len());
        let rest = nearest.and_then(|root| path.get(root.len()..)).unwrap_or_default();
        rest.split(|byte| *byte == b'/').any(is_protected_bytes)
    }

    /// Why something is refused that lies there.
    fn rule_on(&self, path: &[u8]) -> DenialRule {
        if self.is_in_roots(path) {
            DenialRule::ProtectedName
        } else {
            DenialRule::OutsideWritableRoots
        }
    }

    fn has_own_network(&self) -> bool {
        self.mode == Mode::Namespaces && self.network == NetworkAccess::Restricted
    }

    fn has_internet(&self) -> bool {
        let beneath = match self.mode {
            Mode::Namespaces => Beneath::Namespaces,
            Mode::LandlockOnly => Beneath::LandlockOnly,
        };
        seccomp::has_internet(beneath, self.network)
    }
}

/// Something that was tried and refused.
#[derive(Debug, Clone, Copy)]
pub struct Denial<'a> {
    /// What was tried.
    pub operation: DeniedOperation,
    /// Why it was refused.
    pub rule: DenialRule,
    /// The number of the system call; [`syscall_name`] has its name.
    pub syscall: i32,
    /// On what: an absolute path, an address with its port, or a word.
    pub target: &'a [u8],
}

/// The name of a system call that the supervisor is asked about.
pub fn syscall_name(number: i32) -> &'static str {
    seccomp::name_of(libc::c_long::from(number))
}

/// What to do about a call.
enum Answer {
    /// The layers beneath decide.
    Continue,
    /// It was done.
    Done,
    /// It came to this error, and there is nothing to tell.
    Fail(Errno),
    /// It is refused; what it was about is written down.
    Refuse { errno: Errno, operation: DeniedOperation, rule: DenialRule },
    /// It goes on, and will be answered.
    Later,
}

/// What there was on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Question,
    Nothing,
    /// No question will come any more.
    Last,
}

/// Answers for the calls of one command and of all that it starts.
pub struct Supervisor<'a> {
    /// `None` when no process is left that could ask.
    listener: Option<OwnedFd>,
    /// The same from then on. To close it takes the filter apart, which would hold up the end of the last of those
    /// processes: it goes with whoever supervises, who has nothing else to wait for.
    silent: Option<OwnedFd>,
    scope: Scope<'a>,
    pending: Pending,
    turns: Turns,
    mounts: Mounts,
    evidence: Evidence,
    /// What the call at hand is about.
    target: PathText,
}

impl<'a> Supervisor<'a> {
    /// How many descriptors there are to poll at the most.
    pub const MOST_FDS: usize = 1 + pending::MOST;

    /// Takes over a listener. The calling thread gives up the rights that a confined command does not
    /// have either, so that both are refused the same, and what is done here for a command lends it
    /// none. Looking into its processes stays, and taking away mounts at the end: neither is asked for
    /// by anything that is done for a command.
    pub fn new(listener: OwnedFd, scope: Scope<'a>) -> Self {
        notify::wake(listener.as_fd(), Wake::Here);
        if let Ok(mut sets) = rustix::thread::capabilities(None) {
            sets.effective &= CapabilitySet::SYS_PTRACE | CapabilitySet::SYS_ADMIN;
            // Who has no capabilities has none to give up.
            let _ = rustix::thread::set_capabilities(None, sets);
        }
        Self {
            listener: Some(listener),
            silent: None,
            scope,
            pending: Pending::new(),
            turns: Turns::new(),
            mounts: Mounts::new(),
            evidence: Evidence::new(),
            target: PathText::new(),
        }
    }

    /// What to poll, and for what: no more than [`Supervisor::MOST_FDS`], and first where questions
    /// arrive. When one of them is ready, or [`Supervisor::patience`] has passed, it is time for
    /// [`Supervisor::go_on`].
    pub fn poll_fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = self.listener.iter().map(|fd| (fd.as_fd(), PollFlags::IN));
        listener.chain(self.pending.poll_fds())
    }

    /// How long [`Supervisor::go_on`] can be left alone while nothing is ready; `None` is for ever.
    pub fn patience(&self) -> Option<Duration> {
        self.pending.patience()
    }

    /// Whether no process is left that could ask.
    pub fn is_over(&self) -> bool {
        self.listener.is_none()
    }

    /// How many attempts were refused and not told since this was last asked, because there were too
    /// many. Repetitions do not count.
    pub fn take_more(&mut self) -> u64 {
        self.evidence.take_more()
    }

    /// Goes on after a poll. `seen` is what it has said of the first descriptor: at most one question
    /// is answered, so that nobody has to look a second time whether there is one.
    pub fn go_on(&mut self, seen: PollFlags, report: &mut dyn FnMut(Denial<'_>)) {
        let Some(listener) = self.listener.take() else { return };
        self.pending.go_on(listener.as_fd());
        match self.hear(listener.as_fd(), seen, report) {
            Heard::Last => self.silent = Some(listener),
            Heard::Question | Heard::Nothing => self.listener = Some(listener),
        }
    }

    /// Answers what is ready to be answered. Never waits; while there is more, the descriptors say
    /// so.
    pub fn serve(&mut self, report: &mut dyn FnMut(Denial<'_>)) {
        let Some(listener) = self.listener.take() else { return };
        self.pending.go_on(listener.as_fd());
        for _ in 0..MOST_IN_A_ROW {
            match self.hear(listener.as_fd(), events(listener.as_fd()), report) {
                Heard::Question => {}
                Heard::Nothing => break,
                Heard::Last => {
                    self.silent = Some(listener);
                    return;
                }
            }
        }
        self.listener = Some(listener);
    }

    /// Takes a question that a poll has seen, and answers it.
    fn hear(
        &mut self,
        listener: BorrowedFd<'_>,
        seen: PollFlags,
        report: &mut dyn FnMut(Denial<'_>),
    ) -> Heard {
        if seen.contains(PollFlags::IN) {
            // To receive would wait if nobody had asked. Who did may be gone meanwhile.
            if let Ok(asked) = notify::receive(listener) {
                self.answer(listener, &asked, report);
            }
            Heard::Question
        } else if seen.is_empty() {
            Heard::Nothing
        } else {
            // Nobody is left who could ask.
            self.pending = Pending::new();
            Heard::Last
        }
    }

    fn answer(
        &mut self,
        listener: BorrowedFd<'_>,
        asked: &Asked,
        report: &mut dyn FnMut(Denial<'_>),
    ) {
        let answer = self.judge(listener, asked);
        let reply = match answer {
            Answer::Continue => Reply::Continue,
            Answer::Done => Reply::Success,
            Answer::Fail(errno) | Answer::Refuse { errno, .. } => {
                Reply::Error(errno.raw_os_error())
            }
            Answer::Later => return,
        };
        let heard = self.turns.reply(listener, asked, reply).is_ok();
        // What nobody was refused has not happened.
        if let Answer::Refuse { operation, rule, .. } = answer
            && heard
            && self.evidence.is_news(operation, rule, self.target.as_bytes())
        {
            let (syscall, target) = (asked.call, self.target.as_bytes());
            report(Denial { operation, rule, syscall, target });
        }
    }

    fn judge(&mut self, listener: BorrowedFd<'_>, asked: &Asked) -> Answer {
        let (scope, target, mounts) = (&self.scope, &mut self.target, &mut self.mounts);
        let is_held = self.scope.mode == Mode::Namespaces;
        if let Some(call) = calls::file_call(asked.call)
            && (is_held || !seccomp::is_refused_alone(libc::c_long::from(asked.call)))
        {
            let mut files = Files { scope, asked, target };
            if calls::sets_user_id(asked.call, &asked.arguments) {
                return files.refuse_user_id(call);
            }
            return match calls::change(asked.call) {
                Some(change) if !is_held => files.change_here(call, change, listener),
                _ => files.answer(call, mounts),
            };
        }
        if !is_held && never::is_about_its_own(asked) {
            return Answer::Continue;
        }
        let mut sockets = Sockets { scope, asked, listener, target };
        match libc::c_long::from(asked.call) {
            libc::SYS_connect => sockets.connect(&mut self.pending),
            libc::SYS_bind => sockets.bind(),
            libc::SYS_kill => group::send(asked),
            libc::SYS_sendto => sockets.send_to(),
            libc::SYS_sendmsg => sockets.send_message(2),
            libc::SYS_sendmmsg => sockets.send_message(3),
            _ => never::refuse(scope, asked, target),
        }
    }
}

/// What there is on a listener, without waiting for it.
fn events(listener: BorrowedFd<'_>) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&now)) {
        Ok(_) => fds.first().map_or(PollFlags::empty(), PollFd::revents),
        Err(_) => PollFlags::empty(),
    }
}
