//! What a sandbox holds of memory while its command sleeps: all of its processes but the command's own.

use crate::bench::processes::{descendants, name_of, proportional_memory};
use crate::bench::row::{Quantity, Row};
use crate::bench::session::{Impossible, Session};
use crate::peers::{Place, Sandbox, work::end_group};
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

/// How long a command may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long everybody is given to come to rest.
const REST: Duration = Duration::from_millis(300);

pub(super) fn while_it_sleeps(sandbox: Sandbox, session: &Session) -> anyhow::Result<Vec<Row>> {
    let directory = session.scratch()?;
    let place = Place { workspace: directory.path(), settings: directory.path() };
    let wrapper = sandbox.wrap(&session.tools()?, place).map_err(Impossible)?;
    let mut child = wrapper.command(place, &["sleep", "30"]).process_group(0).spawn()?;
    let held = held_by(child.id());
    end_group(&mut child);
    let (bytes, processes) = held?;
    let row = Row::new(sandbox.name(), Quantity::bytes(bytes));
    Ok(vec![row.detail("processes", Quantity::count(processes))])
}

/// What a process and those below it hold once a `sleep` is among them, which is not counted.
pub(super) fn held_by(pid: u32) -> anyhow::Result<(u64, usize)> {
    let is_command = |pid: &u32| name_of(*pid).as_deref() == Some("sleep");
    let began = Instant::now();
    while !descendants(pid).iter().chain([&pid]).any(is_command) {
        anyhow::ensure!(began.elapsed() < PATIENCE, "the command was never started");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(REST);
    let own = descendants(pid).into_iter().chain([pid]).filter(|pid| !is_command(pid));
    let sizes: Vec<u64> = own.filter_map(|pid| proportional_memory(pid).ok()).collect();
    Ok((sizes.iter().sum(), sizes.len()))
}
