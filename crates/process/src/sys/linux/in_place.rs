//! A confined command in the caller's own terminal: no nursery, no capture, one call.
//!
//! The calling process enters the cage's namespaces itself and stays there; it has nothing else to
//! do. The command gets its standard streams and stays in its session, so that Ctrl-C and job
//! control work as they do without us.

use super::janitor::Names;
use super::keeper::run_kept;
use super::raw::{self, Forked, NeverReturn};
use crate::handle::Exit;
use crate::sys::{LaunchError, Stage};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use sandgate_sandbox::ExecEnv;
use sandgate_sandbox::linux::{Cage, Mode, Stuck};
use std::convert::Infallible;
use std::ffi::{CString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

/// Runs a command in the cage and waits for it.
///
/// The process must have one thread: it is single-threaded front ends that call this.
pub(crate) fn run(env: &ExecEnv, cage: &Cage) -> Result<Exit, LaunchError> {
    let image = Image::new(env).map_err(|e| LaunchError::new(Stage::SetUp, e))?;
    let set_up = |e: Errno| LaunchError::new(Stage::SetUp, e);
    raw::block_signals();
    let signals = raw::front_signal_fd().map_err(set_up)?;
    let mut names = Names::take(cage)?;
    let exit = run_inside(&image, cage, &mut names, &signals);
    names.give_back();
    exit
}

fn run_inside(
    image: &Image,
    cage: &Cage,
    names: &mut Names,
    signals: &OwnedFd,
) -> Result<Exit, LaunchError> {
    let mode = cage.enter_session(&names.reservations).map_err(stuck)?;
    if mode == Mode::LandlockOnly {
        // There is no mount that a directory could be of use for.
        std::mem::take(names).give_back();
        return run_kept(image, cage, signals);
    }
    let init = first_process(cage)?;
    names.until_the_end_of(init);
    let exit = start(image, cage).map(|command| wait_for(command, signals, || false));
    // All that is left in the namespace ends with its first process.
    let _ = kill_process(init, Signal::KILL);
    let _ = rustix::io::retry_on_intr(|| waitpid(Some(init), WaitOptions::empty()));
    exit
}

/// Becomes the command, which nothing confines.
pub(crate) fn become_unconfined(env: &ExecEnv) -> LaunchError {
    let image = match Image::new(env) {
        Ok(image) => image,
        Err(e) => return LaunchError::new(Stage::SetUp, e),
    };
    if let Err(errno) = rustix::process::chdir(image.cwd.as_c_str()) {
        return LaunchError::new(Stage::Chdir, errno);
    }
    // The standard library ignores this one, and an exec would hand that on.
    raw::default_signals();
    // SAFETY: the image is made of C strings and ends its lists with null.
    let errno =
        unsafe { raw::execve(image.program.as_ptr(), image.argv.as_ptr(), image.envp.as_ptr()) };
    LaunchError::new(Stage::Exec, errno)
}

fn stuck(Stuck { step, errno }: Stuck) -> LaunchError {
    let errno = io::Error::from_raw_os_error(errno);
    LaunchError::new(Stage::Cage, io::Error::new(errno.kind(), format!("cannot {step}: {errno}")))
}

/// Makes the job's namespace and the process that is its first: it waits for orphans and for us.
fn first_process(cage: &Cage) -> Result<Pid, LaunchError> {
    cage.enter_job().map_err(stuck)?;
    let parent = rustix::process::getpid();
    let (ready, report) = report_pipe()?;
    // SAFETY: one thread; the child makes only kernel calls and never returns.
    match unsafe { raw::fork_host() }.map_err(|e| LaunchError::new(Stage::Fork, e))? {
        Forked::Child => {
            let _never = NeverReturn;
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if let Err(stuck) = cage.mount_proc() {
                tell(&report, &Failed::cage(stuck));
                raw::exit_now(1);
            }
            // SAFETY: nothing below uses a descriptor; closing the report says that all is well.
            unsafe { raw::close_all_but(&[]) };
            // It was born with its parent alive; if that is gone, so is the reason to be here.
            if rustix::process::getppid().is_some_and(|pid| pid != parent) {
                raw::exit_now(1);
            }
            raw::wait_for_strays()
        }
        Forked::Parent(pid) => {
            drop(report);
            hear(&ready)?;
            Pid::from_raw(pid).ok_or_else(|| LaunchError::new(Stage::Fork, Errno::CHILD))
        }
    }
}

fn start(image: &Image, cage: &Cage) -> Result<Pid, LaunchError> {
    let (ready, report) = report_pipe()?;
    // SAFETY: as above.
    match unsafe { raw::fork_host() }.map_err(|e| LaunchError::new(Stage::Fork, e))? {
        Forked::Child => {
            let _never = NeverReturn;
            let Err(failed) = become_command(image, cage, Mode::Namespaces, &report);
            tell(&report, &failed);
            raw::exit_now(127);
        }
        Forked::Parent(pid) => {
            drop(report);
            let heard = hear(&ready);
            let pid = Pid::from_raw(pid).ok_or_else(|| LaunchError::new(Stage::Fork, Errno::CHILD));
            if let (Err(_), Ok(pid)) = (&heard, &pid) {
                let _ = rustix::io::retry_on_intr(|| waitpid(Some(*pid), WaitOptions::empty()));
            }
            heard.and(pid)
        }
    }
}

pub(super) fn become_command(
    image: &Image,
    cage: &Cage,
    mode: Mode,
    report: &OwnedFd,
) -> Result<Infallible, Failed> {
    // Anew, because the directory may be on one of the cage's own mounts now.
    rustix::process::chdir(image.cwd.as_c_str()).map_err(Failed::at(Stage::Chdir))?;
    cage.confine(mode).map_err(Failed::cage)?;
    // Giving up rights forgets this signal, so it is asked for after that.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Failed::at(Stage::SetUp))?;
    // SAFETY: nothing but the report and the standard streams is used below; it closes on exec.
    unsafe { raw::close_all_but(&[0, 1, 2, report.as_raw_fd()]) };
    raw::default_signals();
    // SAFETY: the image is made of C strings and ends its lists with null.
    let errno =
        unsafe { raw::execve(image.program.as_ptr(), image.argv.as_ptr(), image.envp.as_ptr()) };
    Err(Failed::at(Stage::Exec)(errno))
}

/// Waits for a child, passing on what is sent to us meanwhile. Stops waiting when `is_over` says so,
/// which is asked after each signal.
pub(super) fn wait_for(child: Pid, signals: &OwnedFd, is_over: impl Fn() -> bool) -> Exit {
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
    loop {
        match rustix::io::retry_on_intr(|| waitpid(Some(child), options)) {
            Ok(Some((_, status))) if status.stopped() => {
                // The shell that we were started from must see that the job has stopped. It is
                // continued as a whole.
                let _ = kill_process(rustix::process::getpid(), Signal::STOP);
                let _ = kill_process(child, Signal::CONT);
                continue;
            }
            Ok(Some((_, status))) => return exit_of(status),
            Ok(None) => {}
            Err(_) => return Exit::KILLED,
        }
        let signal = raw::next_signal(signals.as_fd());
        if is_over() {
            return Exit::KILLED;
        }
        if let Some(signal) = signal {
            let _ = kill_process(child, signal);
        }
    }
}

pub(super) fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// A program, its arguments and its environment as the kernel wants them.
pub(super) struct Image {
    program: CString,
    cwd: CString,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// What the lists point into.
    _strings: Vec<CString>,
}

impl Image {
    fn new(env: &ExecEnv) -> Result<Self, std::ffi::NulError> {
        let mut strings = Vec::new();
        let mut list = |items: &mut dyn Iterator<Item = Vec<u8>>| {
            let mut pointers = Vec::new();
            for item in items {
                let string = CString::new(item)?;
                // The bytes stay where they are when the list of strings grows.
                pointers.push(string.as_ptr());
                strings.push(string);
            }
            pointers.push(std::ptr::null());
            Ok::<_, std::ffi::NulError>(pointers)
        };
        let argv = list(&mut env.argv().map(|arg| arg.as_bytes().to_vec()))?;
        let pair = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
            [name.as_bytes(), b"=", value.as_bytes()].concat()
        };
        let envp = list(&mut env.env().iter().map(pair))?;
        Ok(Self {
            program: CString::new(env.program().as_os_str().as_bytes())?,
            cwd: CString::new(env.cwd().as_os_str().as_bytes())?,
            argv,
            envp,
            _strings: strings,
        })
    }
}

