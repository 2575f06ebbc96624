//! One command of a call: judged, asked about, run.

#[cfg(all(test, target_os = "linux"))]
mod worked_example;

use crate::approval::{Answer, Question, resolved_command_text};
use crate::audit::{Began, CallAsked, DecidedBy, Ended, Granted, Judged, Record, RiskClass};
use crate::contents::{contents, lasts};
use crate::environment::keep_to_reading;
use crate::orchestrator::{
    ApprovalCtx, Attempted, FirstAttempt, RiskQuestion, SandboxAttempt, Sandboxable, ToolCtx,
    ToolOrchestrator, ToolRuntime,
};
use crate::outcome::CommandOutcome;
use crate::report::Report;
use crate::request::{CommandInput, CommandLine};
use crate::resolve::resolve;
use crate::session::Services;
#[cfg(unix)]
use crate::snapshot::LoginCommand;
use crate::telemetry::telemetry_preview;
use sandgate_policy::rules::{Decision as RuleDecision, ProposedRule, Rule, RuleSandbox, propose};
use sandgate_policy::{Approvable, ApprovalKey, runs};
use sandgate_policy::{ApprovalRequirement, BypassSandbox, Terms, requirement};
use sandgate_policy::{Class, Extras, Judgement, Surroundings, judge};
use sandgate_process::{ExecuteOptions, Executed, execute};
#[cfg(unix)]
use sandgate_process::{Login, Shell};
use sandgate_protocol::{
    CodexErr, Denials, ExecApprovalRequest, ExecExpiration, ExecParams, ExecToolCallOutput,
    RiskAssessment, SandboxPermissions, SandboxPolicy, SandboxType, visible_remark,
};
use sandgate_sandbox::Narrowest;
use std::io;
use std::path::PathBuf;
use tracing::Instrument as _;

/// What is asked of a command tool, whoever asks.
#[derive(Debug, Clone)]
pub struct AskedCommand {
    /// The command.
    pub command: CommandLine,
    /// Where it is to run; a relative path starts at the turn's directory.
    pub workdir: Option<PathBuf>,
    /// When it is ended if it does not end by itself.
    pub expiration: ExecExpiration,
    /// What it reads.
    pub input: CommandInput,
    /// Whether it asks to leave the sandbox.
    pub sandbox_permissions: SandboxPermissions,
    /// Why it does.
    pub justification: Option<String>,
    /// The rule that it suggests.
    pub prefix_rule: Option<Vec<String>>,
}

impl AskedCommand {
    /// A command in the turn's directory, with nothing special about it and all the time it needs.
    pub fn new(command: CommandLine) -> Self {
        Self {
            command,
            workdir: None,
            expiration: ExecExpiration::Cancellation,
            input: CommandInput::Nothing,
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            prefix_rule: None,
        }
    }
}

/// Runs commands.
pub(super) struct CommandTool;

/// A command that was read, looked up and judged.
pub(super) struct ShellRequest {
    tool: String,
    pub(super) params: ExecParams,
    input: CommandInput,
    judgement: Judgement,
    proposed: Option<ProposedRule>,
    /// The shell that is to be a login shell.
    #[cfg(unix)]
    login_shell: Option<Shell>,
}

/// A command that has run.
pub(crate) struct CommandOutput {
    pub(crate) executed: Executed,
    /// What the model is told of it.
    pub(crate) formatted: String,
    denial: Option<Denials>,
    /// Why nobody took its output any more, if that was so.
    unheard: Option<io::Error>,
}

impl CommandOutput {
    /// What a front end is given of it.
    pub(crate) fn into_outcome(self) -> CommandOutcome {
        let Self { executed, unheard, .. } = self;
        CommandOutcome { output: executed.output, spill: executed.spill, unheard }
    }
}

