//! A session in a workspace of its own, with something around it that nobody may touch.

use sandgate_protocol::{AskForApproval, Event, SandboxPolicy, ToolCall, ToolOutput, ToolPayload};
use sandgate_runtime::audit::{AuditOptions, Record, audit_directory, entries, verify};
use sandgate_runtime::{
    Delivery, Events, Runtime, Session, SessionConfig, ToolResult, Turn, new_call_id,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct Scene {
    /// The directory that the workspace lies in.
    pub(crate) around: tempfile::TempDir,
    /// Where the person's settings are.
    pub(crate) home: tempfile::TempDir,
    pub(crate) session: Session,
    workspace: PathBuf,
}

impl Scene {
    pub(crate) fn new(approval: AskForApproval, sandbox: SandboxPolicy) -> Self {
        Self::with(approval, sandbox, |_| {})
    }

    /// The same with more to say about the session.
    pub(crate) fn with(
        approval: AskForApproval,
        sandbox: SandboxPolicy,
        change: impl FnOnce(&mut SessionConfig),
    ) -> Self {
        let around = tempfile::tempdir().unwrap();
        let workspace = around.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut config = SessionConfig::new(workspace.clone());
        config.approval_policy = approval;
        config.sandbox_policy = sandbox;
        config.own_env = std::env::vars_os().collect();
        // A profile or settings of git of the person's own could change what is tested.
        config.own_env.insert("HOME".into(), home.path().into());
        config.config_home = Some(home.path().to_owned());
        config.audit = Some(AuditOptions::default());
        change(&mut config);
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let session = Session::start(Arc::new(runtime), config).unwrap();
        Self { around, home, session, workspace }
    }

    /// The workspace.
    pub(crate) fn path(&self) -> &Path {
        &self.workspace
    }

    /// Makes a call in a turn.
    pub(crate) async fn call_in(&self, turn: &Turn, name: &str, arguments: Value) -> ToolResult {
        let call = ToolCall {
            call_id: new_call_id(),
            name: name.to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        self.session.requester().call(vec![call], turn).await.remove(0)
    }

    /// Makes a call in a turn of its own.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.call_in(&self.session.begin_turn(), name, arguments).await
    }

    pub(crate) async fn events(&self) -> Events {
        self.session.events(Delivery::Complete).await
    }

    /// What was recorded.
    pub(crate) fn recorded(&self) -> Vec<Record> {
        let directory = audit_directory(self.home.path());
        assert!(verify(&directory).unwrap().is_intact());
        entries(&directory, None).unwrap().map(|entry| entry.unwrap().record).collect()
    }
}

/// What has happened so far.
pub(crate) fn heard(events: &mut Events) -> Vec<Event> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.event.clone()).collect()
}

pub(crate) fn text(result: &ToolResult) -> &str {
    match &result.output {
        ToolOutput::Function { content, .. } => content,
        ToolOutput::Mcp { .. } => panic!("not a function"),
    }
}
