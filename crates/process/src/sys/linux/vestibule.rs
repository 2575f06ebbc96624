//! A process that is confined already and waits for the command that it is to become.
//!
//! Confining takes longer than executing, so it is done ahead, while nobody waits. The process takes the request off
//! its socket by itself. Its guard looks after it now and then, and else sleeps until the command is executed: a process
//! that is woken on a busy processor may stay there although others are idle, and whoever is to start the next one would
//! wait for the command.

use super::children;
use super::nursery::receive;
use super::plan::{Failure, Plan, Strings};
use super::processor;
use super::raw::{self, ChildStack, NeverReturn};
use super::warden::{Caged, say_taken};
use super::wire::{Request, Streams};
use crate::sys::Stage;
use rustix::event::Timespec;
use rustix::fd::{AsFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::thread::futex;
use sandgate_sandbox::linux::{Inside, JobRules, Mode, StreamsOf, take_short_turns};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// How a command stands to the session and the process group of its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// It leads its own.
    Own,
    /// It stays in the guard's, whose terminal it uses.
    Guards,
}

/// The command that the process is to become.
pub(super) enum Awaited<'a> {
    /// The first that is asked for here.
    On(BorrowedFd<'a>),
    /// This one; its strings come on the job's socket.
    This(Request, OwnedFd),
}

/// What became of the process. The descriptor is the job's socket.
pub(super) enum Came {
    /// The command runs, or has run.
    Executed(OwnedFd, Executed),
    /// A command was asked for, and could not be executed.
    Failed(OwnedFd, Failure),
    /// Nothing can be executed here, whoever asks.
    Unfit(Failure),
    /// Nobody asks any more.
    Unused,
}

/// A command in the cage.
pub(super) struct Executed {
    pub(super) pid: Pid,
    /// The number that it has for the rest of the system; 0 if that is not known.
    pub(super) outer_pid: i32,
    /// Where the supervisor hears of it, if it can.
    pub(super) listener: Option<OwnedFd>,
    /// Its arguments and environment, which nobody needs any more.
    pub(super) strings: Strings,
}

/// Makes such a process and waits until it has become the command. In namespaces the calling process must be the first
/// of the job's own, and `proc` is the host's `/proc` if that is not to be seen. `late` is called if a request has come and
/// that takes long.
pub(super) fn become_command(
    Caged { inside, mode }: Caged<'_>,
    proc: Option<BorrowedFd<'_>>,
    session: Session,
    awaited: Awaited<'_>,
    late: impl FnMut(),
) -> Came {
    let (source, control) = match awaited {
        Awaited::On(requests) => (Source::Requests(requests), None),
        Awaited::This(request, control) => (Source::This(request), Some(control.into_raw_fd())),
    };
    let told = Told::new(control);
    let ended = sleep_beside(Caged { inside, mode }, proc, session, source, &told, late);
    // There is enough to do beside the command, and it would wait for that. One that has ended does not.
    if ended.as_ref().is_ok_and(|(pid, ..)| is_alive(*pid)) {
        processor::leave(told.processor());
    }
    // SAFETY: of the two processes that knew this number, the other one has ended or has descriptors of its own, and
    // in this one nobody else has it.
    let own = |number| unsafe { OwnedFd::from_raw_fd(number) };
    let (control, listener) = (told.control().map(own), Told::number(&told.listener).map(own));
    match (ended, told.failure(), control) {
        (Err(failure), _, Some(control)) | (Ok(_), Some(failure), Some(control)) => {
            Came::Failed(control, failure)
        }
        (Err(failure), _, None) | (Ok(_), Some(failure), None) => Came::Unfit(failure),
        // Somebody has killed it. Whoever can ask another one hears nothing of it.
        (Ok(_), None, Some(control)) if !told.taken.load(Ordering::Acquire) => match session {
            Session::Own => Came::Unused,
            Session::Guards => Came::Failed(control, Failure::at(Stage::SetUp)(Errno::CHILD)),
        },
        (Ok((pid, outer_pid, strings)), None, Some(control)) => {
            Came::Executed(control, Executed { pid, outer_pid, listener, strings })
        }
        (Ok(_), None, None) => Came::Unused,
    }
}

/// Where the process finds what it is to become.
enum Source<'a> {
    Requests(BorrowedFd<'a>),
    /// The job's socket has been told of.
    This(Request),
}

/// What a guard is told by the process that shares its memory and, until a request has come, its descriptors. Numbers
/// are those of the guard. The process may be killed between any two of them.
struct Told {
    /// The job's socket, once a command has been asked for.
    control: AtomicI32,
    /// Whether the host was told that the program may run from now on.
    taken: AtomicBool,
    listener: AtomicI32,
    /// Where the command is executed.
    processor: AtomicI32,
    /// Why the process has ended, if that was its own doing: `failure` is written before.
    has_failed: AtomicBool,
    failure: UnsafeCell<Failure>,
}

