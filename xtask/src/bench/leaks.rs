//! What a thousand commands in a row leave behind: nothing.

use super::bare;
use super::library::{self, Library};
use super::processes::{descendants, descriptors, is_zombie, threads};
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::session::Session;
use anyhow::Context as _;
use sandgate_process::ExecuteOptions;
use std::time::{Duration, Instant};

const COMMANDS: usize = 1000;

/// The nursery, and the one warden that waits for the next command.
const GUARDS: usize = 2;

/// How long the guards of the last command may take to go.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn measure(session: &mut Session) {
    session.take("1,000 commands in a row", thousand);
}

fn thousand(_: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let env = library::granted(&bare::true_program()?, &[])?;
    library.run(&env, ExecuteOptions::default())?;
    let before = Census::take()?;
    for done in 0..COMMANDS {
        library.run(&env, ExecuteOptions::default())?;
        progress.step(done + 1, COMMANDS);
    }
    let after = Census::take()?;
    let row = |what: &str, of: fn(&Census) -> usize| {
        Row::new(format!("{what} after {COMMANDS} commands"), Quantity::count(of(&after)))
            .against("before", Quantity::count(of(&before)))
            .target(Target::SameAsReference)
    };
    Ok(vec![
        row("descriptors", |census| census.descriptors),
        row("descriptors of the nursery", |census| census.nursery_descriptors),
        row("threads", |census| census.threads),
        row("processes", |census| census.processes),
        row("zombies", |census| census.zombies),
    ])
}

/// Everything that this process and its guards have.
#[derive(Debug)]
struct Census {
    descriptors: usize,
    nursery_descriptors: usize,
    threads: usize,
    processes: usize,
    zombies: usize,
}

impl Census {
    /// Waits for the guards of the last command to go: they do that after its result is there.
    fn take() -> anyhow::Result<Self> {
        let limit = Instant::now() + PATIENCE;
        let processes = loop {
            let processes = descendants(std::process::id());
            if processes.len() <= GUARDS || Instant::now() > limit {
                break processes;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let nursery = *processes.first().context("there is no nursery")?;
        Ok(Self {
            descriptors: descriptors(std::process::id())?,
            nursery_descriptors: descriptors(nursery)?,
            threads: threads(std::process::id())?,
            zombies: processes.iter().filter(|&&pid| is_zombie(pid)).count(),
            processes: processes.len(),
        })
    }
}
