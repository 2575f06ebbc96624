//! What a call costs an MCP client, beside other servers that run commands.
//!
//! `--peers` installs those; a row whose peer is not there says so.

#![expect(clippy::disallowed_methods, reason = "starts the servers that are measured")]

use super::bare;
use super::program::Home;
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{Samples, by_turns, timed};
use super::session::{Impossible, Session};
use crate::peers::python;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// The tmux that a peer may have for itself.
pub(super) const TMUX_SOCKET: &str = "sandgate-bench";

/// In whose name pty-mcp is used: it has no sessions of nobody.
pub(super) const OWNER: &str = "bench";

/// How many calls are made at once.
const AT_ONCE: usize = 32;

pub(super) fn measure(session: &mut Session) {
    session.take("a call of /bin/true", one_shot);
    session.take("a line to a live bash", line);
    session.take("1,000 calls, 32 at once", many);
}

/// A server, and a client by hand that waits for nothing but its lines.
pub(super) struct Server {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    last: u64,
    _home: Option<Home>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(mut command: Command, home: Option<Home>) -> anyhow::Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (write, read) = (child.stdin.take(), child.stdout.take());
        let (Some(write), Some(read)) = (write, read) else { anyhow::bail!("there are no pipes") };
        let mut server = Self { child, write, read: BufReader::new(read), last: 0, _home: home };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } });
        let id = server.send("initialize", &hello)?;
        server.answer(id)?;
        writeln!(
            server.write,
            "{}",
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        )?;
        Ok(server)
    }

    pub(super) fn ours(session: &Session) -> anyhow::Result<Self> {
        let home = Home::new(session)?;
        let command = home.command(session.program()?, &["mcp"]);
        Self::start(command, Some(home))
    }

    /// Somebody else's server.
    ///
    /// # Errors
    /// [`Impossible`] when it is not there, or does not start.
    pub(super) fn peer(session: &Session, name: &str) -> anyhow::Result<Self> {
        let peers = session.tools()?.peers;
        let found = peers.find(name).map_err(Impossible)?;
        let is_python = peers.home(name).join("bin").is_dir();
        let mut command = match is_python {
            true => Command::new(python()),
            false => Command::new("node"),
        };
        command.arg(&found.program).current_dir(std::env::temp_dir());
        if is_python {
            command.env("PYTHONPATH", peers.home(name)).env("LIBTMUX_SOCKET", TMUX_SOCKET);
        }
        let started = Self::start(command, None);
        started.map_err(|error| Impossible(format!("{name} does not start: {error:#}")).into())
    }

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.last += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        writeln!(self.write, "{message}")?;
        Ok(self.last)
    }

    fn next(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        anyhow::ensure!(self.read.read_line(&mut line)? > 0, "the server has ended");
        Ok(serde_json::from_str(&line)?)
    }

    fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let message = self.next()?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    fn begin(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<u64> {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let id = self.begin(tool, arguments)?;
        succeeded(&self.answer(id)?)
    }
}

fn succeeded(answer: &Value) -> anyhow::Result<Value> {
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    anyhow::ensure!(!failed, "a call failed: {answer}");
    Ok(answer["result"].clone())
}

fn one_shot(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let nothing = bare::text(&bare::true_program()?)?;
    let (ours, theirs) =
        (json!({ "command": [nothing, "x"] }), json!({ "command": format!("{nothing} x") }));
    let mut server = Server::ours(session)?;
    let mut peer = Server::peer(session, "mcp-server-commands")?;
    let pair = by_turns(
        session.times(500, 50),
        progress,
        || server.call("shell", &ours).map(drop),
        || peer.call("run_command", &theirs).map(drop),
    )?;
    let row =
        Row::of_times("a call of /bin/true, confined", "mcp-server-commands, not confined", &pair);
    Ok(vec![row.detail("p99", pair.ours.p99().into()).target(Target::RatioAtMost(1.0))])
}

