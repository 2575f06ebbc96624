//! A process that is confined already and waits for the command that it is to become.
//!
//! Confining takes longer than executing, so it is done ahead, while nobody waits. What is left to do
//! when a request comes is to take its streams, enter its directory and execute it.

use super::children;
use super::plan::{Failure, Plan, Step, Strings};
use super::raw::{self, ChildStack, NeverReturn};
use super::wire::{Request, Streams};
use crate::sys::Stage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags, fstat, openat};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use rustix::process::{kill_process, waitid, waitpid};
use sandgate_sandbox::linux::{Inside, JobRules, Mode, StreamsOf};
use std::ffi::{c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

/// How a command stands to the session and the process group of its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// It leads its own.
    Own,
    /// It stays in the guard's, whose terminal it uses.
    Guards,
}

/// Such a process, seen from its guard.
pub(super) struct Vestibule {
    pub(super) pid: Pid,
    /// The number that it has for the rest of the system; 0 if that is not known.
    pub(super) outer_pid: i32,
    /// Where the supervisor hears of the command, if it can.
    pub(super) listener: Option<OwnedFd>,
    strings: Strings,
    /// Closes when the command is executed.
    socket: OwnedFd,
}

/// What the process says first: that it is confined and has descriptors of its own, and by which number
/// the guard, with which it shared them until then, knows the supervisor's; or why not.
const CONFINED: u8 = b'c';
const FAILED: u8 = b'f';

impl Vestibule {
    /// Makes one. In namespaces the calling process must be the first of the job's own.
    pub(super) fn open(inside: &Inside, mode: Mode, session: Session) -> Result<Self, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        // While the old /proc can still be seen: it counts processes as the rest of the system does.
        let list = children::list();
        let streams = match session {
            Session::Own => StreamsOf::Guard,
            Session::Guards => StreamsOf::Command,
        };
        let rules = inside.prepare_job(mode, streams)?;
        let strings = Strings::room()?;
        let kind = SocketType::SEQPACKET;
        let (ours, its) =
            socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).map_err(&set_up)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let null = openat(CWD, c"/dev/null", flags, FileMode::empty()).map_err(&set_up)?;
        let stack = ChildStack::map().map_err(&set_up)?;
        let mut start = Start {
            inside,
            rules: &rules,
            session,
            guard: Some(rustix::process::getpid()),
            socket: its.as_fd(),
            null: null.as_fd(),
            strings: strings.again(),
        };
        let arg = ptr::from_mut(&mut start).cast();
        // SAFETY: `wait_inside` makes only kernel calls and never returns. It reads `start` before it
        // says its first words, which are waited for below, and writes to no memory but its own stack
        // and mappings. While it shares our descriptors it closes none. Of the two processes one
        // waits until the other has said something, or makes calls that do not use `errno`.
        let pid = unsafe { raw::start_beside(&stack, wait_inside, arg) };
        let pid = pid.map_err(Failure::at(Stage::Fork))?;
        let pid = Pid::from_raw(pid).ok_or(Errno::CHILD).map_err(Failure::at(Stage::Fork))?;
        let listener = hear_confined(&ours, pid)?;
        // From now on only the other process has this end, so that its end is heard.
        drop(its);
        let own = (mode == Mode::LandlockOnly).then_some(pid);
        let outer_pid = list.ok().and_then(|list| children::only(&list)).or(own);
        let outer_pid = outer_pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        Ok(Self { pid, outer_pid, listener, strings, socket: ours })
    }

    /// Whether it still waits: somebody may have killed it.
    pub(super) fn is_there(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }

    /// Takes a request's strings off the job's socket.
    pub(super) fn receive(&mut self, request: Request, control: &OwnedFd) -> Result<(), Failure> {
        self.strings.receive(request, control)
    }

    /// Hands the command over to be executed.
    pub(super) fn hand_over(
        &self,
        request: Request,
        stdio: Option<[BorrowedFd<'_>; 3]>,
    ) -> Result<(), Failure> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if let Some(stdio) = &stdio {
            ancillary.push(SendAncillaryMessage::ScmRights(stdio));
        }
        let bytes = request.encode();
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
            .map(|_| ())
            .map_err(Failure::at(Stage::SetUp))
    }

    /// Waits until the command is executed. Gives back where the supervisor hears of it.
    pub(super) fn executed(self) -> Result<Option<OwnedFd>, Failure> {
        match hear(&self.socket).map_err(Failure::at(Stage::SetUp))? {
            Heard::End => Ok(self.listener),
            Heard::Failure(failure) => Err(failure),
            Heard::Confined(_) => Err(Failure::at(Stage::SetUp)(Errno::PROTO)),
        }
    }
}

/// How often it is looked whether a process that says nothing is there.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits for the first words of a process that shares our descriptors. Its end of the socket is ours
/// too, so that its own end would not be heard.
fn hear_from(socket: &OwnedFd, pid: Pid) -> Result<Heard, Errno> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    loop {
        match rustix::io::retry_on_intr(|| poll(&mut fds, Some(&LOOK))) {
            Ok(0) if matches!(waitid(WaitId::Pid(pid), look), Ok(None)) => {}
            Ok(0) => return Ok(Heard::End),
            Ok(_) => return hear(socket),
            Err(errno) => {
                // It may not go on with memory of ours that we do not keep for it. It is our child, and is waited
                // for only here.
                let _ = kill_process(pid, Signal::KILL);
                let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
                return Err(errno);
            }
        }
    }
}

