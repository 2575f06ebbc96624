//! The process that watches over one job.
//!
//! It is the subreaper of the command, so every process of the job stays its descendant whatever
//! sessions and groups they make. It goes when none is left.

use super::children::{self, Found, Reaped};
use super::in_place::exit_of;
use super::nursery::receive;
use super::raw::{self, ChildStack, NeverReturn};
use super::wire::{Order, Reply, Request};
use crate::sys::{Ended, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// How soon a job that is being ended is looked at again: after 2 ms, and ever more rarely while it
/// cannot be ended.
fn next_pass(quiet: u32) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: 2_000_000 << quiet.min(7) }
}

/// Becomes an idle warden: waits for one request and serves it to its end.
pub(super) fn serve(requests: BorrowedFd<'_>, taken: BorrowedFd<'_>) -> ! {
    let _never = NeverReturn;
    let _ = rustix::thread::set_name(c"sg-warden");
    let (Ok(()), Ok(child_signals), Ok(stack)) = (
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())),
        raw::child_signal_fd(),
        ChildStack::map(),
    ) else {
        raw::exit_now(1);
    };
    let Some((request, [control, stdin, stdout, stderr])) = receive(requests, RecvFlags::empty())
    else {
        raw::exit_now(0);
    };
    let _ = rustix::io::write(taken, b"t");
    let plan = Plan::receive(request, &control, [&stdin, &stdout, &stderr]);
    if plan.is_ok() && !say(&control, Reply::Taken) {
        // The host did not wait for it.
        raw::exit_now(0);
    }
    let started = plan.and_then(|plan| plan.start(&stack));
    drop((stdin, stdout, stderr));
    // A warden needs these two only; above all it must not hold the socket that tells the nursery
    // of the host's end.
    let mut keep = [control.as_raw_fd(), child_signals.as_raw_fd()];
    keep.sort_unstable();
    // SAFETY: nothing below uses another descriptor; `requests` and `taken` are not used again.
    unsafe { raw::close_all_but(&keep) };
    match started {
        Ok(pid) => {
            let _ = say(&control, Reply::Started { pid: pid.as_raw_nonzero().get() });
            let control = Some(control);
            Warden { control, child_signals, command: Some(pid), killing: false, quiet: 0 }.watch();
        }
        Err(Failure { stage, errno }) => {
            let _ =
                say(&control, Reply::Failed { stage: stage as u32, errno: errno.raw_os_error() });
        }
    }
    raw::exit_now(0);
}

/// Says it, if the host still listens.
fn say(control: &OwnedFd, reply: Reply) -> bool {
    rustix::io::retry_on_intr(|| rustix::io::write(control, &reply.encode())).is_ok()
}

struct Warden {
    /// `None` once the host is gone, or the job was left to itself.
    control: Option<OwnedFd>,
    child_signals: OwnedFd,
    /// The command's own process, until it has been waited for.
    command: Option<Pid>,
    killing: bool,
    /// How many looks in a row have changed nothing while killing.
    quiet: u32,
}

impl Warden {
    fn watch(mut self) {
        // The command may have ended before the first look.
        while self.reap() {
            let control = self.control.as_ref().unwrap_or(&self.child_signals);
            let mut fds = [
                PollFd::new(control, PollFlags::IN),
                PollFd::new(&self.child_signals, PollFlags::IN),
            ];
            let pause = next_pass(self.quiet);
            match poll(&mut fds, self.killing.then_some(&pause)) {
                Ok(0) => self.quiet += 1,
                Ok(_) | Err(Errno::INTR) => self.quiet = 0,
                Err(_) => self.killing = true,
            }
            let [order, child] = fds.map(|fd| fd.revents());
            if child.contains(PollFlags::IN) {
                let _ = rustix::io::read(&self.child_signals, &mut [0u8; 512]);
            }
            if self.control.is_some() && !order.is_empty() {
                self.obey();
            }
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
                Reaped::One(..) | Reaped::Stopped(_) => {}
                Reaped::NoneYet => break true,
                Reaped::NoChildren => break false,
            }
        };
        if let Some(status) = ended {
            self.report(Reply::Ended(Ended { exit: exit_of(status), stragglers: alive }));
        }
        if !self.killing {
            return alive;
        }
        let found = if alive { children::kill_all(|_| false) } else { Found::default() };
        // Killing a child brings its own children here, so there is more to do until nobody is
        // left but those that we may not end. A list that is empty although there are children was
        // read at a bad moment.
        if alive && (found.all == 0 || found.all > found.refused) {
            return true;
        }
        self.report(Reply::Gone { left: found.refused });
        false
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
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    fn report(&self, reply: Reply) {
        if let Some(control) = &self.control {
            // A host that does not listen any more is noticed by its closed socket.
            let _ = say(control, reply);
        }
    }
}

/// Why the command could not be started.
struct Failure {
    stage: Stage,
    errno: Errno,
}

/// A request laid out as the kernel wants it.
struct Plan<'a> {
    mapping: *mut c_void,
    mapped: usize,
    program: *const c_char,
    cwd: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    stdio: [BorrowedFd<'a>; 3],
    terminal: bool,
    warden: Pid,
    /// Written by the command's process while it shares our memory.
    failure: Option<Failure>,
}

