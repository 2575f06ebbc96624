//! The three ways of making a tool call, behind one: JSON lines, HTTP and MCP.

use serde_json::Value;

/// What a question about a call is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Yes,
    No,
    /// Only what was blocked.
    Grant,
}

impl Decision {
    /// As `sandgate call` and HTTP take it.
    pub(super) fn in_json(self) -> Value {
        match self {
            Self::Yes => serde_json::json!({ "decision": "approved" }),
            Self::No => serde_json::json!({ "decision": "denied", "feedback": "not in a soak" }),
            Self::Grant => {
                serde_json::json!({ "decision": "approved_with_grant", "scope": "call" })
            }
        }
    }

    /// As a form of an MCP server has it.
    pub(super) fn in_form(self) -> &'static str {
        match self {
            Self::Yes => "approve",
            Self::No => "deny",
            Self::Grant => "grant",
        }
    }
}

/// What a call came to, as all of them tell it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) success: bool,
    /// The text for a model.
    pub(super) output: String,
    pub(super) exit_code: Option<i64>,
    pub(super) timed_out: bool,
    pub(super) error: Option<String>,
    /// How often somebody was asked.
    pub(super) asked: usize,
}

impl Answer {
    /// What a live process answered.
    pub(super) fn reply(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.output).map_err(|_| anyhow::anyhow!("no reply: {self:?}"))
    }
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    /// What it is known by, if it can be chosen; a question about it has this word in it in any case.
    pub(super) mark: &'a str,
    pub(super) arguments: Value,
    /// What a question is answered with; `None` where there must be none.
    pub(super) decision: Option<Decision>,
}

/// Whoever makes calls.
pub(super) trait Gate {
    /// Makes one, and answers the questions that come of it.
    ///
    /// # Errors
    /// When there is no answer, or a question that should not be there.
    fn call(&mut self, call: &Call<'_>) -> anyhow::Result<Answer>;
}
