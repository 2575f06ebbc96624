//! The history of a conversation, which is always one that a provider accepts.

use sandgate_protocol::{CallId, ResponseItem};
use std::collections::HashSet;

/// What was said and done, in its order.
#[derive(Debug, Default)]
pub(super) struct History {
    items: Vec<ResponseItem>,
}

/// What a model is told of a call whose result nobody has.
const NO_RESULT: &str = "there is no result: the turn was ended before the call was";

impl History {
    pub(super) fn items(&self) -> &[ResponseItem] {
        &self.items
    }

    /// Adds to it. What is there is never changed, so that a provider can use again what it has computed.
    pub(super) fn keep(&mut self, item: ResponseItem) {
        self.items.push(item);
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
