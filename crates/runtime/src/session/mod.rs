//! A session: one person's policies, one line of events, and the tools that a model may call in it.
//!
//! Whoever runs a model is handed a [`Requester`], which can call tools and nothing more. Answers to
//! questions come through an [`Approver`], which is handed to the front end that the person sits at.

mod at_work;
mod child;
mod config;
mod processes;
mod recovery;
mod services;
mod turn;

pub(crate) use at_work::Working;
pub use child::{ChildTerms, ChildTools, SubAgentLimits};
pub use config::{Keeping, SessionConfig, SnapshotOptions};
pub use processes::{LiveProcess, ProcessOutput};
pub use recovery::BrokenPatches;
pub(crate) use services::Services;
pub use turn::Turn;

use crate::approval::Approver;
use crate::audit::PatchedFile;
use crate::error::RuntimeError;
use crate::events::{Delivery, Events};
use crate::orchestrator::{Attempted, Recorded, ToolCtx};
use crate::outcome::CommandOutcome;
use crate::runtime::Runtime;
use crate::served::{self, ServerPipe};
use crate::tools::{AskedCommand, CheckedPatch, CommandOutput, ToolHandler, ToolResult, ToolSpec};
use crate::tools::{apply_patch, check_patch, route, run_command};
use sandgate_protocol::{AgentEvent, CallId, CodexErr, Enforcement, Event, Notice};
use sandgate_protocol::{AskForApproval, SandboxPolicy, ToolCall};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;

/// A session.
///
/// ```
/// use sandgate_protocol::{Event, SandboxPolicy};
/// use sandgate_runtime::{Delivery, Runtime, Session, SessionConfig};
/// # use sandgate_runtime::{AskedCommand, CommandLine, new_call_id};
/// use std::sync::Arc;
///
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = Arc::new(Runtime::start()?);
/// # let workspace = tempfile::tempdir()?;
/// # let mut config = SessionConfig::new(workspace.path().to_owned());
/// # config.own_env = std::env::vars_os().collect();
/// config.sandbox_policy = SandboxPolicy::ReadOnly;
/// let session = Session::start(runtime, config)?;
/// let mut events = session.events(Delivery::Complete).await;
/// # let words = ["echo", "hello"].map(str::to_owned).to_vec();
/// # let asked = AskedCommand::new(CommandLine::Argv(words));
/// # let turn = session.begin_turn();
/// # session.requester().run_command(&new_call_id(), asked, &turn).await?;
///
/// // Somebody runs `echo hello` through `session.requester()`; everybody who listens hears of it.
/// let mut heard = Vec::new();
/// while let Some(told) = events.try_next() {
///     match &told.event {
///         Event::ExecCommandBegin(begin) => heard.push(begin.command.join(" ")),
///         Event::ExecCommandEnd(end) => heard.push(format!("ended with {}", end.output.exit_code)),
///         _ => {}
///     }
/// }
/// assert_eq!(heard, ["echo hello", "ended with 0"]);
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
pub struct Session {
    services: Arc<Services>,
}

/// The right to call a session's tools. It approves nothing.
///
/// ```
/// use sandgate_protocol::{CallId, ToolCall, ToolOutput, ToolPayload};
/// use sandgate_runtime::{Runtime, Session, SessionConfig};
/// use std::sync::Arc;
///
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = Arc::new(Runtime::start()?);
/// # let workspace = tempfile::tempdir()?;
/// # let mut config = SessionConfig::new(workspace.path().to_owned());
/// # config.own_env = std::env::vars_os().collect();
/// let session = Session::start(runtime, config)?;
/// let requester = session.requester();
/// // What the model is told it may call, each with the schema of its arguments.
/// let names: Vec<String> = requester.tools().into_iter().map(|tool| tool.name).collect();
/// assert!(names.contains(&"shell".to_owned()));
///
/// // The calls of one response. Each is answered, whatever becomes of the others.
/// let call = |id: &str, name: &str| ToolCall {
///     call_id: CallId::new(id),
///     name: name.to_owned(),
///     payload: ToolPayload::Function { arguments: r#"{"command":["echo","hello"]}"#.to_owned() },
/// };
/// let turn = requester.begin_turn();
/// let results = requester.call(vec![call("c1", "shell"), call("c2", "no_such_tool")], &turn).await;
/// let ToolOutput::Function { content, .. } = &results[0].output else { panic!() };
/// assert_eq!(content, "hello\n");
/// assert!(results[1].error.is_some());
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct Requester {
    services: Arc<Services>,
}

