//! What the tests of this crate share: a session in a workspace of its own, and a model that says what a
//! test wants.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use futures_util::StreamExt as _;
use futures_util::stream;
use sandgate_agent::{ModelError, ModelEvent, ModelRequest, ModelStream, Provider, StopReason};
use sandgate_protocol::{
    AskForApproval, CallId, CallInput, ResponseItem, Role, SandboxPolicy, SessionSource,
};
use sandgate_runtime::{Runtime, Session, SessionConfig};
use std::sync::{Arc, Mutex};

/// A session in a workspace of its own.
pub(crate) struct Scene {
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) home: tempfile::TempDir,
    pub(crate) session: Session,
}

impl Scene {
    pub(crate) fn new(
        approval: AskForApproval,
        sandbox: SandboxPolicy,
        change: impl FnOnce(&mut SessionConfig),
    ) -> Self {
        let (workspace, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut config = SessionConfig::new(workspace.path().to_owned());
        config.approval_policy = approval;
        config.sandbox_policy = sandbox;
        config.own_env = std::env::vars_os().collect();
        config.own_env.insert("HOME".into(), home.path().into());
        config.config_home = Some(home.path().to_owned());
        change(&mut config);
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let session = Session::start(Arc::new(runtime), config).unwrap();
        Self { workspace, home, session }
    }
}

/// What was asked of the model.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) model: String,
    pub(crate) instructions: String,
    pub(crate) items: Vec<ResponseItem>,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) source: SessionSource,
}

impl Request {
    /// What the person, or whoever it works for, said last.
    pub(crate) fn prompt(&self) -> String {
        let said = self.items.iter().rev();
        let mut said = said.filter(|i| matches!(i, ResponseItem::Message { role: Role::User, .. }));
        said.next().and_then(ResponseItem::text).unwrap_or_default()
    }

    /// The results of the calls since then.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.items.iter().filter_map(|item| match item {
            ResponseItem::ToolCallOutput { output, .. } => Some(output.clone()),
            _ => None,
        });
        results.collect()
    }
}

type Reply = Result<Vec<ResponseItem>, ModelError>;
type Script = Box<dyn Fn(Request) -> futures_util::future::BoxFuture<'static, Reply> + Send + Sync>;

/// A model that says what a test wants.
pub(crate) struct Model {
    script: Script,
    asked: Mutex<Vec<Request>>,
}

impl Model {
    pub(crate) fn new<F>(script: impl Fn(Request) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let script: Script = Box::new(move |request| Box::pin(script(request)));
        Arc::new(Self { script, asked: Mutex::default() })
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Model {
    fn name(&self) -> &str {
        "test"
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a> {
        let request = Request {
            model: request.model.to_owned(),
            instructions: request.instructions.to_owned(),
            items: request.items.to_vec(),
            temperature: request.temperature,
            max_output_tokens: request.max_output_tokens,
            source: request.source.clone(),
        };
        self.asked.lock().unwrap().push(request.clone());
        let reply = (self.script)(request);
        let events = async move {
            match reply.await {
                Ok(items) => {
                    let items = items.into_iter().map(|item| Ok(ModelEvent::Item(item)));
                    items.chain([Ok(ModelEvent::End(StopReason::Done))]).collect::<Vec<_>>()
                }
                Err(error) => vec![Err(error)],
            }
        };
        stream::once(events).flat_map(stream::iter).boxed()
    }
}

pub(crate) fn say(text: &str) -> ResponseItem {
    ResponseItem::message(Role::Assistant, text)
}

pub(crate) fn call(id: &str, name: &str, arguments: &serde_json::Value) -> ResponseItem {
    let input = CallInput::Arguments(arguments.to_string());
    ResponseItem::ToolCall { call_id: CallId::new(id), name: name.to_owned(), input }
}
