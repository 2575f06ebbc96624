//! Makes a long history short: another conversation with the same model sums it up.

use super::{Conversation, TurnEnd, history};
use crate::provider::{ModelError, ModelEvent, ModelRequest, StopReason};
use futures_util::StreamExt as _;
use sandgate_protocol::{AgentEvent, ResponseItem, Role, SessionSource, SubAgentSource};
use sandgate_runtime::{Stop, Turn};

/// What the summing up is asked for.
const PROMPT: &str = "\
The conversation above is about to be replaced by a summary of it, because it is too long. Write that \
summary for whoever goes on with the work and has nothing else. Say: what the person asked for, in their \
words where it matters; what was done and what was found, with files, commands and figures; what was \
decided and why, and what the person refused; what is left to do, and what comes next. Leave out what no \
longer matters. Do not call tools.";

/// What stands before the summary in the new history.
const PREFACE: &str =
    "The conversation until now was long and has been replaced by this summary of it:";

/// How many tokens of what the person said are kept in their own words.
const KEPT_OF_PERSON: u64 = 20_000;

/// The most that a summary may have.
const LONGEST_SUMMARY: u64 = 8_000;

impl Conversation {
    /// Makes the history shorter because somebody asked for it. Whether that was done.
    pub async fn compact_now(&mut self, stop: &Stop) -> bool {
        let turn = self.requester.begin_turn().stopped_by(stop);
        self.compact(&turn).await.is_ok()
    }

    /// Whether the history is about to be too long for the model.
    pub(super) fn is_long(&self) -> bool {
        let of_window = self.options.context_window.map(|window| window / 10 * 9);
        let limit = self.options.compact_at.or(of_window);
        limit.is_some_and(|limit| self.tokens >= limit)
    }

    /// Makes the history shorter. Without a summary nothing is changed, and this is how the turn ends.
    pub(super) async fn compact(&mut self, turn: &Turn) -> Result<(), TurnEnd> {
        let agent = SubAgentSource::Compact.to_string();
        let task = "sum up the conversation".to_owned();
        self.requester.tell(AgentEvent::SubAgentBegin { agent: agent.clone(), task }).await;
        let summary = tokio::select! {
            biased;
            () = turn.cancellation().cancelled() => Err(TurnEnd::Aborted),
            summary = self.sum_up() => summary.map_err(TurnEnd::Failed),
        };
        self.requester.tell(AgentEvent::SubAgentEnd { agent, success: summary.is_ok() }).await;
        let summary = summary?;
        let tokens_before = self.tokens.max(history::estimate(self.history.items()));
        self.history.replace(shortened(self.history.items(), &summary));
        self.tokens = history::estimate(self.history.items());
        let tokens_after = self.tokens;
        self.requester.tell(AgentEvent::ContextCompacted { tokens_before, tokens_after }).await;
        Ok(())
    }

    /// Has the history summed up. If it is too long even for that, ever more of its beginning is left out.
    async fn sum_up(&self) -> Result<String, ModelError> {
        let source = SessionSource::SubAgent(SubAgentSource::Compact);
        // They stand in every request, so that the provider can use again what it has computed; and some
        // refuse a history with calls in a request without tools.
        let tools = self.requester.tools();
        let mut items = self.history.items().to_vec();
        items.push(ResponseItem::message(Role::User, PROMPT));
        let mut overflow = None;
        for _ in 0..4 {
            let request = ModelRequest {
                model: &self.options.model,
                instructions: &self.options.instructions,
                items: &items,
                tools: &tools,
                parallel_tool_calls: false,
                temperature: None,
                max_output_tokens: Some(LONGEST_SUMMARY),
                reasoning_effort: None,
                output_schema: None,
                conversation_id: &self.id,
                source: &source,
            };
            let mut said = String::new();
            let mut stream = self.provider.stream(request);
            while let Some(event) = stream.next().await {
                match event {
                    Ok(ModelEvent::Item(item)) => said.push_str(&item.text().unwrap_or_default()),
                    Ok(ModelEvent::Retrying { .. }) => said.clear(),
                    Ok(ModelEvent::End(StopReason::Done)) if !said.trim().is_empty() => {
                        return Ok(said);
                    }
                    Ok(_) => {}
                    Err(error @ ModelError::ContextOverflow { .. }) => overflow = Some(error),
                    Err(error) => return Err(error),
                }
            }
            drop(stream);
            if overflow.is_none() {
                break;
            }
            items = later_half(items);
        }
        Err(overflow.unwrap_or_else(|| ModelError::Malformed {
            provider: self.provider.name().to_owned(),
            reason: "the history is too long, and there is no whole summary of it".to_owned(),
        }))
    }
}