impl Session {
    /// Begins a session. Patches that a crash broke off are settled first, unless they are to be left.
    ///
    /// # Errors
    /// When its workspace cannot be used.
    pub fn start(runtime: Arc<Runtime>, config: SessionConfig) -> Result<Self, RuntimeError> {
        Ok(Self { services: Services::new(runtime, config)? })
    }

    /// The right to call its tools.
    pub fn requester(&self) -> Requester {
        Requester { services: Arc::clone(&self.services) }
    }

    /// The right to answer its questions, for a front end of this name that a person sits at.
    pub fn approver(&self, front_end: &str) -> Approver {
        self.services.broker.approver(front_end)
    }

    /// Listens to what happens from now on. Who listens first also hears of what was settled when the
    /// session began.
    pub async fn events(&self, delivery: Delivery) -> Events {
        let events = self.services.events.listen(delivery).await;
        for message in self.services.take_unheard() {
            self.services.warn(None, message).await;
        }
        events
    }

    /// What this machine's sandbox can enforce, told to everybody who listens.
    pub async fn tell_status(&self) -> Enforcement {
        let status = self.services.runtime.sandbox.status();
        self.services.events.tell(&Event::SandboxStatus(status.clone())).await;
        status
    }

    /// What it is called by in the record.
    pub fn id(&self) -> &str {
        self.services.id()
    }

    /// What kind of front end it belongs to.
    pub fn front_end(&self) -> &str {
        &self.services.config.front_end
    }

    /// What its commands may touch.
    pub fn sandbox_policy(&self) -> &SandboxPolicy {
        &self.services.config.sandbox_policy
    }

    /// Begins a turn.
    pub fn begin_turn(&self) -> Turn {
        Turn::new(&self.services)
    }

    /// What its calls share.
    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }
}

