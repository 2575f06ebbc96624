//! The process that watches over one job.
//!
//! It is the subreaper of the command, or the first process of the command's PID namespace, so every
//! process of the job stays its descendant whatever sessions and groups they make. It goes when none
//! is left.

use super::children::{self, Found, Reaped};
use super::nursery::receive;
use super::plan::{Failure, Plan, Strings};
use super::raw::{self, ChildStack, NeverReturn};
use super::vestibule::{self, Awaited, Came, Executed, Session};
use super::wire::{Order, REQUEST_FDS, Reply, Request};
use crate::handle::Exit;
use crate::sys::{Ended, Held, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, send};
use rustix::process::{Pid, Signal, WaitStatus, kill_process, kill_process_group};
use sandgate_sandbox::linux::supervisor::{Denial, Supervisor};
use sandgate_sandbox::linux::{Inside, Mode, ScopeNames};
use std::ffi::{c_int, c_void};
use std::ptr;

/// How soon a job that is being ended is looked at again: after 2 ms, and ever more rarely while it
/// cannot be ended.
fn next_pass(quiet: u32) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: 2_000_000 << quiet.min(7) }
}

/// The cage that a warden's command goes into.
#[derive(Clone, Copy)]
pub(super) struct Caged<'a> {
    pub(super) inside: &'a Inside,
    pub(super) mode: Mode,
}

/// Becomes an idle warden: waits for one request and serves it to its end.
pub(super) fn serve(
    requests: BorrowedFd<'_>,
    mut taken: Taken<'_>,
    caged: Option<Caged<'_>>,
    proc: Option<BorrowedFd<'_>>,
) -> ! {
    let _never = NeverReturn;
    let _ = rustix::thread::set_name(c"sg-warden");
    let Ok(child_signals) = prepare() else { raw::exit_now(1) };
    if Place::of(caged) == Place::First {
        // The nursery keeps the names of the cage. Nobody may be in there without it.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    }
    let (control, started) = match caged {
        None => serve_plain(requests, &mut taken),
        Some(caged) => serve_caged(requests, caged, proc, &mut taken),
    };
    taken.say();
    watch_over(started, control, child_signals, caged, Front::Host);
    raw::exit_now(0);
}

/// Tells the nursery, once, that it may make the next warden: not before this one's command is on its way, which would
/// have to wait for it, unless that takes long.
pub(super) struct Taken<'a> {
    nursery: Option<BorrowedFd<'a>>,
    chair: u8,
}

impl<'a> Taken<'a> {
    /// For a warden that waits in one of the nursery's chairs.
    pub(super) fn new(nursery: BorrowedFd<'a>, chair: usize) -> Self {
        Self { nursery: Some(nursery), chair: u8::try_from(chair).unwrap_or(u8::MAX) }
    }

    fn say(&mut self) {
        if let Some(nursery) = self.nursery.take() {
            let _ = rustix::io::write(nursery, &[self.chair]);
        }
    }
}

/// Starts the first command that is asked for, which nothing confines.
fn serve_plain(
    requests: BorrowedFd<'_>,
    taken: &mut Taken<'_>,
) -> (OwnedFd, Result<Started, Failure>) {
    let Ok(stack) = ChildStack::map() else { raw::exit_now(1) };
    let (request, [control, stdio @ ..]) = next_request(requests);
    let mut start = || -> Result<Started, Failure> {
        let strings = Strings::room_for(request)?;
        // SAFETY: nobody else has them.
        unsafe { strings.receive(request, control.as_fd()) }?;
        say_taken(control.as_fd());
        let plan = Plan::lay_out(request, &strings)?;
        let stdio = stdio.each_ref().map(AsFd::as_fd);
        // This process is held up until the program is executed.
        taken.say();
        let pid = Beginning { plan, request, stdio, warden: None, failure: None }.start(&stack)?;
        let outer_pid = pid.as_raw_nonzero().get();
        Ok(Started { pid, outer_pid, held: Held::default(), listener: None, strings: None })
    };
    let started = start();
    (control, started)
}

/// The same in a cage.
fn serve_caged(
    requests: BorrowedFd<'_>,
    caged: Caged<'_>,
    proc: Option<BorrowedFd<'_>>,
    taken: &mut Taken<'_>,
) -> (OwnedFd, Result<Started, Failure>) {
    let awaited = Awaited::On(requests);
    match vestibule::become_command(caged, proc, Session::Own, awaited, || taken.say()) {
        Came::Executed(control, executed) => (control, Ok(Started::in_cage(executed, caged.mode))),
        Came::Failed(control, failure) => (control, Err(failure)),
        Came::Unfit(failure) => {
            let (_, [control, ..]) = next_request(requests);
            (control, Err(failure))
        }
        Came::Unused => raw::exit_now(0),
    }
}

