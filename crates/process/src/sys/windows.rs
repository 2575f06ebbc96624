//! Windows: a job object for each job, which ends every process in it when it is closed.
//!
//! There is no terminal yet: a job that asks for one is told so. This file is compile-checked; it
//! has not been run.

#![expect(clippy::disallowed_methods, reason = "this is one of the places that start processes")]

use super::{Ended, Launch, LaunchError, Launched, Stage, Stdio};
use crate::handle::Exit;
use crate::spawner::{Stdin, TerminalSize};
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, Command};

/// Starts jobs directly.
pub(crate) struct Nursery {}

impl Nursery {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Starts a job and waits until its program runs.
    #[expect(clippy::unused_async, reason = "starting a job waits on other systems")]
    pub(crate) async fn launch(&self, launch: Launch<'_>) -> Result<Launched, LaunchError> {
        let Stdio::Pipes(stdin) = launch.stdio else {
            let why = "terminals are not supported on Windows yet: run the command without one";
            let source = io::Error::new(io::ErrorKind::Unsupported, why);
            return Err(LaunchError::new(Stage::Terminal, source));
        };
        let env = launch.env;
        super::check_directory(env.cwd())?;
        let mut command = Command::new(env.program());
        command.args(env.argv().skip(1)).env_clear().envs(env.env()).current_dir(env.cwd());
        command.stdin(match stdin {
            Stdin::Null => std::process::Stdio::null(),
            Stdin::Piped => std::process::Stdio::piped(),
            Stdin::Inherit => std::process::Stdio::inherit(),
        });
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = CommandWrap::from(command)
            .wrap(JobObject)
            .wrap(KillOnDrop)
            .spawn()
            .map_err(|e| LaunchError::new(Stage::Exec, e))?;
        let stdin = child.stdin().take().map(Writer);
        let stdout = child.stdout().take().map(|pipe| Reader(Box::new(pipe)));
        let stderr = child.stderr().take().map(|pipe| Reader(Box::new(pipe)));
        let pid = child.id().unwrap_or(0);
        Ok(Launched { job: Job { child, pid }, stdin, stdout, stderr, terminal: None })
    }
}

/// A command and its job object. Dropping it ends them.
pub(crate) struct Job {
    child: Box<dyn ChildWrapper>,
    pid: u32,
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
        let code = self.child.inner_mut().wait().await.ok().and_then(|status| status.code());
        Ended { exit: code.map_or(Exit::KILLED, Exit::Code), stragglers: true }
    }

    /// An interrupt cannot be sent to one job only, so it ends it.
    pub(crate) fn signal(&mut self, _signal: i32) {
        self.kill();
    }

    pub(crate) fn kill(&mut self) {
        // It fails only when there is nothing left to end.
        let _ = self.child.start_kill();
    }

    pub(crate) async fn gone(&mut self) -> u32 {
        let _ = self.child.wait().await;
        0
    }

    /// The rest of the job lives until this program ends.
    pub(crate) fn leave(self) {
        drop(self.child.into_inner());
    }
}

/// The reading end of a pipe.
pub(crate) struct Reader(Box<dyn AsyncRead + Send + Unpin>);

impl Reader {
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer).await {
            // The last process that held the other end is gone.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other,
        }
    }
}

/// The writing end of a pipe.
pub(crate) struct Writer(ChildStdin);

impl Writer {
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
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
