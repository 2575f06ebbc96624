//! `sandgate session`: processes that stay, in the daemon that lives as long as the soak.

use super::call::Lines;
use crate::soak::gate::{Call, Gate as _};
use crate::soak::lane::Lane;
use crate::soak::program::{Ended, Running};
use crate::soak::world::Namespaces;
use rustix::process::Signal;
use serde_json::{Value, json};

fn said(ended: &Ended, code: i32, stdout: &str) -> anyhow::Result<()> {
    let right = ended.code == Some(code) && ended.stdout == stdout.as_bytes();
    anyhow::ensure!(right, "wanted {code} and {stdout:?}, got {ended:?}");
    Ok(())
}

pub(super) fn process(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let (id, world) = (lane.mark(), lane.world);
    if lane.random.percent(30) {
        let script = format!("echo {id}; exit 3");
        let ended =
            world.run(&["session", "start", "--id", &id, "--no-tty", "--", "sh", "-c", &script])?;
        lane.ledger.ran(&id);
        return said(&ended, 3, &format!("{id}\n"));
    }
    said(&world.run(&["session", "start", "--id", &id, "--", "bash", "--norc"])?, 0, "")?;
    for _ in 0..lane.random.between(1, 3) {
        let (a, b) = (lane.random.below(1000), lane.random.below(1000));
        let line = format!("(setsid sleep 1000 >/dev/null 2>&1 &); echo $(({a}+{b}))");
        said(&world.run(&["session", "send", &id, &line])?, 0, &format!("{}\n", a + b))?;
    }
    if lane.random.percent(30) {
        return said(&world.run(&["session", "send", &id, "exit 4"])?, 4, "exit\n");
    }
    said(&world.run(&["session", "kill", &id])?, 0, &format!("process {id} was ended\n"))
}

/// The session that asked for it ends, by itself or not, and the process is still there.
pub(super) fn keep(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mark = lane.mark();
    let mut lines = Lines::start(lane, Namespaces::Possible)?;
    let arguments = json!({ "command": ["bash", "--norc"], "keep_alive": true });
    let kept =
        lines.call(&Call { tool: "exec_command", mark: &mark, arguments, decision: None })?;
    let reply = kept.reply()?;
    let Some(id) = reply["process_id"].as_str() else { anyhow::bail!("it does not live: {reply}") };
    if lane.random.percent(50) {
        lines.kill()?;
    } else {
        lines.end()?;
    }
    let listed = lane.world.run(&["session", "list", "--json"])?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    let mine = listed.as_array().into_iter().flatten().find(|one| one["process_id"] == id);
    anyhow::ensure!(
        mine.is_some_and(|mine| mine["state"] != "exited"),
        "{id} is not kept: {listed}"
    );
    said(&lane.world.run(&["session", "kill", id])?, 0, &format!("process {id} was ended\n"))
}

/// Whoever is killed while it asks the daemon for something harms nothing in there.
pub(super) fn kill_client(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let (id, world) = (lane.mark(), lane.world);
    let words = ["session", "start", "--id", &id, "--", "sleep", "1000"];
    let client = Running::start(&mut world.command(Namespaces::Possible, &words))?;
    lane.linger();
    client.signal(Signal::KILL)?;
    client.wait()?;
    // It was asked for or it was not; a start that is still on its way is waited for by the list.
    world.run(&["session", "list"])?;
    let ended = world.run(&["session", "kill", &id])?;
    anyhow::ensure!(matches!(ended.code, Some(0 | 125)), "{ended:?}");
    lane.steady.to_kill(id);
    Ok(())
}
