//! Starts processes from the environments that the sandbox made.

use crate::broadcast::Broadcast;
use crate::drive::OutputSink;
use crate::error::SpawnError;
use crate::handle::{ProcessHandle, SpawnedProcess, start, supervise};
use crate::live::LiveEnd;
use crate::output::RawStream;
use crate::sys::{Launch, Launched, Nursery, Stdio};
use sandgate_sandbox::ExecEnv;
use std::sync::Arc;

/// Starts processes and sees to it that none outlives its owner. Cheap to clone.
///
/// ```
/// use sandgate_process::{Received, Spawner, Stdin};
/// # use sandgate_protocol::{ExecExpiration, ExecParams, SandboxPermissions};
/// # fn command(words: &[&str]) -> ExecParams {
/// #     ExecParams {
/// #         command: words.iter().map(ToString::to_string).collect(),
/// #         program: words[0].into(),
/// #         cwd: "/".into(),
/// #         env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
/// #         expiration: ExecExpiration::DefaultTimeout,
/// #         sandbox_permissions: SandboxPermissions::UseDefault,
/// #         justification: None,
/// #         arg0: None,
/// #     }
/// # }
/// # use sandgate_policy::Grant;
/// # use sandgate_sandbox::SandboxManager;
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spawner = Spawner::start()?;
/// let grant = Grant::unconfined_by_person(command(&["/bin/cat"]));
/// let env = SandboxManager::new().transform(grant)?;
///
/// let mut cat = spawner.spawn_pipe(&env, Stdin::Piped).await?;
/// let input = cat.session.writer_sender().expect("it has a pipe");
/// input.send("meow\n".into()).await?;
/// cat.session.close_stdin().await;
/// let mut printed = Vec::new();
/// while let Some(Received::Chunk(chunk)) = cat.output_rx.recv().await {
///     printed.extend(chunk.bytes);
/// }
/// assert_eq!(printed, b"meow\n");
/// assert_eq!(cat.exit_rx.await?, 0);
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct Spawner {
    nursery: Arc<Nursery>,
}

/// Where a process reads its standard input from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// Nothing: the first read finds the end.
    #[default]
    Null,
    /// A pipe that the owner writes to.
    Piped,
    /// The standard input of this program.
    Inherit,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

impl Spawner {
    /// Prepares to start processes.
    ///
    /// On Linux the first command that nothing confines, and the first in each cage, has a small process
    /// forked for it and its like. The last one goes when the last clone of this value is dropped.
    ///
    /// # Errors
    /// When the system makes no process for it.
    pub fn start() -> Result<Self, SpawnError> {
        Ok(Self { nursery: Arc::new(Nursery::start().map_err(SpawnError::Prepare)?) })
    }

    /// Starts a command with pipes for its output, to live until it ends or its handle is dropped:
    /// the time limit of a single call does not apply.
    ///
    /// # Errors
    /// When the command cannot be started; see [`SpawnError`].
    pub async fn spawn_pipe(
        &self,
        env: &ExecEnv,
        stdin: Stdin,
    ) -> Result<SpawnedProcess, SpawnError> {
        let launched = self.launch(env, Stdio::Pipes(stdin)).await?;
        Ok(supervise(launched))
    }

    /// Starts a command with pipes for its input and output, to live until it ends or its handle is dropped.
    /// All that it writes goes to `sink`, which holds it up while it takes its time, and which `on_end` gets
    /// back when it has ended. Nothing of it is kept.
    ///
    /// # Errors
    /// When the command cannot be started; see [`SpawnError`].
    pub async fn spawn_into<S: OutputSink + 'static, E: Future<Output = ()> + Send>(
        &self,
        env: &ExecEnv,
        sink: S,
        on_end: impl FnOnce(S, LiveEnd) -> E + Send + 'static,
    ) -> Result<ProcessHandle, SpawnError> {
        let launched = self.launch(env, Stdio::Pipes(Stdin::Piped)).await?;
        let on_end =
            |sink, finished| on_end(sink, LiveEnd::new(finished, RawStream::from(Vec::new())));
        Ok(start(launched, Broadcast::new(), sink, |_| {}, on_end))
    }

    /// Starts a command on a terminal of its own, to live until it ends or its handle is dropped.
    ///
    /// # Errors
    /// When the command cannot be started; see [`SpawnError`].
    pub async fn spawn_pty(
        &self,
        env: &ExecEnv,
        size: TerminalSize,
    ) -> Result<SpawnedProcess, SpawnError> {
        let launched = self.launch(env, Stdio::Terminal(size)).await?;
        Ok(supervise(launched))
    }

    pub(crate) async fn launch(&self, env: &ExecEnv, stdio: Stdio) -> Result<Launched, SpawnError> {
        SpawnError::check(env)?;
        let launch = Launch { env, stdio };
        self.nursery.launch(launch).await.map_err(|e| SpawnError::from_launch(env, e))
    }
}