impl Requester {
    /// The tools that can be called.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.services.registry.current().specs()
    }

    /// Puts these in the place of the tools of a group. Calls that have begun are not touched, and no tool
    /// takes the name of one that the session began with.
    pub fn set_tools(&self, group: &str, tools: Vec<Arc<dyn ToolHandler>>) {
        self.services.registry.replace(group, tools);
    }

    /// Starts one of the programs that the person named to serve the session, in the place of the one of
    /// that name that may still run. It is judged, asked about, confined by its own policy and recorded
    /// like a command, and ends when the pipe is dropped or the session is over. Until it has been answered, the
    /// question about it goes with the turn.
    ///
    /// # Errors
    /// When there is none of that name, or it was not started.
    pub async fn open_server(&self, name: &str, turn: &Turn) -> Result<ServerPipe, CodexErr> {
        served::open(&self.services, name, turn).await
    }

    /// Begins a turn.
    pub fn begin_turn(&self) -> Turn {
        Turn::new(&self.services)
    }

    /// Tells everybody who listens of something in the conversation that the session serves. Nothing
    /// else can be told here: what a command did is the runtime's to say.
    pub async fn tell(&self, event: AgentEvent) {
        self.services.events.tell(&Event::Agent(event)).await;
    }

    /// Tells everybody who listens of something that a person should know, and that stops nothing.
    pub async fn warn(&self, message: String) {
        self.services.warn(None, message).await;
    }

    /// Where the session works.
    pub fn workspace(&self) -> &Path {
        &self.services.config.workspace
    }

    /// What its commands may touch.
    pub fn sandbox_policy(&self) -> &SandboxPolicy {
        &self.services.config.sandbox_policy
    }

    /// When a person is asked.
    pub fn approval_policy(&self) -> AskForApproval {
        self.services.config.approval_policy
    }

    /// Begins the session of a subagent, which ends when the last requester of it is dropped.
    ///
    /// # Errors
    /// When there may be no further one, or its name is none, with a sentence for the model.
    pub fn child(&self, terms: ChildTerms) -> Result<Self, CodexErr> {
        Ok(Self { services: child::begin(&self.services, terms, None)? })
    }

    /// Its name, if it is a subagent's session: `review-1`, and below that `review-1/tests-2`.
    pub fn agent(&self) -> Option<String> {
        self.services.agent()
    }

    /// Ends a turn: if it changed anything in the workspace, everybody is told what. A turn that is only
    /// dropped tells nothing, nor does that of a subagent which works for another: what it changed is told
    /// when that one ends.
    pub async fn end_turn(&self, turn: Turn) {
        if self.services.turn_above().is_some() {
            return;
        }
        let diff = turn.diff().await;
        if !diff.unified_diff.is_empty() || !diff.not_shown.is_empty() {
            self.services.events.tell(&Event::TurnDiff(diff)).await;
        }
    }

    /// Takes one command the whole way, for a front end that has it as a command and not as a call.
    ///
    /// # Errors
    /// When it came to nothing.
    pub async fn run_command(
        &self,
        call_id: &CallId,
        asked: AskedCommand,
        turn: &Turn,
    ) -> Result<Attempted<CommandOutcome>, CodexErr> {
        let (services, tool_name) = (&*self.services, "shell");
        let recorded = &Recorded::default();
        let ctx = ToolCtx { services, turn, call_id, tool_name, recorded, own_policy: None };
        let began = Instant::now();
        let (session, id) = (&services.span, call_id.as_str());
        let span = tracing::info_span!(parent: session, "call", call_id = ?id, tool = tool_name);
        let attempted = run_command(asked, &ctx).instrument(span).await;
        let success = attempted.as_ref().is_ok_and(|one| one.output.executed.output.exit_code == 0);
        services.telemetry.called(tool_name, success, began.elapsed());
        match attempted {
            Ok(attempted) => Ok(attempted.map(CommandOutput::into_outcome)),
            Err(error) => {
                self.tell_error(call_id, &error).await;
                Err(error)
            }
        }
    }

    /// Takes a patch the whole way, for a front end that has it as a text and not as a call. Its paths
    /// start at the turn's directory.
    ///
    /// # Errors
    /// When it was not applied; then nothing was changed.
    pub async fn apply_patch(
        &self,
        call_id: &CallId,
        text: &str,
        turn: &Turn,
    ) -> Result<Vec<PatchedFile>, CodexErr> {
        let (services, tool_name) = (&*self.services, "apply_patch");
        let recorded = &Recorded::default();
        let ctx = ToolCtx { services, turn, call_id, tool_name, recorded, own_policy: None };
        let applied = apply_patch(text, &ctx).await;
        if let Err(error) = &applied {
            self.tell_error(call_id, error).await;
        }
        applied
    }

    /// Says what a patch would do here, and changes nothing.
    ///
    /// # Errors
    /// When it is no patch, or does not fit the files.
    pub fn check_patch(&self, text: &str, turn: &Turn) -> Result<CheckedPatch, CodexErr> {
        check_patch(text, &turn.cwd, &self.services)
    }

    /// Tells everybody why something was not done. What could not be looked up or started is a matter
    /// between the caller and the machine: nothing was decided about it.
    async fn tell_error(&self, call_id: &CallId, error: &CodexErr) {
        if !matches!(error, CodexErr::NotStarted { .. }) {
            let (call_id, message) = (Some(call_id.clone()), error.to_string());
            self.services.events.tell(&Event::Error(Notice { call_id, message })).await;
        }
    }

    /// Makes the calls of one response of a model, and gives their results back in the same order.
    pub async fn call(&self, calls: Vec<ToolCall>, turn: &Turn) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        self.call_each(calls, turn, |result| results.push(result)).await;
        results
    }

    /// The same, with each result told as soon as it and all before it are there.
    pub async fn call_each(&self, calls: Vec<ToolCall>, turn: &Turn, tell: impl FnMut(ToolResult)) {
        let session = &self.services.span;
        let span = tracing::info_span!(parent: session, "turn", calls = calls.len());
        route(&self.services, &calls, turn, tell).instrument(span).await;
    }
}
