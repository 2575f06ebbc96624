//! What a turn has taken, held against what it may take.

use super::Limits;
use sandgate_protocol::TokenUsage;
use std::time::Duration;

/// How often a history is made shorter because a provider says that it is too long, in one turn.
const SHORTENED: u32 = 2;

/// What a turn has taken.
#[derive(Debug)]
pub(super) struct Spent {
    limits: Limits,
    requests: u32,
    tokens: u64,
    shortened: u32,
}

impl Spent {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, requests: 0, tokens: 0, shortened: 0 }
    }

    pub(super) fn count(&mut self, usage: &TokenUsage) {
        self.requests += 1;
        self.tokens = self.tokens.saturating_add(usage.total());
    }

    /// Whether the history may be made shorter once more.
    pub(super) fn may_shorten(&mut self) -> bool {
        self.shortened += 1;
        self.shortened <= SHORTENED
    }

    /// What it has taken too much of, as one sentence.
    pub(super) fn exceeded(&self) -> Option<String> {
        let Limits { requests, tokens, .. } = self.limits;
        if self.requests >= requests {
            let what = format!("the model was asked {requests} times in one turn");
            return Some(format!("{what}, which is the most that is allowed"));
        }
        let most = tokens.filter(|most| self.tokens >= *most)?;
        Some(format!("the turn took {} tokens, and {most} are allowed", self.tokens))
    }
}

/// What a turn is told that took longer than this.
pub(super) fn too_long(limit: Duration) -> String {
    format!(
        "the turn took longer than {} s, which is the most that is allowed",
        limit.as_secs_f32()
    )
}
