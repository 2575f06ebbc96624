//! How much memory the guards of a cage hold while they wait for the next command.

use super::confined::Confined;
use crate::bench::bare;
use crate::bench::processes::{descendants, name_of, proportional_memory};
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row, Target};
use crate::bench::session::Session;
use std::time::{Duration, Instant};

const MOST: Target = Target::Within(Quantity::Bytes(4.0 * 1024.0 * 1024.0));

/// What the process that waits inside the cage is called.
const WAITING: &str = "sg-vestibule";

/// The nursery, its idle wardens, and the processes inside that wait.
const GUARDS: usize = 5;

/// The second command has a nursery keep all the wardens that it ever does; the session has begun with one.
const MORE_COMMANDS: usize = 1;

/// How long those may take to be there again after a command, and the warden of that one to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// The guards of the cage. Those of commands that nothing confines are made for the first of them.
pub(super) fn idle(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let command = confined.command(&bare::true_program()?, &[])?;
    for _ in 0..MORE_COMMANDS {
        confined.time(&command)?;
    }
    let cage = guards_of_the_cage()?;
    let memory: u64 = cage.iter().map(|&pid| proportional_memory(pid)).sum::<Result<_, _>>()?;
    let row = Row::new("memory of an idle cage (PSS)", Quantity::bytes(memory))
        .detail("processes", Quantity::count(cage.len()));
    Ok(vec![confined.judge(row, MOST)?])
}

/// Those of this process's children that have somebody inside a cage, with all below them.
fn guards_of_the_cage() -> anyhow::Result<Vec<u32>> {
    let limit = Instant::now() + PATIENCE;
    loop {
        let everybody = descendants(std::process::id());
        let families = everybody.iter().map(|&pid| {
            let mut family = vec![pid];
            family.extend(descendants(pid));
            family
        });
        let nursery = |family: &Vec<u32>| {
            name_of(family[0]).is_some_and(|name| name == "sg-nursery")
                && family.iter().any(|&pid| name_of(pid).is_some_and(|name| name == WAITING))
        };
        let found = families.into_iter().find(nursery);
        if let Some(family) = found.filter(|family| family.len() == GUARDS) {
            return Ok(family);
        }
        anyhow::ensure!(Instant::now() < limit, "the guards of a cage did not come to rest");
        std::thread::sleep(Duration::from_millis(1));
    }
}