/// Takes a command the whole way.
pub(crate) async fn run_command(
    asked: AskedCommand,
    ctx: &ToolCtx<'_>,
) -> Result<Attempted<CommandOutput>, CodexErr> {
    let request = ShellRequest::new(asked, ctx)?;
    if request.may_change(&ctx.services.config.sandbox_policy) {
        ctx.turn.changes.look();
    }
    ToolOrchestrator.run(&CommandTool, &request, ctx).await
}

impl ShellRequest {
    /// Looks up and judges what was asked.
    pub(super) fn new(asked: AskedCommand, ctx: &ToolCtx<'_>) -> Result<Self, CodexErr> {
        check_escalation(&asked, ctx.tool_name)?;
        let services = ctx.services;
        let config = &services.config;
        let cwd = match &asked.workdir {
            Some(workdir) => ctx.turn.cwd.join(workdir),
            None => ctx.turn.cwd.clone(),
        };
        let env = services.environment.clone();
        let shell = &services.runtime.shell;
        #[cfg(unix)]
        let login_shell = login_shell(&asked.command, shell);
        let mut params = resolve(asked.command, shell, &cwd, env, asked.expiration)?;
        params.sandbox_permissions = asked.sandbox_permissions;
        params.justification = asked.justification;
        let around = Surroundings {
            cwd: Some(params.cwd.clone()),
            roots: services.roots(),
            home: config.home(),
            git_runs: services.repositories.runs(&params.cwd, &params.env),
        };
        let judgement = judge(&params.command, &around, &services.rules());
        let proposed = propose(&judgement, asked.prefix_rule.as_deref());
        let (tool, input) = (ctx.tool_name.to_owned(), asked.input);
        let mut request = Self {
            tool,
            params,
            input,
            judgement,
            proposed,
            #[cfg(unix)]
            login_shell,
        };
        request.believe(services);
        Ok(request)
    }

    /// Believes the program's name only if no command of the session can have put the program there, and
    /// a git that is merely safe only where it is confined or told to run nothing of the repository's.
    fn believe(&mut self, services: &Services) {
        if self.judgement.has_git_that_is_merely_safe()
            && self.is_let_out_by_rules(&services.config.sandbox_policy)
        {
            self.is_not_allowed_by_rules();
        }
        let named = self.params.command.first().map_or("", String::as_str);
        if named.contains(std::path::is_separator) || services.is_steady(&self.params.program) {
            return;
        }
        let reason = format!(
            "{named} is {}, where commands of this session can put programs",
            self.params.program.display()
        );
        self.is_not_known_safe(&reason);
        if self.is_let_out_by_rules(&services.config.sandbox_policy) {
            self.is_not_allowed_by_rules();
        }
    }

    /// Whether rules allow it, and it would run where nothing confines it.
    fn is_let_out_by_rules(&self, policy: &SandboxPolicy) -> bool {
        self.judgement.ruling.as_ref().is_some_and(|ruling| {
            ruling.decision == RuleDecision::Allow
                && (ruling.sandbox == RuleSandbox::Bypass
                    || *policy == SandboxPolicy::DangerFullAccess
                    || self.params.sandbox_permissions == SandboxPermissions::RequireEscalated)
        })
    }

    /// The command as it is run. What is believed by its name is looked up where commands cannot put it, and what is
    /// known to be safe is that only of a git which runs nothing of the repository's.
    pub(super) fn params_to_run(&self, services: &Services) -> ExecParams {
        let mut params = self.params.clone();
        if self.is_known_safe() {
            keep_to_reading(&mut params.env);
        }
        if self.is_known_safe() || self.is_let_out_by_rules(&services.config.sandbox_policy) {
            params.env.insert("PATH".into(), services.steady_path());
        }
        params
    }

    /// The shell that is to be a login shell, if it starts from a snapshot.
    #[cfg(unix)]
    pub(super) fn login_shell(&self) -> Option<&Shell> {
        self.login_shell.as_ref()
    }

