//! What the program adds to a model: between its call and the next request, before the first request,
//! and in memory.

use super::bare::{self, Bare};
use super::processes::{descendants, name_of, proportional_memory};
use super::program::Home;
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{Pair, Samples, timed};
use super::session::Session;
use sandgate_model_server::{ModelServer, Script, Turn};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: f64 = 1024.0 * 1024.0;
/// How long anything here takes at the most.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn measure(session: &mut Session) {
    session.take("from a model's call to the next request", calls);
    session.take("from the start to the first request", start);
    session.take("memory while a command sleeps", memory);
    session.take("a conversation of 1,000 requests", long);
}

/// A home whose model is the one of this server.
pub(super) fn home(session: &Session, server: &ModelServer) -> anyhow::Result<Home> {
    let home = Home::new(session)?;
    home.set(&format!(
        "sandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n\
         model_provider = \"bench\"\nmodel = \"m\"\n[agent]\nmax_turns = 100000\n\
         [model_providers.bench]\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n",
        server.url()
    ))?;
    Ok(home)
}

/// A model that calls a tool so often, and then says that it is done.
fn calling(times: usize, nothing: &Path) -> anyhow::Result<Script> {
    let command = bare::text(nothing)?;
    let call = || Turn::new().call("shell", json!({ "command": [command, "x"] }));
    let script = (0..times).fold(Script::new(), |script, _| script.turn(call()));
    Ok(script.turn(Turn::new().message("done")))
}

/// From the last byte of each answer to the first byte of the request that follows it.
fn gaps(server: &ModelServer) -> anyhow::Result<Vec<Duration>> {
    anyhow::ensure!(server.violations().is_empty(), "wrong requests: {:?}", server.violations());
    let requests = server.requests();
    let gap = |pair: &[sandgate_model_server::Request]| {
        let said = pair[0].answer.last_byte?;
        Some(pair[1].first_byte.saturating_duration_since(said))
    };
    Ok(requests.windows(2).filter_map(gap).collect())
}

fn calls(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, nothing) = (session.program()?, bare::true_program()?);
    let times = session.times(300, 50);
    let server = ModelServer::start(calling(times, &nothing)?);
    home(session, &server)?.run(program, &["exec", "go"])?;
    progress.step(1, 2);
    let bare = Bare::new(&nothing)?;
    let plain = (0..times).map(|_| timed(|| bare.run())).collect::<Result<_, _>>()?;
    // The first command makes the cage.
    let ours = Samples::new(gaps(&server)?.split_off(1))?;
    let pair = Pair { ours, reference: Samples::new(plain)? };
    let row = Row::of_times("call of /bin/true: to the next request", "fork + exec of it", &pair);
    let p99 = pair.ours.p99().into();
    Ok(vec![row.detail("p99", p99).target(Target::Within(Quantity::Seconds(0.015)))])
}

fn start(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, nothing) = (session.program()?, bare::true_program()?);
    let bare = Bare::new(&nothing)?;
    let times = session.times(100, 10);
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for step in 0..times {
        let server = ModelServer::start(Script::new().turn(Turn::new().message("done")));
        let home = home(session, &server)?;
        let began = Instant::now();
        home.run(program, &["exec", "go"])?;
        let requests = server.requests();
        let first = requests.first().map(|request| request.first_byte);
        ours.extend(first.map(|first| first.saturating_duration_since(began)));
        plain.push(timed(|| bare.run())?);
        progress.step(step, times);
    }
    let pair = Pair { ours: Samples::new(ours)?, reference: Samples::new(plain)? };
    let row = Row::of_times("sandgate exec: start to first request", "/bin/true", &pair);
    Ok(vec![row.target(Target::Within(Quantity::Seconds(0.050)))])
}

/// What all of our processes hold, the command's own left out.
fn memory(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let program = session.program()?;
    let sleeps = Turn::new().call("shell", json!({ "command": ["sleep", "3"] }));
    let script = Script::new().turn(sleeps).turn(Turn::new().message("done"));
    let server = ModelServer::start(script);
    let home = home(session, &server)?;
    let mut child = home.start(program, &["exec", "go"])?;
    let pid = child.id();
    let is_command = |pid: &u32| name_of(*pid).as_deref() == Some("sleep");
    let began = Instant::now();
    while !descendants(pid).iter().any(is_command) {
        anyhow::ensure!(began.elapsed() < PATIENCE, "the command was never started");
        anyhow::ensure!(child.try_wait()?.is_none(), "sandgate exec ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let own = descendants(pid).into_iter().filter(|pid| !is_command(pid)).chain([pid]);
    let sizes: Vec<u64> = own.filter_map(|pid| proportional_memory(pid).ok()).collect();
    let held = Quantity::bytes(sizes.iter().sum());
    child.wait()?;
    let row = Row::new("sandgate exec, while a command sleeps: memory", held);
    let row = row.detail("processes", Quantity::count(sizes.len()));
    Ok(vec![row.target(Target::Within(Quantity::Bytes(40.0 * MIB)))])
}

fn long(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, nothing) = (session.program()?, bare::true_program()?);
    let times = session.times(1000, 200);
    let server = ModelServer::start(calling(times, &nothing)?);
    let home = home(session, &server)?;
    let mut child = home.start(program, &["exec", "go"])?;
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        peak = proportional_memory(child.id()).unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(20));
    }
    let gaps = gaps(&server)?;
    anyhow::ensure!(gaps.len() == times, "{} of {times} calls were answered", gaps.len());
    let part = times / 5;
    let first = Samples::new(gaps[1..=part].to_vec())?;
    let last = Samples::new(gaps[times - part..].to_vec())?;
    let pair = Pair { ours: last, reference: first };
    let what = format!("a call late in a conversation of {times} requests");
    Ok(vec![
        Row::of_times(what, "one early in it", &pair),
        Row::new(format!("memory of a conversation of {times} requests"), Quantity::bytes(peak)),
    ])
}
