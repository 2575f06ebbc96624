//! One call: made in a task of its own, so that it can wait for a person while no request of the client is
//! open. Whoever attends to it sees what it prints, what it asks, and what it leaves.

use super::answer::answer;
use super::form::Question;
use super::place::Place;
use super::progress::Printed;
use crate::asking::ClientApprover;
use rmcp::model::CallToolResult;
use sandgate_protocol::{
    ApprovalId, CallId, Event, ReviewDecision, SessionEvent, ToolCall, ToolPayload,
};
use sandgate_runtime::{Delivery, Turn, new_call_id};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;

/// How many warnings of one call are passed on.
const MOST_WARNINGS: usize = 16;

/// A call that is being made, or was.
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) tool: String,
    pub(super) place: Arc<Place>,
    /// Ends it, with all that it started.
    pub(super) cancel: CancellationToken,
    state: Mutex<State>,
    changed: Notify,
    /// Tells those who wait for the end of its question.
    settled: Notify,
    /// Its place among the calls of the client, also while it waits for the client to come again.
    _permit: OwnedSemaphorePermit,
}

/// What is known of it.
#[derive(Default)]
pub(super) struct State {
    /// The question that waits for its answer.
    pub(super) question: Option<Question>,
    /// What it printed and nobody was shown yet.
    pub(super) printed: Printed,
    pub(super) warnings: Vec<String>,
    /// What it left.
    pub(super) result: Option<CallToolResult>,
    /// The end of its command.
    ended: Option<Arc<SessionEvent>>,
}

/// Whether anybody wants to see output while it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Shown,
    InResult,
}

impl Call {
    /// Makes a call. It ends with the connection.
    pub(super) fn start(
        place: Arc<Place>,
        permit: OwnedSemaphorePermit,
        tool: String,
        arguments: &Value,
        output: Output,
        connection: CancellationToken,
    ) -> Arc<Self> {
        let turn = place.requester.begin_turn();
        let id = new_call_id();
        let payload = ToolPayload::Function { arguments: arguments.to_string() };
        let call = ToolCall { call_id: id.clone(), name: tool.clone(), payload };
        let made = Arc::new(Self {
            id,
            tool,
            place,
            cancel: turn.cancellation().clone(),
            state: Mutex::default(),
            changed: Notify::new(),
            settled: Notify::new(),
            _permit: permit,
        });
        let talked_to = arguments.get("process_id").and_then(Value::as_str);
        let talked_to = talked_to.and_then(|process| made.place.starter(process));
        tokio::spawn(Arc::clone(&made).make(call, turn, output, talked_to, connection));
        made
    }

    async fn make(
        self: Arc<Self>,
        call: ToolCall,
        turn: Turn,
        output: Output,
        talked_to: Option<CallId>,
        connection: CancellationToken,
    ) {
        let delivery = match output {
            Output::Shown => Delivery::Lossy,
            Output::InResult => Delivery::WithoutOutput,
        };
        let mut events = self.place.session.events(delivery).await;
        let calling = self.place.requester.call(vec![call], &turn);
        tokio::pin!(calling);
        let results = loop {
            tokio::select! {
                biased;
                () = connection.cancelled(), if !turn.is_cancelled() => turn.cancel(),
                Some(event) = events.next() => self.hear(&event, talked_to.as_ref()),
                results = &mut calling => break results,
            }
        };
        while let Some(event) = events.try_next() {
            self.hear(&event, talked_to.as_ref());
        }
        let mut state = self.state();
        let ended = state.ended.take();
        let ended = ended.as_deref().and_then(|event| match &event.event {
            Event::ExecCommandEnd(end) => Some(&end.output),
            _ => None,
        });
        let result = results.into_iter().next().map(|result| answer(&self.tool, result, ended));
        if let Some(process) = result.as_ref().and_then(process_of)
            && self.tool == "exec_command"
        {
            self.place.started(process, self.id.clone());
        }
        // One call has one result.
        let gone = || super::answer::not_made("fatal", "the call has no result");
        (state.result, state.question) = (Some(result.unwrap_or_else(gone)), None);
        drop(state);
        self.tell();
    }

    fn hear(&self, event: &Arc<SessionEvent>, talked_to: Option<&CallId>) {
        let mut state = self.state();
        let is_own = |call: &CallId| *call == self.id;
        match &event.event {
            Event::ExecCommandOutputDelta(delta)
                if is_own(&delta.call_id) || talked_to == Some(&delta.call_id) =>
            {
                state.printed.push(&delta.bytes().unwrap_or_default());
            }
            Event::ExecCommandEnd(end) if is_own(&end.call_id) => {
                state.ended = Some(Arc::clone(event));
            }
            Event::ExecApprovalRequest(request) if is_own(&request.call_id) => {
                state.question = Question::of(&event.event);
            }
            Event::ApplyPatchApprovalRequest(request) if is_own(&request.call_id) => {
                state.question = Question::of(&event.event);
            }
            Event::ApprovalResponse(response) => {
                state.question.take_if(|question| question.id == response.approval_id);
            }
            Event::Warning(notice)
                if notice.call_id.as_ref().is_some_and(is_own)
                    && state.warnings.len() < MOST_WARNINGS =>
            {
                state.warnings.push(notice.message.clone());
            }
            _ => return,
        }
        drop(state);
        self.tell();
    }

    /// Passes on what was answered to its question, which is not put to the client again.
    pub(super) fn answer(
        &self,
        question: &Question,
        approver: &ClientApprover,
        said: ReviewDecision,
    ) {
        self.state().question.take_if(|open| open.id == question.id);
        // Somebody else may have been faster, and that counts.
        let _ = approver.answer(&question.id, said);
    }

    /// What is known of it now.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.notify_one();
        self.settled.notify_waiters();
    }

    /// Waits until a question of it waits for no answer any more.
    pub(super) async fn settled(&self, question: &ApprovalId) {
        loop {
            // Made before the look, it misses nothing.
            let told = self.settled.notified();
            if self.state().question.as_ref().is_none_or(|open| open.id != *question) {
                return;
            }
            told.await;
        }
    }

    /// Waits until more is known. One at a time can.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The process that a result is about.
fn process_of(result: &CallToolResult) -> Option<&str> {
    result.structured_content.as_ref()?.get("process_id")?.as_str()
}
