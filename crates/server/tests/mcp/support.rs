//! A server in a workspace of its own, and clients that do as they are told.

#![expect(deprecated, reason = "clients have roots and logging still")]

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    JsonObject, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProtocolVersion, ResourceUpdatedNotificationParam, Root,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::{ClientHandler, RoleClient};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use sandgate_runtime::{Desk, Runtime, Session, SessionConfig};
use sandgate_server::mcp::{McpOptions, Workspace, serve};
use sandgate_server::{
    ClientApprover, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long unless it hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Opens sessions in a directory, with one policy for all.
pub(crate) struct Here {
    runtime: Arc<Runtime>,
    directory: PathBuf,
    approval: AskForApproval,
    pub(crate) opened: Mutex<Vec<PathBuf>>,
}

impl Opener for Here {
    fn session(&self, wanted: WantedSession) -> Result<Session, OpenError> {
        let workspace = wanted.workspace.unwrap_or_else(|| self.directory.clone());
        self.opened.lock().unwrap().push(workspace.clone());
        let mut config = SessionConfig::new(workspace);
        config.own_env = BTreeMap::from([
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), self.directory.clone().into()),
        ]);
        // Other directories of tests are below /tmp, and are not to be written to.
        config.sandbox_policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        config.approval_policy = self.approval;
        config.approval_timeout = wanted.approval_timeout;
        config.front_end = wanted.front_end.to_owned();
        Session::start(Arc::clone(&self.runtime), config)
            .map_err(|error| OpenError::Refused(error.to_string()))
    }

    fn conversation(
        &self,
        _: WantedSession,
        _: WantedAgent,
    ) -> Result<OpenedConversation, OpenError> {
        Err(OpenError::Failed("there are no conversations here".to_owned()))
    }
}

/// A workspace and what serves it.
pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) opener: Arc<Here>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) options: McpOptions,
}

/// Which protocol a client speaks.
pub(crate) const GENERATIONS: [ProtocolVersion; 2] =
    [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

impl World {
    pub(crate) fn new(approval: AskForApproval) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let opener = Arc::new(Here {
            runtime: Arc::new(Runtime::start().unwrap()),
            directory: directory.path().to_owned(),
            approval,
            opened: Mutex::default(),
        });
        let desk = Arc::new(Desk::default());
        let options = McpOptions {
            opener: Arc::clone(&opener) as Arc<dyn Opener>,
            desk: desk.place(),
            person: Some(Arc::new(|session: &Session| {
                ClientApprover::new(session.approver("client"))
            })),
            tools: None,
            workspace: Workspace::Given,
            approval_timeout: LIMIT,
        };
        Self { directory, opener, desk, options }
    }

    /// One in which nobody need be asked about what stays inside.
    pub(crate) fn usual() -> Self {
        Self::new(AskForApproval::OnRequest)
    }

    /// One in which everything is asked about that is not known to be safe.
    pub(crate) fn asking() -> Self {
        Self::new(AskForApproval::UnlessTrusted)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Connects a client of this generation.
    pub(crate) async fn connect(&self, client: Client, version: &ProtocolVersion) -> Connected {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let serving = serve(self.options.clone(), read, write, CancellationToken::new());
        let serving = tokio::spawn(async move { serving.await.map_err(|error| error.to_string()) });
        let heard = Arc::clone(&client.heard);
        let service = client.serve_with_lifecycle(ours, lifecycle(version)).await.unwrap();
        Connected { service, heard, serving }
    }
}

pub(crate) fn lifecycle(version: &ProtocolVersion) -> ClientLifecycleMode {
    match version.has_initialize() {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] },
    }
}

/// A client that is connected.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, Client>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) serving: tokio::task::JoinHandle<Result<(), String>>,
}

impl Connected {
    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let called = self.service.call_tool(request(tool, arguments));
        tokio::time::timeout(LIMIT, called).await.expect("it ends").unwrap()
    }

    /// Runs a script.
    pub(crate) async fn script(&self, script: &str) -> CallToolResult {
        self.call("shell", json!({ "command": ["sh", "-c", script], "timeout_ms": 60_000 })).await
    }
}

pub(crate) fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.map(|block| block.text.clone()).collect()
}