    /// Whether it may change the workspace, if nobody opens more to it than a policy does.
    fn may_change(&self, policy: &SandboxPolicy) -> bool {
        let leaves = self.params.sandbox_permissions == SandboxPermissions::RequireEscalated;
        !self.is_known_safe() && (leaves || *policy != SandboxPolicy::ReadOnly)
    }

    /// Whether it surely changes nothing.
    pub(super) fn is_known_safe(&self) -> bool {
        self.judgement.class == Class::Safe
    }

    /// It counts as unknown even if it is known to be safe elsewhere.
    pub(super) fn is_not_known_safe(&mut self, reason: &str) {
        if self.is_known_safe() {
            self.judgement.class = Class::Unknown { reason: reason.to_owned() };
        }
    }

    /// No rule allows it, because it may not be what it looks like. Rules against it hold.
    pub(super) fn is_not_allowed_by_rules(&mut self) {
        self.judgement.ruling.take_if(|ruling| ruling.decision == RuleDecision::Allow);
        self.proposed = None;
    }

    /// Whether a rule wants it to be asked about, or forbids it.
    pub(super) fn is_ruled_against(&self) -> bool {
        let ruling = self.judgement.ruling.as_ref();
        ruling.is_some_and(|ruling| ruling.decision != RuleDecision::Allow)
    }

    /// What is dangerous about it.
    pub(super) fn danger(&self) -> Option<String> {
        match &self.judgement.class {
            Class::Dangerous(danger) => Some(danger.to_string()),
            Class::Safe | Class::Unknown { .. } => None,
        }
    }
}

/// The shell that a command asks to be a login shell, if it is the person's own or named without a path. A
/// program that a call names by its path is started for the call only.
#[cfg(unix)]
fn login_shell(command: &CommandLine, own: &Shell) -> Option<Shell> {
    match command {
        CommandLine::Script { shell: None, login: Login::Yes, .. } => Some(own.clone()),
        CommandLine::Script { shell: Some(name), login: Login::Yes, .. } if !name.contains('/') => {
            Shell::named(name).ok()
        }
        _ => None,
    }
}

/// Whether an attempt at a command may change the workspace.
pub(super) fn may_write(
    request: &ShellRequest,
    attempt: &SandboxAttempt,
    policy: &SandboxPolicy,
) -> bool {
    let permission = attempt.permission();
    let opened = permission.bypass_sandbox() == BypassSandbox::Yes
        || !permission.extras().writable.is_empty();
    request.may_change(policy) || (opened && !request.is_known_safe())
}

/// Who asks to leave the sandbox says why.
fn check_escalation(asked: &AskedCommand, tool: &str) -> Result<(), CodexErr> {
    let wants_out = asked.sandbox_permissions == SandboxPermissions::RequireEscalated;
    let says_why = asked.justification.as_ref().is_some_and(|why| !why.trim().is_empty());
    if wants_out && !says_why {
        let reason = "sandbox_permissions \"require_escalated\" needs a justification: one \
                      sentence for the person who decides"
            .to_owned();
        return Err(CodexErr::InvalidArguments { tool: tool.to_owned(), reason });
    }
    Ok(())
}

impl Approvable for ShellRequest {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        vec![ApprovalKey::Command {
            tool: self.tool.clone(),
            argv: self.params.command.clone(),
            cwd: self.params.cwd.clone(),
            sandbox_permissions: self.params.sandbox_permissions,
            tty: false,
            runs: contents(&runs(&self.judgement.reading), &self.params),
        }]
    }

    fn lasts(&self, bypass_sandbox: BypassSandbox) -> bool {
        lasts(&runs(&self.judgement.reading), &self.params, bypass_sandbox)
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        requirement(&self.judgement, terms, self.proposed.clone())
    }
}

impl Sandboxable<ShellRequest> for CommandTool {
    fn sandbox_mode_for_first_attempt(&self, request: &ShellRequest) -> FirstAttempt {
        match request.params.sandbox_permissions {
            SandboxPermissions::UseDefault => FirstAttempt::NoOverride,
            SandboxPermissions::RequireEscalated => FirstAttempt::BypassSandbox,
        }
    }
}

