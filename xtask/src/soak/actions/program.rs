//! `sandgate run` and `sandgate sandbox`: one command each, and all the ways of ending it.

use crate::bench::processes::{descendants, name_of};
use crate::soak::lane::Lane;
use crate::soak::program::{Ended, Running, signal_found};
use crate::soak::work::Work;
use crate::soak::world::{Namespaces, hash};
use rustix::process::Signal;

/// Starts a command with these words before it.
fn start(
    lane: &Lane<'_>,
    namespaces: Namespaces,
    words: &[&str],
    work: &Work,
) -> anyhow::Result<Running> {
    let mut all = words.to_vec();
    all.push("--");
    all.extend(work.argv.iter().map(String::as_str));
    Running::start(&mut lane.world.command(namespaces, &all))
}

fn check(work: &Work, ended: &Ended) -> anyhow::Result<()> {
    let same = ended.stdout == work.stdout.as_bytes() && ended.code == Some(work.code);
    if same {
        return Ok(());
    }
    let mut work = work.clone();
    work.stdout.truncate(300);
    let (code, length) = (ended.code, ended.stdout.len());
    let said = String::from_utf8_lossy(&ended.stdout[..length.min(300)]);
    anyhow::bail!("wanted {work:?}, got {code:?}, {length} bytes, {said:?}, {}", ended.stderr)
}

pub(super) fn run(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = lane.work();
    // Whoever fails after something was blocked would be offered more, and nobody is there to say no.
    let ended = start(lane, Namespaces::Possible, &["run", "--decide", "deny"], &work)?.wait()?;
    lane.ledger.ran(&work.mark);
    check(&work, &ended)
}

pub(super) fn run_without_namespaces(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = lane.work();
    let ended = start(lane, Namespaces::Refused, &["run", "--decide", "deny"], &work)?.wait()?;
    lane.ledger.ran(&work.mark);
    check(&work, &ended)
}

pub(super) fn flood(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = Work::flood(lane.mark(), lane.random.between(100_000, 3_000_000));
    let ended = start(lane, Namespaces::Possible, &["run"], &work)?.wait()?;
    lane.ledger.ran(&work.mark);
    let same = hash(&ended.stdout) == hash(work.stdout.as_bytes());
    if same && ended.code == Some(0) { Ok(()) } else { check(&work, &ended) }
}

pub(super) fn timeout(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = Work::endless(lane.mark());
    let limit = lane.random.between(20, 600).to_string();
    let ended =
        start(lane, Namespaces::Possible, &["run", "--timeout-ms", &limit], &work)?.wait()?;
    lane.ledger.ran(&work.mark);
    let begun = ended.stdout.is_empty() || ended.stdout == work.stdout.as_bytes();
    anyhow::ensure!(begun && ended.code == Some(124), "no time-out: {ended:?}");
    Ok(())
}

pub(super) fn signal(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = Work::endless(lane.mark());
    let (signal, codes) = *lane.random.pick(&[
        (Signal::INT, [Some(130), None]),
        (Signal::TERM, [Some(143), None]),
        (Signal::HUP, [Some(129), None]),
    ]);
    let running = start(lane, Namespaces::Possible, &["run"], &work)?;
    lane.linger();
    running.signal(signal)?;
    let ended = running.wait()?;
    let right = codes.contains(&ended.code);
    anyhow::ensure!(right, "{signal:?} ended it with {:?}: {}", ended.code, ended.stderr);
    Ok(())
}

pub(super) fn kill(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = if lane.random.percent(50) { Work::endless(lane.mark()) } else { lane.work() };
    let namespaces =
        *lane.random.pick(&[Namespaces::Possible, Namespaces::Possible, Namespaces::Refused]);
    let running = start(lane, namespaces, &["run", "--decide", "deny"], &work)?;
    lane.linger();
    running.signal(Signal::KILL)?;
    running.wait()?;
    Ok(())
}

/// Its guards are its own affair: whichever is killed, it comes to an end.
pub(super) fn kill_guard(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = lane.work();
    let running = start(lane, Namespaces::Possible, &["run", "--decide", "deny"], &work)?;
    lane.linger();
    kill_one_guard(lane, running.pid())?;
    let ended = running.wait()?;
    anyhow::ensure!(ended.code.is_some(), "it died of its guard: {ended:?}");
    Ok(())
}

/// Kills one of the guards below a process, if it has any. Says which.
pub(super) fn kill_one_guard(lane: &mut Lane<'_>, below: u32) -> anyhow::Result<Option<String>> {
    let guards = guards_below(below);
    if guards.is_empty() {
        return Ok(None);
    }
    let (pid, name) = lane.random.pick(&guards).clone();
    // Others on this machine have processes too, and numbers are used again.
    let is_it = || guards_below(below).iter().any(|(guard, _)| *guard == pid);
    let was_it = signal_found(pid, Signal::KILL, is_it)?;
    Ok(was_it.then(|| format!("{name} {pid}")))
}

fn guards_below(below: u32) -> Vec<(u32, String)> {
    let named = descendants(below).into_iter().filter_map(|pid| Some((pid, name_of(pid)?)));
    named.filter(|(_, name)| name.starts_with("sg-")).collect()
}

pub(super) fn sandbox(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = lane.work();
    let namespaces =
        *lane.random.pick(&[Namespaces::Possible, Namespaces::Possible, Namespaces::Refused]);
    let ended = start(lane, namespaces, &["sandbox", "--full-auto"], &work)?.wait()?;
    check(&work, &ended)
}

pub(super) fn sandbox_kill(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let work = if lane.random.percent(50) { Work::endless(lane.mark()) } else { lane.work() };
    let running = start(lane, Namespaces::Possible, &["sandbox", "--full-auto"], &work)?;
    lane.linger();
    running.signal(*lane.random.pick(&[Signal::KILL, Signal::TERM]))?;
    running.wait()?;
    Ok(())
}
