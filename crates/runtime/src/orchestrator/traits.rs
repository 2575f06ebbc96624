//! What a tool brings along so that the orchestrator can run it.

use super::{Attempted, SandboxAttempt};
use crate::approval::{Answer, Question};
use crate::audit::{CallAsked, DecidedBy, Record};
use crate::session::{Services, Turn};
use crate::tools::{AskedCommand, run_command};
use sandgate_policy::Extras;
use sandgate_process::ModelFormat;
use sandgate_protocol::{
    ApprovalId, CallId, CodexErr, Denials, ExecApprovalRequest, ExecToolCallOutput, GrantOffer,
    ReviewDecision, RiskAssessment, SandboxPermissions, SandboxPolicy, SandboxablePreference,
    visible,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::Instrument as _;

/// A tool's own word on the sandbox its requests run in.
pub trait Sandboxable<R> {
    /// Whether it needs one.
    fn sandbox_preference(&self) -> SandboxablePreference {
        SandboxablePreference::Auto
    }

    /// Whether a person is asked for another attempt when the sandbox refused something.
    fn escalate_on_failure(&self) -> bool {
        true
    }

    /// Whether a request is to run without the sandbox from the start, once it is approved.
    fn sandbox_mode_for_first_attempt(&self, request: &R) -> FirstAttempt {
        let _ = request;
        FirstAttempt::NoOverride
    }
}

/// How a request wants its first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstAttempt {
    /// As the policy says.
    NoOverride,
    /// Without the sandbox.
    BypassSandbox,
}

/// Runs requests of one kind.
pub trait ToolRuntime<R>: Sandboxable<R> + Sync {
    /// What comes of one.
    type Output: Send + Sync;

