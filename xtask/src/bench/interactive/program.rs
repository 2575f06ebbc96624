//! The same through the real program and a pipe.

use super::row;
use crate::bench::progress::Progress;
use crate::bench::row::Row;
use crate::bench::samples::Samples;
use crate::bench::session::Session;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A run of `sandgate call -`.
struct Served {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Served {
    #[expect(clippy::disallowed_methods, reason = "measures the real program")]
    fn start(session: &Session, home: &std::path::Path) -> anyhow::Result<Self> {
        let mut command = std::process::Command::new(session.program()?);
        command
            .args(["call", "--sandbox", "workspace-write", "--ask-for-approval", "on-request", "-"])
            .current_dir(home)
            .env("HOME", home)
            .env_remove("XDG_CACHE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("its input is a pipe")?;
        let stdout = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        Ok(Self { child, stdin, stdout })
    }

    fn call(&mut self, name: &str, arguments: &Value) -> anyhow::Result<Value> {
        let call = json!({
            "type": "function_call",
            "name": name,
            "call_id": "bench",
            "arguments": arguments.to_string(),
        });
        writeln!(self.stdin, "{call}")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        let text = answer["output"].as_str().unwrap_or_default();
        serde_json::from_str(text).with_context(|| format!("the answer was {line}"))
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.child.wait()?;
        Ok(())
    }
}

pub(super) fn measure(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let mut served = Served::start(session, home.path())?;
    let start = json!({"command": ["bash", "-i"], "process_id": "p", "yield_time_ms": 30_000});
    served.call("exec_command", &start)?;
    let typed = json!({"process_id": "p", "input": "echo hi\n", "yield_time_ms": 30_000});
    let rounds = super::rounds(session);
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let began = Instant::now();
        let reply = served.call("write_stdin", &typed)?;
        times.push(began.elapsed());
        anyhow::ensure!(reply["output"] == "hi\n", "round {round} was answered with {reply}");
        progress.step(round + 1, rounds);
    }
    served.end()?;
    let times = Samples::new(times)?;
    Ok(vec![row("bash, in the cage, sandgate call -", Some(Duration::from_millis(3)), &times)])
}
