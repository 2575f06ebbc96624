//! Programs that serve a session through pipes as long as it lives, such as MCP servers.
//!
//! Which there are, how they are started and what they may touch comes from the person, with the session:
//! whoever holds a requester can only name one. They take the orchestrator's way like any command, and
//! are confined by a policy of their own. What a client named instead, such as an editor, is asked about whatever
//! the policy says of its command. There is at most one of a name, and when the session goes, it goes.

use crate::approval::{Answer, Question, resolved_command_text};
use crate::audit::{Began, DecidedBy, Ended, Granted, Record};
use crate::contents::{contents, lasts};
use crate::error::RuntimeError;
use crate::orchestrator::{
    ApprovalCtx, Recorded, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::report::Report;
use crate::request::new_call_id;
use crate::resolve::resolve_words;
use crate::session::{Services, Turn};
use crate::tools::{decided_by, judged};
use bytes::BytesMut;
use sandgate_policy::{
    Approvable, ApprovalKey, ApprovalRequirement, BypassSandbox, Terms, requirement,
};
use sandgate_policy::{Judgement, Surroundings, judge, runs};
use sandgate_process::{LiveEnd, OutputSink, ProcessHandle, RawStream};
use sandgate_protocol::{
    AnsweredBy, AskForApproval, CallId, CodexErr, Denials, ExecApprovalRequest, ExecExpiration,
    ExecParams, ExecToolCallOutput, OutputStream, ReviewDecision, SandboxPolicy, SandboxType,
    visible,
};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::watch;

/// A program that may be started to serve a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// What the person who is asked about it knows it as: `MCP server docs of your settings`.
    pub title: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that it is given beside those of every command.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it is started; in the workspace if it is not said.
    pub cwd: Option<PathBuf>,
    /// What it may touch.
    pub sandbox_policy: SandboxPolicy,
}

/// What a person has answered about servers. Sessions that follow each other as one, such as those of an editor that
/// changes its mode, share it: nobody is asked twice about the same program. Whoever carries it can neither read it
/// nor write to it.
#[derive(Debug, Clone, Default)]
pub struct ServerAnswers(Arc<Mutex<Vec<Answered>>>);

/// An answer, and all that it was about. A server is another one as soon as anything of it has changed, down to
/// what the files hold that it runs.
#[derive(Debug, PartialEq)]
struct Answered {
    program: ServerProgram,
    keys: Vec<ApprovalKey>,
    without_sandbox: bool,
    decision: ReviewDecision,
}

impl ServerAnswers {
    fn of(&self, request: &Request, without_sandbox: bool) -> Option<ReviewDecision> {
        // What its files hold is looked at only if the rest is the same: it takes longest.
        let keys = LazyCell::new(|| request.approval_keys());
        let found = self.answered();
        let found = found.iter().find(|answered| {
            answered.program == request.program
                && answered.without_sandbox == without_sandbox
                && answered.keys == *keys
        });
        found.map(|answered| answered.decision.clone())
    }

    /// Keeps an answer. `keys` are what the request was known by when it was asked about: what has changed since
    /// then was not answered.
    fn keep(
        &self,
        request: &Request,
        keys: Vec<ApprovalKey>,
        without_sandbox: bool,
        answer: &Answer,
    ) {
        let decision = match (&answer.by, &answer.decision) {
            (AnsweredBy::Person(_), yes) if yes.approves() => ReviewDecision::Approved,
            (AnsweredBy::Person(_), no @ ReviewDecision::Denied { .. }) => no.clone(),
            // Who called the work off said nothing about the server.
            _ => return,
        };
        let program = request.program.clone();
        self.answered().push(Answered { program, keys, without_sandbox, decision });
    }

    fn answered(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The two ends of a server's standard streams, as one. Dropping it closes the server's input, and ends the
/// server if it does not end by itself soon.
#[derive(Debug)]
pub struct ServerPipe {
    /// What it writes can be read here, and it reads what is written here.
    pub stream: DuplexStream,
    /// What else is known of it.
    pub watch: ServerWatch,
}

/// What is known of a server beside what it writes to its standard output.
#[derive(Debug, Clone)]
pub struct ServerWatch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The end of what it wrote to its standard error.
    complaints: Mutex<Vec<u8>>,
    exit_code: watch::Sender<Option<i32>>,
}

/// How much is kept of what a server writes to its standard error.
const MOST_COMPLAINTS: usize = 4096;

/// How much may lie in a pipe in each direction.
const PIPE_BYTES: usize = 64 * 1024;

/// How long a server may take to end when its input has ended.
const GRACE: Duration = Duration::from_secs(2);

impl ServerWatch {
    fn new() -> Self {
        let (complaints, exit_code) = (Mutex::default(), watch::Sender::new(None));
        Self { shared: Arc::new(Shared { complaints, exit_code }) }
    }

    /// The end of what it wrote to its standard error, with nothing in it that does not show itself.
    pub fn complaints(&self) -> String {
        let kept = self.shared.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        visible(String::from_utf8_lossy(&kept).trim())
    }