/// The later half of a history, from a place where no call is cut off from its result and no thought
/// from what it led to.
fn later_half(items: Vec<ResponseItem>) -> Vec<ResponseItem> {
    let middle = items.len() / 2;
    let (mut open, mut cut) = (0_usize, middle);
    for (at, item) in items.iter().enumerate() {
        let follows_thought = at > 0 && matches!(items[at - 1], ResponseItem::Reasoning { .. });
        if at >= middle && open == 0 && !follows_thought {
            cut = at;
            break;
        }
        match item {
            ResponseItem::ToolCall { .. } => open += 1,
            ResponseItem::ToolCallOutput { .. } => open = open.saturating_sub(1),
            _ => {}
        }
    }
    items.into_iter().skip(cut).collect()
}

/// The new history: where it works, what the person said last in their own words, and the summary.
fn shortened(items: &[ResponseItem], summary: &str) -> Vec<ResponseItem> {
    let of = |wanted: Role| move |item: &&ResponseItem| matches!(item, ResponseItem::Message { role, .. } if *role == wanted);
    let surroundings = items.iter().rev().find(of(Role::Developer)).cloned();
    let mut left = KEPT_OF_PERSON;
    let mut said: Vec<ResponseItem> = Vec::new();
    for item in items.iter().rev().filter(of(Role::User)) {
        let size = history::estimate(std::slice::from_ref(item));
        if item.text().is_some_and(|text| text.starts_with(PREFACE)) {
            continue;
        }
        if size > left && !said.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        said.push(item.clone());
    }
    said.reverse();
    let summary = ResponseItem::message(Role::User, format!("{PREFACE}\n\n{summary}"));
    surroundings.into_iter().chain(said).chain([summary]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{CallId, CallInput};

    fn said(role: Role, text: &str) -> ResponseItem {
        ResponseItem::message(role, text)
    }

    #[test]
    fn a_half_keeps_calls_and_results_together() {
        let call = |id: &str| ResponseItem::ToolCall {
            call_id: CallId::new(id),
            name: "shell".to_owned(),
            input: CallInput::Arguments("{}".to_owned()),
        };
        let result = |id: &str| ResponseItem::ToolCallOutput {
            call_id: CallId::new(id),
            output: String::new(),
            content_items: Vec::new(),
            success: true,
        };
        let thought = ResponseItem::Reasoning {
            summary: String::new(),
            wire: String::new(),
            data: serde_json::Value::Null,
        };
        let last = [thought, call("c"), result("c"), said(Role::User, "sum up")];
        let first = [said(Role::User, "go"), call("a"), call("b"), result("a"), result("b")];
        let items = [&first[..], &last[..]].concat();
        assert_eq!(later_half(items), last);
    }

    #[test]
    fn what_the_person_said_stays_and_the_rest_is_summed_up() {
        let call_id = CallId::new("c");
        let items = [
            said(Role::Developer, "here"),
            said(Role::User, "fix it"),
            said(Role::Assistant, "on it"),
            ResponseItem::ToolCall {
                call_id,
                name: "shell".to_owned(),
                input: CallInput::Arguments("{}".to_owned()),
            },
            said(Role::User, "faster"),
        ];
        let short = shortened(&items, "it was fixed");
        let texts: Vec<String> = short.iter().filter_map(ResponseItem::text).collect();
        assert_eq!(texts[..3], ["here", "fix it", "faster"]);
        assert!(texts[3].ends_with("it was fixed"), "{texts:?}");
        // A second time the old summary gives way to the new one.
        let again = shortened(&short, "more");
        assert_eq!(again.len(), 4);
    }
}