fn next_request(requests: BorrowedFd<'_>) -> (Request, [OwnedFd; REQUEST_FDS]) {
    match receive(requests, RecvFlags::empty()) {
        Some(asked) => asked,
        None => raw::exit_now(0),
    }
}

/// Becomes the warden of one command in the terminal of the program that forked it. Returns, whatever happens, when
/// nothing is left of the job: there may be names to give back.
pub(super) fn serve_terminal(control: OwnedFd, request: Request, caged: Caged<'_>) {
    let _ = rustix::thread::set_name(c"sg-warden");
    let child_signals = match prepare() {
        Ok(child_signals) => child_signals,
        Err(errno) => return refuse(&control, Failure::at(Stage::SetUp)(errno)),
    };
    let awaited = Awaited::This(request, control);
    let came = vestibule::become_command(caged, None, Session::Guards, awaited, || {});
    let (control, started) = match came {
        Came::Executed(control, executed) => (control, Ok(Started::in_cage(executed, caged.mode))),
        Came::Failed(control, failure) => (control, Err(failure)),
        // It was asked for, so that nothing else can have come of it.
        Came::Unfit(_) | Came::Unused => return,
    };
    watch_over(started, control, child_signals, Some(caged), Front::Terminal);
}

fn prepare() -> Result<OwnedFd, Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    raw::child_signal_fd()
}

/// A command that runs.
struct Started {
    pid: Pid,
    /// The number that it has for the host.
    outer_pid: i32,
    held: Held,
    listener: Option<OwnedFd>,
    /// What is left of its request.
    strings: Option<Strings>,
}

impl Started {
    fn in_cage(executed: Executed, mode: Mode) -> Self {
        let Executed { pid, outer_pid, listener, strings } = executed;
        let namespaces = mode == Mode::Namespaces;
        let held = Held { namespaces, supervised: listener.is_some() };
        Self { pid, outer_pid, held, listener, strings: Some(strings) }
    }
}

/// Says that a request was taken whole. A process whose host did not wait for it has nothing to do.
pub(super) fn say_taken(control: BorrowedFd<'_>) {
    if !say(control, Reply::Taken) {
        raw::exit_now(0);
    }
}

/// Says it, if the host still listens.
fn say(control: impl AsFd, reply: Reply<'_>) -> bool {
    let message = reply.encode();
    rustix::io::retry_on_intr(|| rustix::io::write(&control, message.as_bytes())).is_ok()
}

/// Says that a command could not be started.
pub(super) fn refuse(control: &OwnedFd, Failure { stage, errno, step }: Failure) {
    let (stage, errno) = (stage as u32, errno.raw_os_error());
    let _ = say(control, Reply::Failed { stage, errno, step: step.as_bytes() });
}

/// Tells what came of a request, and stays until nothing is left of the job.
fn watch_over(
    started: Result<Started, Failure>,
    control: OwnedFd,
    child_signals: OwnedFd,
    caged: Option<Caged<'_>>,
    front: Front,
) {
    let Started { pid, outer_pid, held, listener, mut strings } = match started {
        Ok(started) => started,
        Err(failure) => {
            return refuse(&control, failure);
        }
    };
    if front == Front::Host {
        // A warden needs these only; above all it must not hold the socket that tells the nursery of
        // the host's end.
        let listening = listener.as_ref().map_or(-1, rustix::fd::AsRawFd::as_raw_fd);
        let mut keep: [RawFd; 3] = [control.as_raw_fd(), child_signals.as_raw_fd(), listening];
        keep.sort_unstable();
        let keep = if listening < 0 { keep.get(1..) } else { keep.get(..) };
        // SAFETY: nothing below uses another descriptor.
        unsafe { raw::close_all_but(keep.unwrap_or_default()) };
    }
    let _ = say(&control, Reply::Started { pid: outer_pid, held });
    // There may be secrets in its environment.
    strings.iter_mut().for_each(Strings::wipe);
    let mut names = ScopeNames::default();
    let supervisor = match (listener, caged) {
        (Some(listener), Some(Caged { inside, mode })) => {
            Some(Supervisor::new(listener, inside.scope(mode, &mut names)))
        }
        _ => None,
    };
    Warden {
        control: Some(control),
        child_signals,
        supervisor,
        more_denied: 0,
        command: Some(pid),
        place: Place::of(caged),
        front,
        killing: false,
        quiet: 0,
    }
    .watch();
}

/// What there is to do.
struct Ready {
    child: bool,
    order: bool,
    /// It is the supervisor's turn; what there is where it hears of questions.
    asked: Option<PollFlags>,
}

/// Where a warden stands to the processes of its job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Among all others, as their subreaper.
    Subreaper,
    /// In a PID namespace, as its first process.
    First,
}

