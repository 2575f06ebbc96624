//! `sandgate serve`, the one that lives as long as the soak.

use crate::soak::errands;
use crate::soak::gate::{Call, Gate as _};
use crate::soak::http_client::events;
use crate::soak::lane::Lane;
use crate::soak::work::{Work, count, sh};
use anyhow::Context as _;
use serde_json::json;
use std::io::Read as _;

pub(super) fn errand(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut http = lane.steady.http.clone();
    errands::any(lane, &mut http)
}

/// The call is called off with its client; that nothing of it is left is seen at the end of the round.
pub(super) fn gone(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = if lane.random.percent(70) { Work::endless(lane.mark()) } else { lane.work() };
    let mut arguments = json!({ "command": work.argv, "timeout_ms": 600_000 });
    if lane.random.percent(25) {
        // It waits for a person who never comes.
        arguments["sandbox_permissions"] = json!("require_escalated");
        arguments["justification"] = json!("nobody will say");
    }
    let http = &lane.steady.http;
    let body = json!({ "arguments": arguments }).to_string();
    let stream = http.open(&http.requester, ("POST", "/tools/shell"), &body)?;
    lane.linger();
    drop(stream);
    Ok(())
}

/// Somebody who listens: reads for a while, or reads nothing and stays until the round is over.
pub(super) fn follow(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let http = &lane.steady.http;
    let (token, path) = *lane
        .random
        .pick(&[(&http.approver, "/approvals/events"), (&http.requester, "/approvals/events")]);
    let mut stream = http.open(token, ("GET", path), "")?;
    match lane.random.below(3) {
        0 => {}
        1 => {
            lane.steady.idle_followers().push(stream);
            return Ok(());
        }
        _ => {
            let mut first = [0; 15];
            stream.read_exact(&mut first)?;
            anyhow::ensure!(&first == b"HTTP/1.1 200 OK", "no stream: {first:?}");
        }
    }
    lane.linger();
    Ok(())
}

/// Everything that a process prints arrives, in order and to the byte, at several who listen.
pub(super) fn output(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mark = lane.mark();
    let mut http = lane.steady.http.clone();
    let lines = lane.random.between(1_000, 200_000);
    let script = format!("seq 1 {lines}; exit 5");
    let arguments = json!({ "command": sh(&mark, &script), "process_id": mark, "tty": false, "yield_time_ms": 250 });
    let call = Call { tool: "exec_command", mark: &mark, arguments, decision: None };
    let started = http.call(&call)?;
    lane.ledger.ran(&mark);
    let place = format!("/processes/serve.{mark}/output");
    let gone = http.open(&http.requester, ("GET", &place), "")?;
    let (status, stream) = http.exchange(&http.requester, ("GET", &place), "")?;
    drop(gone);
    anyhow::ensure!(status == 200, "{status}: {stream}; {started:?}");
    let heard = events(&stream);
    let pieces = heard.iter().filter(|(name, _)| name == "output");
    let text: String = pieces.filter_map(|(_, data)| data["chunk"].as_str()).collect();
    let (_, end) = heard.last().context("there are no events")?;
    anyhow::ensure!(end["exit_code"] == 5, "it ended with {end}");
    let wanted = count(1, lines);
    anyhow::ensure!(text == wanted, "{} bytes arrived of {}", text.len(), wanted.len());
    Ok(())
}

/// A conversation without a model: its session is used and closed.
pub(super) fn conversation(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut http = lane.steady.http.clone();
    let opened = http.json(&http.requester, ("POST", "/conversations"), "{\"ephemeral\":true}")?;
    let id = opened["id"].as_str().context("it has no id")?.to_owned();
    let place = format!("/conversations/{id}");
    let listener = http.open(&http.requester, ("GET", &format!("{place}/events")), "")?;
    http.conversation = Some(id);
    for _ in 0..lane.random.between(1, 3) {
        errands::any(lane, &mut http)?;
    }
    let mark = lane.mark();
    let arguments =
        json!({ "command": ["sleep", "1000"], "process_id": mark, "yield_time_ms": 250 });
    http.call(&Call { tool: "exec_command", mark: &mark, arguments, decision: None })?;
    http.json(&http.requester, ("DELETE", &place), "")?;
    drop(listener);
    Ok(())
}
