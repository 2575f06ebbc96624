//! A conversation as turns of two speakers, for the forms that know no more than that.
//!
//! Whatever the history looks like, calls are followed by their results and by nothing else, every
//! call has one, and no two turns in a row are the person's.

use super::ids::WireIds;
use crate::provider::ModelRequest;
use sandgate_protocol::{CallInput, ContentItem, ResponseItem, Role};
use serde_json::Value;
use std::collections::HashMap;

/// A conversation as turns.
pub(super) struct Turns<'a> {
    /// What comes before them: the instructions, and what the program says before anybody else.
    pub(super) system: String,
    pub(super) turns: Vec<Turn<'a>>,
}

pub(super) enum Turn<'a> {
    User(Vec<&'a ContentItem>),
    Assistant(Vec<Part<'a>>),
    /// The results of the calls of the turn before, in the order of the calls.
    Results(Vec<CallResult<'a>>),
}

/// What a model did in one turn, in its order.
pub(super) enum Part<'a> {
    Text(&'a str),
    Reasoning { wire: &'a str, data: &'a Value },
    Call { id: String, name: &'a str, input: &'a CallInput },
}

pub(super) struct CallResult<'a> {
    pub(super) id: String,
    pub(super) output: &'a str,
    pub(super) content_items: &'a [ContentItem],
    pub(super) success: bool,
}

/// What a model is told of a call that nobody has a result of.
const NO_RESULT: &str = "there is no result";

impl<'a> Turns<'a> {
    pub(super) fn of(request: &ModelRequest<'a>) -> Self {
        let results = request.items.iter().filter_map(|item| match item {
            ResponseItem::ToolCallOutput { call_id, .. } => Some((call_id.as_str(), item)),
            _ => None,
        });
        let mut grouping = Grouping {
            ids: WireIds::of(request.items),
            results: results.collect(),
            turns: Vec::new(),
            parts: Vec::new(),
            calls: Vec::new(),
        };
        let leading = |item: &&ResponseItem| {
            matches!(item, ResponseItem::Message { role: Role::Developer, .. })
        };
        let before = request.items.iter().take_while(leading).count();
        let said = request.items[..before].iter().filter_map(ResponseItem::text);
        let system = std::iter::once(request.instructions.to_owned()).chain(said);
        let system: Vec<String> = system.filter(|text| !text.trim().is_empty()).collect();
        request.items[before..].iter().for_each(|item| grouping.add(item));
        grouping.close();
        Self { system: system.join("\n\n"), turns: grouping.turns }
    }
}

struct Grouping<'a> {
    ids: WireIds<'a>,
    results: HashMap<&'a str, &'a ResponseItem>,
    turns: Vec<Turn<'a>>,
    /// The turn of the model that is not over.
    parts: Vec<Part<'a>>,
    /// The calls of it: their ids in the history, and in the request.
    calls: Vec<(&'a str, String)>,
}

impl<'a> Grouping<'a> {
    fn add(&mut self, item: &'a ResponseItem) {
        match item {
            ResponseItem::Message { role: Role::Assistant, content } => {
                let texts = content.iter().filter_map(|item| match item {
                    ContentItem::InputText { text } => Some(Part::Text(text)),
                    ContentItem::InputImage { .. } => None,
                });
                self.parts.extend(texts);
            }
            ResponseItem::Message { content, .. } => {
                self.close();
                match self.turns.last_mut() {
                    Some(Turn::User(before)) => before.extend(content),
                    _ => self.turns.push(Turn::User(content.iter().collect())),
                }
            }
            ResponseItem::Reasoning { wire, data, .. } => {
                self.parts.push(Part::Reasoning { wire, data });
            }
            ResponseItem::ToolCall { call_id, name, input } => {
                let id = self.ids.get(call_id).to_owned();
                self.calls.push((call_id.as_str(), id.clone()));
                self.parts.push(Part::Call { id, name, input });
            }
            // Each stands with its call.
            ResponseItem::ToolCallOutput { .. } => self.close(),
        }
    }

    /// Ends the turn of the model, with the results of its calls.
    fn close(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return;
        }
        let results = self.calls.drain(..).map(|(call_id, id)| match self.results.get(call_id) {
            Some(ResponseItem::ToolCallOutput { output, content_items, success, .. }) => {
                CallResult { id, output, content_items, success: *success }
            }
            _ => CallResult { id, output: NO_RESULT, content_items: &[], success: false },
        });
        let results: Vec<_> = results.collect();
        self.turns.push(Turn::Assistant(parts));
        if !results.is_empty() {
            self.turns.push(Turn::Results(results));
        }
    }
}
