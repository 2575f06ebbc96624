//! Git repositories whose settings run programs, through a whole session.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "the repositories are made by the real git")]

mod support;

use sandgate_protocol::{AskForApproval, CodexErr, SandboxPolicy};
use serde_json::json;
use std::fs;
use std::process::Command;
use support::scene::Scene;

/// spec REPO.8: In a repository with a filter a call of `git status` is asked about with that reason,
/// and without one it is not.
#[tokio::test]
async fn a_repository_with_a_filter_makes_git_ask() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let made = Command::new("git").args(["init", "-q"]).arg(scene.path()).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("SKIPPED: there is no git");
        return;
    }
    let status = json!({"command": ["git", "status", "--short"]});
    let result = scene.call("shell", status.clone()).await;
    assert_eq!(result.error, None);

    let mark = scene.path().join("ran");
    let config = scene.path().join(".git/config");
    let filter = format!("[filter \"x\"]\n\tclean = touch {}\n", mark.display());
    fs::write(&config, [fs::read(&config).unwrap(), filter.into_bytes()].concat()).unwrap();
    fs::write(scene.path().join(".gitattributes"), "* filter=x\n").unwrap();
    let result = scene.call("shell", status).await;
    let reason = "this repository's configuration runs programs: filter.x.clean".to_owned();
    assert_eq!(result.error, Some(CodexErr::NobodyToAsk { reason }));
    assert!(!mark.exists());
    let branch = scene.call("shell", json!({"command": ["git", "branch"]})).await;
    assert_eq!(branch.error, None, "it looks into no file");
}
