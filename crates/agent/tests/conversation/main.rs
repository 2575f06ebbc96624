//! Conversations with a model that does what a test tells it to, and with a real gate.

mod compacting;
mod interrupts;
mod recording;
mod turns;

use futures_util::{StreamExt as _, stream};
use sandgate_agent::{
    Conversation, ConversationOptions, ModelError, ModelEvent, ModelRequest, ModelStream, Provider,
    StopReason,
};
use sandgate_protocol::{CallId, CallInput, ResponseItem, Role, TokenUsage};
use sandgate_runtime::{Runtime, Session, SessionConfig};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the model does when it is asked.
#[derive(Clone)]
enum Does {
    Says(&'static str),
    Calls(&'static str, serde_json::Value),
    CallsAs(&'static str, &'static str, serde_json::Value),
    Uses(u64),
    /// Never goes on.
    Hangs,
    Fails(ModelError),
    /// Begins the answer anew.
    Retries,
    IsCutOff,
}

/// A model that does one thing after the other, and remembers what it was asked.
#[derive(Default)]
struct Model {
    turns: Mutex<Vec<Vec<Does>>>,
    asked: Mutex<Vec<Vec<ResponseItem>>>,
    sources: Mutex<Vec<sandgate_protocol::SessionSource>>,
}

impl Model {
    fn new(turns: impl IntoIterator<Item = Vec<Does>>) -> Arc<Self> {
        let mut turns: Vec<_> = turns.into_iter().collect();
        turns.reverse();
        Arc::new(Self { turns: Mutex::new(turns), ..Self::default() })
    }

    fn asked(&self) -> Vec<Vec<ResponseItem>> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Model {
    fn name(&self) -> &str {
        "test"
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a> {
        check(request.items);
        self.sources.lock().unwrap().push(request.source.clone());
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.items.to_vec());
            asked.len()
        };
        let turn = self.turns.lock().unwrap().pop().expect("the model was asked too often");
        let (mut events, mut hangs, mut end) = (Vec::new(), false, StopReason::Done);
        for (index, does) in turn.into_iter().enumerate() {
            match does {
                Does::Says(text) => {
                    events.push(Ok(ModelEvent::TextDelta(text.to_owned())));
                    events.push(Ok(ModelEvent::Item(ResponseItem::message(Role::Assistant, text))));
                }
                Does::Calls(name, arguments) => {
                    let id = format!("call_{number}_{index}");
                    events.push(Ok(call(&id, name, &arguments)));
                }
                Does::CallsAs(id, name, arguments) => events.push(Ok(call(id, name, &arguments))),
                Does::Uses(input_tokens) => {
                    let usage = TokenUsage { input_tokens, ..TokenUsage::default() };
                    events.push(Ok(ModelEvent::Usage(usage)));
                }
                Does::Hangs => hangs = true,
                Does::Fails(error) => events.push(Err(error)),
                Does::Retries => events.push(Ok(ModelEvent::Retrying {
                    error: broken_off(),
                    attempt: 2,
                    delay: std::time::Duration::ZERO,
                })),
                Does::IsCutOff => end = StopReason::Length,
            }
        }
        let failed = events.last().is_some_and(Result::is_err);
        if !hangs && !failed {
            events.push(Ok(ModelEvent::End(end)));
        }
        let events = stream::iter(events);
        match hangs {
            true => events.chain(stream::pending()).boxed(),
            false => events.boxed(),
        }
    }
}

fn broken_off() -> ModelError {
    ModelError::BrokenOff { provider: "test".to_owned(), reason: "cut".to_owned() }
}

fn call(id: &str, name: &str, arguments: &serde_json::Value) -> ModelEvent {
    ModelEvent::Item(ResponseItem::ToolCall {
        call_id: CallId::new(id),
        name: name.to_owned(),
        input: CallInput::Arguments(arguments.to_string()),
    })
}

/// What providers demand: after the calls of a response comes an answer to each of them, and nothing else
/// is answered.
fn check(items: &[ResponseItem]) {
    let mut open: Vec<&CallId> = Vec::new();
    for item in items {
        match item {
            ResponseItem::ToolCall { call_id, .. } => open.push(call_id),
            ResponseItem::ToolCallOutput { call_id, .. } => {
                let at = open.iter().position(|id| *id == call_id);
                open.remove(at.expect("an answer without a call"));
            }
            ResponseItem::Message { .. } => assert!(open.is_empty(), "a call without an answer"),
            ResponseItem::Reasoning { .. } => {}
        }
    }
    assert!(open.is_empty(), "a call without an answer");
}

/// A place to work in, with a gate around it.
struct World {
    directory: tempfile::TempDir,
    session: Session,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Arc::new(Runtime::start().unwrap());
        let mut config = SessionConfig::new(directory.path().to_owned());
        config.own_env = std::env::vars_os().collect();
        let session = Session::start(runtime, config).unwrap();
        Self { directory, session }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn conversation(&self, model: &Arc<Model>) -> Conversation {
        self.conversation_with(model, ConversationOptions::new("m"))
    }

    fn conversation_with(&self, model: &Arc<Model>, options: ConversationOptions) -> Conversation {
        let provider: Arc<dyn Provider> = Arc::clone(model) as Arc<_>;
        Conversation::start(self.session.requester(), provider, options)
    }
}

fn shell(command: &str) -> serde_json::Value {
    serde_json::json!({ "command": ["/bin/sh", "-c", command] })
}

/// The results in a history, as text.
fn outputs(items: &[ResponseItem]) -> Vec<(String, String)> {
    let output = |item: &ResponseItem| match item {
        ResponseItem::ToolCallOutput { call_id, output, .. } => {
            Some((call_id.as_str().to_owned(), output.clone()))
        }
        _ => None,
    };
    items.iter().filter_map(output).collect()
}
