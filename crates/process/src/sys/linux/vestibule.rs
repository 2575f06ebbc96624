//! A process that is confined already and waits for the command that it is to become.
//!
//! Confining takes longer than executing, so it is done ahead, while nobody waits. The process takes the request off
//! its socket by itself. Its guard sleeps from its making until the command is executed, and is woken by nothing else:
//! a process that is woken on a busy processor may stay there although others are idle, and whoever is to start the
//! next one would wait for the command.

use super::children;
use super::nursery::receive;
use super::plan::{Failure, Plan, Strings};
use super::processor;
use super::raw::{self, ChildStack, NeverReturn};
use super::warden::say_taken;
use super::wire::{Request, Streams};
use crate::sys::Stage;
use rustix::event::Timespec;
use rustix::fd::{AsFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use rustix::thread::futex;
use sandgate_sandbox::linux::{Inside, JobRules, Mode, StreamsOf};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

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
}

/// Makes such a process and waits until it has become the command. In namespaces the calling process must be the first
/// of the job's own.
pub(super) fn become_command(
    inside: &Inside,
    mode: Mode,
    session: Session,
    awaited: Awaited<'_>,
) -> Came {
    let (source, control) = match awaited {
        Awaited::On(requests) => (Source::Requests(requests), None),
        Awaited::This(request, control) => (Source::This(request), Some(control.into_raw_fd())),
    };
    let mut told = Told { control, listener: None, processor: None, failure: None };
    let ended = sleep_beside(inside, mode, session, source, &mut told);
    // There is enough to do beside the command, and it would wait for that.
    processor::leave(told.processor);
    // SAFETY: of the two processes that knew this number, the other one has ended or has descriptors of its own, and
    // in this one nobody else has it.
    let own = |number| unsafe { OwnedFd::from_raw_fd(number) };
    let (control, listener) = (told.control.map(own), told.listener.map(own));
    let failure = ended.as_ref().err().copied().or(told.failure);
    match (control, failure, ended) {
        (Some(control), Some(failure), _) => Came::Failed(control, failure),
        (None, Some(failure), _) => Came::Unfit(failure),
        (Some(control), None, Ok((pid, outer_pid))) => {
            Came::Executed(control, Executed { pid, outer_pid, listener })
        }
        _ => Came::Unused,
    }
}

/// Where the process finds what it is to become.
enum Source<'a> {
    Requests(BorrowedFd<'a>),
    /// The job's socket has been told of.
    This(Request),
}

/// What a guard is told by the process that shares its memory and, until a request has come, its descriptors. Numbers
/// are those of the guard.
struct Told {
    /// The job's socket, once a command has been asked for.
    control: Option<RawFd>,
    listener: Option<RawFd>,
    /// Where the command is executed.
    processor: Option<usize>,
    /// Why the process has ended, if that was its own doing.
    failure: Option<Failure>,
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
    /// The guard reads it when `shares` is 0.
    told: *mut Told,
    /// The kernel makes it 0 when the process does not share our memory any more, and wakes whoever waits for that.
    shares: AtomicU32,
}

/// Makes the process and sleeps until it has executed a command or has ended. Gives its number here and outside.
fn sleep_beside(
    inside: &Inside,
    mode: Mode,
    session: Session,
    source: Source<'_>,
    told: &mut Told,
) -> Result<(Pid, i32), Failure> {
    let set_up = Failure::at(Stage::SetUp);
    // While the old /proc can still be seen: it counts processes as the rest of the system does.
    let list = children::list();
    let streams = match session {
        Session::Own => StreamsOf::Guard,
        Session::Guards => StreamsOf::Command,
    };
    let rules = inside.prepare_job(mode, streams)?;
    // Not given back before this process ends: that would take longer than all that is done for the command here.
    let strings = ManuallyDrop::new(Strings::room()?);
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
    // shares our memory no longer, and writes to what it tells us, its own stack and its own mappings. While it shares
    // our descriptors it closes none. Meanwhile this process makes no call that uses `errno`.
    let pid = unsafe { raw::start_beside(&stack, wait_inside, arg) };
    let pid = pid.map_err(Failure::at(Stage::Fork))?;
    let pid = Pid::from_raw(pid).ok_or(Errno::CHILD).map_err(Failure::at(Stage::Fork))?;
    if session == Session::Guards {
        // Whoever kills the group that the command is in must not kill its guard too.
        let _ = rustix::process::setpgid(None, None);
    }
    let own = (mode == Mode::LandlockOnly).then_some(pid);
    let outer_pid = list.ok().and_then(|list| children::only(&list)).or(own);
    // The other process has been made and does not inherit this.
    raw::take_short_turns();
    sleep_while_shared(&start.shares, pid);
    Ok((pid, outer_pid.map_or(0, |pid| pid.as_raw_nonzero().get())))
}

/// How often it is looked whether a process is there that was killed before it could ask the kernel to say so.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

fn sleep_while_shared(shares: &AtomicU32, pid: Pid) {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while shares.load(Ordering::Acquire) != 0 {
        let slept = futex::wait(shares, futex::Flags::empty(), 1, Some(&LOOK));
        if slept == Err(Errno::TIMEDOUT) && !matches!(waitid(WaitId::Pid(pid), look), Ok(None)) {
            return;
        }
    }
}

/// The life of the process: gives up its rights, waits, and becomes the command. It shares its guard's
/// memory, so that making it copies none and executing the command clears none away.
extern "C" fn wait_inside(start: *mut c_void) -> c_int {
    let _never = NeverReturn;
    // SAFETY: `sleep_beside` passed a pointer to this, and keeps it as long as we can use it.
    let start = unsafe { &*start.cast::<Start<'_>>() };
    raw::clear_when_gone(&start.shares);
    let _ = rustix::thread::set_name(c"sg-vestibule");
    let (Ok(failure) | Err(failure)) = start.confine().and_then(|()| start.execute());
    // SAFETY: nobody else uses it before we are gone.
    unsafe { (*start.told).failure = Some(failure) };
    raw::exit_now(127);
}

impl Start<'_> {
    fn confine(&self) -> Result<(), Failure> {
        let set_up = Failure::at(Stage::SetUp);
        if self.session == Session::Own {
            rustix::process::setsid().map_err(&set_up)?;
        }
        // The descriptor is the guard's from now on.
        let listener = self.inside.confine(self.rules)?.map(rustix::fd::IntoRawFd::into_raw_fd);
        // SAFETY: nobody else uses it before we are gone.
        unsafe { (*self.told).listener = listener };
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
                // SAFETY: nobody else uses it before we are gone.
                unsafe { (*self.told).control = Some(control.into_raw_fd()) };
                (request, Some([stdin, stdout, stderr].map(ManuallyDrop::new)))
            }
            Source::This(request) => (request, None),
        };
        // SAFETY: only this process writes to it.
        let control = unsafe { (*self.told).control }.ok_or(set_up(Errno::BADF))?;
        // SAFETY: the guard owns it, and sleeps.
        let control = unsafe { BorrowedFd::borrow_raw(control) };
        self.strings.receive(request, control)?;
        // From here on the program may run.
        say_taken(control);
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
        // SAFETY: nobody else uses it before we are gone.
        unsafe { (*self.told).processor = processor::here() };
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
