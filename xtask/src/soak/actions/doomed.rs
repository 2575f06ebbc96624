//! Servers that are started to be ended: by a signal, by kill -9, or by the loss of a guard.

use super::program::kill_one_guard;
use crate::soak::errands;
use crate::soak::gate::{Call, Gate};
use crate::soak::lane::Lane;
use crate::soak::mcp_client::Mcp;
use crate::soak::program::{Ended, Running, signal_found};
use crate::soak::steady::{self, daemon_of, eventually};
use crate::soak::work::Work;
use crate::soak::world::Namespaces;
use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::json;

/// Does something first, so that there is something to be lost.
fn warm(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    for _ in 0..lane.random.below(3) {
        errands::any(lane, gate)?;
    }
    Ok(())
}

pub(super) fn mcp(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut mcp = Mcp::start(lane.world)?;
    warm(lane, &mut mcp)?;
    for _ in 0..lane.random.between(1, 6) {
        let work = if lane.random.percent(50) { Work::endless(lane.mark()) } else { lane.work() };
        mcp.begin("shell", &json!({ "command": work.argv, "timeout_ms": 600_000 }));
    }
    lane.linger();
    match lane.random.below(3) {
        0 => mcp.talking.signal(Signal::KILL)?,
        1 => mcp.talking.signal(Signal::TERM)?,
        // The client goes: the end of its input is the end of everything.
        _ => {}
    }
    mcp.talking.end().map(drop)
}

pub(super) fn serve(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let (running, mut http) = steady::serve(lane.world)?;
    warm(lane, &mut http)?;
    let mut streams = Vec::new();
    for _ in 0..lane.random.between(1, 4) {
        let work = Work::endless(lane.mark());
        let body =
            json!({ "arguments": { "command": work.argv, "timeout_ms": 600_000 } }).to_string();
        streams.push(http.open(&http.requester, ("POST", "/tools/shell"), &body)?);
        streams.push(http.open(&http.approver, ("GET", "/approvals/events"), "")?);
    }
    lane.linger();
    let signal = *lane.random.pick(&[Signal::KILL, Signal::TERM]);
    running.signal(signal)?;
    let ended = running.end()?;
    let right = if signal == Signal::TERM { ended.code == Some(0) } else { ended.code.is_none() };
    anyhow::ensure!(right, "{signal:?}: {ended:?}");
    Ok(())
}

/// Whichever guard it loses, what runs may be lost with it, and the next call is answered rightly.
pub(super) fn guard(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut mcp = Mcp::start(lane.world)?;
    let work = lane.work();
    errands::check_work(lane, &mut mcp, &work)?;
    let mut lost = Vec::new();
    for _ in 0..lane.random.between(1, 3) {
        for _ in 0..lane.random.below(3) {
            let work = lane.work();
            mcp.begin("shell", &json!({ "command": work.argv }));
        }
        lane.linger();
        lost.extend(kill_one_guard(lane, mcp.talking.pid())?);
        // This one may be lost with the guard, and is answered all the same.
        let (mark, arguments) = (lane.mark(), json!({ "command": ["true", "x"] }));
        mcp.call(&Call { tool: "shell", mark: &mark, arguments, decision: None })?;
        let work = lane.work();
        errands::check_work(lane, &mut mcp, &work)
            .with_context(|| format!("after {lost:?} were killed"))?;
    }
    let ended = mcp.talking.end()?;
    anyhow::ensure!(ended.code == Some(0), "it ended badly without {lost:?}: {ended:?}");
    Ok(())
}

/// Its processes end with it, and the next start begins another.
pub(super) fn daemon(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let world = lane.world;
    let home = format!("home-{}", lane.number);
    std::fs::create_dir_all(world.path(&home).join(".codex"))?;
    let settings = world.path("home/.codex/config.toml");
    std::fs::copy(settings, world.path(&home).join(".codex/config.toml"))?;
    let session = |words: &[&str]| -> anyhow::Result<Ended> {
        let mut command = world.command(Namespaces::Possible, &[&["session"], words].concat());
        Running::start(command.env("HOME", world.path(&home)))?.wait()
    };
    let start = |id: &str| -> anyhow::Result<()> {
        let ended = session(&["start", "--id", id, "--", "bash", "--norc"])?;
        anyhow::ensure!(ended.code == Some(0), "it does not start: {ended:?}");
        Ok(())
    };
    start("one")?;
    start("two")?;
    let daemon = daemon_of(world, &home)?;
    lane.linger();
    let signal = *lane.random.pick(&[Signal::KILL, Signal::KILL, Signal::TERM]);
    let is_it = || daemon_of(world, &home).is_ok_and(|now| now == daemon);
    anyhow::ensure!(signal_found(daemon, signal, is_it)?, "the daemon has ended by itself");
    eventually("end of the daemon", || Ok(has_ended(daemon).then_some(())))?;
    start("one").context("after the daemon was ended")?;
    let ended = session(&["stop"])?;
    anyhow::ensure!(ended.code == Some(0), "it does not stop: {ended:?}");
    Ok(())
}

/// Whether a process is gone, or waits only to be waited for.
fn has_ended(pid: u32) -> bool {
    crate::bench::processes::is_zombie(pid) || crate::bench::processes::name_of(pid).is_none()
}
