//! How fast output goes through the library: 1 GiB against `cat > /dev/null` on the same pipe.

use super::bare;
use super::library::{self, Library};
use super::processes::memory_growth;
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::by_turns;
use super::session::Session;
use anyhow::Context as _;
use sandgate_process::{ExecuteOptions, SpillPolicy};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

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
        || bare::run_piped((&head, &args), &cat),
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

/// Both write to the same disk, which is the limit; neither waits for it to be flushed.
fn against_plain_write(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let bytes = SpillPolicy::LIMIT_BYTES;
    let library = Library::start()?;
    let (head, args) = producer(bytes)?;
    let env = library::granted(&head, &args.each_ref().map(String::as_str))?;
    let directory = session.scratch()?;
    let plain = directory.path().join("plain");
    let pair = by_turns(
        session.times(9, 2),
        progress,
        || spilled(&library, &env, directory.path(), bytes),
        || write_plainly(&plain, bytes),
    )?;
    let row = Row::of_rates("256 MiB, all spilled", "plain write", bytes, &pair);
    Ok(vec![row])
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
    let pair =
        by_turns(session.times(5, 1), progress, ours, || bare::run_piped((&head, &args), &cat))?;
    let growth = memory_growth(ours)?;
    let what = "1 GiB, spill at its limit: growth of memory";
    Ok(vec![
        Row::of_rates("1 GiB, spill at its limit", "cat > /dev/null", GIB, &pair),
        Row::new(what, Quantity::bytes(growth)).target(MOST_MEMORY),
    ])
}

/// Runs a command with the spill on, holds the file against what it should be, and removes it.
fn spilled(
    library: &Library,
    env: &sandgate_sandbox::ExecEnv,
    directory: &Path,
    bytes: u64,
) -> anyhow::Result<()> {
    let spill = Some(SpillPolicy::new(directory));
    let executed = library.run(env, ExecuteOptions { spill, ..Default::default() })?;
    let report = executed.spill.context("nothing was spilled")?;
    let path = report.path.context("the spill has no file")?;
    let kept = bytes.min(SpillPolicy::LIMIT_BYTES);
    ensure_size("spilled", fs::metadata(&path)?.len(), kept)?;
    ensure_size("dropped", report.dropped_bytes, bytes - kept)?;
    Ok(fs::remove_file(path)?)
}

fn write_plainly(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut file = File::create_new(path)?;
    let block = vec![0u8; BLOCK_BYTES];
    let mut written = 0;
    while written < bytes {
        file.write_all(&block)?;
        written += BLOCK_BYTES as u64;
    }
    drop(file);
    Ok(fs::remove_file(path)?)
}

fn ensure_size(what: &str, is: u64, should_be: u64) -> anyhow::Result<()> {
    anyhow::ensure!(is == should_be, "{is} bytes were {what}, not {should_be}");
    Ok(())
}
