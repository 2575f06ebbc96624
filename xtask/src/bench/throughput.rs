//! How fast output goes through the library: 1 GiB against `cat > /dev/null` on the same pipe.

use super::bare;
use super::library::{self, Library};
use super::processes::memory_growth;
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{by_turns, by_turns_timed};
use super::session::Session;
use anyhow::Context as _;
use sandgate_process::{ExecuteOptions, SpillPolicy};
use sandgate_sandbox::ExecEnv;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const GIB: u64 = 1 << 30;

/// Output goes through at no less than this much of what `cat` reaches.
const LEAST: Target = Target::RatioAtLeast(0.6);

/// The process may grow by so much while it does.
const MOST_MEMORY: Target = Target::Within(Quantity::Bytes((16 << 20) as f64));

/// What the plain writer writes at a time: what the spill's does.
const BLOCK_BYTES: usize = 64 << 10;

pub(super) fn measure(session: &mut Session) {
    session.take("1 GiB, spill off", against_cat);
    session.take("1 GiB, spill off: growth of memory", memory_without_spill);
    session.take("256 MiB, all spilled", against_plain_write);
    session.take("1 GiB, spill at its limit", past_the_limit);
}

/// A command that writes so many bytes.
fn producer(bytes: u64) -> anyhow::Result<(PathBuf, [String; 3])> {
    Ok((bare::find("head")?, ["-c".to_owned(), bytes.to_string(), "/dev/zero".to_owned()]))
}

fn against_cat(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let (head, args) = producer(GIB)?;
    let args = args.each_ref().map(String::as_str);
    let cat = bare::find("cat")?;
    let env = library::granted(&head, &args)?;
    let pair = by_turns(
        session.times(9, 2),
        progress,
        || {
            let executed = library.run(&env, ExecuteOptions::default())?;
            ensure_size("kept and dropped", executed.raw.stdout.total_bytes(), GIB)
        },
        || bare::run_piped((&head, &args), &cat, Stdio::null()),
    )?;
    Ok(vec![Row::of_rates("1 GiB, spill off", "cat > /dev/null", GIB, &pair).target(LEAST)])
}

fn memory_without_spill(_: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let (head, args) = producer(GIB)?;
    let env = library::granted(&head, &args.each_ref().map(String::as_str))?;
    let growth = memory_growth(|| library.run(&env, ExecuteOptions::default()).map(drop))?;
    let what = "1 GiB, spill off: growth of memory";
    Ok(vec![Row::new(what, Quantity::bytes(growth)).target(MOST_MEMORY)])
}

/// All write to the same disk, which is the limit, and none waits for it to be flushed. A plain write
/// has the bytes at hand; `cat` gets them through a pipe, as the library does.
fn against_plain_write(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let bytes = SpillPolicy::LIMIT_BYTES;
    let library = Library::start()?;
    let (head, args) = producer(bytes)?;
    let args = args.each_ref().map(String::as_str);
    let cat = bare::find("cat")?;
    let env = library::granted(&head, &args)?;
    let directory = session.scratch()?;
    let file = directory.path().join("plain");
    let ours = || spilled(&library, &env, directory.path(), bytes);
    let rounds = session.times(9, 2);
    let plain = by_turns_timed(rounds, progress, ours, || {
        into_new_file(&file, |file| write_plainly(file, bytes))
    })?;
    let piped = by_turns_timed(rounds, progress, ours, || {
        into_new_file(&file, |file| bare::run_piped((&head, &args), &cat, file.into()))
    })?;
    let what = "256 MiB, all spilled";
    Ok(vec![
        Row::of_rates(what, "plain write", bytes, &plain),
        Row::of_rates(what, "cat > FILE", bytes, &piped),
    ])
}

/// Once the file is full the rest goes by at the speed of memory.
fn past_the_limit(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let (head, args) = producer(GIB)?;
    let args = args.each_ref().map(String::as_str);
    let cat = bare::find("cat")?;
    let env = library::granted(&head, &args)?;
    let directory = session.scratch()?;
    let ours = || spilled(&library, &env, directory.path(), GIB);
    let pair = by_turns_timed(session.times(5, 1), progress, ours, || {
        let began = Instant::now();
        bare::run_piped((&head, &args), &cat, Stdio::null())?;
        Ok(began.elapsed())
    })?;
    let growth = memory_growth(|| ours().map(drop))?;
    let what = "1 GiB, spill at its limit: growth of memory";
    Ok(vec![
        Row::of_rates("1 GiB, spill at its limit", "cat > /dev/null", GIB, &pair),
        Row::new(what, Quantity::bytes(growth)).target(MOST_MEMORY),
    ])
}

/// Runs a command with the spill on and says how long that took. Then holds the file against what
/// it should be, and removes it.
fn spilled(
    library: &Library,
    env: &ExecEnv,
    directory: &Path,
    bytes: u64,
) -> anyhow::Result<Duration> {
    let spill = Some(SpillPolicy::new(directory));
    let began = Instant::now();
    let executed = library.run(env, ExecuteOptions { spill, ..Default::default() })?;
    let time = began.elapsed();
    let report = executed.spill.context("nothing was spilled")?;
    let path = report.path.context("the spill has no file")?;
    let kept = bytes.min(SpillPolicy::LIMIT_BYTES);
    ensure_size("spilled", fs::metadata(&path)?.len(), kept)?;
    ensure_size("dropped", report.dropped_bytes, bytes - kept)?;
    fs::remove_file(path)?;
    Ok(time)
}

/// How long it takes to make a file and fill it. Removing it does not count.
fn into_new_file(
    path: &Path,
    fill: impl FnOnce(File) -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let began = Instant::now();
    fill(File::create_new(path)?)?;
    let time = began.elapsed();
    fs::remove_file(path)?;
    Ok(time)
}

fn write_plainly(mut file: File, bytes: u64) -> anyhow::Result<()> {
    let block = vec![0u8; BLOCK_BYTES];
    let mut written = 0;
    while written < bytes {
        file.write_all(&block)?;
        written += BLOCK_BYTES as u64;
    }
    Ok(())
}

fn ensure_size(what: &str, is: u64, should_be: u64) -> anyhow::Result<()> {
    anyhow::ensure!(is == should_be, "{is} bytes were {what}, not {should_be}");
    Ok(())
}