impl Place {
    fn of(caged: Option<Caged<'_>>) -> Self {
        match caged {
            Some(Caged { mode: Mode::Namespaces, .. }) => Self::First,
            _ => Self::Subreaper,
        }
    }
}

/// Who listens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A program that captures what the command writes; the command leads a process group.
    Host,
    /// A program in a terminal, whose process group the command is in.
    Terminal,
}

struct Warden<'a> {
    /// `None` once the host is gone, or the job was left to itself.
    control: Option<OwnedFd>,
    child_signals: OwnedFd,
    supervisor: Option<Supervisor<'a>>,
    /// How many denials the host has not been told of, and knows that there were.
    more_denied: u64,
    /// The command's own process, until it has been waited for.
    command: Option<Pid>,
    place: Place,
    front: Front,
    killing: bool,
    /// How many looks in a row have changed nothing while killing.
    quiet: u32,
}

/// The control socket, the signals of children, and what the supervisor wants to hear of.
const MOST_FDS: usize = 2 + Supervisor::MOST_FDS;

impl Warden<'_> {
    fn watch(mut self) {
        // The command may have ended before the first look.
        let mut changed = true;
        while !changed || self.reap() {
            let ready = self.wait();
            changed = self.killing || ready.child;
            if ready.child {
                let _ = rustix::io::read(&self.child_signals, &mut [0u8; 512]);
            }
            if let Some(seen) = ready.asked {
                self.supervise(Some(seen));
            }
            if ready.order && self.control.is_some() {
                self.obey();
                changed |= self.killing;
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&mut self) -> Ready {
        let control = self.control.as_ref().unwrap_or(&self.child_signals);
        let mut fds: [PollFd<'_>; MOST_FDS] =
            std::array::from_fn(|_| PollFd::new(&self.child_signals, PollFlags::IN));
        let questions = self.supervisor.iter().flat_map(Supervisor::poll_fds);
        let mut used = 1;
        for (slot, (fd, wanted)) in fds.iter_mut().skip(2).zip(questions) {
            *slot = PollFd::from_borrowed_fd(fd, wanted);
            used += 1;
        }
        if let Some(slot) = fds.get_mut(1) {
            *slot = PollFd::new(control, PollFlags::IN);
            used += 1;
        }
        let patience = self.supervisor.as_ref().and_then(Supervisor::patience);
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let pause = if self.killing { Some(next_pass(self.quiet)) } else { patience };
        let polled = poll(fds.get_mut(..used).unwrap_or_default(), pause.as_ref());
        let ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        let questions = || fds.iter().take(used).skip(2);
        let seen = questions().next().map_or(PollFlags::empty(), PollFd::revents);
        let asked = questions().any(|fd| ready(Some(fd))).then_some(seen);
        let ready = Ready { child: ready(fds.first()), order: ready(fds.get(1)), asked };
        match polled {
            Ok(0) => {
                self.quiet += 1;
                // What was put off is due.
                return Ready { asked: patience.map(|_| PollFlags::empty()), ..ready };
            }
            Ok(_) | Err(Errno::INTR) => self.quiet = 0,
            Err(_) => self.killing = true,
        }
        ready
    }

    /// Answers for the job, and passes on what was refused. `seen` is what a poll has said of questions;
    /// without it all of them are looked for.
    fn supervise(&mut self, seen: Option<PollFlags>) {
        let Some(supervisor) = &mut self.supervisor else { return };
        let (control, more_denied) = (&self.control, &mut self.more_denied);
        let mut report = |denial: Denial<'_>| {
            let reply = Reply::Denied {
                operation: denial.operation as u32,
                rule: denial.rule as u32,
                syscall: denial.syscall,
                target: denial.target,
            };
            let message = reply.encode();
            // Nobody waits for a host that does not listen.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let told = |control| send(control, message.as_bytes(), flags).is_ok();
            if !control.as_ref().is_some_and(told) {
                *more_denied += 1;
            }
        };
        match seen {
            Some(seen) => supervisor.go_on(seen, &mut report),
            None => supervisor.serve(&mut report),
        }
        if supervisor.is_over() {
            self.more_denied += supervisor.take_more();
        }
    }

    /// Says how many denials there were that the host was not told of.
    fn report_more_denied(&mut self) {
        let count = std::mem::take(&mut self.more_denied)
            + self.supervisor.as_mut().map_or(0, Supervisor::take_more);
        if count > 0 {
            self.report(Reply::MoreDenied { count });
        }
    }

    /// Waits for what has ended. Says whether there is anything left to watch.
    fn reap(&mut self) -> bool {
        let mut ended = None;
        let alive = loop {
            match children::reap() {
                Reaped::One(pid, status) if self.command == Some(pid) => {
                    self.command = None;
                    ended = Some(status);
                }
                Reaped::Stopped(pid) if self.command == Some(pid) => {
                    if self.front == Front::Terminal {
                        self.report(Reply::Stopped);
                    }
                }
                Reaped::One(..) | Reaped::Stopped(_) => {}
                Reaped::NoneYet => break true,
                Reaped::NoChildren => break false,
            }
        };
        if let Some(status) = ended {
            // What it tried last may still be unsaid.
            self.supervise(None);
            self.report_more_denied();
            self.report(Reply::Ended(Ended { exit: exit_of(status), stragglers: alive }));
        }
        if !self.killing {
            if !alive {
                self.supervise(None);
                self.report_more_denied();
            }
            return alive;
        }
        let found = if alive { self.kill_all() } else { Found::default() };
        // Killing a child brings its own children here, so there is more to do until nobody is
        // left but those that we may not end. A list that is empty although there are children was
        // read at a bad moment.
        if alive && (found.all == 0 || found.all > found.refused) {
            return true;
        }
        self.supervise(None);
        self.report_more_denied();
        self.report(Reply::Gone { left: found.refused });
        false
    }

    fn kill_all(&self) -> Found {
        match self.place {
            Place::Subreaper => children::kill_all(|_| false),
            Place::First => {
                raw::kill_everybody_else();
                Found { all: 1, refused: 0 }
            }
        }
    }

    fn obey(&mut self) {
        let Some(control) = &self.control else { return };
        let mut bytes = [0u8; 16];
        let order = match rustix::io::read(control, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => return,
            // The host closed its end, or is gone.
            Ok(0) | Err(_) => {
                self.control = None;
                Some(Order::Kill)
            }
            Ok(n) => Order::decode(bytes.get(..n).unwrap_or_default()),
        };
        match order {
            Some(Order::Kill) | None => {
                self.killing = true;
                // All of the group at once; the passes over the children find the rest.
                self.signal(Signal::KILL.as_raw());
            }
            Some(Order::Leave) => self.control = None,
            Some(Order::Signal(number)) => self.signal(number),
        }
    }

    /// Signals the command's group, which has its id; only while that id is certainly its own.
    fn signal(&self, number: c_int) {
        if let (Some(pid), Some(signal)) = (self.command, Signal::from_named_raw(number)) {
            let _ = match self.front {
                Front::Host => kill_process_group(pid, signal),
                // What the terminal sends to the group reaches it without us.
                Front::Terminal => kill_process(pid, signal),
            };
        }
    }

    fn report(&self, reply: Reply<'_>) {
        if let Some(control) = &self.control {
            // A host that does not listen any more is noticed by its closed socket.
            let _ = say(control, reply);
        }
    }
}

/// A child's end as an exit.
pub(super) fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// A command that nothing confines, on its way from a copy of the warden.
struct Beginning<'a> {
    plan: Plan<'a>,
    request: Request,
    stdio: [BorrowedFd<'a>; 3],
    warden: Option<Pid>,
    /// Written by the command's process while it shares our memory.
    failure: Option<Failure>,
}

impl Beginning<'_> {
    /// Starts the command and waits until it runs.
    fn start(mut self, stack: &ChildStack) -> Result<Pid, Failure> {
        self.warden = Some(rustix::process::getpid());
        let arg = ptr::from_mut(&mut self).cast();
        // SAFETY: `command_process` ends by exec or exit, makes only kernel calls, and writes only
        // to `failure`; `self` outlives it, because this process is held up until then.
        let pid = unsafe { raw::start_sharing_memory(stack, command_process, arg) };
        let pid = pid.map_err(Failure::at(Stage::Fork))?;
        match self.failure {
            Some(failure) => Err(failure),
            None => Pid::from_raw(pid).ok_or(Errno::INVAL).map_err(Failure::at(Stage::Fork)),
        }
    }

    /// The steps from a copy of the warden to the command. Returns only on failure.
    fn become_command(&self) -> Result<Failure, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        rustix::process::setsid().map_err(&set_up)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&set_up)?;
        if rustix::process::getppid() != self.warden {
            // The warden died before the line above could take effect.
            raw::exit_now(137);
        }
        Plan::take_streams(self.request.streams, self.stdio)?;
        // SAFETY: this process has its own descriptor table and uses none of them again.
        unsafe { raw::close_all_but_stdio() };
        Ok(self.plan.execute())
    }
}

extern "C" fn command_process(beginning: *mut c_void) -> c_int {
    // SAFETY: `Beginning::start` passed a pointer to itself and is held up while we use it.
    let beginning = unsafe { &mut *beginning.cast::<Beginning<'_>>() };
    let (Ok(failure) | Err(failure)) = beginning.become_command();
    beginning.failure = Some(failure);
    raw::exit_now(127);
}