    /// Its exit code, once it has ended.
    pub fn exit_code(&self) -> Option<i32> {
        *self.shared.exit_code.borrow()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> i32 {
        let mut exit_code = self.shared.exit_code.subscribe();
        match exit_code.wait_for(Option::is_some).await.map(|code| *code) {
            Ok(Some(code)) => code,
            // The sender is in `shared`, which this holds.
            _ => std::future::pending().await,
        }
    }

    fn complain(&self, bytes: &[u8]) {
        let mut kept = self.shared.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(MOST_COMPLAINTS);
        kept.drain(..excess);
    }
}

/// The programs that serve a session.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    running: Mutex<BTreeMap<String, Arc<ProcessHandle>>>,
}

impl Servers {
    /// Keeps a process, in the place of the one before, which ends.
    fn keep(&self, name: &str, process: Arc<ProcessHandle>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(name.to_owned(), process);
    }
}

/// Starts the program of this name. The question about it is taken back when the turn is called off.
pub(crate) async fn open(
    services: &Arc<Services>,
    name: &str,
    turn: &Turn,
) -> Result<ServerPipe, CodexErr> {
    let (own, clients) = (&services.config.servers, &services.config.client_servers);
    let found = own.get(name).map(|program| (program, NamedBy::Person));
    let found = found.or_else(|| clients.get(name).map(|program| (program, NamedBy::Client)));
    let Some((program, named_by)) = found else {
        let name: String = name.chars().take(100).collect();
        let reason = format!("no server {name:?} was named when the session began");
        return Err(CodexErr::Forbidden { reason });
    };
    let (call_id, recorded) = (new_call_id(), Recorded::default());
    let ctx = ToolCtx {
        services,
        turn,
        call_id: &call_id,
        tool_name: "mcp_server",
        recorded: &recorded,
        own_policy: Some(&program.sandbox_policy),
    };
    let opened = match Request::new(name, program, named_by, &ctx) {
        Ok(request) => ToolOrchestrator.run(&ServerTool, &request, &ctx).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &opened
        && !recorded.is_so()
    {
        ctx.record(&ctx.asked(program.command.clone()))?;
        ctx.record(&Record::Ended(not_started(&call_id, &error.to_string())))?;
    }
    opened.map(|attempted| attempted.output)
}

fn not_started(call_id: &CallId, reason: &str) -> Ended {
    let mut ended = Ended::of(call_id.clone(), 1, &ExecToolCallOutput::not_started(0, reason));
    (ended.exit_code, ended.error) = (None, Some(reason.to_owned()));
    ended
}

/// Who said that there is such a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    /// The person, in their settings.
    Person,
    /// A client, which may have it from a repository.
    Client,
}

/// One start of a server: its names looked up, and judged.
struct Request {
    name: String,
    program: ServerProgram,
    named_by: NamedBy,
    params: ExecParams,
    judgement: Judgement,
}

impl Request {
    fn new(
        name: &str,
        program: &ServerProgram,
        named_by: NamedBy,
        ctx: &ToolCtx<'_>,
    ) -> Result<Self, CodexErr> {
        let services = ctx.services;
        let cwd = match &program.cwd {
            Some(cwd) => ctx.workspace().join(cwd),
            None => ctx.workspace().to_owned(),
        };
        let mut env = services.environment.clone();
        env.extend(program.env.clone());
        let never = ExecExpiration::Cancellation;
        let params = resolve_words(program.command.clone(), &cwd, env, never)?;
        let around = Surroundings {
            cwd: Some(params.cwd.clone()),
            roots: services.roots(),
            home: services.config.home(),
            git_runs: services.repositories.runs(&params.cwd, &params.env),
        };
        let judgement = judge(&params.command, &around, &services.rules());
        let (name, program) = (name.to_owned(), program.clone());
        Ok(Self { name, program, named_by, params, judgement })
    }
}

impl Approvable for Request {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        vec![ApprovalKey::Command {
            tool: format!("mcp_server {}", self.name),
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
        match requirement(&self.judgement, terms, None) {
            ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule } => {
                let reason = format!("{}: {reason}", self.program.title);
                ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule }
            }
            ApprovalRequirement::Skip { bypass_sandbox } if self.named_by == NamedBy::Client => {
                match terms.approval {
                    AskForApproval::Never => ApprovalRequirement::Forbidden {
                        reason: "you have to be asked about it, and the approval policy is never"
                            .to_owned(),
                    },
                    _ => ApprovalRequirement::NeedsApproval {
                        reason: format!("{}: it is not one of your settings", self.program.title),
                        bypass_sandbox,
                        proposed_rule: None,
                    },
                }
            }
            other => other,
        }
    }
}

/// Starts servers.
struct ServerTool;

/// What is refused to a server is refused while it works, when there is no other attempt.
impl Sandboxable<Request> for ServerTool {
    fn escalate_on_failure(&self) -> bool {
        false
    }
}

impl ToolRuntime<Request> for ServerTool {
    type Output = ServerPipe;