/// Not told.
const NONE: i32 = -1;

impl Told {
    fn new(control: Option<RawFd>) -> Self {
        Self {
            control: AtomicI32::new(control.unwrap_or(NONE)),
            taken: AtomicBool::new(false),
            listener: AtomicI32::new(NONE),
            processor: AtomicI32::new(NONE),
            has_failed: AtomicBool::new(false),
            failure: UnsafeCell::new(Failure::at(Stage::SetUp)(Errno::CHILD)),
        }
    }

    fn number(told: &AtomicI32) -> Option<i32> {
        Some(told.load(Ordering::Acquire)).filter(|number| *number != NONE)
    }

    fn control(&self) -> Option<RawFd> {
        Self::number(&self.control)
    }

    fn processor(&self) -> Option<usize> {
        Self::number(&self.processor).and_then(|number| usize::try_from(number).ok())
    }

    /// For the process that tells: once, and last.
    fn fail(&self, failure: Failure) {
        // SAFETY: nobody reads it before the flag is set, and only this process writes to it.
        unsafe { *self.failure.get() = failure };
        self.has_failed.store(true, Ordering::Release);
    }

    fn failure(&self) -> Option<Failure> {
        // SAFETY: it was written before the flag was set, and is written once.
        self.has_failed.load(Ordering::Acquire).then(|| unsafe { *self.failure.get() })
    }
}

/// What the process is given. It is the guard's memory, and stays as it is until the command is executed.
struct Start<'a> {
    inside: &'a Inside,
    rules: &'a JobRules,
    session: Session,
    guard: Option<Pid>,
    source: Source<'a>,
    /// The cage's own `/dev/null`.
    null: BorrowedFd<'a>,
    strings: &'a Strings,
    told: &'a Told,
    /// The kernel makes it 0 when the process does not share our memory any more, and wakes whoever waits for that.
    shares: AtomicU32,
}

/// Makes the process and sleeps until it has executed a command or has ended. Gives its number here and outside, and the
/// strings of its request.
fn sleep_beside(
    Caged { inside, mode }: Caged<'_>,
    proc: Option<BorrowedFd<'_>>,
    session: Session,
    source: Source<'_>,
    told: &Told,
    mut late: impl FnMut(),
) -> Result<(Pid, i32, Strings), Failure> {
    let set_up = Failure::at(Stage::SetUp);
    // While the old /proc can still be had: it counts processes as the rest of the system does.
    let list = proc.map_or_else(children::list, children::list_in);
    let streams = match session {
        Session::Own => StreamsOf::Guard,
        Session::Guards => StreamsOf::Command,
    };
    let rules = inside.prepare_job(mode, streams)?;
    let strings = Strings::room()?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = openat(CWD, c"/dev/null", flags, FileMode::empty()).map_err(&set_up)?;
    let stack = ChildStack::map().map_err(&set_up)?;
    let start = Start {
        inside,
        rules: &rules,
        session,
        guard: Some(rustix::process::getpid()),
        source,
        null: null.as_fd(),
        strings: &strings,
        told,
        shares: AtomicU32::new(1),
    };
    let arg = ptr::from_ref(&start).cast_mut().cast();
    // SAFETY: `wait_inside` makes only kernel calls and never returns. It only reads `start`, which stays until it
    // shares our memory no longer, and writes to what it tells us, its own stack and its own mappings, the strings
    // among them, which nobody here looks at. While it shares our descriptors it closes none but those of a request
    // that makes no sense. Meanwhile this process makes no call that uses `errno`.
    let pid = unsafe { raw::start_beside(&stack, wait_inside, arg) };
    let pid = pid.map_err(Failure::at(Stage::Fork))?;
    let pid = Pid::from_raw(pid).ok_or(Errno::CHILD).map_err(Failure::at(Stage::Fork))?;
    if session == Session::Guards {
        // Whoever kills the group that the command is in must not kill its guard too. In a group of the same session the guard
        // would also count for somebody who continues that group when the terminal has stopped it, as a shell does.
        let _ = rustix::process::setsid();
    }
    let own = (mode == Mode::LandlockOnly).then_some(pid);
    let outer_pid = list.ok().and_then(|list| children::only(&list)).or(own);
    // The other process has been made and does not inherit this.
    take_short_turns();
    sleep_while_shared(&start.shares, pid, || {
        if told.control().is_some() {
            late();
        }
    });
    Ok((pid, outer_pid.map_or(0, |pid| pid.as_raw_nonzero().get()), strings))
}

