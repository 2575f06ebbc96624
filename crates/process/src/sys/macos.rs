//! macOS and its kin: a session for each job, ended as a process group.
//!
//! There is no subreaper here. A process that leaves its session is ended with the call only if it
//! stayed in the group, and nothing is ended when this program is killed: `docs/platforms.md` says
//! so. A confined command is started by `sandbox-exec`, which becomes it: what is wrong with the
//! program is then said by `sandbox-exec`, in the command's own error stream. This file is
//! compile-checked; it has not been run.

#![expect(clippy::disallowed_methods, reason = "this is one of the places that start processes")]

use super::streams::{End, Ends};
use super::{Ended, Launch, LaunchError, Launched, Stage};
use crate::handle::Exit;
use rustix::process::{Pid, Signal};
use sandgate_sandbox::ExecEnv;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command as Plain, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Starts jobs directly.
pub(crate) struct Nursery {}

impl Nursery {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Starts a job and waits until its program runs.
    #[expect(clippy::unused_async, reason = "starting a job waits on other systems")]
    pub(crate) async fn launch(&self, launch: Launch<'_>) -> Result<Launched, LaunchError> {
        let set_up = |e: io::Error| LaunchError::new(Stage::SetUp, e);
        let env = launch.env;
        super::check_directory(env.cwd())?;
        let Ends { stdin, stdout, stderr, terminal, theirs } =
            Ends::connect(launch.stdio).map_err(set_up)?;
        let [their_stdin, their_stdout, their_stderr] = theirs.map(stdio);
        let mut command = Command::from(command(env));
        command.env_clear().envs(env.env()).current_dir(env.cwd());
        command.stdin(their_stdin).stdout(their_stdout).stderr(their_stderr);
        let takes_terminal = terminal.is_some();
        let prepare = move || {
            rustix::process::setsid()?;
            if takes_terminal {
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            }
            Ok(())
        };
        // SAFETY: the closure only makes kernel calls, which are safe after a fork.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(|e| LaunchError::new(stage_of(&e), e))?;
        drop(command);
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| set_up(io::Error::other("the process has no id")))?;
        let group = Arc::new(Group { pid, ours: AtomicBool::new(true) });
        let job = Job { child, group };
        Ok(Launched { job, stdin, stdout: Some(stdout), stderr, terminal })
    }
}

/// The program and its arguments, with what confines it around them.
#[cfg(target_os = "macos")]
fn command(env: &ExecEnv) -> Plain {
    let Some(seatbelt) = env.seatbelt() else { return unconfined(env) };
    let argv = seatbelt.wrap(env.program(), env.argv().skip(1));
    let mut command = Plain::new(&argv[0]);
    command.args(&argv[1..]);
    command
}

#[cfg(not(target_os = "macos"))]
fn command(env: &ExecEnv) -> Plain {
    unconfined(env)
}

fn unconfined(env: &ExecEnv) -> Plain {
    let mut command = Plain::new(env.program());
    let mut argv = env.argv();
    if let Some(name) = argv.next() {
        command.arg0(name);
    }
    command.args(argv);
    command
}

/// Commands in the terminal that this program was started in.
pub(crate) mod in_place {
    use super::{ExecEnv, LaunchError, command, stage_of};
    use crate::sys::check_directory;
    use std::os::unix::process::CommandExt as _;

    /// Becomes the command, with what confines it around it. Returns only on failure.
    pub(crate) fn become_command(env: &ExecEnv) -> LaunchError {
        if let Err(error) = check_directory(env.cwd()) {
            return error;
        }
        let mut command = command(env);
        let error = command.env_clear().envs(env.env()).current_dir(env.cwd()).exec();
        LaunchError::new(stage_of(&error), error)
    }
}

/// The step that failed, as far as the error tells.
fn stage_of(error: &io::Error) -> Stage {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Stage::Fork,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Stage::SetUp,
        _ => Stage::Exec,
    }
}

fn stdio(end: End) -> Stdio {
    match end {
        End::Null => Stdio::null(),
        End::HostStdin => Stdio::inherit(),
        End::Owned(fd) => fd.into(),
    }
}

/// A process group that may be signalled only while it is ours: until its leader has been waited for, and for as long
/// as somebody is left in it, which keeps its number from another. Between the one and the other there is a moment
/// in which its number could be given away; this system does so only after all others, and has no handles.
struct Group {
    pid: Pid,
    ours: AtomicBool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if self.ours.load(Ordering::SeqCst) {
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    fn exists(&self) -> bool {
        rustix::process::test_kill_process_group(self.pid).is_ok()
    }

    fn release(&self) {
        self.ours.store(false, Ordering::SeqCst);
    }
}

/// A command and its process group. Dropping it ends them.
pub(crate) struct Job {
    child: Child,
    group: Arc<Group>,
}

/// Sends signals to a job for as long as it is there.
pub(crate) struct Remote(Arc<Group>);

impl Remote {
    pub(crate) fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.0.signal(signal);
        }
    }
}

impl Job {
    pub(crate) fn pid(&self) -> u32 {
        self.group.pid.as_raw_nonzero().get().cast_unsigned()
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote(Arc::clone(&self.group))
    }

    pub(crate) async fn ended(&mut self) -> Ended {
        let exit = match self.child.wait().await {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => Exit::KILLED,
            },
            Err(_) => Exit::KILLED,
        };
        let stragglers = self.group.exists();
        if !stragglers {
            self.group.release();
        }
        Ended { exit, stragglers }
    }

    pub(crate) fn signal(&self, signal: i32) {
        self.remote().signal(signal);
    }

    pub(crate) fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    pub(crate) async fn gone(&mut self) -> u32 {
        while self.group.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.group.release();
        0
    }

    pub(crate) fn leave(self) {
        self.group.release();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}
