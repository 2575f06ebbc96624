//! A conversation: its history, and the loop that makes a model's calls until it has no more.

mod ask;
mod compact;
mod history;
mod input;
mod spent;

pub use input::UserInput;

use crate::instructions::surroundings;
use crate::mcp::{McpServers, Settled};
use crate::provider::{ModelError, Provider};
use crate::rollout::{Recorded, Rollout, RolloutError, SessionMeta};
use ask::{Asked, Response};
use history::History;
use sandgate_config::ReasoningEffort;
use sandgate_protocol::{
    AgentEvent, CallInput, ResponseItem, Role, SessionSource, TokenUsage, ToolCall, ToolOutput,
    ToolPayload,
};
use sandgate_runtime::{Requester, Stop, ToolResult, Turn};
use spent::Spent;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A conversation with a model.
pub struct Conversation {
    id: String,
    requester: Requester,
    provider: Arc<dyn Provider>,
    options: ConversationOptions,
    history: History,
    used: TokenUsage,
    /// How many tokens the history has, as the model counts them.
    tokens: u64,
    /// The servers whose tools the model has beside the session's own.
    mcp: McpServers,
}

/// What a conversation is begun with.
#[derive(Debug, Clone)]
pub struct ConversationOptions {
    /// The model.
    pub model: String,
    /// What the model is to be, before all else.
    pub instructions: String,
    /// Who it works for.
    pub source: SessionSource,
    /// How much the model is to think.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most that it may write in one answer.
    pub max_output_tokens: Option<u64>,
    /// How many tokens fit into it.
    pub context_window: Option<u64>,
    /// The JSON schema that its last answer is to have.
    pub output_schema: Option<serde_json::Value>,
    /// How many tokens the history may have before it is made shorter; without it nine tenths of the
    /// context window.
    pub compact_at: Option<u64>,
    /// How much one turn may take.
    pub limits: Limits,
}

/// How much one turn may take before it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked.
    pub requests: u32,
    /// How many tokens are read and written.
    pub tokens: Option<u64>,
    /// How long it takes.
    pub time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 200, tokens: None, time: None }
    }
}

impl ConversationOptions {
    /// A conversation with this model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            instructions: String::new(),
            source: SessionSource::default(),
            reasoning_effort: None,
            max_output_tokens: None,
            context_window: None,
            output_schema: None,
            compact_at: None,
            limits: Limits::default(),
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model has nothing more to ask for.
    Complete {
        /// What it said last.
        last_message: Option<String>,
    },
    /// Somebody called it off.
    Aborted,
    /// It took more than it may.
    Limit(String),
    /// The model could not be asked.
    Failed(ModelError),
}

impl Conversation {
    /// Begins a conversation.
    pub fn start(
        requester: Requester,
        provider: Arc<dyn Provider>,
        options: ConversationOptions,
    ) -> Self {
        let id = uuid::Uuid::now_v7().to_string();
        let (history, used, tokens) = (History::default(), TokenUsage::default(), 0);
        let mcp = McpServers::default();
        Self { id, requester, provider, options, history, used, tokens, mcp }
    }

    /// Gives the model the tools of these servers. The first turn waits until each has started or failed; if it is
    /// called off while a person is asked about one, the question goes, and the next turn asks it again.
    #[must_use]
    pub fn with_mcp(self, mcp: McpServers) -> Self {
        Self { mcp, ..self }
    }

    /// The same, for a conversation that has begun.
    pub fn talk_with(&mut self, mcp: McpServers) {
        self.mcp = mcp;
    }

    /// Has everything that is said and done written down.
    ///
    /// # Errors
    /// When that cannot be begun.
    pub fn recorded(
        mut self,
        config_home: &Path,
        parent: Option<String>,
    ) -> Result<Self, RolloutError> {
        let meta = SessionMeta {
            id: self.id.clone(),
            started: jiff::Timestamp::now(),
            cwd: self.requester.workspace().to_owned(),
            source: self.options.source.clone(),
            parent,
            model: self.options.model.clone(),
            provider: self.provider.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: self.options.instructions.clone(),
        };
        self.history.record_in(Rollout::create(config_home, &meta)?);
        Ok(self)
    }