    /// Asks a person about a request, and waits for the answer.
    fn start_approval_async(
        &self,
        request: &R,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> impl Future<Output = Answer> + Send;

    /// What a person said of the same request in a session that this one follows, if they did.
    fn answered_before(
        &self,
        request: &R,
        without_sandbox: bool,
        ctx: &ToolCtx<'_>,
    ) -> Option<ReviewDecision> {
        let _ = (request, without_sandbox, ctx);
        None
    }

    /// What is recorded of a request before anything is decided about it.
    fn describe(&self, request: &R, ctx: &ToolCtx<'_>) -> Vec<Record>;

    /// By what a request is decided when nobody is asked.
    fn decided_by(&self, request: &R) -> DecidedBy {
        let _ = request;
        DecidedBy::Policy
    }

    /// Runs a request as an attempt allows.
    ///
    /// # Errors
    /// When it could not be run.
    fn run(
        &self,
        request: &R,
        attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> impl Future<Output = Result<Self::Output, CodexErr>> + Send;

    /// What the sandbox refused, if the request failed because of that.
    fn denial(&self, output: &Self::Output) -> Option<Denials>;

    /// The least that would have let a request through, if that can be granted.
    fn narrowest(&self, request: &R, denials: &Denials, ctx: &ToolCtx<'_>) -> Option<Extras> {
        let _ = (request, denials, ctx);
        None
    }

    /// What somebody who looks at a refused request thinks of it.
    fn assess_risk(
        &self,
        request: &R,
        output: &Self::Output,
        denials: &Denials,
        ctx: &ToolCtx<'_>,
    ) -> impl Future<Output = Option<RiskAssessment>> + Send {
        let _ = (request, output, denials, ctx);
        async { None }
    }
}

/// The call that a request belongs to.
#[derive(Clone, Copy)]
pub struct ToolCtx<'a> {
    /// The session it is made in.
    pub(crate) services: &'a Services,
    /// The turn it is made in.
    pub(crate) turn: &'a Turn,
    /// The call.
    pub call_id: &'a CallId,
    /// The tool.
    pub tool_name: &'a str,
    /// Whether the log has heard of the call.
    pub(crate) recorded: &'a Recorded,
    /// What a person lets this request alone touch, in the place of the session's policy.
    pub(crate) own_policy: Option<&'a SandboxPolicy>,
}

/// Whether the audit log has heard of a call. Every call is recorded, also one that was refused before
/// anybody understood it.
#[derive(Debug, Default)]
pub(crate) struct Recorded(AtomicBool);

impl Recorded {
    /// Whether it has.
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ToolCtx<'_> {
    /// What the request may touch.
    pub(crate) fn sandbox_policy(&self) -> &SandboxPolicy {
        self.own_policy.unwrap_or(&self.services.config.sandbox_policy)
    }

    /// How much of an output a model is given.
    pub fn model_format(&self) -> ModelFormat {
        self.services.config.model_format
    }

    /// Waits until the workspace has been looked at. A tool that lets somebody else change files there
    /// calls it first, so that what was changed can be told when the turn ends.
    pub async fn before_changes(&self) {
        self.turn.changes.before_command().await;
    }

    /// The session's workspace.
    pub fn workspace(&self) -> &Path {
        &self.services.config.workspace
    }

    /// That the call was asked for, as it is recorded. The words say what it is about.
    pub fn asked(&self, words: Vec<String>) -> Record {
        Record::CallAsked(CallAsked {
            call_id: self.call_id.clone(),
            front_end: self.services.config.front_end.clone(),
            tool: self.tool_name.to_owned(),
            argv: words,
            cwd: self.turn.cwd.to_string_lossy().into_owned(),
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            agent: self.services.agent(),
        })
    }

    /// Takes a command the whole way: judged, asked about, confined, run. This is how a tool that is a
    /// program runs it.
    ///
    /// # Errors
    /// When it came to nothing. A command that failed has a result.
    pub async fn run_command(
        &self,
        asked: AskedCommand,
    ) -> Result<Attempted<RanCommand>, CodexErr> {
        let attempted = run_command(asked, self).await?;
        Ok(attempted
            .map(|ran| RanCommand { output: ran.executed.output, for_model: ran.formatted }))
    }

    /// The question whether something may run that is no more than these words in this directory. `text` is how a
    /// person reads them; what does not show itself is spelled out in `reason` here, and in `text` by the caller.
    pub fn question(
        &self,
        command: Vec<String>,
        text: String,
        cwd: PathBuf,
        reason: &str,
    ) -> ExecApprovalRequest {
        ExecApprovalRequest {
            approval_id: self.next_approval_id(),
            call_id: self.call_id.clone(),
            command,
            command_text: text,
            cwd,
            reason: visible(reason),
            justification: None,
            denials: Vec::new(),
            more_denials: 0,
            risk: None,
            proposed_rule: None,
            grant_offer: None,
            without_sandbox: false,
            only_once: false,
            // Who asks is known when it is asked.
            agent: None,
        }
    }

    /// A name for a question.
    pub fn next_approval_id(&self) -> ApprovalId {
        self.services.broker.next_id()
    }

    /// Records something, before anything else happens.
    ///
    /// # Errors
    /// When it cannot be recorded, and nothing is to happen then.
    pub fn record(&self, record: &Record) -> Result<(), CodexErr> {
        if matches!(record, Record::CallAsked(_)) {
            self.recorded.0.store(true, Ordering::Relaxed);
        }
        self.services.record(record).map_err(|error| CodexErr::Fatal(error.to_string()))
    }

    /// Asks a person, and waits for the answer.
    pub async fn ask(&self, question: Question) -> Answer {
        let Self { services, turn, .. } = self;
        // Whoever made the question: who asks is known here.
        let question = question.asked_by(services.agent());
        let span = tracing::info_span!("approval", call_id = ?self.call_id.as_str());
        let asking = services.broker.ask(question, &services.events, turn.cancellation());
        let answer = asking.instrument(span.clone()).await;
        services.telemetry.asked(self.tool_name, &answer);
        let (decision, by) = (answer.decision.name(), &answer.by);
        tracing::info!(parent: &span, decision, ?by, "answered");
        answer
    }
}

/// A command that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanCommand {
    /// What it left behind.
    pub output: ExecToolCallOutput,
    /// What a model is told of it.
    pub for_model: String,
}

/// Why a person is asked, and what the person is offered.
#[derive(Debug, Clone)]
pub struct ApprovalCtx<'a> {
    /// Why.
    pub reason: String,
    /// The words of a rule that would make the question needless.
    pub proposed_rule: Option<Vec<String>>,
    /// What was refused, when this is about another attempt.
    pub denials: Option<&'a Denials>,
    /// What could be opened instead of leaving the sandbox.
    pub grant_offer: Option<GrantOffer>,
    /// What somebody who looked at it thinks of it.
    pub risk: Option<RiskAssessment>,
    /// Whether a plain yes means to run without the sandbox.
    pub without_sandbox: bool,
    /// Whether a yes holds for this once, whatever it says.
    pub only_once: bool,
}