fn line(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut server = Server::ours(session)?;
    let mut peer = Server::peer(session, "pty-mcp")?;
    let started = server.call("exec_command", &json!({ "command": ["bash", "--norc"] }))?;
    let process = started["structuredContent"]["process_id"].clone();
    let spawned = peer.call("pty_spawn", &json!({ "command": "bash --norc", "owner": OWNER }))?;
    let terminal = terminal_of(&spawned)?;
    let mut rows = Vec::new();
    for (what, is_told) in
        [("a line to a live bash, confined", false), ("the same, told what to wait for", true)]
    {
        // A word of its own for each, so that nobody takes the answer before for this one.
        let (mut number, mut other) = (0, 0);
        let pair = by_turns(
            session.times(300, 30),
            progress,
            || {
                number += 1;
                let mut line =
                    json!({ "process_id": process, "input": format!("echo h''i{number}\n") });
                if is_told {
                    line["wait_for"] = format!("hi{number}\\b").into();
                }
                let said = server.call("write_stdin", &line)?;
                let output = said["structuredContent"]["output"].as_str().unwrap_or_default();
                let word = format!("hi{number}\n");
                // Who comes back before the prompt does may still see what was typed.
                let is_it = if is_told { output.contains(&word) } else { output == word };
                anyhow::ensure!(is_it, "wrong answer: {said}");
                Ok(())
            },
            || {
                other += 1;
                let (data, awaited) = (format!("echo h''i{other}\n"), format!("\nhi{other}\n"));
                let line = json!({ "session_id": terminal, "owner": OWNER, "data": data, "patterns": [awaited] });
                let said = peer.call("pty_prompt", &line)?;
                let said = said["content"][0]["text"].as_str().unwrap_or_default();
                anyhow::ensure!(said.contains("\"matched\": true"), "wrong answer: {said}");
                Ok(())
            },
        )?;
        let row = Row::of_times(what, "pty-mcp, not confined, told what to wait for", &pair);
        rows.push(row.detail("p99", pair.ours.p99().into()));
    }
    Ok(rows)
}

/// The name of the session that pty-mcp has started, which is all that it says.
pub(super) fn terminal_of(spawned: &Value) -> anyhow::Result<Value> {
    let terminal = spawned["content"][0]["text"].clone();
    anyhow::ensure!(terminal.is_string(), "pty-mcp names no session: {spawned}");
    Ok(terminal)
}

/// Makes calls, so many at once, and says how long each took.
fn flood(
    server: &mut Server,
    tool: &str,
    arguments: &Value,
    calls: usize,
) -> anyhow::Result<Samples> {
    let mut open: HashMap<u64, Instant> = HashMap::new();
    let mut times = Vec::with_capacity(calls);
    let mut begun = 0;
    while times.len() < calls {
        while begun < calls && open.len() < AT_ONCE {
            open.insert(server.begin(tool, arguments)?, Instant::now());
            begun += 1;
        }
        let answer = server.next()?;
        let began = answer["id"].as_u64().and_then(|id| open.remove(&id));
        if let Some(began) = began {
            times.push(began.elapsed());
            succeeded(&answer)?;
        }
    }
    Samples::new(times)
}

fn many(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let nothing = bare::text(&bare::true_program()?)?;
    let (ours, theirs) =
        (json!({ "command": [nothing, "x"] }), json!({ "command": format!("{nothing} x") }));
    let calls = session.times(1000, 100);
    let mut server = Server::ours(session)?;
    server.call("shell", &ours)?;
    let mut latencies = None;
    let took = timed(|| {
        latencies = Some(flood(&mut server, "shell", &ours, calls)?);
        Ok(())
    })?;
    progress.step(1, 2);
    let what = format!("{calls} calls of /bin/true, {AT_ONCE} at once, none failed");
    let mut row = Row::new(what, took.into());
    if let Ok(mut peer) = Server::peer(session, "mcp-server-commands") {
        let took = timed(|| flood(&mut peer, "run_command", &theirs, calls).map(drop))?;
        row = row.against("mcp-server-commands, not confined", took.into());
    }
    let Some(latencies) = latencies else { anyhow::bail!("no call was timed") };
    let row = row.detail("median of a call", latencies.median().into());
    let row = row.detail("p99 of a call", latencies.p99().into());
    Ok(vec![row.detail("calls", Quantity::count(calls))])
}
