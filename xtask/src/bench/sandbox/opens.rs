//! What opening a file costs in the cage: calls that mean to write are shown to the supervisor, calls
//! that only read are not.
//!
//! This program opens a file again and again, plainly and in the cage, and says how long that took.

use super::confined::Confined;
use crate::bench::bare;
use crate::bench::processes::voluntary_waits;
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row, Target};
use crate::bench::samples::by_turns_timed;
use crate::bench::session::Session;
use anyhow::Context as _;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Has this program do nothing but open a file: `xtask bench FLAG write|read FILE COUNT`. Not for
/// people.
pub(in crate::bench) const FLAG: &str = "--open-again-and-again";

/// What a call that means to write may cost more.
const MOST: Target = Target::Within(Quantity::Seconds(10e-6));

/// Of so many calls that only read, one may have waited for something else.
const MOST_WAITS: Target = Target::Within(Quantity::Ratio(0.001));

pub(super) fn to_write(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let measured = Measured::take("write", &confined, session, progress)?;
    let added = measured.ours.saturating_sub(measured.plain);
    let row = Row::new("opening a file to write: what the cage adds", added.into())
        .detail("in the cage", measured.ours.into())
        .detail("plain", measured.plain.into())
        .detail("waits a call", Quantity::Ratio(measured.waits));
    Ok(vec![confined.judge(row, MOST)?])
}

/// What is added here is Landlock and the filters, not the supervisor: nobody waits for that.
pub(super) fn to_read(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let measured = Measured::take("read", &confined, session, progress)?;
    let row = Row::new("opening a file to read", measured.ours.into())
        .against("plain", measured.plain.into());
    let waits = Row::new("opening a file to read: waits a call", Quantity::Ratio(measured.waits));
    Ok(vec![confined.label(row)?, confined.judge(waits, MOST_WAITS)?])
}

/// For one call, as medians.
struct Measured {
    ours: Duration,
    plain: Duration,
    /// How often a call in the cage gave the processor away.
    waits: f64,
}

impl Measured {
    fn take(
        kind: &str,
        confined: &Confined,
        session: &Session,
        progress: &Progress,
    ) -> anyhow::Result<Self> {
        let this = std::env::current_exe()?;
        let file = bare::text(confined.workspace().join("file"))?;
        std::fs::write(&file, "contents")?;
        let count = session.times(20_000, 5_000);
        let number = count.to_string();
        let args = ["bench", FLAG, kind, &file, &number];
        let command = confined.command(&this, &args)?;
        let plain: Vec<String> = args.iter().map(ToString::to_string).collect();
        let waits = Cell::new(0);
        let rounds = session.times(21, 5);
        let pair = by_turns_timed(
            rounds,
            progress,
            || {
                let (_, executed) = confined.run(&command)?;
                let said = Said::read(&executed.output.stdout.text)?;
                waits.set(waits.get() + said.waits);
                Ok(said.time)
            },
            || Ok(Said::read(&String::from_utf8(bare::output_of(&this, &plain)?)?)?.time),
        )?;
        let calls = u32::try_from(count)?;
        Ok(Self {
            ours: pair.ours.median() / calls,
            plain: pair.reference.median() / calls,
            // The first round is not among the times, but among these.
            waits: waits.get() as f64 / ((rounds + 1) * count) as f64,
        })
    }
}

/// What the loop says: how long it took, and how often it gave the processor away.
struct Said {
    time: Duration,
    waits: u64,
}

impl Said {
    fn read(line: &str) -> anyhow::Result<Self> {
        let numbers = line.trim().split_once(' ').context("the loop said something else")?;
        Ok(Self { time: Duration::from_nanos(numbers.0.parse()?), waits: numbers.1.parse()? })
    }
}

/// The loop itself.
pub(in crate::bench) fn run_loop(args: &[String]) -> anyhow::Result<ExitCode> {
    let [kind, file, count] = args else { anyhow::bail!("three arguments are needed") };
    let mut options = OpenOptions::new();
    match kind.as_str() {
        "write" => options.write(true).create(true),
        "read" => options.read(true),
        _ => anyhow::bail!("a file is opened to `read` or to `write`"),
    };
    let count: u64 = count.parse()?;
    let before = voluntary_waits()?;
    let began = Instant::now();
    for _ in 0..count {
        drop(options.open(file)?);
    }
    let time = began.elapsed();
    println!("{} {}", time.as_nanos(), voluntary_waits()? - before);
    Ok(ExitCode::SUCCESS)
}