/// How often it is looked whether a process that shares our memory still moves: it may have been killed before it could
/// ask the kernel to say so, or stopped.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// `each` is called with every look.
fn sleep_while_shared(shares: &AtomicU32, pid: Pid, mut each: impl FnMut()) {
    let look = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    while shares.load(Ordering::Acquire) != 0 {
        match futex::wait(shares, futex::Flags::empty(), 1, Some(&LOOK)) {
            Ok(()) | Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(Errno::TIMEDOUT) => each(),
            // There are systems without it.
            Err(_) => drop(rustix::thread::nanosleep(&MOMENT)),
        }
        match waitid(WaitId::Pid(pid), look) {
            Ok(None) => {}
            // It is our child, and is waited for by nobody yet. Its end is heard above.
            Ok(Some(status)) if status.stopped() && shares.load(Ordering::Acquire) != 0 => {
                let _ = kill_process(pid, Signal::KILL);
            }
            _ => return,
        }
    }
}

/// Whether a child, for which nobody has waited yet, has not ended.
fn is_alive(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// The life of the process: gives up its rights, waits, and becomes the command. It shares its guard's
/// memory, so that making it copies none and executing the command clears none away.
extern "C" fn wait_inside(start: *mut c_void) -> c_int {
    let _never = NeverReturn;
    // SAFETY: `sleep_beside` passed a pointer to this, and keeps it as long as we can use it.
    let start = unsafe { &*start.cast::<Start<'_>>() };
    // SAFETY: the guard keeps it as long as we share its memory.
    unsafe { raw::clear_when_gone(&start.shares) };
    let _ = rustix::thread::set_name(c"sg-vestibule");
    let (Ok(failure) | Err(failure)) = start.confine().and_then(|()| start.execute());
    start.told.fail(failure);
    raw::exit_now(127);
}

impl Start<'_> {
    fn confine(&self) -> Result<(), Failure> {
        let set_up = Failure::at(Stage::SetUp);
        if self.session == Session::Own {
            rustix::process::setsid().map_err(&set_up)?;
        }
        // The descriptor is the guard's from now on.
        let listener = self.inside.confine(self.rules)?.map_or(NONE, OwnedFd::into_raw_fd);
        self.told.listener.store(listener, Ordering::Release);
        // Giving up rights forgets this signal, so it is asked for after that.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&set_up)?;
        if rustix::process::getppid() != self.guard {
            // The guard died before the line above could take effect.
            raw::exit_now(137);
        }
        Ok(())
    }

    /// Waits for a request and executes it. Returns only on failure.
    fn execute(&self) -> Result<Failure, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        // What is received is the guard's as well, and is not closed here: both have the same descriptors.
        let (request, stdio) = match self.source {
            Source::Requests(requests) => {
                let received = receive(requests, RecvFlags::empty());
                let Some((request, [control, stdin, stdout, stderr])) = received else {
                    raw::exit_now(0);
                };
                self.told.control.store(control.into_raw_fd(), Ordering::Release);
                (request, Some([stdin, stdout, stderr].map(ManuallyDrop::new)))
            }
            Source::This(request) => (request, None),
        };
        let control = self.told.control().ok_or(set_up(Errno::BADF))?;
        // SAFETY: the guard owns it, and sleeps.
        let control = unsafe { BorrowedFd::borrow_raw(control) };
        // SAFETY: the guard does not look at them while we share its memory.
        unsafe { self.strings.receive(request, control) }?;
        // From here on the program may run.
        say_taken(control);
        self.told.taken.store(true, Ordering::Release);
        raw::part_with_descriptors().map_err(&set_up)?;
        let plan = Plan::lay_out(request, self.strings)?;
        match (request.streams, &stdio) {
            (Streams::Inherited, _) => {}
            (streams, Some(stdio)) => {
                Plan::take_streams(streams, stdio.each_ref().map(|fd| fd.as_fd()))?;
            }
            (_, None) => return Err(set_up(Errno::BADF)),
        }
        part_with_the_hosts_null(self.null).map_err(&set_up)?;
        // SAFETY: the descriptors are this process's own by now, and it uses none of them again.
        unsafe { raw::close_all_but_stdio() };
        let here = processor::here().and_then(|number| i32::try_from(number).ok());
        self.told.processor.store(here.unwrap_or(NONE), Ordering::Release);
        Ok(plan.execute())
    }
}

/// Puts the cage's own `/dev/null` in the place of the host's among the standard streams. No mount of
/// the cage is over a file that was opened outside: root could change the mode of this one for everybody.
fn part_with_the_hosts_null(null: BorrowedFd<'_>) -> Result<(), Errno> {
    let device = fstat(null)?.st_rdev;
    let is_null = |stream: BorrowedFd<'_>| {
        fstat(stream).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
                && stat.st_rdev == device
        })
    };
    if is_null(rustix::stdio::stdin()) {
        rustix::stdio::dup2_stdin(null)?;
    }
    if is_null(rustix::stdio::stdout()) {
        rustix::stdio::dup2_stdout(null)?;
    }
    if is_null(rustix::stdio::stderr()) {
        rustix::stdio::dup2_stderr(null)?;
    }
    Ok(())
}
