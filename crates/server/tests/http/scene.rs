//! A server in a home of its own, with a model that says what a test wants.

use crate::client::Client;
use futures_util::{StreamExt as _, stream};
use sandgate_agent::rollout;
use sandgate_agent::{
    Conversation, ConversationOptions, ModelEvent, ModelRequest, ModelStream, Provider, StopReason,
};
use sandgate_protocol::{AskForApproval, CallId, CallInput, ResponseItem, Role, SandboxPolicy};
use sandgate_runtime::audit::AuditOptions;
use sandgate_runtime::{Desk, Runtime, Session, SessionConfig};
use sandgate_server::http::{Limits, Listener, Reached, Server, ServerOptions, Tokens, serve};
use sandgate_server::{
    NewConversation, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// What the model says when it is asked, one after the other; then it is done.
type Turns = Arc<Mutex<VecDeque<Vec<ResponseItem>>>>;

/// A server, and both who may call it.
pub(crate) struct Scene {
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) home: tempfile::TempDir,
    pub(crate) requester: Client,
    pub(crate) approver: Client,
    turns: Turns,
    notes: Arc<Mutex<Vec<String>>>,
    opened: Arc<AtomicUsize>,
    end: CancellationToken,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl Scene {
    /// One whose commands are asked about and confined as the policies say.
    pub(crate) async fn new(approval: AskForApproval, sandbox: SandboxPolicy) -> Self {
        Self::limited(approval, sandbox, Limits::default()).await
    }

    /// One in which everything may be done.
    pub(crate) async fn free() -> Self {
        Self::new(AskForApproval::Never, SandboxPolicy::workspace_write()).await
    }

    pub(crate) async fn limited(
        approval: AskForApproval,
        sandbox: SandboxPolicy,
        limits: Limits,
    ) -> Self {
        Self::served(approval, sandbox, limits, None).await
    }

    /// One that speaks TLS.
    pub(crate) async fn tls(acceptor: TlsAcceptor) -> Self {
        let (approval, sandbox) = (AskForApproval::Never, SandboxPolicy::workspace_write());
        Self::served(approval, sandbox, Limits::default(), Some(acceptor)).await
    }

    async fn served(
        approval: AskForApproval,
        sandbox: SandboxPolicy,
        limits: Limits,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (workspace, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (turns, notes, opened) = (Turns::default(), Arc::default(), Arc::default());
        let opener = TestOpener {
            runtime: Arc::new(Runtime::start().unwrap().with_shell("bash").unwrap()),
            home: home.path().to_owned(),
            approval,
            sandbox,
            turns: Arc::clone(&turns),
            opened: Arc::clone(&opened),
        };
        let tokens = Arc::new(Tokens::random().unwrap());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let told: Arc<Mutex<Vec<String>>> = Arc::clone(&notes);
        let server = Server::new(ServerOptions {
            opener: Arc::new(opener),
            desk: Arc::new(Desk::default()),
            settings: Some(home.path().to_owned()),
            scratch: home.path().to_owned(),
            workspaces: vec![workspace.path().to_owned()],
            person: None,
            tokens: Arc::clone(&tokens),
            reached: Reached { hosts: Vec::new(), tls: tls.is_some() },
            enforcement: sandgate_runtime::enforcement(),
            figures: Box::new(|| "from_elsewhere 1\n".to_owned()),
            notes: Box::new(move |note| told.lock().unwrap().push(note.to_owned())),
            limits,
        });
        let end = CancellationToken::new();
        let listener = match tls {
            Some(acceptor) => Listener::Tls(listener, acceptor),
            None => Listener::Tcp(listener),
        };
        let serving = tokio::spawn(serve(listener, server, end.clone()));
        let client = |token: &str| client(address, token);
        Self {
            requester: client(tokens.requester().reveal()),
            approver: client(tokens.approver().reveal()),
            workspace,
            home,
            turns,
            notes,
            opened,
            end,
            serving: Some(serving),
        }
    }

    /// The model does this the next time it is asked.
    pub(crate) fn says(&self, items: Vec<ResponseItem>) {
        self.turns.lock().unwrap().push_back(items);
    }

    /// A conversation that was begun by the approver.
    pub(crate) async fn conversation(&self) -> String {
        let begun = self.approver.post("/conversations", &json!({})).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        begun.json()["id"].as_str().unwrap().to_owned()
    }

    /// What the person was told so far.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    /// How many sessions were opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    /// Ends the server and waits for that.
    pub(crate) async fn end(mut self) -> Self {
        self.end.cancel();
        self.serving.take().unwrap().await.unwrap();
        self
    }

    /// Waits until something is so.
    pub(crate) async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
        for _ in 0..12_000 {
            if look().await {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("never happened: {what}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn client(address: SocketAddr, token: &str) -> Client {
    Client { address, token: token.to_owned() }
}

/// The model says something.
pub(crate) fn says(text: &str) -> ResponseItem {
    ResponseItem::message(Role::Assistant, text)
}

/// The model has a script run.
pub(crate) fn runs(call_id: &str, script: &str) -> ResponseItem {
    calls(call_id, "shell", &json!({ "command": ["/bin/bash", "-c", script] }))
}

/// The model calls a tool.
pub(crate) fn calls(call_id: &str, name: &str, arguments: &Value) -> ResponseItem {
    let input = CallInput::Arguments(arguments.to_string());
    ResponseItem::ToolCall { call_id: CallId::new(call_id), name: name.to_owned(), input }
}

struct TestOpener {
    runtime: Arc<Runtime>,
    home: PathBuf,
    approval: AskForApproval,
    sandbox: SandboxPolicy,
    turns: Turns,
    opened: Arc<AtomicUsize>,
}

impl TestOpener {
    fn open(&self, workspace: &Path, wanted: &WantedSession) -> Result<Session, OpenError> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let mut config = SessionConfig::new(workspace.to_owned());
        config.approval_policy = self.approval;
        config.sandbox_policy = self.sandbox.clone();
        config.own_env = std::env::vars_os().collect();
        config.own_env.insert("HOME".into(), self.home.clone().into());
        config.config_home = Some(self.home.clone());
        config.audit = Some(AuditOptions::default());
        config.front_end = wanted.front_end.to_owned();
        let config = config.tightened(wanted.approval_policy, wanted.sandbox_policy.clone());
        Session::start(Arc::clone(&self.runtime), config)
            .map_err(|error| OpenError::Refused(error.to_string()))
    }
}

impl Opener for TestOpener {
    fn session(&self, wanted: WantedSession) -> Result<Session, OpenError> {
        self.open(wanted.workspace.as_deref().unwrap(), &wanted)
    }

    fn conversation(
        &self,
        wanted: WantedSession,
        agent: WantedAgent,
    ) -> Result<OpenedConversation, OpenError> {
        let options = ConversationOptions::new(agent.model.as_deref().unwrap_or("m"));
        let provider = Arc::new(Model(Arc::clone(&self.turns)));
        let (session, conversation) = match &agent.conversation {
            NewConversation::Resumed(id) => {
                let found = rollout::find(&self.home, id).and_then(|path| rollout::read(&path));
                let recorded =
                    found.map_err(|error| OpenError::NoSuchConversation(error.to_string()))?;
                let session = self.open(&recorded.meta.cwd, &wanted)?;
                let requester = session.requester();
                let resumed = Conversation::resume(requester, provider, options, recorded);
                (session, resumed.map_err(|error| OpenError::Refused(error.to_string()))?)
            }
            kind => {
                let session = self.open(wanted.workspace.as_deref().unwrap(), &wanted)?;
                let begun = Conversation::start(session.requester(), provider, options);
                let conversation = match kind {
                    NewConversation::Ephemeral => begun,
                    _ => begun
                        .recorded(&self.home, None)
                        .map_err(|error| OpenError::Failed(error.to_string()))?,
                };
                (session, conversation)
            }
        };
        let (mcp_servers, own_env, notes) = Default::default();
        Ok(OpenedConversation { session, conversation, mcp_servers, own_env, notes })
    }
}

/// A model that says what a test wants.
struct Model(Turns);

impl Provider for Model {
    fn name(&self) -> &str {
        "test"
    }

    fn stream<'a>(&'a self, _: ModelRequest<'a>) -> ModelStream<'a> {
        let items = self.0.lock().unwrap().pop_front().unwrap_or_else(|| vec![says("done")]);
        let items = items.into_iter().map(|item| Ok(ModelEvent::Item(item)));
        stream::iter(items.chain([Ok(ModelEvent::End(StopReason::Done))])).boxed()
    }
}
