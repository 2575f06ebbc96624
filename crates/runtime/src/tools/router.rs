//! From the calls of one response of a model to their results.

use super::{ToolInvocation, ToolRegistry};
use crate::session::{Services, Turn};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use sandgate_protocol::{CallId, CodexErr, Event, Notice, ToolCall, ToolOutput};

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
    if all_parallel(&services.registry, calls) {
        let mut made: FuturesOrdered<_> =
            calls.iter().map(|call| make(services, call, turn)).collect();
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

async fn make(services: &Services, call: &ToolCall, turn: &Turn) -> ToolResult {
    match try_make(services, call, turn).await {
        Ok(output) => ToolResult { call_id: call.call_id.clone(), output, error: None },
        Err(error) => {
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
) -> Result<ToolOutput, CodexErr> {
    let tool = services.registry.get(&call.name)?;
    if !tool.matches_kind(&call.payload) {
        return Err(super::wrong_kind(&call.name));
    }
    let invocation = ToolInvocation {
        services,
        turn,
        call_id: &call.call_id,
        tool_name: &call.name,
        payload: &call.payload,
    };
    tool.handle(invocation).await
}

fn failed(call: &ToolCall, error: CodexErr) -> ToolResult {
    let output = ToolOutput::text(error.for_model(), false);
    ToolResult { call_id: call.call_id.clone(), output, error: Some(error) }
}
