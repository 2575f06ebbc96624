//! Live processes through the tools of a session, as a model has them.

use super::Talk;
use crate::bench::library;
use crate::bench::progress::Progress;
use crate::bench::samples::Samples;
use anyhow::Context as _;
use sandgate_protocol::{
    AskForApproval, CallId, NetworkAccess, SandboxPolicy, ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::{Requester, Runtime, Session, SessionConfig, Turn};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Whether the process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Caged,
    Free,
}

impl Place {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Caged => "in the cage",
            Self::Free => "unconfined",
        }
    }

    pub(super) fn policy(self) -> SandboxPolicy {
        match self {
            Self::Free => SandboxPolicy::DangerFullAccess,
            Self::Caged => SandboxPolicy::WorkspaceWrite {
                writable_roots: Vec::new(),
                network_access: NetworkAccess::Restricted,
                exclude_tmpdir_env_var: true,
                exclude_slash_tmp: true,
            },
        }
    }
}

/// Holds a conversation in a directory of its own.
pub(super) fn rounds(
    place: Place,
    talk: &Talk,
    rounds: usize,
    progress: &Progress,
) -> anyhow::Result<Samples> {
    let directory = tempfile::tempdir()?;
    // Without this zsh asks what to write into it.
    std::fs::write(directory.path().join(".zshrc"), "")?;
    // Without this fish reads all manual pages, which takes it minutes of a processor beside the rounds.
    std::fs::create_dir_all(directory.path().join(".local/share/fish/generated_completions"))?;
    rounds_in(directory.path(), place, talk, rounds, progress)
}

/// The same in a directory that has something in it.
pub(super) fn rounds_in(
    directory: &Path,
    place: Place,
    talk: &Talk,
    rounds: usize,
    progress: &Progress,
) -> anyhow::Result<Samples> {
    let runtime = Runtime::start()?;
    let mut config = SessionConfig::new(directory.to_owned());
    config.approval_policy = AskForApproval::Never;
    config.sandbox_policy = place.policy();
    config.own_env = std::env::vars_os().collect();
    config.own_env.insert("HOME".into(), directory.into());
    let session = Session::start(Arc::new(runtime), config)?;
    let requester = session.requester();
    library::runtime()?.block_on(async {
        let start = json!({
            "command": talk.command,
            "process_id": "p",
            "yield_time_ms": 30_000,
        });
        // One turn has many calls, and looks at the workspace once.
        let turn = requester.begin_turn();
        let call = async |name, arguments| call(&requester, &turn, name, arguments).await;
        let first = call("exec_command", &start).await?;
        anyhow::ensure!(first["returned"] == "waiting_for_input", "it began with {first}");
        let typed = json!({"process_id": "p", "input": talk.line, "yield_time_ms": 30_000});
        // The first rounds warm up what is read from the disk.
        for _ in 0..3 {
            call("write_stdin", &typed).await?;
        }
        let mut times = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let began = Instant::now();
            let reply = call("write_stdin", &typed).await?;
            times.push(began.elapsed());
            let is_right = reply["returned"] == "waiting_for_input"
                && reply["output"].as_str().is_some_and(|output| output.contains(talk.answer));
            anyhow::ensure!(is_right, "round {round} was answered with {reply}");
            progress.step(round + 1, rounds);
        }
        Samples::new(times)
    })
}

async fn call(
    requester: &Requester,
    turn: &Turn,
    name: &str,
    arguments: &Value,
) -> anyhow::Result<Value> {
    let call = ToolCall {
        call_id: CallId::new("bench"),
        name: name.to_owned(),
        payload: ToolPayload::Function { arguments: arguments.to_string() },
    };
    let results = requester.call(vec![call], turn).await;
    let result = results.into_iter().next().context("a call has a result")?;
    match result.output {
        ToolOutput::Function { content, .. } => {
            serde_json::from_str(&content).with_context(|| format!("the answer was {content}"))
        }
        ToolOutput::Mcp { .. } => anyhow::bail!("the answer is of another kind"),
    }
}
