//! What a call costs a client of MCP: a command of its own, and a line to a live bash.

use crate::bench::bare;
use crate::bench::mcp::{OWNER, Server, TMUX_SOCKET, terminal_of};
use crate::bench::progress::Progress;
use crate::bench::row::Row;
use crate::bench::samples::{Samples, timed};
use crate::bench::session::Session;
use serde_json::{Value, json};

type Measure = fn(&Session, &Progress) -> anyhow::Result<Vec<Row>>;

pub(super) const ALL: [(&str, Measure); 5] = [
    ("sandgate mcp, confined", ours),
    ("mcp-server-commands", commands),
    ("pty-mcp, told what to wait for", pty),
    ("libtmux-mcp", tmux),
    ("Desktop Commander", desktop),
];

fn ours(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut server = Server::ours(session)?;
    let once = |word: &str| json!({ "command": ["echo", word] });
    let once = rounds(session, progress, &mut server, "shell", once)?;
    let started = server.call("exec_command", &json!({ "command": ["bash", "--norc"] }))?;
    let process = started["structuredContent"]["process_id"].clone();
    let line = |word: &str| json!({ "process_id": process, "input": format!("echo ''{word}\n") });
    let line = rounds(session, progress, &mut server, "write_stdin", line)?;
    Ok(vec![
        row("sandgate mcp, confined: a command", &once),
        row("sandgate mcp, confined: a line to a live bash", &line),
    ])
}

fn commands(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut server = Server::peer(session, "mcp-server-commands")?;
    let once = |word: &str| json!({ "command": format!("echo {word}") });
    let times = rounds(session, progress, &mut server, "run_command", once)?;
    Ok(vec![row("mcp-server-commands: a command", &times)])
}

fn pty(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut server = Server::peer(session, "pty-mcp")?;
    let spawned = server.call("pty_spawn", &json!({ "command": "bash --norc", "owner": OWNER }))?;
    let terminal = terminal_of(&spawned)?;
    let line = |word: &str| {
        let (data, awaited) = (format!("echo ''{word}\n"), format!("\n{word}\n"));
        json!({ "session_id": terminal, "owner": OWNER, "data": data, "patterns": [awaited] })
    };
    let times = rounds(session, progress, &mut server, "pty_prompt", line)?;
    Ok(vec![row("pty-mcp, told what to wait for: a line to a live bash", &times)])
}

fn tmux(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let tmux = bare::find("tmux")?;
    let mut server = Server::peer(session, "libtmux-mcp")?;
    server.call("create_session", &json!({ "session_name": "bench" }))?;
    let line = |word: &str| json!({ "session_name": "bench", "command": format!("echo ''{word}") });
    let times = rounds(session, progress, &mut server, "run_command", line);
    // What it has started stays if nobody ends it.
    let ended = bare::run_quietly(&tmux, &["-L", TMUX_SOCKET, "kill-server"]);
    let times = times?;
    ended?;
    Ok(vec![row("libtmux-mcp: a line to a live bash", &times)])
}

fn desktop(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut server = Server::peer(session, "desktop-commander")?;
    let once = |word: &str| json!({ "command": format!("echo {word}"), "timeout_ms": 5000 });
    let times = rounds(session, progress, &mut server, "start_process", once)?;
    Ok(vec![row("Desktop Commander: a command", &times)])
}

/// The same call again and again, with a word of its own for each, so that nobody takes the answer before for this one.
fn rounds(
    session: &Session,
    progress: &Progress,
    server: &mut Server,
    tool: &str,
    arguments: impl Fn(&str) -> Value,
) -> anyhow::Result<Samples> {
    let (rounds, warming) = (session.times(100, 10), 2);
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds + warming {
        let word = format!("hi{round}");
        let arguments = arguments(&word);
        let time = timed(|| {
            let said = server.call(tool, &arguments)?.to_string();
            anyhow::ensure!(said.contains(&word), "{tool} was answered with {said}");
            Ok(())
        })?;
        if round >= warming {
            times.push(time);
        }
        progress.step(round + 1, rounds + warming);
    }
    Samples::new(times)
}

fn row(what: &str, times: &Samples) -> Row {
    Row::new(what, times.median().into()).detail("p99", times.p99().into())
}
