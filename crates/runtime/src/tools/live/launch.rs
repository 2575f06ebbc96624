//! Starts a live process that was permitted, and waits for its first answer.

use super::{pattern, size, wanted, yield_time};
use crate::audit::{Began, Ended, Granted, Record};
use crate::error::RuntimeError;
use crate::report::Report;
use crate::session::Services;
#[cfg(unix)]
use crate::snapshot::LoginCommand;
use crate::unified_exec::{Kept, LiveEntry, LiveObserver, Wanted, Whereabouts, Writes, reply};
use regex::bytes::Regex;
use sandgate_policy::Grant;
use sandgate_process::{
    LiveOptions, LiveStdio, Patience, ScreenWanted, TerminalSize, UnifiedExecProcess,
};
#[cfg(unix)]
use sandgate_process::{Shell, Stop};
use sandgate_protocol::{
    CallId, CodexErr, Denials, ExecCommandToolCallParams, ExecParams, ExecToolCallOutput,
    SandboxPolicy, SandboxType, UnifiedExecReply,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a process is started, and how its first answer is waited for.
pub(crate) struct Manner {
    pub(super) stdio: LiveStdio,
    pub(super) screen: ScreenWanted,
    limit: Duration,
    pub(super) pattern: Option<Regex>,
    wanted: Wanted,
}

impl Manner {
    /// The one that a call asks for.
    pub(crate) fn of(tool: &str, params: &ExecCommandToolCallParams) -> Result<Self, CodexErr> {
        let screen = match params.screen.unwrap_or(false) {
            true => ScreenWanted::Always,
            false => ScreenWanted::WhileBorrowed,
        };
        let stdio = match params.tty.unwrap_or(true) {
            true => LiveStdio::Terminal(match params.size {
                Some(asked) => size(tool, asked)?,
                None => TerminalSize::default(),
            }),
            false => LiveStdio::Pipes,
        };
        Ok(Self {
            stdio,
            screen,
            limit: yield_time(params.yield_time_ms),
            pattern: pattern(tool, "wait_for", params.wait_for.as_deref())?,
            wanted: wanted(params.raw, params.max_output_tokens),
        })
    }
}

/// One start of one process.
pub(crate) struct Launch<'a> {
    pub(crate) call_id: &'a CallId,
    pub(crate) process_id: &'a str,
    pub(crate) attempt: u32,
    pub(crate) manner: &'a Manner,
    pub(crate) kept: Kept,
    pub(crate) writes: Writes,
    /// The shell that it asks to be a login shell, if it starts from a snapshot.
    #[cfg(unix)]
    pub(crate) login_shell: Option<&'a Shell>,
    /// Ends the waiting, not the process.
    pub(crate) cancel: &'a CancellationToken,
}

/// A process that was started, and its first answer.
pub(crate) struct Launched {
    pub(crate) entry: Arc<LiveEntry>,
    pub(crate) reply: UnifiedExecReply,
    /// What was refused to it, if it failed because of that.
    pub(crate) denial: Option<Denials>,
}

impl Launch<'_> {
    /// Starts it. `permit` binds the permission to the command as it is run.
    pub(crate) async fn start(
        &self,
        services: &Services,
        mut params: ExecParams,
        permit: impl FnOnce(ExecParams) -> Grant,
    ) -> Result<Launched, CodexErr> {
        let (command, cwd) = (params.command.clone(), params.cwd.clone());
        let justification = params.justification.clone();
        let marks = self.marked(&mut params, services).await;
        #[cfg(unix)]
        if let Some(shell) = self.login_shell {
            let stop = Stop { cancel: self.cancel.clone(), ..Stop::default() };
            let command = LoginCommand { shell, call_id: self.call_id, stop: &stop };
            command.use_snapshot(&mut params, services).await;
        }
        let grant = permit(params);
        let record = |record: &Record| {
            services.record(record).map_err(|error| CodexErr::Fatal(error.to_string()))
        };
        let call_id = || self.call_id.clone();
        record(&Record::Granted(Granted::of(call_id(), self.attempt, &grant)))?;
        let sandbox = &services.runtime.sandbox;
        let env = sandbox
            .transform(grant)
            .map_err(|error| CodexErr::SandboxTransform { reason: error.to_string() })?;
        let kind = env.sandbox();
        let enforcement = (kind != SandboxType::None).then(|| sandbox.status());
        let attempt = self.attempt;
        let said = enforcement.clone();
        let began = Began { call_id: call_id(), attempt, sandbox: kind, enforcement: said };
        record(&Record::Began(began))?;
        let mut report = Report::new(call_id(), services);
        report.begin(&command, &env, enforcement).await?;
        let observer = LiveObserver {
            report,
            services: services.me(),
            call_id: call_id(),
            process_id: self.process_id.to_owned(),
            attempt,
            working: services.at_work.also(self.call_id),
        };
        let spill = services.runtime.spill(services.config.keep);
        let Manner { stdio, screen, .. } = *self.manner;
        let options = LiveOptions { stdio, spill, marks, screen };
        let spawner = &services.runtime.spawner;
        let started =
            UnifiedExecProcess::start(spawner, &env, options, observer, LiveObserver::ended).await;
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                // What began ends, for whoever listens and in the record.
                let report = Report::new(call_id(), services);
                let error = report.not_started(RuntimeError::from(error)).await;
                let reason = error.to_string();
                let output = ExecToolCallOutput::not_started(0, &reason);
                let mut ended = Ended::of(call_id(), attempt, &output);
                (ended.exit_code, ended.error) = (None, Some(reason));
                record(&Record::Ended(ended))?;
                return Err(error.into());
            }
        };
        let entry = LiveEntry::new(
            process,
            call_id(),
            command,
            cwd,
            whereabouts(kind, &services.config.sandbox_policy),
            justification,
            self.kept,
        );
        let entry = Arc::new(entry.that(self.writes));
        let patience = Patience {
            limit: self.manner.limit,
            pattern: self.manner.pattern.as_ref(),
            cancel: self.cancel,
        };
        let answered = entry.process.answer(entry.process.now(), patience).await;
        let reply = reply(self.process_id, &entry, answered, self.manner.wanted).await?;
        let denial = entry.process.end_with_output().await.and_then(|end| {
            let denied = sandbox.denied(kind, end.supervised, &end.output);
            denied.map(|_| end.output.denials.clone())
        });
        Ok(Launched { entry, reply, denial })
    }

    /// Has a shell on a terminal say where its prompts and the output of its commands begin and end, if it
    /// can. The nonce that it says so with.
    async fn marked(&self, params: &mut ExecParams, services: &Services) -> Option<String> {
        if !matches!(self.manner.stdio, LiveStdio::Terminal(_)) {
            return None;
        }
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        let runtime = Arc::clone(&services.runtime);
        let (asked, same) = (params.clone(), nonce.clone());
        let write = move || runtime.with_marks(&asked, &same);
        // A shell without marks is a shell all the same.
        let marked = tokio::task::spawn_blocking(write).await.ok()?.ok()??;
        *params = marked;
        Some(nonce)
    }
}

/// A sandbox that somebody else provides is one.
fn whereabouts(sandbox: SandboxType, policy: &SandboxPolicy) -> Whereabouts {
    match (sandbox, policy) {
        (SandboxType::None, SandboxPolicy::ExternalSandbox { .. }) => Whereabouts::Confined,
        (SandboxType::None, _) => Whereabouts::Outside,
        _ => Whereabouts::Confined,
    }
}
