//! What the supervisor alone costs a compile: the same cage with it, and where nobody can be asked.
//!
//! A process that has a listener above it cannot have one of its own, and its commands do without a supervisor. So this
//! program runs twice more, each with a session that compiles again and again: once below a listener, once not.

use super::compile::{MOST, TIMES, make_in, write_c_project};
use super::confined::Confined;
use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::Row;
use crate::bench::samples::{by_turns_timed, timed};
use crate::bench::session::{Impossible, Session};
use anyhow::Context as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, ExitCode};
use std::time::Duration;

/// Has this program compile in a cage for each line that it reads: `xtask bench FLAG DIRECTORY`. Not for people.
pub(in crate::bench) const FLAG: &str = "--compile-again-and-again";

/// Puts a listener above a program, or does not, or has it asked by the least that there can be.
const LISTENED: &str = include_str!("listened.c");

pub(super) fn make(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let cc = bare::find("cc")?;
    let directory = session.scratch()?;
    let [source, starter, workspace] =
        ["listened.c", "listened", "ws"].map(|name| directory.path().join(name));
    std::fs::create_dir(&workspace)?;
    write_c_project(&workspace)?;
    std::fs::write(&source, LISTENED)?;
    bare::run_quietly(&cc, &["-o", &bare::text(&starter)?, &bare::text(&source)?])?;
    let mut with = Again::start(&starter, Supervisor::There, &workspace)?;
    let mut without = Again::start(&starter, Supervisor::Missing, &workspace)?;
    let times = session.times(TIMES, 2);
    let pair = by_turns_timed(times, progress, || with.time(), || without.time())?;
    let row = Row::of_times("make -j2 of 40 files, supervised", "a cage without", &pair);
    let (make, words) = make_in(&workspace)?;
    let below = |filter: &str| {
        let (make, words) = (bare::text(&make)?, words.each_ref().map(String::as_str));
        let args: Vec<&str> = [filter, &make].into_iter().chain(words).collect();
        timed(|| bare::run_quietly(&starter, &args))
    };
    let pair = by_turns_timed(times, progress, || below("asked"), || below("plain"))?;
    let least = Row::of_times("make -j2 of 40 files, the least that asking costs", "plain", &pair);
    Ok(vec![row.target(MOST), least])
}

/// Whether the cage has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supervisor {
    There,
    Missing,
}

/// This program with a session of its own.
struct Again {
    process: Child,
    /// `None` tells it to end.
    ask: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
    supervisor: Supervisor,
}

impl Again {
    fn start(starter: &Path, supervisor: Supervisor, workspace: &Path) -> anyhow::Result<Self> {
        let how = if supervisor == Supervisor::There { "plain" } else { "listened" };
        let this = bare::text(std::env::current_exe()?)?;
        let args = [how, &this, "bench", FLAG, &bare::text(workspace)?];
        let mut process = bare::talk(starter, &args)?;
        let (ask, said) = (process.stdin.take(), process.stdout.take());
        let said = BufReader::new(said.context("nothing can be heard of it")?);
        Ok(Self { process, ask, said, supervisor })
    }

    /// # Errors
    /// [`Impossible`] where the cage is not what it is to be.
    fn time(&mut self) -> anyhow::Result<Duration> {
        let ask = self.ask.as_mut().context("it was told to end")?;
        ask.write_all(b"\n")?;
        ask.flush()?;
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [nanoseconds, namespaces, supervised] = words.as_slice() else {
            anyhow::bail!("a session that compiles said {line:?}");
        };
        let wanted = self.supervisor == Supervisor::There;
        if *namespaces != "true" || *supervised != wanted.to_string() {
            let why = "a cage with a supervisor and one without cannot both be had here";
            return Err(Impossible(why.to_owned()).into());
        }
        Ok(Duration::from_nanos(nanoseconds.parse()?))
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        self.ask = None;
        let _ = self.process.wait();
    }
}

/// The other side.
pub(in crate::bench) fn compile_again_and_again(args: &[String]) -> anyhow::Result<ExitCode> {
    let [workspace] = args else { anyhow::bail!("a directory is needed") };
    let confined = Confined::start_in(Path::new(workspace))?;
    let (make, args) = make_in(confined.workspace())?;
    let command = confined.command(&make, &args.each_ref().map(String::as_str))?;
    for line in std::io::stdin().lines() {
        line?;
        let (time, executed) = confined.run(&command)?;
        println!("{} {} {}", time.as_nanos(), executed.namespaces, executed.supervised);
    }
    Ok(ExitCode::SUCCESS)
}
