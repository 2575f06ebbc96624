//! One request to a model, and what comes of it.

use super::Conversation;
use crate::provider::{MOST_CALLS, ModelError, ModelEvent, ModelRequest, StopReason};
use futures_util::StreamExt as _;
use sandgate_protocol::{AgentEvent, ResponseItem, Role, TokenUsage};
use sandgate_runtime::Turn;

/// What a model answered.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) items: Vec<ResponseItem>,
    pub(super) usage: TokenUsage,
    /// What it has begun to say and not finished.
    unfinished: String,
}

impl Response {
    /// What it said last, if it ended with words.
    pub(super) fn last_message(&self) -> Option<String> {
        self.items.iter().rev().find_map(ResponseItem::text)
    }

    /// What was said until it was cut short. Calls and thoughts are left out: a provider wants each of
    /// them followed by what belongs to it.
    fn said(self) -> Vec<ResponseItem> {
        let is_message = |item: &ResponseItem| matches!(item, ResponseItem::Message { .. });
        let mut said: Vec<_> = self.items.into_iter().filter(is_message).collect();
        if !self.unfinished.is_empty() {
            said.push(ResponseItem::message(Role::Assistant, self.unfinished));
        }
        said
    }
}

/// What came of a request.
pub(super) enum Asked {
    Answered(Response),
    /// Somebody called it off; these are the words that were said until then.
    Interrupted(Vec<ResponseItem>),
    Failed(ModelError),
}

impl Conversation {
    /// Asks the model, and tells what it says as it says it.
    pub(super) async fn ask(&self, turn: &Turn) -> Asked {
        let tools = self.requester.tools();
        let request = ModelRequest {
            model: &self.options.model,
            instructions: &self.options.instructions,
            items: self.history.items(),
            tools: &tools,
            parallel_tool_calls: true,
            temperature: None,
            max_output_tokens: self.options.max_output_tokens,
            reasoning_effort: self.options.reasoning_effort,
            output_schema: self.options.output_schema.as_ref(),
            conversation_id: &self.id,
            source: &self.options.source,
        };
        let mut response = Response::default();
        let mut stream = self.provider.stream(request);
        loop {
            let event = tokio::select! {
                biased;
                () = turn.cancellation().cancelled() => return Asked::Interrupted(response.said()),
                event = stream.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::End(reason))) => return self.ended(response, reason).await,
                Some(Ok(event)) => {
                    self.hear(event, &mut response).await;
                    if response.items.len() >= MOST_CALLS {
                        let provider = self.provider.name().to_owned();
                        let reason = format!("an answer of {MOST_CALLS} pieces and more");
                        return Asked::Failed(ModelError::Malformed { provider, reason });
                    }
                }
                Some(Err(error)) => return Asked::Failed(error),
                None => {
                    let (provider, reason) = (self.provider.name().to_owned(), "no end".to_owned());
                    return Asked::Failed(ModelError::BrokenOff { provider, reason });
                }
            }
        }
    }

    async fn hear(&self, event: ModelEvent, response: &mut Response) {
        let told = match event {
            ModelEvent::TextDelta(delta) => {
                response.unfinished.push_str(&delta);
                AgentEvent::AgentMessageDelta { delta }
            }
            ModelEvent::ReasoningDelta(delta) => AgentEvent::AgentReasoningDelta { delta },
            ModelEvent::Item(item) => {
                let told = match &item {
                    ResponseItem::Message { .. } => {
                        response.unfinished.clear();
                        item.text().map(|message| AgentEvent::AgentMessage { message })
                    }
                    ResponseItem::Reasoning { summary, .. } => (!summary.is_empty())
                        .then(|| AgentEvent::AgentReasoning { text: summary.clone() }),
                    _ => None,
                };
                response.items.push(item);
                let Some(told) = told else { return };
                told
            }
            ModelEvent::Usage(usage) => {
                response.usage = usage;
                return;
            }
            ModelEvent::Retrying { error, attempt, delay } => {
                *response = Response::default();
                let retry_in_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                AgentEvent::StreamError { message: error.to_string(), attempt, retry_in_ms }
            }
            ModelEvent::End(_) => return,
        };
        self.requester.tell(told).await;
    }

    async fn ended(&self, response: Response, reason: StopReason) -> Asked {
        let note = match reason {
            StopReason::Done => return Asked::Answered(response),
            StopReason::Length => "[cut off: the model wrote as much as it may]",
            StopReason::Refused => "[the provider did not let the model answer this]",
        };
        let mut response = response;
        // A call whose arguments were cut off is none.
        response.items.retain(|item| !matches!(item, ResponseItem::ToolCall { .. }));
        let message = note.to_owned();
        response.items.push(ResponseItem::message(Role::Assistant, note));
        self.requester.tell(AgentEvent::AgentMessage { message }).await;
        Asked::Answered(response)
    }
}
