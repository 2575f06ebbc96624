//! From the calls of one response of a model to their results.

use super::{ToolInvocation, ToolRegistry};
use crate::audit::{CallAsked, Ended, Record};
use crate::orchestrator::Recorded;
use crate::request::new_call_id;
use crate::session::{Services, Turn};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use sandgate_protocol::{
    CallId, CodexErr, Denials, Event, Notice, SandboxPermissions, ToolCall, ToolOutput, ToolPayload,
};
use std::time::Instant;
use tracing::Instrument as _;

/// What came of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call.
    pub call_id: CallId,
    /// What the model is given.
    pub output: ToolOutput,
    /// Why it came to nothing, if it did.
    pub error: Option<CodexErr>,
}

impl ToolResult {
    /// Whether the model is not asked to go on.
    pub fn ends_turn(&self) -> bool {
        self.error.as_ref().is_some_and(CodexErr::ends_turn)
    }
}

/// Makes the calls: all at once if each can bear it, otherwise one after the other. Results are told
/// in the order of the calls, each as soon as it and all before it are there. Whatever becomes of one,
/// the others have theirs. After one that ends the turn the rest is not begun.
pub(crate) async fn route(
    services: &Services,
    calls: &[ToolCall],
    turn: &Turn,
    mut tell: impl FnMut(ToolResult),
) {
    if all_parallel(&services.registry.current(), calls) {
        let made = calls.iter().map(async |call| {
            let result = make(services, call, turn).await;
            if result.ends_turn() {
                // Somebody wants all of it to stop, not only this.
                turn.cancel();
            }
            result
        });
        let mut made: FuturesOrdered<_> = made.collect();
        while let Some(result) = made.next().await {
            tell(result);
        }
        return;
    }
    let mut over = false;
    for call in calls {
        let result = match over || turn.is_cancelled() {
            true => failed(call, CodexErr::UserAborted),
            false => make(services, call, turn).await,
        };
        over |= result.ends_turn();
        tell(result);
    }
}

fn all_parallel(registry: &ToolRegistry, calls: &[ToolCall]) -> bool {
    calls.iter().all(|call| match registry.get(&call.name) {
        Ok(tool) => tool.supports_parallel_tool_calls(),
        Err(_) => false,
    })
}

/// Makes one call, unless one of its id is at work. Then the refusal is told and recorded by an id of its own: whoever
/// follows the other is not to take it for that one's.
async fn make(services: &Services, call: &ToolCall, turn: &Turn) -> ToolResult {
    let Some(_working) = services.at_work.begin(&call.call_id) else {
        let error = CodexErr::CallIdTaken { call_id: cut(call.call_id.as_str(), LONGEST_NAME) };
        let refused = ToolCall { call_id: new_call_id(), ..call.clone() };
        record_refused(services, &refused, turn, &error);
        let (call_id, message) = (Some(refused.call_id), error.for_person());
        services.events.tell(&Event::Error(Notice { call_id, message })).await;
        return failed(call, error);
    };
    let (began, recorded) = (Instant::now(), Recorded::default());
    // What a model makes up is no name for a series of figures.
    let known = services.registry.current().get(&call.name).is_ok();
    let tool = if known { call.name.as_str() } else { "unknown" };
    let span = tracing::info_span!("call", call_id = ?call.call_id.as_str(), tool);
    let made = try_make(services, call, turn, &recorded).instrument(span.clone()).await;
    let success = made.as_ref().is_ok_and(is_success);
    services.telemetry.called(tool, success, began.elapsed());
    match made {
        Ok(output) => ToolResult { call_id: call.call_id.clone(), output, error: None },
        Err(error) => {
            tracing::info!(parent: &span, error = error.name(), "came to nothing");
            if !recorded.is_so() {
                record_refused(services, call, turn, &error);
            }
            let (call_id, message) = (Some(call.call_id.clone()), error.for_person());
            services.events.tell(&Event::Error(Notice { call_id, message })).await;
            failed(call, error)
        }
    }
}

async fn try_make(
    services: &Services,
    call: &ToolCall,
    turn: &Turn,
    recorded: &Recorded,
) -> Result<ToolOutput, CodexErr> {
    let registry = services.registry.current();
    let tool = registry.get(&call.name)?;
    if !tool.matches_kind(&call.payload) {
        return Err(super::wrong_kind(&call.name));
    }
    let invocation = ToolInvocation {
        services,
        turn,
        call_id: &call.call_id,
        tool_name: &call.name,
        payload: &call.payload,
        recorded,
    };
    tool.handle(invocation).await
}

fn is_success(output: &ToolOutput) -> bool {
    match output {
        ToolOutput::Function { success, .. } => success.unwrap_or(true),
        ToolOutput::Mcp { result } => result.is_ok(),
    }
}

/// Records a call that was refused before anything could be said of it but its own words.
fn record_refused(services: &Services, call: &ToolCall, turn: &Turn, error: &CodexErr) {
    let call_id = || call.call_id.clone();
    let asked = CallAsked {
        call_id: call_id(),
        front_end: services.config.front_end.clone(),
        tool: cut(&call.name, LONGEST_NAME),
        argv: words_of(call),
        cwd: turn.cwd.to_string_lossy().into_owned(),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        agent: services.agent(),
    };
    let ended = Ended {
        call_id: call_id(),
        attempt: 1,
        exit_code: None,
        duration_ms: 0,
        timed_out: false,
        cancelled: false,
        denials: Denials::default(),
        error: Some(cut(&error.to_string(), LONGEST_WORDS)),
    };
    // Nothing ran, so nothing is undone if this cannot be written.
    let _ = services.record(&Record::CallAsked(asked));
    let _ = services.record(&Record::Ended(ended));
}

/// How much of what a model wrote is recorded when nobody understood it, in bytes.
const LONGEST_WORDS: usize = 4096;
const LONGEST_NAME: usize = 100;

/// What was asked, in the model's own words. A patch is left out: it is what is to be in files.
fn words_of(call: &ToolCall) -> Vec<String> {
    match &call.payload {
        ToolPayload::LocalShell { params } => params.command.clone(),
        ToolPayload::Function { arguments } if call.name != "apply_patch" => {
            vec![cut(arguments, LONGEST_WORDS)]
        }
        ToolPayload::Mcp { raw_arguments, .. } => vec![cut(raw_arguments, LONGEST_WORDS)],
        ToolPayload::Function { .. } | ToolPayload::Custom { .. } => Vec::new(),
    }
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

fn failed(call: &ToolCall, error: CodexErr) -> ToolResult {
    let output = ToolOutput::text(error.for_model(), false);
    ToolResult { call_id: call.call_id.clone(), output, error: Some(error) }
}