/// The facts of a result.
pub(crate) fn facts(result: &CallToolResult) -> &JsonObject {
    result.structured_content.as_ref().and_then(Value::as_object).expect("facts")
}

/// What a client heard without asking.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) progress: Mutex<Vec<String>>,
    pub(crate) logged: Mutex<Vec<String>>,
    pub(crate) updated: Mutex<Vec<String>>,
    pub(crate) withdrawn: Mutex<usize>,
    pub(crate) forms: Mutex<Vec<ElicitRequestParams>>,
    pub(crate) more: Notify,
}

impl Heard {
    /// Waits until something was heard.
    pub(crate) async fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let more = self.more.notified();
                if let Some(found) = look(self) {
                    return found;
                }
                // A notice may come between the look and the wait of another.
                let _ = tokio::time::timeout(Duration::from_millis(50), more).await;
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("waited for {what}"))
    }

    fn hear(&self, into: &Mutex<Vec<String>>, what: String) {
        into.lock().unwrap().push(what);
        self.more.notify_waiters();
    }
}

/// How a client's person answers a form.
pub(crate) enum Person {
    /// There is none who could be shown one.
    None,
    /// Like this, every time.
    Says(ElicitResult),
    /// When told to, one after the other.
    Waits(tokio::sync::Mutex<mpsc::UnboundedReceiver<ElicitResult>>),
    /// The client fails to show it.
    Fails,
}

/// A client.
pub(crate) struct Client {
    pub(crate) person: Person,
    pub(crate) roots: Option<Arc<Mutex<Vec<PathBuf>>>>,
    pub(crate) heard: Arc<Heard>,
}

impl Client {
    pub(crate) fn new(person: Person) -> Self {
        Self { person, roots: None, heard: Arc::default() }
    }

    /// One that can show nothing.
    pub(crate) fn plain() -> Self {
        Self::new(Person::None)
    }

    /// One whose person always answers with this word.
    pub(crate) fn that_says(word: &str) -> Self {
        Self::new(Person::Says(accept(json!({ "decision": word }))))
    }

    /// One whose person answers when told to.
    pub(crate) fn that_waits() -> (Self, mpsc::UnboundedSender<ElicitResult>) {
        let (tell, told) = mpsc::unbounded_channel();
        (Self::new(Person::Waits(tokio::sync::Mutex::new(told))), tell)
    }

    pub(crate) fn with_roots(mut self, roots: &[&Path]) -> Self {
        let roots = roots.iter().map(|root| (*root).to_owned()).collect();
        self.roots = Some(Arc::new(Mutex::new(roots)));
        self
    }
}

pub(crate) fn accept(content: Value) -> ElicitResult {
    ElicitResult::new(ElicitationAction::Accept).with_content(content)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        if !matches!(self.person, Person::None) {
            can.elicitation = Some(Default::default());
        }
        if self.roots.is_some() {
            can.roots = Some(Default::default());
        }
        ClientConfig::new(can, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.heard.forms.lock().unwrap().push(request);
        self.heard.more.notify_waiters();
        match &self.person {
            Person::Says(answer) => Ok(answer.clone()),
            Person::Waits(told) => {
                let told = told.lock().await.recv().await;
                told.ok_or_else(|| ErrorData::internal_error("nobody is there", None))
            }
            Person::None | Person::Fails => Err(ErrorData::internal_error("no forms here", None)),
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.roots.as_ref().map(|roots| roots.lock().unwrap().clone());
        let root = |path: PathBuf| Root::new(format!("file://{}", path.display()));
        Ok(ListRootsResult::new(roots.unwrap_or_default().into_iter().map(root).collect()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.hear(&self.heard.progress, params.message.unwrap_or_default());
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.hear(&self.heard.logged, params.data.to_string());
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.hear(&self.heard.updated, params.uri);
    }

    async fn on_cancelled(
        &self,
        _: CancelledNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        *self.heard.withdrawn.lock().unwrap() += 1;
        self.heard.more.notify_waiters();
    }
}

/// How many processes of this machine have a word in their command line.
pub(crate) fn running_with(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("waited until {what}"));
}

/// A number of seconds that no other test sleeps.
pub(crate) fn mark(test: u32) -> String {
    format!("{test}{:07}", std::process::id())
}
