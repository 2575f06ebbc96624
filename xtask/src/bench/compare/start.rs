//! What a confined command costs from its start to its end, in every sandbox that is here. In each round everybody has
//! one turn, and everybody begins a round as often as the others.

use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::{Outcome, Row};
use crate::bench::samples::{Samples, timed};
use crate::bench::sandbox::Confined;
use crate::bench::session::Session;
use crate::peers::{Place, Sandbox, Wrapper};
use std::time::Duration;

pub(super) fn nothing(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    measure(session, progress, session.times(60, 5), &[bare::text(bare::true_program()?)?])
}

pub(super) fn shell(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let bash = bare::text(bare::find("bash")?)?;
    measure(
        session,
        progress,
        session.times(40, 5),
        &[bash, "-lc".to_owned(), "echo hi".to_owned()],
    )
}

/// Somebody who takes part.
enum Runner {
    Wrapped(Sandbox, Wrapper),
    /// Our own library, in a session that has begun.
    Library(Box<Confined>),
}

fn measure(
    session: &Session,
    progress: &Progress,
    rounds: usize,
    command: &[String],
) -> anyhow::Result<Vec<Row>> {
    let directory = session.scratch()?;
    let place = Place { workspace: directory.path(), settings: directory.path() };
    let tools = session.tools()?;
    let mut absent = Vec::new();
    let mut runners = Vec::new();
    let run = |wrapper: &Wrapper| {
        // A person's own profile would be most of what a login shell is measured by.
        let status = wrapper.command(place, command).env("HOME", directory.path()).status()?;
        anyhow::ensure!(status.success(), "it ended with {status}");
        Ok(())
    };
    for sandbox in Sandbox::FOR_FIGURES {
        let tried = sandbox.wrap(&tools, place).and_then(|wrapper| {
            run(&wrapper).map_err(|error| format!("it does not work here: {error:#}"))?;
            Ok(wrapper)
        });
        match tried {
            Ok(wrapper) => runners.push(Runner::Wrapped(sandbox, wrapper)),
            Err(why) => absent.push(Row {
                measurement: "",
                what: sandbox.name().to_owned(),
                outcome: Outcome::Skipped { why },
            }),
        }
    }
    runners.insert(1, Runner::Library(Box::new(Confined::start(session)?)));
    let words: Vec<&str> = command.iter().skip(1).map(String::as_str).collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); runners.len()];
    for round in 0..rounds {
        for turn in 0..runners.len() {
            let who = (turn + round) % runners.len();
            times[who].push(match &runners[who] {
                Runner::Wrapped(_, wrapper) => timed(|| run(wrapper))?,
                Runner::Library(confined) => {
                    let mut params = confined.command(command[0].as_ref(), &words)?;
                    params.env.insert("HOME".into(), directory.path().into());
                    confined.time(&params)?
                }
            });
        }
        progress.step(round + 1, rounds);
    }
    let times: Vec<Samples> = times.into_iter().map(Samples::new).collect::<Result<_, _>>()?;
    let plain = times[0].median();
    let row = |(runner, times): (&Runner, &Samples)| {
        let name = match runner {
            Runner::Wrapped(sandbox, _) => sandbox.name(),
            Runner::Library(_) => super::LIBRARY,
        };
        let row = Row::new(name, times.median().into()).detail("p95", times.p95().into());
        match runner {
            Runner::Wrapped(Sandbox::Plain, _) => row,
            _ => row.against(Sandbox::Plain.name(), plain.into()),
        }
    };
    Ok(runners.iter().zip(&times).map(row).chain(absent).collect())
}
