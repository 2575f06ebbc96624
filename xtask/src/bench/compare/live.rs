//! How long `echo hi` to a live bash takes until its whole reply is there, by those who can keep one.

use super::agent::{Codex, gaps};
use crate::bench::interactive;
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row};
use crate::bench::samples::Samples;
use crate::bench::session::Session;
use sandgate_model_server::{ModelServer, Request, Script, Turn};
use serde_json::json;

pub(super) fn ours(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let times = interactive::caged_bash(session.times(200, 30), progress)?;
    Ok(vec![row("sandgate, in the cage", &times)])
}

/// By hand, which is the lower limit, and by libraries of Python.
pub(super) fn python(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let mut rows = interactive::by_others(session, session.times(50, 5), progress)?;
    rows.retain(|row| !row.what.contains("fish"));
    Ok(rows)
}

fn row(what: &str, times: &Samples) -> Row {
    Row::new(what, times.median().into()).detail("p99", times.p99().into())
}

/// What codex lets pass between a model's line and the reply, with the shortest wait that it takes.
pub(super) fn codex(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    const YIELD: u64 = 250;
    let times = session.times(12, 3);
    let bash = json!({ "cmd": "bash --norc -i", "tty": true, "yield_time_ms": 1000 });
    let mut script = Script::new().turn(Turn::new().call("exec_command", bash));
    for _ in 0..times {
        script = script.turn_with(|request| {
            let typed = json!({ "session_id": session_in(request), "chars": "echo h''i\n", "yield_time_ms": YIELD });
            Turn::new().call("write_stdin", typed)
        });
    }
    let server = ModelServer::start(script.turn(Turn::new().message("done")).unchecked());
    Codex::new(session, &server)?.run()?;
    let answered = |request: &Request| {
        let printed = request.tool_outputs().pop().map(|output| output.text).unwrap_or_default();
        printed.split_once("Output:").is_some_and(|(_, printed)| printed.contains("hi"))
    };
    // The first two requests are before any line.
    let right = server.requests().iter().skip(2).filter(|request| answered(request)).count();
    anyhow::ensure!(right == times, "{right} of {times} lines were answered with what they print");
    let taken = Samples::new(gaps(&server).split_off(1))?;
    let waited = Quantity::Seconds(YIELD as f64 / 1000.0);
    Ok(vec![row("codex exec, write_stdin", &taken).detail("the wait that was asked for", waited)])
}

/// The number by which codex names the process in its last answer, or no such number.
fn session_in(request: &Request) -> u64 {
    let said = request.body.to_string();
    let numbers = said.match_indices("session ID ").filter_map(|(at, word)| {
        let digits: String =
            said[at + word.len()..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    numbers.last().unwrap_or(0)
}
