//! A confined command in the caller's own terminal: no nursery, no capture, one call.
//!
//! A warden is forked right into the cage's namespaces and looks after the command, which keeps the
//! caller's streams, session and process group, so that Ctrl-C and job control work as they do without
//! us. The caller stays outside and waits.

use super::children;
use super::forerunner::Forerunner;
use super::given;
use super::host::{SEARCHES, cannot_build, cannot_keep_free, packet_pair};
use super::job::Word;
use super::nursery::Allowed;
use super::plan::{Plan, Strings};
use super::raw::{self, NeverReturn};
use super::warden::{self, Caged};
use super::wire::{Order, PACKET_BYTES, REPLY_BYTES, Request, Streams};
use crate::handle::Exit;
use crate::in_terminal::RanInTerminal;
use crate::sys::{LaunchError, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{Mode as FileMode, OFlags, fchmod, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process_group, waitpid};
use rustix::process::{getpid, set_child_subreaper};
use rustix::termios::{Action, OptionalActions, Termios};
use rustix::termios::{tcflow, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};
use sandgate_sandbox::ExecEnv;
use sandgate_sandbox::linux::{Cage, Mode, Of, Reservations, Site};
use std::io;

/// Runs a command in the cage and waits for it.
///
/// The process must have one thread: it is single-threaded front ends that call this. `sent` may make the
/// namespaces already.
pub(crate) fn run(
    env: &ExecEnv,
    site: &Site,
    mut sent: Option<Forerunner>,
) -> Result<RanInTerminal, LaunchError> {
    let cannot = |e: io::Error| LaunchError::new(Stage::SetUp, e);
    given::each_stream(|name, stream| given::check(name, stream, site.network()))
        .map_err(cannot)?;
    let lent = Lent::find();
    raw::block_signals();
    let ignored = raw::Signals::ignored();
    let signals = raw::front_signal_fd(ignored).map_err(|e| cannot(e.into()))?;
    let (mut request, strings) = Request::describe(env).map_err(cannot)?;
    request.streams = Streams::Inherited;
    // A warden that is killed ends nothing where it is not the first process of a namespace: what it watched over comes
    // here. Whoever was made into this program with children already keeps them, and what those leave behind.
    let inherits = !children::any_but(sent.as_ref().and_then(Forerunner::pid))
        && set_child_subreaper(Some(getpid())).is_ok();
    let mut allowed = Allowed::Namespaces;
    let mut searches = SEARCHES;
    let result = loop {
        searches -= 1;
        match run_once(site, request, &strings, (&signals, ignored), allowed, sent.take()) {
            // Some containers cover parts of /proc, and then let nobody have a whole one.
            Err(error) if error.is_refusal() && allowed == Allowed::Namespaces => {
                allowed = Allowed::Nothing;
            }
            Err(error) if error.is_about_a_move() && searches > 0 => {}
            result => break result,
        }
    };
    if inherits {
        children::end_all();
        let _ = set_child_subreaper(None);
    }
    lent.give_back();
    result
}

/// What belongs to whoever called us and stays when the command is gone, as it was.
struct Lent {
    /// How each stream is used, which everybody shares who has it open: a shell whose terminal does not
    /// wait for what is typed takes that for the end.
    uses: [Option<OFlags>; 3],
    terminal: Option<Terminal>,
}

impl Lent {
    fn find() -> Self {
        let uses = [0, 1, 2].map(|number| with_stream(number, |stream| fcntl_getfl(stream).ok()));
        Self { uses, terminal: Terminal::find() }
    }

    fn give_back(&self) {
        for (number, before) in self.uses.iter().enumerate() {
            let Some(before) = before else { continue };
            with_stream(number, |stream| {
                if fcntl_getfl(stream).is_ok_and(|now| now != *before) {
                    let _ = fcntl_setfl(stream, *before);
                }
            });
        }
        if let Some(terminal) = &self.terminal {
            terminal.give_back();
        }
    }
}

/// The person's terminal, as it was.
struct Terminal {
    number: usize,
    settings: Termios,
    mode: FileMode,
    foreground: Option<Pid>,
}

impl Terminal {
    /// The first of the streams that is one.
    fn find() -> Option<Self> {
        (0..3).find_map(|number| {
            with_stream(number, |stream| {
                let settings = tcgetattr(stream).ok()?;
                let mode = FileMode::from_raw_mode(fstat(stream).ok()?.st_mode);
                let foreground = tcgetpgrp(stream).ok();
                Some(Self { number, settings, mode, foreground })
            })
        })
    }

    /// Undoes what a command has done to it. What was typed into other settings is not kept: it was not
    /// meant for whoever reads next. Our signals are blocked, so that it works in the background too.
    fn give_back(&self) {
        with_stream(self.number, |stream| {
            if fstat(stream).is_ok_and(|stat| FileMode::from_raw_mode(stat.st_mode) != self.mode) {
                let _ = fchmod(stream, self.mode);
            }
            // Output that a command has stopped goes on by this call only. What the person has stopped by a
            // key stays so.
            let _ = tcflow(stream, Action::OOn);
            // Nobody could read from it while a group is in the foreground that has ended.
            let has_ended = |group| test_kill_process_group(group) == Err(Errno::SRCH);
            if let Some(before) = self.foreground
                && tcgetpgrp(stream).is_ok_and(|now| now != before && has_ended(now))
            {
                let _ = tcsetpgrp(stream, before);
            }
            if tcgetattr(stream).is_ok_and(|now| !is_same(&now, &self.settings)) {
                let _ = tcsetattr(stream, OptionalActions::Flush, &self.settings);
            }
        });
    }
}

fn is_same(one: &Termios, other: &Termios) -> bool {
    one.input_modes == other.input_modes
        && one.output_modes == other.output_modes
        && one.control_modes == other.control_modes
        && one.local_modes == other.local_modes
        && format!("{:?}", one.special_codes) == format!("{:?}", other.special_codes)
}

fn with_stream<T>(number: usize, what: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
    match number {
        0 => what(io::stdin().as_fd()),
        1 => what(io::stdout().as_fd()),
        _ => what(io::stderr().as_fd()),
    }
}

fn run_once(
    site: &Site,
    request: Request,
    strings: &[u8],
    (signals, ignored): (&OwnedFd, raw::Signals),
    allowed: Allowed,
    sent: Option<Forerunner>,
) -> Result<RanInTerminal, LaunchError> {
    // The process ahead may look at it until it is gone.
    let cage;
    let ahead = allowed.send_ahead(sent, site.network(), Of::Job)?;
    cage = site.build().map_err(cannot_build)?;
    given::each_stream(|name, stream| given::check_place(name, stream, site))
        .map_err(|e| LaunchError::new(Stage::SetUp, e))?;
    let mut names = cage.reservations().map_err(cannot_keep_free)?;
    let (control, theirs) = packet_pair().map_err(|e| LaunchError::new(Stage::SetUp, e))?;
    let mut keep: Vec<RawFd> = cage.descriptors().collect();
    keep.extend(names.descriptors().map(|fd| fd.as_raw_fd()));
    keep.extend([0, 1, 2, theirs.as_raw_fd()]);
    keep.sort_unstable();
    let mut theirs = Some(theirs);
    let mut warden = |mode| {
        let _never = NeverReturn;
        raw::take_over_signals();
        ignored.ignore();
        // SAFETY: this is a process of its own, and uses no descriptor that is not kept.
        unsafe { raw::close_all_but(&keep) };
        if let Some(control) = theirs.take() {
            guard(&cage, request, &mut names, control, mode);
        }
    };
    // SAFETY: it makes only kernel calls and never returns.
    let warden = unsafe { ahead.fork(&mut warden) }?;
    drop(theirs);
    let result = talk(&control, strings, signals);
    // The end of the socket is the end of all that is left.
    drop(control);
    // Meanwhile.
    drop(keep);
    drop(cage);
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(warden), WaitOptions::empty()));
    // A warden that came to its end has waited for locks already.
    match ended {
        Ok(Some((_, status))) if status.exited() => names.remove_at_once(),
        _ => names.remove(),
    }
    result
}