    /// Goes on with a conversation that was written down, and writes down what follows. Calls that had no
    /// result when its program ended are answered with that.
    ///
    /// # Errors
    /// When another program goes on with it.
    pub fn resume(
        requester: Requester,
        provider: Arc<dyn Provider>,
        mut options: ConversationOptions,
        recorded: Recorded,
    ) -> Result<Self, RolloutError> {
        let rollout = recorded.go_on()?;
        // What the model was told stays what it was told.
        options.instructions = recorded.meta.instructions;
        let tokens = history::estimate(&recorded.items);
        let mut history = History::of(recorded.items);
        history.record_in(rollout);
        history.answer_open_calls();
        let (id, used, mcp) = (recorded.meta.id, recorded.used, McpServers::default());
        Ok(Self { id, requester, provider, options, history, used, tokens, mcp })
    }

    /// Ends it. If nothing was said in it, nothing of it stays written down.
    pub fn end(mut self) {
        self.history.forget_if_empty();
    }

    /// What it is known by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it is written down.
    pub fn is_recorded(&self) -> bool {
        self.history.is_recorded()
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.options.model
    }

    /// Who serves it.
    pub fn provider(&self) -> &str {
        self.provider.name()
    }

    /// What it used until now.
    pub fn used(&self) -> TokenUsage {
        self.used
    }

    /// How many tokens fit into the model, if that is known.
    pub fn context_window(&self) -> Option<u64> {
        self.options.context_window
    }

    /// What was said and done in it.
    pub fn items(&self) -> &[ResponseItem] {
        self.history.items()
    }

    /// Takes one turn: what a person says, and all that the model does about it.
    pub async fn turn(&mut self, input: UserInput, stop: &Stop) -> TurnEnd {
        self.tell_surroundings();
        let message = input.text.clone();
        self.history.keep(input.into_item());
        let turn = self.requester.begin_turn().stopped_by(&stop.child());
        let (model, provider) = (self.options.model.clone(), self.provider.name().to_owned());
        self.requester.tell(AgentEvent::TaskStarted { model, provider }).await;
        self.requester.tell(AgentEvent::UserMessage { message }).await;
        let settled = tokio::select! {
            () = turn.cancellation().cancelled() => Settled::Aborted,
            settled = self.mcp.settled() => settled,
        };
        if settled == Settled::Aborted {
            turn.cancel();
            self.mcp.call_off();
        }
        let end = self.work_in_time(&turn).await;
        self.history.answer_open_calls();
        self.tell_unrecorded().await;
        self.requester.end_turn(turn).await;
        self.requester.tell(told(&end)).await;
        end
    }

    /// Works, and calls everything off when the time for it is over.
    async fn work_in_time(&mut self, turn: &Turn) -> TurnEnd {
        let Some(limit) = self.options.limits.time else { return self.work(turn).await };
        let working = self.work(turn);
        tokio::pin!(working);
        tokio::select! {
            biased;
            end = &mut working => end,
            () = tokio::time::sleep(limit) => {
                turn.cancel();
                working.await;
                TurnEnd::Limit(spent::too_long(limit))
            }
        }
    }

    /// Tells the model where it works, unless it knows.
    fn tell_surroundings(&mut self) {
        let (sandbox, asking) = (self.requester.sandbox_policy(), self.requester.approval_policy());
        let now = surroundings(self.requester.workspace(), sandbox, asking);
        let by_us = |item: &&ResponseItem| {
            matches!(item, ResponseItem::Message { role: Role::Developer, .. })
        };
        if self.history.items().iter().rev().find(by_us) != Some(&now) {
            self.history.keep(now);
        }
    }

    /// Asks the model and makes its calls, until it has none.
    async fn work(&mut self, turn: &Turn) -> TurnEnd {
        let mut spent = Spent::new(self.options.limits);
        loop {
            if let Some(limit) = spent.exceeded() {
                return TurnEnd::Limit(limit);
            }
            if self.is_long()
                && let Err(end) = self.compact(turn).await
            {
                return end;
            }
            let response = match self.ask(turn).await {
                Asked::Answered(response) => response,
                Asked::Interrupted(said) => {
                    said.into_iter().for_each(|item| self.history.keep(item));
                    return TurnEnd::Aborted;
                }
                Asked::Failed(ModelError::ContextOverflow { .. }) if spent.may_shorten() => {
                    match self.compact(turn).await {
                        Ok(()) => continue,
                        Err(end) => return end,
                    }
                }
                Asked::Failed(error) => return TurnEnd::Failed(error),
            };
            spent.count(&response.usage);
            self.count(response.usage).await;
            let last_message = response.last_message();
            let calls = self.take(response);
            self.tell_unrecorded().await;
            if calls.is_empty() {
                return TurnEnd::Complete { last_message };
            }
            if self.make(calls, turn).await || turn.is_cancelled() {
                return TurnEnd::Aborted;
            }
        }
    }

