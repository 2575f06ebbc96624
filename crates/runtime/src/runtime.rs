//! The whole pipeline, for a front end to hold.

use crate::directory::SessionDirectory;
use crate::error::RuntimeError;
use crate::observe::Observer;
use crate::outcome::CommandOutcome;
use crate::report::Report;
use crate::request::{CommandRequest, KeepOutput};
use crate::resolve::resolve;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, ModelFormat, Shell, Spawner, SpillPolicy, Stop, execute};
use sandgate_sandbox::SandboxManager;
use std::sync::Arc;

/// Runs commands. A front end makes one and keeps it as long as it lives; when it goes, everything
/// that was started through it ends, and the files of its session are removed.
pub struct Runtime {
    pub(crate) spawner: Spawner,
    pub(crate) sandbox: SandboxManager,
    directory: Arc<SessionDirectory>,
    /// What reads the scripts that name no shell.
    pub(crate) shell: Shell,
}

impl Runtime {
    /// Makes everything ready to run commands, and finds out which shell is the person's own.
    ///
    /// On Linux this forks, so call it first: before the program has threads, an asynchronous
    /// runtime or much memory. Later it works too, only slower.
    ///
    /// # Errors
    /// When the system makes no process for it.
    pub fn start() -> Result<Self, RuntimeError> {
        // First of all, because it forks: to ask for the shell may load libraries and open files.
        let spawner = Spawner::start()?;
        let shell = Shell::default_user_shell();
        let directory = Arc::new(SessionDirectory::named());
        Ok(Self { spawner, sandbox: SandboxManager::new(), directory, shell })
    }

    /// Has scripts read by this shell, a name or an absolute path, instead of the person's own. A
    /// request may still name another.
    ///
    /// # Errors
    /// When there is no such shell.
    pub fn with_shell(mut self, name: &str) -> Result<Self, RuntimeError> {
        self.shell = Shell::named(name)?;
        Ok(self)
    }

    /// Runs a command that the person at the keyboard typed, **unconfined**: it can do whatever that
    /// person can do.
    ///
    /// The grant is made here, without asking anybody, because typing the command was the decision.
    /// This is for front ends whose command line *is* the person's word; a tool call of a model must
    /// never come this way.
    ///
    /// # Errors
    /// When the command was not started. One that was has an outcome, even if `observer` failed.
    pub async fn run_as_person(
        &self,
        request: CommandRequest,
        stop: &Stop,
        observer: &mut impl Observer,
    ) -> Result<CommandOutcome, RuntimeError> {
        let CommandRequest { call_id, command, cwd, expiration, env, input, keep } = request;
        let params = resolve(command, &self.shell, &cwd, env, expiration)?;
        let grant = Grant::unconfined_by_person(params);
        let env = self.sandbox.transform(grant)?;

        let mut report = Report::new(call_id, observer, ModelFormat::default());
        // Nothing confines it, so there is nothing to say of that.
        report.begin(&env, None).await?;
        let options = ExecuteOptions {
            stdin: input.into(),
            spill: self.spill(keep),
            ..ExecuteOptions::default()
        };
        match execute(&self.spawner, &env, options, stop, &mut report).await {
            Ok(executed) => {
                let (output, unheard) = report.end(executed.output, &executed.raw.aggregated).await;
                Ok(CommandOutcome { output, spill: executed.spill, unheard })
            }
            Err(error) => Err(report.not_started(error.into()).await),
        }
    }

    /// Where output goes that memory does not hold: to the session's directory, which is made when
    /// the first of it comes.
    pub(crate) fn spill(&self, keep: KeepOutput) -> Option<SpillPolicy> {
        match keep {
            KeepOutput::HeadAndTail => None,
            KeepOutput::Everything => {
                let directory = Arc::clone(&self.directory);
                Some(SpillPolicy::made_by(move || directory.make()))
            }
        }
    }
}
