//! What a conversation with a model is made of, in a form that belongs to no provider.

use crate::{CallId, ContentItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Who a session works for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// A person who talks with a model.
    #[default]
    Interactive,
    /// One prompt from a command line.
    Exec,
    /// Another conversation.
    SubAgent(SubAgentSource),
}

/// What another conversation wants of a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubAgentSource {
    /// To look at changes.
    Review,
    /// To make a long history short.
    Compact,
    /// Something else, by a name.
    Other(String),
}

impl SubAgentSource {
    /// Its name, as people and providers are told it.
    pub fn name(&self) -> &str {
        match self {
            Self::Review => "review",
            Self::Compact => "compact",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for SubAgentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One piece of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseItem {
    /// Somebody said something.
    Message {
        /// Who.
        role: Role,
        /// What.
        content: Vec<ContentItem>,
    },
    /// The model thought. What the provider wants to see again is kept as it came.
    Reasoning {
        /// What of it people may read.
        summary: String,
        /// Whose form `data` has, such as `responses`; nobody else is shown it.
        wire: String,
        /// What the provider sent.
        data: Value,
    },
    /// The model calls a tool.
    ToolCall {
        /// What its result will be known by.
        call_id: CallId,
        /// The tool.
        name: String,
        /// What it is asked to do.
        input: CallInput,
    },
    /// What came of a call.
    ToolCallOutput {
        /// The call.
        call_id: CallId,
        /// The text.
        output: String,
        /// The same in parts, where there is more than text.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        content_items: Vec<ContentItem>,
        /// Whether it did what it was asked to do.
        success: bool,
    },
}

/// What a tool is asked to do, in the form the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallInput {
    /// JSON as text.
    Arguments(String),
    /// Text that only the tool understands.
    Text(String),
}

impl CallInput {
    /// The text, of whatever kind.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Arguments(text) | Self::Text(text) => text,
        }
    }
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The program around the model.
    Developer,
}

impl ResponseItem {
    /// A message that is one text.
    pub fn message(role: Role, text: impl Into<String>) -> Self {
        Self::Message { role, content: vec![ContentItem::InputText { text: text.into() }] }
    }

    /// What was said, if it is a message: its texts, one after the other.
    pub fn text(&self) -> Option<String> {
        let Self::Message { content, .. } = self else { return None };
        let texts = content.iter().filter_map(|item| match item {
            ContentItem::InputText { text } => Some(text.as_str()),
            ContentItem::InputImage { .. } => None,
        });
        Some(texts.collect())
    }
}

/// What was used of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Those of them that the provider still had.
    pub cached_input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Those of them that were thought and not said.
    pub reasoning_output_tokens: u64,
}

impl TokenUsage {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds what another request used.
    pub fn add(&mut self, other: &Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.cached_input_tokens, other.cached_input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.reasoning_output_tokens, other.reasoning_output_tokens);
    }
}

/// What happens in a conversation beside its commands. On the wire its name is in `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum AgentEvent {
    /// A turn begins.
    TaskStarted {
        /// The model that is asked.
        model: String,
        /// Who serves it.
        provider: String,
    },
    /// What the person said, with which the turn began.
    UserMessage {
        /// In words.
        message: String,
    },
    /// The model says something.
    AgentMessageDelta {
        /// The next piece of it.
        delta: String,
    },
    /// The model has said something.
    AgentMessage {
        /// All of it.
        message: String,
    },
    /// The model thinks.
    AgentReasoningDelta {
        /// The next piece of it.
        delta: String,
    },
    /// The model has thought.
    AgentReasoning {
        /// What of it people may read.
        text: String,
    },
    /// The model calls a tool.
    ToolCallBegin {
        /// What its result will be known by.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// What it is asked to do, as the model wrote it.
        input: String,
    },
    /// A call has its result.
    ToolCallEnd {
        /// The call.
        call_id: CallId,
        /// Whether it did what it was asked to do.
        success: bool,
        /// What the model is given.
        output: String,
    },
    /// What was used of the model.
    TokenCount {
        /// By the last request.
        last: TokenUsage,
        /// By the whole conversation.
        total: TokenUsage,
        /// How many tokens fit into the model, if that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        context_window: Option<u64>,
    },
    /// A request failed and is made again. What it brought until now does not count.
    StreamError {
        /// Why it failed.
        message: String,
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// How long it is waited for, in milliseconds.
        retry_in_ms: u64,
    },
    /// The history was made shorter.
    ContextCompacted {
        /// How many tokens it had, about.
        tokens_before: u64,
        /// How many it has, about.
        tokens_after: u64,
    },
    /// A subagent begins.
    SubAgentBegin {
        /// Its name among the subagents of this conversation, such as `review-1`.
        agent: String,
        /// What it is to do.
        task: String,
    },
    /// A subagent has ended.
    SubAgentEnd {
        /// Its name.
        agent: String,
        /// Whether it did what it was asked to do.
        success: bool,
    },
    /// A turn has ended, and the model has nothing more to ask for.
    TaskComplete {
        /// What the model said last.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        last_agent_message: Option<String>,
    },
    /// A turn was ended before the model was done.
    TurnAborted {
        /// Why, as one sentence.
        reason: String,
    },
}
