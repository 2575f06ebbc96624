//! The ways in which a running command is ended from outside.

use sandgate_protocol::ExecExpiration;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a command that was interrupted may take to end by itself.
pub(crate) const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

/// The caller's two levers on a running command.
///
/// ```
/// use sandgate_process::{ExecuteOptions, OutputSink, Spawner, Stop, execute};
/// # use sandgate_protocol::OutputStream;
/// # struct Nobody;
/// # impl OutputSink for Nobody {
/// #     async fn write(&mut self, _: OutputStream, _: &[u8]) -> std::io::Result<()> { Ok(()) }
/// # }
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
/// let grant = Grant::unconfined_by_person(command(&["/bin/sleep", "1000"]));
/// let env = SandboxManager::new().transform(grant)?;
///
/// let stop = Stop::default();
/// let mut nobody = Nobody;
/// let sleep = execute(&spawner, &env, ExecuteOptions::default(), &stop, &mut nobody);
/// let (done, ()) = tokio::join!(sleep, async { stop.cancel.cancel() });
/// assert!(done?.output.cancelled);
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Ends the command and everything it started, at once.
    pub cancel: CancellationToken,
    /// Sends the command what Ctrl-C sends, and ends it if it does not end by itself soon.
    pub interrupt: CancellationToken,
}

impl Stop {
    /// Levers that move with these, and can be moved without them.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { cancel: self.cancel.child_token(), interrupt: self.interrupt.child_token() }
    }
}

/// Why a command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Timeout,
    Cancelled,
}

/// The next thing to do about a command that is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask it to end.
    Interrupt,
    /// End it.
    Kill(Cause),
}

/// Watches the clock and the levers for one command.
pub(crate) struct Watch<'a> {
    stop: &'a Stop,
    deadline: Option<Instant>,
    /// Set once the command was asked to end.
    grace_ends: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(stop: &'a Stop, expiration: ExecExpiration) -> Self {
        // A limit too far away to be written down is no limit.
        let deadline = expiration.timeout().and_then(|limit| Instant::now().checked_add(limit));
        Self { stop, deadline, grace_ends: None }
    }

    /// Waits for the next step. Can be dropped and called again.
    pub(crate) async fn step(&mut self) -> Step {
        let interrupted = self.grace_ends.is_some();
        tokio::select! {
            biased;
            () = self.stop.cancel.cancelled() => Step::Kill(Cause::Cancelled),
            () = until(self.grace_ends) => Step::Kill(Cause::Cancelled),
            () = self.stop.interrupt.cancelled(), if !interrupted => {
                self.grace_ends = Some(Instant::now() + INTERRUPT_GRACE);
                Step::Interrupt
            }
            () = until(self.deadline) => Step::Kill(Cause::Timeout),
        }
    }

    /// Waits until somebody wants the call to be over, in either way.
    pub(crate) async fn called_off(&self) {
        tokio::select! {
            () = self.stop.cancel.cancelled() => {}
            () = self.stop.interrupt.cancelled() => {}
        }
    }

    /// Whether the command was asked to end, and so ended because of it.
    pub(crate) fn interrupted(&self) -> bool {
        self.grace_ends.is_some()
    }
}

/// Waits for a moment that may never come.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