    async fn start_approval_async(
        &self,
        request: &Request,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        let params = &request.params;
        let text = resolved_command_text(params, ctx.services.runtime.shell.shell_path());
        let question =
            ctx.question(params.command.clone(), text, params.cwd.clone(), &approval.reason);
        let ApprovalCtx { without_sandbox, only_once, .. } = approval;
        let question = ExecApprovalRequest { without_sandbox, only_once, ..question };
        let keys = request.approval_keys();
        let answer = ctx.ask(Question::Exec(Box::new(question))).await;
        if !only_once {
            let answers = &ctx.services.config.server_answers;
            answers.keep(request, keys, without_sandbox, &answer);
        }
        answer
    }

    fn answered_before(
        &self,
        request: &Request,
        without_sandbox: bool,
        ctx: &ToolCtx<'_>,
    ) -> Option<ReviewDecision> {
        ctx.services.config.server_answers.of(request, without_sandbox)
    }

    fn describe(&self, request: &Request, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let judged = judged(ctx.call_id, &request.judgement);
        vec![ctx.asked(request.params.command.clone()), Record::Judged(judged)]
    }

    fn decided_by(&self, request: &Request) -> DecidedBy {
        decided_by(&request.judgement)
    }

    async fn run(
        &self,
        request: &Request,
        attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<ServerPipe, CodexErr> {
        let (services, call_id) = (ctx.services, || ctx.call_id.clone());
        let grant = attempt.grant(request.params.clone());
        ctx.record(&Record::Granted(Granted::of(call_id(), attempt.number(), &grant)))?;
        let sandbox = &services.runtime.sandbox;
        let env = sandbox
            .transform(grant)
            .map_err(|error| CodexErr::SandboxTransform { reason: error.to_string() })?;
        let kind = env.sandbox();
        let enforcement = (kind != SandboxType::None).then(|| sandbox.status());
        ctx.record(&Record::Began(Began {
            call_id: call_id(),
            attempt: attempt.number(),
            sandbox: kind,
            enforcement: enforcement.clone(),
        }))?;
        let mut report = Report::new(call_id(), services);
        report.begin(&request.params.command, &env, enforcement).await?;
        let (stream, ours) = tokio::io::duplex(PIPE_BYTES);
        let (from_client, to_client) = tokio::io::split(ours);
        let watch = ServerWatch::new();
        let outlet = Outlet {
            to_client,
            watch: watch.clone(),
            report,
            services: services.me(),
            call_id: call_id(),
            attempt: attempt.number(),
        };
        let spawner = &services.runtime.spawner;
        let process = match spawner.spawn_into(&env, outlet, Outlet::ended).await {
            Ok(process) => Arc::new(process),
            Err(error) => {
                let report = Report::new(call_id(), services);
                let error = report.not_started(RuntimeError::from(error)).await;
                ctx.record(&Record::Ended(not_started(ctx.call_id, &error.to_string())))?;
                return Err(error.into());
            }
        };
        tokio::spawn(feed(from_client, Arc::downgrade(&process)));
        services.servers.keep(&request.name, process);
        Ok(ServerPipe { stream, watch })
    }

    fn denial(&self, _: &ServerPipe) -> Option<Denials> {
        None
    }
}

/// Takes what is written to the pipe to the server. When the pipe is dropped, the server is to end.
async fn feed(mut from_client: ReadHalf<DuplexStream>, process: Weak<ProcessHandle>) {
    let Some(input) = process.upgrade().and_then(|process| process.writer_sender()) else { return };
    loop {
        let mut bytes = BytesMut::with_capacity(PIPE_BYTES);
        match from_client.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                if input.send(bytes.freeze()).await.is_err() {
                    break;
                }
            }
        }
    }
    drop(input);
    if let Some(process) = process.upgrade() {
        process.close_stdin().await;
    }
    tokio::time::sleep(GRACE).await;
    if let Some(process) = process.upgrade() {
        process.terminate();
    }
}

/// Takes what a server writes to where it belongs.
struct Outlet {
    to_client: WriteHalf<DuplexStream>,
    watch: ServerWatch,
    report: Report,
    services: Weak<Services>,
    call_id: CallId,
    attempt: u32,
}

impl OutputSink for Outlet {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            OutputStream::Stdout => self.to_client.write_all(bytes).await,
            OutputStream::Stderr => {
                self.watch.complain(bytes);
                Ok(())
            }
        }
    }
}

impl Outlet {
    /// Tells of the end, and records it.
    async fn ended(mut self, end: LiveEnd) {
        let record = Record::Ended(Ended::of(self.call_id.clone(), self.attempt, &end.output));
        self.watch.shared.exit_code.send_replace(Some(end.output.exit_code));
        // Whoever reads finds the end; it may be gone itself.
        let _ = self.to_client.shutdown().await;
        self.report.end(end.output, &RawStream::from(Vec::new())).await;
        let Some(services) = self.services.upgrade() else { return };
        if let Err(error) = services.record(&record) {
            services.warn(Some(self.call_id), error.to_string()).await;
        }
    }
}