fn hear_confined(socket: &OwnedFd, pid: Pid) -> Result<Option<OwnedFd>, Failure> {
    let set_up = Failure::at(Stage::SetUp);
    let number = match hear_from(socket, pid).map_err(&set_up)? {
        Heard::Confined(number) => number,
        Heard::Failure(failure) => return Err(failure),
        Heard::End => return Err(set_up(Errno::CHILD)),
    };
    // SAFETY: the process that made it shared our descriptors then, and leaves this one to us.
    Ok((number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// What a guard hears.
enum Heard {
    Confined(RawFd),
    Failure(Failure),
    /// The other end has closed.
    End,
}

/// One byte for what it is, two numbers, and the words of a failure.
const MESSAGE_BYTES: usize = 9 + 48;

fn hear(socket: &OwnedFd) -> Result<Heard, Errno> {
    let mut message = [0u8; MESSAGE_BYTES];
    let n = rustix::io::retry_on_intr(|| rustix::io::read(socket, &mut message))?;
    let [first, a, b, c, d, e, f, g, h, step @ ..] = message;
    let one = i32::from_ne_bytes([a, b, c, d]);
    let two = i32::from_ne_bytes([e, f, g, h]);
    Ok(match (n, first) {
        (0, _) => Heard::End,
        (_, CONFINED) => Heard::Confined(one),
        _ => Heard::Failure(Failure {
            stage: Stage::from_wire(one.cast_unsigned()),
            errno: Errno::from_raw_os_error(two),
            step: Step::new(&step),
        }),
    })
}

fn say(socket: BorrowedFd<'_>, what: u8, one: i32, two: i32, words: &[u8]) {
    let mut message = [0u8; MESSAGE_BYTES];
    let [first, a, b, c, d, e, f, g, h, rest @ ..] = &mut message;
    *first = what;
    [*a, *b, *c, *d] = one.to_ne_bytes();
    [*e, *f, *g, *h] = two.to_ne_bytes();
    for (to, from) in rest.iter_mut().zip(words) {
        *to = *from;
    }
    let _ = rustix::io::write(socket, &message);
}

fn give_up(socket: BorrowedFd<'_>, Failure { stage, errno, step }: Failure) -> ! {
    let stage = (stage as u32).cast_signed();
    say(socket, FAILED, stage, errno.raw_os_error(), step.as_bytes());
    raw::exit_now(127);
}

/// What the process has of its guard's. It is the guard's memory: once the guard has heard of it only
/// copies may be used.
struct Start<'a> {
    inside: &'a Inside,
    rules: &'a JobRules,
    session: Session,
    guard: Option<Pid>,
    socket: BorrowedFd<'a>,
    /// The cage's own `/dev/null`.
    null: BorrowedFd<'a>,
    strings: ManuallyDrop<Strings>,
}

/// The life of the process: gives up its rights, waits, and becomes the command. It shares its guard's
/// memory, so that making it copies none and executing the command clears none away.
extern "C" fn wait_inside(start: *mut c_void) -> c_int {
    let _never = NeverReturn;
    // SAFETY: `Vestibule::open` passed a pointer to this, and keeps it until it has heard of us. What
    // is read out is not dropped, because this process never leaves this function.
    let start = unsafe { ptr::read(start.cast::<Start<'_>>()) };
    let Start { inside, rules, session, guard, socket, null, strings } = start;
    let _ = rustix::thread::set_name(c"sg-vestibule");
    let confined = || -> Result<Option<OwnedFd>, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        if session == Session::Own {
            rustix::process::setsid().map_err(&set_up)?;
        }
        let listener = inside.confine(rules)?;
        // Giving up rights forgets this signal, so it is asked for after that.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&set_up)?;
        if rustix::process::getppid() != guard {
            // The guard died before the line above could take effect.
            raw::exit_now(137);
        }
        Ok(listener)
    };
    let listener = match confined() {
        Ok(listener) => listener,
        Err(failure) => give_up(socket, failure),
    };
    // The descriptor is the guard's from now on.
    let number = listener.map_or(-1, rustix::fd::IntoRawFd::into_raw_fd);
    if raw::part_with_descriptors().is_err() {
        give_up(socket, Failure::at(Stage::SetUp)(Errno::NOSYS));
    }
    let mut keep = [0, 1, 2, socket.as_raw_fd(), null.as_raw_fd()];
    keep.sort_unstable();
    // SAFETY: nothing below uses another descriptor; those that values here own are the guard's.
    unsafe { raw::close_all_but(&keep) };
    say(socket, CONFINED, number, 0, b"");
    let Some((request, stdio)) = receive(socket) else { raw::exit_now(0) };
    let become_command = || -> Result<Failure, Failure> {
        let plan = Plan::lay_out(request, &strings)?;
        match (request.streams, &stdio) {
            (Streams::Inherited, _) => {}
            (streams, [Some(stdin), Some(stdout), Some(stderr)]) => {
                let stdio = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
                Plan::take_streams(streams, stdio)?;
            }
            _ => return Err(Failure::at(Stage::SetUp)(Errno::BADF)),
        }
        part_with_the_hosts_null(null).map_err(Failure::at(Stage::SetUp))?;
        Ok(plan.execute())
    };
    let (Ok(failure) | Err(failure)) = become_command();
    give_up(socket, failure);
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

fn receive(socket: BorrowedFd<'_>) -> Option<(Request, [Option<OwnedFd>; 3])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0u8; Request::LEN];
    let received = rustix::io::retry_on_intr(|| {
        let mut into = [IoSliceMut::new(&mut bytes)];
        recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })
    .ok()?;
    let mut stdio = [const { None }; 3];
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            for (slot, fd) in stdio.iter_mut().zip(rights) {
                *slot = Some(fd);
            }
        }
    }
    Some((Request::decode(bytes.get(..received.bytes)?)?, stdio))
}