impl ToolRuntime<ShellRequest> for CommandTool {
    type Output = CommandOutput;

    async fn start_approval_async(
        &self,
        request: &ShellRequest,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        let params = &request.params;
        let text = resolved_command_text(params, ctx.services.runtime.shell.shell_path());
        let question = ExecApprovalRequest {
            justification: params.justification.as_deref().map(visible_remark),
            denials: approval.denials.map(|denials| denials.evidence.clone()).unwrap_or_default(),
            more_denials: approval.denials.map_or(0, |denials| denials.more),
            risk: approval.risk,
            proposed_rule: approval.proposed_rule,
            grant_offer: approval.grant_offer,
            without_sandbox: approval.without_sandbox,
            only_once: approval.only_once,
            ..ctx.question(params.command.clone(), text, params.cwd.clone(), &approval.reason)
        };
        ctx.ask(Question::Exec(Box::new(question))).await
    }

    fn describe(&self, request: &ShellRequest, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let (params, judgement) = (&request.params, &request.judgement);
        let asked = CallAsked {
            call_id: ctx.call_id.clone(),
            front_end: ctx.services.config.front_end.clone(),
            tool: ctx.tool_name.to_owned(),
            argv: params.command.clone(),
            cwd: params.cwd.to_string_lossy().into_owned(),
            sandbox_permissions: params.sandbox_permissions,
            justification: params.justification.clone(),
            agent: ctx.services.agent(),
        };
        vec![Record::CallAsked(asked), Record::Judged(judged(ctx.call_id, judgement))]
    }

    fn decided_by(&self, request: &ShellRequest) -> DecidedBy {
        decided_by(&request.judgement)
    }

