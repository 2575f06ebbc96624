//! The whole pipeline, for a front end to hold.

use crate::error::RuntimeError;
use crate::observe::Observer;
use crate::report::Report;
use crate::request::{CommandRequest, KeepOutput};
use crate::resolve::resolve;
use crate::session::Session;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Spawner, SpillPolicy, Stop, execute};
use sandgate_protocol::ExecToolCallOutput;
use sandgate_sandbox::SandboxManager;

/// Runs commands. A front end makes one and keeps it as long as it lives; when it goes, everything
/// that was started through it ends, and the files of its session are removed.
pub struct Runtime {
    spawner: Spawner,
    sandbox: SandboxManager,
    session: Session,
}

impl Runtime {
    /// Makes everything ready to run commands.
    ///
    /// On Linux this forks, so call it first: before the program has threads, an asynchronous
    /// runtime or much memory. Later it works too, only slower.
    ///
    /// # Errors
    /// When the system makes no process for it.
    pub fn start() -> Result<Self, RuntimeError> {
        let spawner = Spawner::start()?;
        Ok(Self { spawner, sandbox: SandboxManager::new(), session: Session::named() })
    }

    /// Runs a command that the person at the keyboard typed, **unconfined**: it can do whatever that
    /// person can do.
    ///
    /// The grant is made here, without asking anybody, because typing the command was the decision.
    /// This is for front ends whose command line *is* the person's word; a tool call of a model must
    /// never come this way.
    ///
    /// # Errors
    /// When the command could not be started, or when `observer` failed and it was ended for that.
    pub async fn run_as_person(
        &self,
        request: CommandRequest,
        stop: &Stop,
        observer: &mut impl Observer,
    ) -> Result<ExecToolCallOutput, RuntimeError> {
        let CommandRequest { call_id, command, cwd, expiration, env, input, keep } = request;
        let params = resolve(command, &cwd, env, expiration)?;
        let grant = Grant::unconfined_by_person(params);
        let env = self.sandbox.transform(grant);

        let spill = match keep {
            KeepOutput::HeadAndTail => None,
            KeepOutput::Everything => Some(&self.session),
        };
        let mut report = Report::new(call_id, observer, spill);
        report.begin(&env).await?;
        let options = ExecuteOptions {
            stdin: input.into(),
            spill: spill.map(|session| SpillPolicy::new(session.directory())),
            ..ExecuteOptions::default()
        };
        match execute(&self.spawner, &env, options, stop, &mut report).await {
            Ok(executed) => {
                report.end(&executed.output).await?;
                Ok(executed.output)
            }
            Err(error) => Err(report.not_started(error.into()).await),
        }
    }
}
