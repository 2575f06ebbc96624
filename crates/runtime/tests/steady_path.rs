//! What is believed by its name is the system's program, whatever a workspace puts in its way.

#![cfg(target_os = "linux")]

use sandgate_policy::rules::Rules;
use sandgate_protocol::{
    AskForApproval, CallId, Event, ReviewDecision, SandboxPolicy, ToolCall, ToolPayload,
};
use sandgate_runtime::{Delivery, Runtime, Session, SessionConfig};
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// A session in a workspace whose own programs come first in `PATH`; each leaves a mark.
struct Scene {
    base: tempfile::TempDir,
    session: Session,
}

impl Scene {
    fn new(sandbox: SandboxPolicy, rules: &str) -> Self {
        let base = tempfile::tempdir().unwrap();
        let programs = base.path().join("ws/.venv/bin");
        std::fs::create_dir_all(&programs).unwrap();
        for name in ["wc", "git"] {
            let program = programs.join(name);
            let mark = base.path().join("ws/mark");
            std::fs::write(&program, format!("#!/bin/sh\n: > '{}'\n", mark.display())).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut config = SessionConfig::new(base.path().join("ws"));
        config.approval_policy = AskForApproval::UnlessTrusted;
        config.sandbox_policy = sandbox;
        config.rules = Rules::parse(rules, "test").unwrap().into_iter().collect();
        config.own_env = std::env::vars_os().collect();
        let mut path = OsString::from(programs);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        config.own_env.insert("PATH".into(), path);
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let session = Session::start(Arc::new(runtime), config).unwrap();
        Self { base, session }
    }

    /// Runs a command and says no to whatever is asked. How often that was.
    async fn questions(&self, command: &[&str]) -> usize {
        let call = ToolCall {
            call_id: CallId::new("call"),
            name: "shell".to_owned(),
            payload: ToolPayload::Function { arguments: json!({ "command": command }).to_string() },
        };
        let approver = self.session.approver("test");
        let mut events = self.session.events(Delivery::Complete).await;
        let requester = self.session.requester();
        let turn = requester.begin_turn();
        let running = requester.call(vec![call], &turn);
        tokio::pin!(running);
        let mut asked = 0;
        loop {
            tokio::select! {
                _ = &mut running => return asked,
                event = events.next() => {
                    if let Some(Event::ExecApprovalRequest(request)) = event.map(|event| event.event.clone()) {
                        asked += 1;
                        approver.answer(&request.approval_id, ReviewDecision::DENIED).unwrap();
                    }
                }
            }
        }
    }

    fn is_marked(&self) -> bool {
        self.base.path().join("ws/mark").exists()
    }
}

/// spec RUN.25: A program that lies in the workspace, or anywhere else that the session's commands may write to, is
/// not known to be safe by its name, and no rule lets it out of the sandbox.
#[tokio::test]
async fn a_program_of_the_workspace_is_asked_about() {
    for sandbox in [SandboxPolicy::DangerFullAccess, SandboxPolicy::workspace_write()] {
        let scene = Scene::new(sandbox, "");
        assert_eq!(scene.questions(&["wc", "x"]).await, 1);
        assert!(!scene.is_marked());
    }
    let rule =
        "[[rule]]\nprefix = [\"git\", \"fetch\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";
    let scene = Scene::new(SandboxPolicy::workspace_write(), rule);
    assert_eq!(scene.questions(&["git", "fetch", "origin"]).await, 1);
    assert!(!scene.is_marked());
}

#[tokio::test]
async fn a_safe_script_runs_the_programs_of_the_system() {
    let scene = Scene::new(SandboxPolicy::DangerFullAccess, "");
    assert_eq!(scene.questions(&["bash", "-c", "wc /dev/null"]).await, 0);
    assert!(!scene.is_marked());
}