    /// Tells the person if the conversation can no longer be written down.
    async fn tell_unrecorded(&mut self) {
        if let Some(error) = self.history.take_failure() {
            let message = format!("this conversation is no longer written down: {error}");
            self.requester.warn(message).await;
        }
    }

    /// Keeps what the model answered, and gives back what it calls.
    fn take(&mut self, response: Response) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        for item in response.items {
            if let ResponseItem::ToolCall { call_id, name, input } = &item {
                let payload = match input {
                    CallInput::Arguments(arguments) => {
                        ToolPayload::Function { arguments: arguments.clone() }
                    }
                    CallInput::Text(input) => ToolPayload::Custom { input: input.clone() },
                };
                calls.push(ToolCall { call_id: call_id.clone(), name: name.clone(), payload });
            }
            self.history.keep(item);
        }
        calls
    }

    /// Makes the calls. Whether one of them ends the turn.
    async fn make(&mut self, calls: Vec<ToolCall>, turn: &Turn) -> bool {
        for call in &calls {
            self.requester.tell(begins(call)).await;
        }
        let (results, mut ended) = tokio::sync::mpsc::unbounded_channel();
        let requester = self.requester.clone();
        let making = async move {
            let told = |result| {
                // Whoever takes them is there until the last one came.
                let _ = results.send(result);
            };
            requester.call_each(calls, turn, told).await;
        };
        let taking = async {
            let mut over = false;
            while let Some(result) = ended.recv().await {
                over |= result.ends_turn();
                self.keep_result(result).await;
            }
            over
        };
        tokio::join!(making, taking).1
    }

    async fn keep_result(&mut self, result: ToolResult) {
        let (output, content_items, success) = match result.output {
            ToolOutput::Function { content, content_items, success, .. } => {
                (content, content_items.unwrap_or_default(), success.unwrap_or(true))
            }
            ToolOutput::Mcp { result: Ok(value) } => (value.to_string(), Vec::new(), true),
            ToolOutput::Mcp { result: Err(error) } => (error, Vec::new(), false),
        };
        let call_id = result.call_id;
        let event =
            AgentEvent::ToolCallEnd { call_id: call_id.clone(), success, output: output.clone() };
        self.history.keep(ResponseItem::ToolCallOutput { call_id, output, content_items, success });
        self.requester.tell(event).await;
    }

    async fn count(&mut self, last: TokenUsage) {
        self.used.add(&last);
        self.history.used(last);
        self.tokens = match last.total() {
            0 => history::estimate(self.history.items()),
            counted => counted,
        };
        let (total, context_window) = (self.used, self.options.context_window);
        self.requester.tell(AgentEvent::TokenCount { last, total, context_window }).await;
    }
}

fn begins(call: &ToolCall) -> AgentEvent {
    let input = match &call.payload {
        ToolPayload::Function { arguments } => arguments.clone(),
        ToolPayload::Custom { input } => input.clone(),
        ToolPayload::LocalShell { .. } | ToolPayload::Mcp { .. } => String::new(),
    };
    AgentEvent::ToolCallBegin { call_id: call.call_id.clone(), tool: call.name.clone(), input }
}

fn told(end: &TurnEnd) -> AgentEvent {
    match end {
        TurnEnd::Complete { last_message } => {
            AgentEvent::TaskComplete { last_agent_message: last_message.clone() }
        }
        TurnEnd::Aborted => AgentEvent::TurnAborted { reason: "it was called off".to_owned() },
        TurnEnd::Limit(reason) => AgentEvent::TurnAborted { reason: reason.clone() },
        TurnEnd::Failed(error) => AgentEvent::TurnAborted { reason: error.to_string() },
    }
}
