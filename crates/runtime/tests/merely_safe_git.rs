//! Git that is merely safe, beside what a rule lets out: it obeys nothing of the repository's where nothing confines it.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "one test has the real git show what it would run")]

use sandgate_policy::rules::Rules;
use sandgate_protocol::{
    AskForApproval, CallId, Event, ReviewDecision, SandboxPolicy, ToolCall, ToolPayload,
};
use sandgate_runtime::{Delivery, Runtime, Session, SessionConfig};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

const RULE: &str =
    "[[rule]]\nprefix = [\"id\", \"root\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";

/// A repository whose configuration has git run a program, which leaves a mark beside the repository.
fn repository(base: &Path) {
    let git = base.join("ws/.git");
    for directory in ["objects", "refs"] {
        std::fs::create_dir_all(git.join(directory)).unwrap();
    }
    let program = base.join("monitor");
    let mark = base.join("mark");
    std::fs::write(&program, format!("#!/bin/sh\n: > '{}'\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let settings =
        format!("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {}\n", program.display());
    std::fs::write(git.join("config"), settings).unwrap();
}

/// Runs a script in such a repository and says no to whatever is asked. How often that was, and whether the
/// repository's program ran unconfined.
async fn tried(sandbox: SandboxPolicy, script: &str) -> (usize, bool) {
    let base = tempfile::tempdir().unwrap();
    repository(base.path());
    let mut config = SessionConfig::new(base.path().join("ws"));
    config.approval_policy = AskForApproval::UnlessTrusted;
    config.sandbox_policy = sandbox;
    config.rules = Rules::parse(RULE, "test").unwrap().into_iter().collect();
    config.own_env = std::env::vars_os().collect();
    let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
    let session = Session::start(Arc::new(runtime), config).unwrap();
    let arguments = json!({ "command": ["bash", "-c", script] }).to_string();
    let call = ToolCall {
        call_id: CallId::new("call"),
        name: "shell".to_owned(),
        payload: ToolPayload::Function { arguments },
    };
    let approver = session.approver("test");
    let mut events = session.events(Delivery::Complete).await;
    let requester = session.requester();
    let turn = requester.begin_turn();
    let running = requester.call(vec![call], &turn);
    tokio::pin!(running);
    let mut asked = 0;
    loop {
        tokio::select! {
            _ = &mut running => return (asked, base.path().join("mark").exists()),
            event = events.next() => {
                if let Some(Event::ExecApprovalRequest(request)) = event.map(|event| event.event.clone()) {
                    asked += 1;
                    approver.answer(&request.approval_id, ReviewDecision::DENIED).unwrap();
                }
            }
        }
    }
}

/// The repository's program does run, and leaves its mark, for a git that nobody tells otherwise.
#[test]
fn the_program_of_the_repository_would_leave_a_mark() {
    let base = tempfile::tempdir().unwrap();
    repository(base.path());
    let status = std::process::Command::new("git")
        .arg("status")
        .current_dir(base.path().join("ws"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
    assert!(base.path().join("mark").exists());
}

#[tokio::test]
async fn beside_what_a_rule_lets_out_git_stays_in_the_sandbox() {
    let (asked, marked) = tried(SandboxPolicy::ReadOnly, "git status && id root").await;
    assert_eq!((asked, marked), (0, false));
}

/// spec RULES.58: Where there is no sandbox, no rule allows a script in which such a git runs beside what
/// the rule is for.
#[tokio::test]
async fn without_a_sandbox_git_beside_a_rule_is_asked_about() {
    let (asked, marked) = tried(SandboxPolicy::DangerFullAccess, "git status && id root").await;
    assert_eq!((asked, marked), (1, false));
    // By itself it is told to run nothing.
    let (asked, marked) = tried(SandboxPolicy::DangerFullAccess, "git status").await;
    assert_eq!((asked, marked), (0, false));
}
