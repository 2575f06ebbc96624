//! The ids of calls, which every provider wants to be its own way.

use sandgate_protocol::{CallId, ResponseItem};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The longest id that all of the three forms take.
const LONGEST: usize = 40;

/// The ids of a conversation as every provider takes them: letters, digits, `_` and `-`, and at most
/// forty of them. The same conversation gives the same ids however it grows.
pub(super) struct WireIds<'a>(HashMap<&'a str, Cow<'a, str>>);

impl<'a> WireIds<'a> {
    pub(super) fn of(items: &'a [ResponseItem]) -> Self {
        let calls = items.iter().filter_map(|item| match item {
            ResponseItem::ToolCall { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        });
        let mut given = HashMap::new();
        let mut taken = HashSet::new();
        for (number, id) in calls.enumerate() {
            if given.contains_key(id) {
                continue;
            }
            let mut named = Cow::Borrowed(id);
            let mut more = 0;
            while !is_valid(&named) || taken.contains(&named) {
                named = Cow::Owned(format!("call_{number}_{more}"));
                more += 1;
            }
            taken.insert(named.clone());
            given.insert(id, named);
        }
        Self(given)
    }

    /// The id of a call of the conversation.
    pub(super) fn get(&self, id: &'a CallId) -> &str {
        self.0.get(id.as_str()).map_or(id.as_str(), |id| id)
    }
}

fn is_valid(id: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !id.is_empty() && id.len() <= LONGEST && id.bytes().all(good)
}

/// The ids that a conversation has used. No call gets one of them again, whatever a provider sends:
/// some count from 0 in every response, and some send none.
#[derive(Debug, Default)]
pub(in crate::provider) struct KnownIds(HashSet<String>);

impl KnownIds {
    pub(in crate::provider) fn of(items: &[ResponseItem]) -> Self {
        let ids = items.iter().filter_map(|item| match item {
            ResponseItem::ToolCall { call_id, .. } => Some(call_id.as_str().to_owned()),
            _ => None,
        });
        Self(ids.collect())
    }

    /// The id of a new call: the one it came with, or another if that cannot be told from others.
    pub(super) fn name(&mut self, id: Option<String>) -> CallId {
        let usable =
            |id: &String| !id.is_empty() && id.len() <= 256 && !id.chars().any(char::is_control);
        let id = id.filter(usable).filter(|id| !self.0.contains(id));
        let id = id.unwrap_or_else(|| format!("call_{}", uuid::Uuid::now_v7().simple()));
        self.0.insert(id.clone());
        CallId::new(id)
    }
}
