//! Windows: a job object for each job, which ends every process in it when it is closed.
//!
//! A confined command is started with its session's token; everything else is the same for both. A
//! command has its three streams and no other handle. There is no terminal yet: a job that asks for
//! one is told so. What of this has been run, and where, is in `docs/platforms.md`.

mod create;
mod job_object;
mod streams;

pub(crate) use streams::{Reader, Writer};

use super::{Ended, Launch, LaunchError, Launched, Stage, Stdio};
use crate::handle::Exit;
use crate::spawner::TerminalSize;
use job_object::JobObject;
use sandgate_sandbox::windows::Restriction;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::sync::Arc;
use std::time::Duration;
use streams::Ends;
use tokio::sync::oneshot;

/// What a call says that answers with a boolean.
fn done(result: windows_sys::core::BOOL) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Starts jobs directly.
pub(crate) struct Nursery {}

impl Nursery {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Starts a job and waits until its program runs.
    pub(crate) async fn launch(&self, launch: Launch<'_>) -> Result<Launched, LaunchError> {
        let Stdio::Pipes(stdin) = launch.stdio else {
            let why = "terminals are not supported on Windows yet: run the command without one";
            let source = io::Error::new(io::ErrorKind::Unsupported, why);
            return Err(LaunchError::new(Stage::Terminal, source));
        };
        let set_up = |e: io::Error| LaunchError::new(Stage::SetUp, e);
        let env = launch.env;
        super::check_directory(env.cwd())?;
        let Ends { stdin: our_stdin, stdout, stderr, theirs } =
            Ends::connect(stdin).await.map_err(set_up)?;
        let restriction = env.restriction().cloned();
        let object = JobObject::new(restriction.is_some()).map_err(set_up)?;
        let created = create::create(env, stdin, &theirs, &object)?;
        // Only the job has them now, so that the pipes end with it.
        drop(theirs);
        let exit = watch(created.process).map_err(set_up)?;
        let job = Job { object, pid: created.pid, exit, ended: None, _restriction: restriction };
        let (stdout, stderr) = (Some(stdout), Some(stderr));
        Ok(Launched { job, stdin: our_stdin, stdout, stderr, terminal: None })
    }
}

/// Commands in the console that this program was started in.
pub(crate) mod in_place {
    use super::streams::inherited;
    use super::{Exit, JobObject, LaunchError, Stage, create};
    use crate::spawner::Stdin;
    use sandgate_sandbox::ExecEnv;
    use std::io;

    /// Runs a command with our own streams and waits for it. What it leaves behind ends with its job.
    pub(crate) fn run(env: &ExecEnv) -> Result<Exit, LaunchError> {
        let set_up = |e: io::Error| LaunchError::new(Stage::SetUp, e);
        crate::sys::check_directory(env.cwd())?;
        let object = JobObject::new(env.restriction().is_some()).map_err(set_up)?;
        let streams = inherited().map_err(set_up)?;
        let created = create::create(env, Stdin::Inherit, &streams, &object)?;
        drop(streams);
        create::wait(&created.process).map(Exit::Code).map_err(set_up)
    }
}

/// Waits for a process on a thread of its own, which lives as long as the process.
fn watch(process: OwnedHandle) -> io::Result<oneshot::Receiver<Exit>> {
    let (tell, hear) = oneshot::channel();
    std::thread::Builder::new().name("sandgate-wait".to_owned()).spawn(move || {
        let exit = create::wait(&process).map_or(Exit::KILLED, Exit::Code);
        // Nobody listens once the job is gone.
        let _ = tell.send(exit);
    })?;
    Ok(hear)
}

/// A command and its job object. Dropping it ends them.
pub(crate) struct Job {
    object: JobObject,
    pid: u32,
    exit: oneshot::Receiver<Exit>,
    ended: Option<Exit>,
    /// The access lists of a session stay as they are while a command of it runs.
    _restriction: Option<Arc<Restriction>>,
}

/// There are no signals here.
pub(crate) struct Remote;

impl Remote {
    #[expect(clippy::unused_self, reason = "other systems have something to signal")]
    pub(crate) fn signal(&self, _signal: i32) {}
}

impl Job {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    #[expect(clippy::unused_self, reason = "other systems have something to signal")]
    pub(crate) fn remote(&self) -> Remote {
        Remote
    }

    /// Waits for the command itself, not for the rest of its job.
    pub(crate) async fn ended(&mut self) -> Ended {
        let exit = match self.ended {
            Some(exit) => exit,
            None => (&mut self.exit).await.unwrap_or(Exit::KILLED),
        };
        self.ended = Some(exit);
        Ended { exit, stragglers: self.object.is_in_use() }
    }

    /// An interrupt cannot be sent to one job only, so it ends it.
    pub(crate) fn signal(&self, _signal: i32) {
        self.kill();
    }

    pub(crate) fn kill(&self) {
        self.object.kill();
    }

    pub(crate) async fn gone(&mut self) -> u32 {
        while self.object.is_in_use() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        0
    }

    /// The rest of the job lives on.
    pub(crate) fn leave(self) {
        self.object.release();
    }
}

/// No job has a terminal here.
pub(crate) struct Terminal;

impl Terminal {
    #[expect(clippy::unused_self, reason = "other systems have a terminal to resize")]
    pub(crate) fn resize(&self, _size: TerminalSize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