/// What a child says when it cannot go on. Saying nothing, by closing the pipe, is the good news.
pub(super) struct Failed {
    stage: Stage,
    errno: i32,
    step: &'static str,
}

impl Failed {
    fn at(stage: Stage) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { stage, errno: errno.raw_os_error(), step: "" }
    }

    fn cage(Stuck { step, errno }: Stuck) -> Self {
        Self { stage: Stage::Cage, errno, step }
    }
}

pub(super) fn report_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| LaunchError::new(Stage::SetUp, e))
}

pub(super) fn tell(report: &OwnedFd, failed: &Failed) {
    let mut message = [0u8; 72];
    let (numbers, text) = message.split_at_mut(8);
    let (stage, errno) = numbers.split_at_mut(4);
    stage.copy_from_slice(&(failed.stage as u32).to_ne_bytes());
    errno.copy_from_slice(&failed.errno.to_ne_bytes());
    for (to, from) in text.iter_mut().zip(failed.step.bytes()) {
        *to = from;
    }
    let _ = rustix::io::write(report, &message);
}

pub(super) fn hear(ready: &OwnedFd) -> Result<(), LaunchError> {
    let mut message = [0u8; 72];
    let n = rustix::io::retry_on_intr(|| rustix::io::read(ready, &mut message))
        .map_err(|e| LaunchError::new(Stage::SetUp, e))?;
    if n == 0 {
        return Ok(());
    }
    let [s0, s1, s2, s3, e0, e1, e2, e3, text @ ..] = message;
    let stage = Stage::from_wire(u32::from_ne_bytes([s0, s1, s2, s3]));
    let errno = io::Error::from_raw_os_error(i32::from_ne_bytes([e0, e1, e2, e3]));
    let step = String::from_utf8_lossy(&text);
    let step = step.trim_end_matches('\0');
    let source = match stage {
        Stage::Cage => io::Error::new(errno.kind(), format!("cannot {step}: {errno}")),
        _ => errno,
    };
    Err(LaunchError::new(stage, source))
}