/// The life of the warden: furnishes the cage, looks after the command, and gives the names back, whatever came of it:
/// the caller may be killed at any moment, and does it only for a warden that was.
fn guard(
    cage: &Cage,
    request: Request,
    names: &mut Reservations,
    control: OwnedFd,
    mode: Mode,
) -> ! {
    let taken = if mode == Mode::Namespaces { names.take() } else { Ok(()) };
    match taken.and_then(|()| cage.settle(Of::Job, mode, names)) {
        Ok(()) => {
            raw::forbid_inspection();
            let caged = Caged { inside: cage.inside(), mode };
            warden::serve_terminal(control, request, caged);
        }
        Err(stuck) => warden::refuse(&control, stuck.into()),
    }
    names.give_back();
    raw::exit_now(0);
}

/// The caller's side: sends the command, passes signals on, and hears how it ends.
fn talk(
    control: &OwnedFd,
    strings: &[u8],
    signals: &OwnedFd,
) -> Result<RanInTerminal, LaunchError> {
    for packet in strings.chunks(PACKET_BYTES) {
        // Whoever stops listening half way has said why.
        if rustix::io::retry_on_intr(|| send(control, packet, SendFlags::NOSIGNAL)).is_err() {
            break;
        }
    }
    let mut ran = RanInTerminal::default();
    let mut ended = None;
    loop {
        let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if poll(&mut fds, None).is_err_and(|e| e != Errno::INTR) {
            break;
        }
        let [word, signal] = fds.map(|fd| fd.revents());
        if signal.contains(PollFlags::IN)
            && let Some(signal) = raw::next_signal(signals.as_fd())
        {
            order(control, Order::Signal(signal.as_raw()));
        }
        if word.is_empty() {
            continue;
        }
        let mut bytes = [0u8; REPLY_BYTES];
        let n = match rustix::io::retry_on_intr(|| rustix::io::read(control, &mut bytes)) {
            Ok(0) => break,
            Ok(n) => n,
            // It went without hearing our last word. That is said once, and before its own last one.
            Err(Errno::CONNRESET) => continue,
            Err(_) => break,
        };
        match Word::hear(&bytes[..n]) {
            Some(Word::Failed(error)) => return Err(error),
            Some(Word::Started { held, .. }) => ran.held = held,
            Some(Word::Denied(denial)) => ran.denials.evidence.push(denial),
            Some(Word::MoreDenied(count)) => ran.denials.more += count,
            Some(Word::Stopped) => {
                // The shell that we were started from must see that the job has stopped. It is
                // continued as a whole.
                let _ = kill_process(getpid(), Signal::STOP);
                order(control, Order::Signal(Signal::CONT.as_raw()));
            }
            Some(Word::Ended(end)) => {
                ended = Some(end.exit);
                order(control, Order::Kill);
            }
            Some(Word::Gone { .. }) => break,
            Some(Word::Taken) | None => {}
        }
    }
    // A guard that goes without a word was killed, and the command with it.
    ran.exit = ended.unwrap_or(Exit::KILLED);
    Ok(ran)
}

fn order(control: &OwnedFd, order: Order) {
    let _ = send(control, &order.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Becomes the command, which nothing confines.
pub(crate) fn become_unconfined(env: &ExecEnv) -> LaunchError {
    let cannot = |e: io::Error| LaunchError::new(Stage::SetUp, e);
    let (request, text) = match Request::describe(env) {
        Ok(described) => described,
        Err(error) => return cannot(error),
    };
    // The standard library ignores one by itself, and an exec would hand that on.
    let ignored = raw::Signals::ignored();
    raw::take_over_signals();
    ignored.ignore();
    let failure = Strings::holding(request, &text)
        .and_then(|strings| Ok(Plan::lay_out(request, &strings)?.execute()));
    let (Ok(failure) | Err(failure)) = failure;
    LaunchError::new(failure.stage, failure.errno)
}
