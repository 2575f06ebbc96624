//! A session with a model that talks to live processes.

use sandgate_protocol::{
    AskForApproval, Event, NetworkAccess, ReviewDecision, SandboxPolicy, ToolCall, ToolOutput,
    ToolPayload,
};
use sandgate_runtime::{
    Delivery, Events, Requester, Runtime, Session, SessionConfig, ToolResult, new_call_id,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Whether processes are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the cage: the workspace is writable, the network is off.
    Caged,
    /// Nowhere: all is permitted.
    Free,
}

pub(crate) const PLACES: [Place; 2] = [Place::Caged, Place::Free];

/// A session in a directory of its own, which is its person's home too.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
    pub(crate) session: Session,
    requester: Requester,
}

/// What a call on a process was answered with.
#[derive(Debug, Clone)]
pub(crate) struct Reply(pub(crate) Value);

impl Scene {
    pub(crate) fn new(place: Place) -> Self {
        let policy = match place {
            Place::Caged => caged(),
            Place::Free => SandboxPolicy::DangerFullAccess,
        };
        Self::with(AskForApproval::Never, policy, |_| {})
    }

    pub(crate) fn with(
        approval: AskForApproval,
        sandbox: SandboxPolicy,
        change: impl FnOnce(&mut SessionConfig),
    ) -> Self {
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let directory = tempfile::tempdir().unwrap();
        // Without this zsh asks its person what to write into it.
        std::fs::write(directory.path().join(".zshrc"), "").unwrap();
        let mut config = SessionConfig::new(directory.path().to_owned());
        (config.approval_policy, config.sandbox_policy) = (approval, sandbox);
        let home = directory.path();
        config.own_env = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
            ("HOME".into(), home.into()),
            ("TMPDIR".into(), home.into()),
            ("XDG_RUNTIME_DIR".into(), home.into()),
        ]);
        change(&mut config);
        let session = Session::start(Arc::new(runtime), config).unwrap();
        let requester = session.requester();
        Self { directory, session, requester }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn home(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Makes a call, and gives back what came of it.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let call = ToolCall {
            call_id: new_call_id(),
            name: name.to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        let turn = self.requester.begin_turn();
        self.requester.call(vec![call], &turn).await.remove(0)
    }

    /// The text of what came of a call.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        text(&self.call(name, arguments).await)
    }

    /// The answer to a call on a process.
    pub(crate) async fn reply(&self, name: &str, arguments: Value) -> Reply {
        let said = self.text(name, arguments).await;
        let reply = serde_json::from_str(&said);
        Reply(reply.unwrap_or_else(|_| panic!("no reply but {said}")))
    }

    pub(crate) async fn start(&self, id: &str, command: &[&str]) -> Reply {
        let limit = LONGEST.as_millis() as u64;
        let arguments = json!({"command": command, "process_id": id, "yield_time_ms": limit});
        self.reply("exec_command", arguments).await
    }

    pub(crate) async fn type_in(&self, id: &str, input: &str) -> Reply {
        let limit = LONGEST.as_millis() as u64;
        let arguments = json!({"process_id": id, "input": input, "yield_time_ms": limit});
        self.reply("write_stdin", arguments).await
    }

    pub(crate) async fn press(&self, id: &str, keys: &[&str]) -> Reply {
        let limit = LONGEST.as_millis() as u64;
        let arguments = json!({"process_id": id, "keys": keys, "yield_time_ms": limit});
        self.reply("write_stdin", arguments).await
    }

    pub(crate) async fn events(&self) -> Events {
        self.session.events(Delivery::Complete).await
    }

    /// Makes a call while a person answers every question in the same way. What was asked, and what came
    /// of the call.
    pub(crate) async fn answered(
        &self,
        name: &str,
        arguments: Value,
        decision: ReviewDecision,
    ) -> (Vec<String>, ToolResult) {
        let approver = self.session.approver("test");
        let mut events = self.events().await;
        let mut asked = Vec::new();
        let call = self.call(name, arguments);
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                event = events.next() => {
                    if let Event::ExecApprovalRequest(request) = &event.unwrap().event {
                        asked.push(format!("{} [{}]", request.command_text, request.reason));
                        approver.answer(&request.approval_id, decision.clone()).unwrap();
                    }
                }
                result = &mut call => return (asked, result),
            }
        }
    }
}

/// The cage of these tests. What lies in `/tmp` is no concern of theirs.
pub(crate) fn caged() -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite {
        writable_roots: Vec::new(),
        network_access: NetworkAccess::Restricted,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    }
}

/// A time that no answer takes unless something hangs.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

pub(crate) fn text(result: &ToolResult) -> String {
    match &result.output {
        ToolOutput::Function { content, .. } => content.clone(),
        ToolOutput::Mcp { .. } => panic!("not a function"),
    }
}

impl Reply {
    pub(crate) fn output(&self) -> &str {
        self.0["output"].as_str().unwrap()
    }

    pub(crate) fn returned(&self) -> &str {
        self.0["returned"].as_str().unwrap()
    }

    pub(crate) fn screen(&self) -> String {
        let lines = self.0["screen"]["lines"].as_array();
        let lines = lines.unwrap_or_else(|| panic!("no screen: {}", self.0));
        lines.iter().map(|line| line.as_str().unwrap().to_owned() + "\n").collect()
    }
}

/// Whether a program is here.
pub(crate) fn is_here(program: &str) -> bool {
    let places = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    places.iter().any(|place| Path::new(place).join(program).exists())
}
