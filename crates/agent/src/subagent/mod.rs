//! Conversations inside of a conversation, each in a session of its own below the other one's.
//!
//! A subagent sees nothing of the history that it works for, and leaves nothing there but its last
//! words. Its commands go through the gate like any, under policies that are never looser; a person who
//! is asked about them is told whose they are.

mod review;

pub use review::{
    Changes, Finding, Priority, Review, ReviewSubject, read_review, review_input, review_options,
};

use crate::conversation::{Conversation, ConversationOptions, TurnEnd, UserInput};
use crate::provider::Provider;
use sandgate_protocol::{AgentEvent, CodexErr, SessionSource, SubAgentSource, ToolOutput};
use sandgate_runtime::audit::{DecidedBy, Decision, DecisionKind, Record};
use sandgate_runtime::{
    ChildTerms, ChildTools, Requester, ToolFuture, ToolHandler, ToolInvocation, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

const DESCRIPTION: &str = "\
Has a subagent do a task that can stand alone, and gives back its last message. It starts with nothing but \
the task: write down all that it must know, and what it is to report. Several can work at once if they are \
asked for together; do not have two change the same files.";

/// What a subagent is told beside what its conversation is told.
const ABOUT: &str = "\n\n# You are a subagent\n\n\
You work for another agent, which sees nothing of what you do but your last message. Do the task and \
nothing beside it, then say what you found or did, with files and lines, and what is left.";

/// The longest task and the longest answer, in bytes.
const LONGEST_TASK: usize = 64 * 1024;
const LONGEST_ANSWER: usize = 64 * 1024;
/// How much of a task is recorded and told to people.
const SHOWN_TASK: usize = 1024;

/// The tool by which a model has subagents.
pub struct SpawnAgent {
    provider: Arc<dyn Provider>,
    options: ConversationOptions,
    /// Where conversations are written down, if they are.
    recorded_in: Option<PathBuf>,
    /// The conversations that may call it, by the names of their agents; without a name for the first.
    conversations: Mutex<HashMap<Option<String>, String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpawnAgentParams {
    /// What it is to do: all that it needs to know, and what it is to report.
    task: String,
    /// A short name for it, such as tests: small letters, digits, - and _.
    name: Option<String>,
    /// What it may use: read_only to look and to run commands that change nothing; all, the default, for
    /// everything that you may.
    tools: Option<SpawnTools>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum SpawnTools {
    ReadOnly,
    All,
}

impl SpawnAgent {
    /// Subagents that talk with the same provider and the same model as this conversation.
    pub fn new(provider: Arc<dyn Provider>, options: &ConversationOptions) -> Self {
        let mut options = options.clone();
        options.output_schema = None;
        options.instructions.push_str(ABOUT);
        Self { provider, options, recorded_in: None, conversations: Mutex::default() }
    }

    /// The same, and what they say and do is written down below this directory.
    pub fn recorded(mut self, config_home: PathBuf) -> Self {
        self.recorded_in = Some(config_home);
        self
    }

    /// Says which conversation the subagents work for.
    pub fn works_for(&self, conversation: &Conversation) {
        self.conversations().insert(None, conversation.id().to_owned());
    }

    fn conversations(&self) -> std::sync::MutexGuard<'_, HashMap<Option<String>, String>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn spawn(&self, invocation: ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
        let SpawnAgentParams { task, name, tools } = invocation.arguments()?;
        let wrong = |reason: &str| CodexErr::InvalidArguments {
            tool: invocation.tool_name.to_owned(),
            reason: reason.to_owned(),
        };
        if task.trim().is_empty() || task.len() > LONGEST_TASK {
            return Err(wrong("task is the text of the task, of at most 65536 bytes"));
        }
        let source = SubAgentSource::Other(name.unwrap_or_else(|| "agent".to_owned()));
        let tools = match tools {
            Some(SpawnTools::ReadOnly) => ChildTools::ReadOnly,
            Some(SpawnTools::All) | None => ChildTools::All,
        };
        let child = invocation.child(ChildTerms { tools, ..ChildTerms::new(source.clone()) })?;
        let agent = child.agent().unwrap_or_default();
        let shown = task[..task.floor_char_boundary(SHOWN_TASK)].to_owned();
        record(&invocation, vec![agent.clone(), shown.clone()])?;
        invocation.tell(AgentEvent::SubAgentBegin { agent: agent.clone(), task: shown }).await;
        let end = self.work(child, source, task, &invocation).await;
        let success = matches!(end, TurnEnd::Complete { .. });
        invocation.tell(AgentEvent::SubAgentEnd { agent: agent.clone(), success }).await;
        self.conversations().remove(&Some(agent));
        match end {
            TurnEnd::Complete { last_message: Some(said) } => {
                Ok(ToolOutput::text(bounded(said), true))
            }
            TurnEnd::Complete { last_message: None } => {
                Ok(ToolOutput::text("the subagent ended without a word".to_owned(), true))
            }
            // Who stops a subagent's work stops what it works for.
            TurnEnd::Aborted => Err(CodexErr::UserAborted),
            TurnEnd::Limit(why) => {
                Err(CodexErr::ToolExecutionFailed(format!("the subagent was ended: {why}")))
            }
            TurnEnd::Failed(why) => {
                Err(CodexErr::ToolExecutionFailed(format!("the subagent's model failed: {why}")))
            }
        }
    }

    /// Takes the one turn of a subagent. Its session, and what it left running, ends with it.
    async fn work(
        &self,
        child: Requester,
        source: SubAgentSource,
        task: String,
        invocation: &ToolInvocation<'_>,
    ) -> TurnEnd {
        let agent = child.agent();
        let mut options = self.options.clone();
        options.source = SessionSource::SubAgent(source);
        let mut conversation =
            Conversation::start(child.clone(), Arc::clone(&self.provider), options);
        if let Some(home) = &self.recorded_in {
            let parent = self.conversations().get(&invocation.agent()).cloned();
            conversation = match conversation.recorded(home, parent) {
                Ok(conversation) => conversation,
                Err(error) => return TurnEnd::Limit(error.to_string()),
            };
        }
        self.conversations().insert(agent, conversation.id().to_owned());
        let stop = invocation.turn.stop().child();
        conversation.turn(UserInput::text(task), &stop).await
    }
}

impl ToolHandler for SpawnAgent {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<SpawnAgentParams>("spawn_agent", DESCRIPTION)
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(self.spawn(invocation))
    }
}

/// Records that a subagent was asked for, and that nobody has to be asked for that: whatever it does is
/// judged when it does it.
fn record(invocation: &ToolInvocation<'_>, words: Vec<String>) -> Result<(), CodexErr> {
    let ctx = invocation.ctx();
    ctx.record(&ctx.asked(words))?;
    ctx.record(&Record::Decided(Decision {
        call_id: invocation.call_id.clone(),
        decision: DecisionKind::Allowed,
        by: DecidedBy::Policy,
        attempt: 1,
        feedback: None,
    }))
}

/// An answer that is not too long for whoever asked.
fn bounded(mut said: String) -> String {
    let length = said.len();
    if length > LONGEST_ANSWER {
        said.truncate(said.floor_char_boundary(LONGEST_ANSWER));
        said.push_str(&format!("\n[cut: the first {LONGEST_ANSWER} of {length} bytes]"));
    }
    said
}