impl<'a> Plan<'a> {
    /// Takes the request's strings off the job's socket and lays them out.
    fn receive(
        request: Request,
        control: &OwnedFd,
        stdio: [&'a OwnedFd; 3],
    ) -> Result<Self, Failure> {
        let set_up = |errno| Failure { stage: Stage::SetUp, errno };
        let mapped = request.len as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapping = unsafe { mmap_anonymous(ptr::null_mut(), mapped, access, MapFlags::PRIVATE) }
            .map_err(set_up)?;
        // SAFETY: the mapping is `mapped` bytes long, zeroed, and lives until it is unmapped.
        let text = unsafe { std::slice::from_raw_parts_mut(mapping.cast::<u8>(), mapped) };
        let mut filled = 0;
        while let Some(rest) = text.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::retry_on_intr(|| rustix::io::read(control, &mut *rest)) {
                // The host gave up half way.
                Ok(0) => return Err(set_up(Errno::PIPE)),
                Ok(n) => filled += n,
                Err(errno) => return Err(set_up(errno)),
            }
        }
        // Program and directory, then both lists, each with its closing null.
        let count = 2 + request.argc as usize + 1 + request.envc as usize + 1;
        let flags = MapFlags::PRIVATE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let table = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                count * size_of::<*const c_char>(),
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }
        .map_err(set_up)?;
        // SAFETY: the mapping is big enough, aligned to a page, and zeroed, which is null.
        let table = unsafe { std::slice::from_raw_parts_mut(table.cast::<*const c_char>(), count) };
        let argv_end = 2 + request.argc as usize;
        let slots = (0..count).filter(|&slot| slot != argv_end && slot != count - 1);
        let mut rest = text.split_inclusive(|&byte| byte == 0);
        for slot in slots {
            let (Some(string), Some(entry)) = (rest.next(), table.get_mut(slot)) else {
                return Err(set_up(Errno::INVAL));
            };
            *entry = string.as_ptr().cast();
        }
        let (Some([program, cwd]), Some(argv), Some(envp)) =
            (table.first_chunk(), table.get(2..), table.get(argv_end + 1..))
        else {
            return Err(set_up(Errno::INVAL));
        };
        Ok(Self {
            mapping,
            mapped,
            program: *program,
            cwd: *cwd,
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            stdio: stdio.map(AsFd::as_fd),
            terminal: request.terminal != 0,
            warden: rustix::process::getpid(),
            failure: None,
        })
    }

    /// Starts the command and waits until it runs.
    fn start(mut self, stack: &ChildStack) -> Result<Pid, Failure> {
        let arg = ptr::from_mut(&mut self).cast();
        // SAFETY: `command_process` ends by exec or exit, makes only kernel calls, and writes only
        // to `failure`; the plan outlives it, because this process is held up until then.
        let pid = unsafe { raw::start_sharing_memory(stack, command_process, arg) };
        // SAFETY: the strings are not used again; the command has its own copy.
        let _ = unsafe { munmap(self.mapping, self.mapped) };
        let pid = pid.map_err(|errno| Failure { stage: Stage::Fork, errno })?;
        match self.failure {
            Some(failure) => Err(failure),
            None => Pid::from_raw(pid).ok_or(Failure { stage: Stage::Fork, errno: Errno::INVAL }),
        }
    }

    /// The steps from a copy of the warden to the command. Returns only on failure.
    fn become_command(&self) -> Failure {
        let at = |stage| move |errno| Failure { stage, errno };
        let run = || -> Result<std::convert::Infallible, Failure> {
            rustix::process::setsid().map_err(at(Stage::SetUp))?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(at(Stage::SetUp))?;
            if rustix::process::getppid() != Some(self.warden) {
                // The warden died before the line above could take effect.
                raw::exit_now(137);
            }
            let [stdin, stdout, stderr] = self.stdio;
            if self.terminal {
                rustix::process::ioctl_tiocsctty(stdin).map_err(at(Stage::Terminal))?;
            }
            rustix::stdio::dup2_stdin(stdin).map_err(at(Stage::SetUp))?;
            rustix::stdio::dup2_stdout(stdout).map_err(at(Stage::SetUp))?;
            rustix::stdio::dup2_stderr(stderr).map_err(at(Stage::SetUp))?;
            // SAFETY: this process has its own descriptor table and uses none of them again.
            unsafe { raw::close_all_but_stdio() };
            // SAFETY: a C string in the request's mapping.
            let cwd = unsafe { std::ffi::CStr::from_ptr(self.cwd) };
            rustix::process::chdir(cwd).map_err(at(Stage::Chdir))?;
            raw::unblock_signals();
            // SAFETY: all three were laid out by `Plan::receive` and live until the exec.
            Err(at(Stage::Exec)(unsafe { raw::execve(self.program, self.argv, self.envp) }))
        };
        match run() {
            Err(failure) => failure,
            Ok(never) => match never {},
        }
    }
}

extern "C" fn command_process(plan: *mut c_void) -> c_int {
    // SAFETY: `Plan::start` passed a pointer to its plan and is held up while we use it.
    let plan = unsafe { &mut *plan.cast::<Plan<'_>>() };
    plan.failure = Some(plan.become_command());
    raw::exit_now(127);
}
