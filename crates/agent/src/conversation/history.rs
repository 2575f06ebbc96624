//! The history of a conversation, which is always one that a provider accepts.

use crate::rollout::{Entry, Rollout, RolloutError};
use sandgate_protocol::{CallId, ContentItem, ResponseItem, TokenUsage};
use std::collections::HashSet;

/// What was said and done, in its order.
#[derive(Debug, Default)]
pub(super) struct History {
    items: Vec<ResponseItem>,
    /// Where it is written down.
    rollout: Option<Rollout>,
    /// Why it is no longer, if nobody has been told yet.
    failure: Option<RolloutError>,
}

/// What a model is told of a call whose result nobody has.
const NO_RESULT: &str = "there is no result: the turn was ended before the call was";

impl History {
    pub(super) fn of(items: Vec<ResponseItem>) -> Self {
        Self { items, ..Self::default() }
    }

    /// Has it written down from now on.
    pub(super) fn record_in(&mut self, rollout: Rollout) {
        self.rollout = Some(rollout);
    }

    /// Whether it is written down.
    pub(super) fn is_recorded(&self) -> bool {
        self.rollout.is_some()
    }

    /// Has nothing of it stay on disk if nothing was said.
    pub(super) fn forget_if_empty(&mut self) {
        if self.items.is_empty()
            && let Some(rollout) = self.rollout.take()
        {
            rollout.discard();
        }
    }

    /// Why it is no longer written down, once.
    pub(super) fn take_failure(&mut self) -> Option<RolloutError> {
        self.failure.take()
    }

    pub(super) fn items(&self) -> &[ResponseItem] {
        &self.items
    }

    /// Adds to it. What is there is never changed, so that a provider can use again what it has computed.
    pub(super) fn keep(&mut self, item: ResponseItem) {
        let entry = Entry::Item { item };
        self.write(&entry);
        if let Entry::Item { item } = entry {
            self.items.push(item);
        }
    }

    /// Begins anew with these.
    pub(super) fn replace(&mut self, items: Vec<ResponseItem>) {
        let entry = Entry::Compacted { items };
        self.write(&entry);
        if let Entry::Compacted { items } = entry {
            self.items = items;
        }
    }

    /// Writes down what a request used.
    pub(super) fn used(&mut self, usage: TokenUsage) {
        if usage != TokenUsage::default() {
            self.write(&Entry::Usage { usage });
        }
    }

    fn write(&mut self, entry: &Entry) {
        if let Some(rollout) = &mut self.rollout
            && let Err(error) = rollout.write(entry)
        {
            self.rollout = None;
            self.failure = Some(error);
        }
    }

    /// Answers every call that has no answer, behind the calls that it was made with.
    pub(super) fn answer_open_calls(&mut self) {
        let answered: HashSet<&CallId> = self
            .items
            .iter()
            .filter_map(|item| match item {
                ResponseItem::ToolCallOutput { call_id, .. } => Some(call_id),
                _ => None,
            })
            .collect();
        let open: Vec<CallId> = self
            .items
            .iter()
            .filter_map(|item| match item {
                ResponseItem::ToolCall { call_id, .. } if !answered.contains(call_id) => {
                    Some(call_id.clone())
                }
                _ => None,
            })
            .collect();
        for call_id in open {
            let (output, content_items, success) = (NO_RESULT.to_owned(), Vec::new(), false);
            self.keep(ResponseItem::ToolCallOutput { call_id, output, content_items, success });
        }
    }
}

/// How many tokens these have, about: four bytes are one.
pub(super) fn estimate(items: &[ResponseItem]) -> u64 {
    items.iter().map(|item| size(item) / 4 + 4).sum()
}

/// How many bytes a model reads of it.
fn size(item: &ResponseItem) -> u64 {
    let of_parts = |parts: &[ContentItem]| -> usize {
        let of_part = |part: &ContentItem| match part {
            ContentItem::InputText { text } => text.len(),
            // About what providers count for a picture, whatever its bytes are.
            ContentItem::InputImage { .. } => 4 * 1500,
        };
        parts.iter().map(of_part).sum()
    };
    let bytes = match item {
        ResponseItem::Message { content, .. } => of_parts(content),
        ResponseItem::Reasoning { summary, .. } => summary.len(),
        ResponseItem::ToolCall { name, input, .. } => name.len() + input.as_str().len(),
        ResponseItem::ToolCallOutput { output, content_items, .. } => {
            match content_items.is_empty() {
                true => output.len(),
                false => of_parts(content_items),
            }
        }
    };
    bytes as u64
}