    async fn run(
        &self,
        request: &ShellRequest,
        attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<CommandOutput, CodexErr> {
        let services = ctx.services;
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only login shells of Unix change it"))]
        let mut params = request.params_to_run(services);
        if may_write(request, attempt, &services.config.sandbox_policy) {
            ctx.turn.changes.before_command().await;
        }
        #[cfg(unix)]
        if let Some(shell) = request.login_shell() {
            let command = LoginCommand { shell, call_id: ctx.call_id, stop: ctx.turn.stop() };
            command.use_snapshot(&mut params, services).await;
        }
        let grant = attempt.grant(params);
        let (call_id, number) = (|| ctx.call_id.clone(), attempt.number());
        ctx.record(&Record::Granted(Granted::of(call_id(), number, &grant)))?;
        let env = services
            .runtime
            .sandbox
            .transform(grant)
            .map_err(|error| CodexErr::SandboxTransform { reason: error.to_string() })?;
        let mut report = Report::new(call_id(), services);
        let sandbox = env.sandbox();
        let enforcement = (sandbox != SandboxType::None).then(|| services.runtime.sandbox.status());
        let said = enforcement.clone();
        let began = Began { call_id: call_id(), attempt: number, sandbox, enforcement: said };
        ctx.record(&Record::Began(began))?;
        report.begin(&request.params.command, &env, enforcement).await?;
        let options = ExecuteOptions {
            stdin: request.input.into(),
            spill: services.runtime.spill(services.config.keep),
            ..ExecuteOptions::default()
        };
        let stop = ctx.turn.stop();
        let span = tracing::info_span!("attempt", number, ?sandbox);
        let running = execute(&services.runtime.spawner, &env, options, stop, &mut report);
        match running.instrument(span.clone()).await {
            Ok(mut executed) => {
                if let Some(spill) = &executed.spill {
                    services.runtime.spills.keep(spill).await;
                }
                let manager = &services.runtime.sandbox;
                let denied = manager.denied(env.sandbox(), executed.supervised, &executed.output);
                let denial = denied.map(|_| executed.output.denials.clone());
                services.telemetry.executed(sandbox, &executed.output);
                if denial.is_some() {
                    services.telemetry.denied(ctx.tool_name);
                }
                tell_of_end(&span, &executed.output, denial.is_some());
                let format = services.config.model_format;
                let formatted = format.format(&executed.output, &executed.raw.aggregated);
                let (output, unheard) = report.end(executed.output, &executed.raw.aggregated).await;
                executed.output = output;
                ctx.record(&Record::Ended(Ended::of(call_id(), number, &executed.output)))?;
                Ok(CommandOutput { executed, formatted, denial, unheard })
            }
            Err(error) => {
                let error = report.not_started(error.into()).await;
                let reason = error.to_string();
                let output = ExecToolCallOutput::not_started(0, &reason);
                let mut ended = Ended::of(call_id(), number, &output);
                (ended.exit_code, ended.error) = (None, Some(reason));
                ctx.record(&Record::Ended(ended))?;
                Err(error.into())
            }
        }
    }

    fn denial(&self, output: &CommandOutput) -> Option<Denials> {
        output.denial.clone()
    }

    fn narrowest(
        &self,
        request: &ShellRequest,
        denials: &Denials,
        _: &ToolCtx<'_>,
    ) -> Option<Extras> {
        let narrowest = Narrowest::of(&denials.evidence, &request.params.env);
        let helps = narrowest.out_of_reach.is_empty() && !narrowest.extras.is_empty();
        helps.then_some(narrowest.extras)
    }

    async fn assess_risk(
        &self,
        request: &ShellRequest,
        output: &CommandOutput,
        denials: &Denials,
        ctx: &ToolCtx<'_>,
    ) -> Option<RiskAssessment> {
        let assessor = ctx.services.config.risk.as_ref()?;
        let question = RiskQuestion {
            command: &request.params.command,
            cwd: &request.params.cwd,
            policy: &ctx.services.config.sandbox_policy,
            denials,
            stderr: &output.executed.output.stderr.text,
        };
        let assessed = tokio::time::timeout(RiskQuestion::PATIENCE, assessor.assess(question));
        let mut risk = assessed.await.ok().flatten()?;
        // Whoever wrote it has read what the command printed.
        risk.description = visible_remark(&risk.description);
        Some(risk)
    }
}

/// Says how a command ended. What it printed may hold anything, so it is only for whoever asks for it.
fn tell_of_end(span: &tracing::Span, output: &ExecToolCallOutput, denied: bool) {
    let ExecToolCallOutput { exit_code, timed_out, cancelled, .. } = *output;
    let milliseconds = output.duration.as_millis();
    tracing::info!(parent: span, exit_code, timed_out, cancelled, denied, %milliseconds, "ended");
    if tracing::enabled!(target: "sandgate_output", tracing::Level::TRACE) {
        let preview = telemetry_preview(&output.aggregated_output.text);
        tracing::trace!(target: "sandgate_output", parent: span, ?preview, "printed");
    }
}

/// A judgement, for the record.
pub(crate) fn judged(call_id: &sandgate_protocol::CallId, judgement: &Judgement) -> Judged {
    let (class, reason) = match &judgement.class {
        Class::Safe => (RiskClass::Safe, None),
        Class::Unknown { reason } => (RiskClass::Unknown, Some(reason.clone())),
        Class::Dangerous(danger) => (RiskClass::Dangerous, Some(danger.to_string())),
    };
    let rules = judgement.ruling.iter().flat_map(|ruling| &ruling.rules).map(named).collect();
    Judged { call_id: call_id.clone(), class, reason, rules }
}

/// Who decides where nobody has to be asked, for the record.
pub(crate) fn decided_by(judgement: &Judgement) -> DecidedBy {
    match judgement.ruling.as_ref().and_then(|ruling| ruling.rules.first()) {
        Some(rule) => DecidedBy::Rule { rule: named(rule) },
        None => DecidedBy::Policy,
    }
}

/// A rule with its place.
fn named(rule: &Rule) -> String {
    format!("{rule} ({})", rule.origin)
}
