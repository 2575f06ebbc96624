//! A soak: many kinds of work at once, for as long as wanted, at random and yet the same for the same
//! seed, with everything checked after every round.
//!
//! `docs/soak.md` says what is checked. A round is a time in which several lanes do one thing after
//! the other; then all is quiet, and what is still there is counted.

mod actions;
mod arguments;
mod audit;
mod census;
mod errands;
mod gate;
mod http_client;
mod in_process;
mod lane;
mod ledger;
mod mcp_client;
mod program;
mod random;
mod report;
mod steady;
mod work;
mod world;

use crate::bench::machine;
use crate::ordinary_user::again;
use crate::sandgate::{self, target_directory};
use anyhow::Context as _;
use arguments::Arguments;
use census::Census;
use clap::{CommandFactory as _, FromArgMatches as _};
use lane::Lane;
use ledger::Ledger;
use report::Report;
use rustix::process::{getpid, set_child_subreaper};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steady::Steady;
use world::World;

/// How long the lanes work before everything is checked.
const ROUND: Duration = Duration::from_secs(20);

/// The program to use instead of the one that cargo builds.
const PROGRAM: &str = "SANDGATE_BIN";

/// Works the program hard, prints a report and writes it down. The exit code is 1 on a violation.
pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = match read(args) {
        Ok(arguments) => arguments,
        Err(error) => {
            error.print().context("cannot print what is wrong with the arguments")?;
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
        }
    };
    let target = target_directory()?;
    let program = match std::env::var_os(PROGRAM) {
        Some(program) => PathBuf::from(program).canonicalize().context(PROGRAM)?,
        None => sandgate::build(&target).map_err(anyhow::Error::msg)?,
    };
    let json = arguments.json.clone().unwrap_or_else(|| target.join("soak.json"));
    if arguments.as_user {
        return as_user(&arguments, &program, &target, &json);
    }
    let scratch = arguments.lent_scratch.clone().unwrap_or(target);
    let report = soak(&arguments, &program, &scratch)?;
    print!("{}", report.shown());
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(&json, text).with_context(|| format!("cannot write {}", json.display()))?;
    println!("Written to {}.", json.display());
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(args: &[String]) -> Result<Arguments, clap::Error> {
    let list: String = actions::ACTIONS
        .iter()
        .map(|action| format!("\n  {:<20} {}", action.name, action.about))
        .collect();
    let command = Arguments::command().after_help(format!("What is done:{list}"));
    let arguments = Arguments::from_arg_matches(&command.clone().try_get_matches_from(args)?)?;
    let unknown =
        arguments.only.iter().find(|name| actions::ACTIONS.iter().all(|one| one.name != **name));
    match unknown {
        None => Ok(arguments),
        Some(name) => {
            let why = format!("nothing is called {name}; --help lists what is done");
            Err(command.clone().error(clap::error::ErrorKind::InvalidValue, why))
        }
    }
}

fn soak(arguments: &Arguments, program: &Path, scratch: &Path) -> anyhow::Result<Report> {
    // Whatever loses its parent becomes a child of this process, so that nothing can hide.
    set_child_subreaper(Some(getpid()))?;
    let load_before = machine::load_average();
    let seed = arguments.seed.unwrap_or_else(a_seed);
    let world = World::new(scratch, program)?;
    let steady = Steady::start(&world)?;
    let ledger = Arc::new(Ledger::new(seed));
    end_on_signals(Arc::clone(&ledger))?;
    eprintln!("soak: --seed {seed}, {} minutes, {} lanes", arguments.minutes, arguments.lanes);
    let until = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let mut census = Census::default();
    for round in 0.. {
        play(round, arguments, (&world, &ledger, &steady), until);
        progress(&ledger, until, "checking");
        let checked = census.take(&world, &steady, &ledger);
        if let Err(error) = checked {
            ledger.violation(format!("round {round} cannot be checked: {error:#}"));
        }
        if Instant::now() >= until || ledger.is_over() {
            break;
        }
    }
    if let Err(error) = steady.end(&world) {
        ledger.violation(format!("{error:#}"));
    }
    let user = if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user" };
    let version = world.run(&["--version"])?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let about = (user, version, machine::describe(load_before));
    Ok(Report::of(&ledger, census.samples, about))
}

/// One round of all lanes.
fn play(round: usize, arguments: &Arguments, shared: (&World, &Ledger, &Steady), until: Instant) {
    let (world, ledger, steady) = shared;
    let until_round = until.min(Instant::now() + ROUND);
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..usize::from(arguments.lanes))
            .map(|number| {
                let mut lane = Lane::new((number, round), world, ledger, steady);
                scope.spawn(move || lane.go(until_round, &arguments.only))
            })
            .collect();
        while lanes.iter().any(|lane| !lane.is_finished()) {
            progress(ledger, until, "");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    if !std::io::stderr().is_terminal() {
        let (done, left) =
            (ledger.done(), until.saturating_duration_since(Instant::now()).as_secs());
        eprintln!(
            "soak: round {round}, {done} actions, {} commands, {left} s left",
            ledger.calls()
        );
    }
}

/// The line that is drawn over itself while somebody waits.
fn progress(ledger: &Ledger, until: Instant, what: &str) {
    if std::io::stderr().is_terminal() {
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        let (done, wrong) = (ledger.done(), ledger.violations().len());
        eprint!("\r\x1b[Ksoak: {done} actions, {wrong} violations, {left} s left {what}");
    }
}

/// Ctrl-C ends it as if the time were over, and so does SIGTERM.
fn end_on_signals(ledger: Arc<Ledger>) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = crate::bench::library::runtime()?;
    let entered = runtime.enter();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        ledger.end();
    });
    Ok(())
}

fn a_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // Short enough to be typed.
    RandomState::new().hash_one("seed") % 1_000_000_000
}

/// Starts this program again as the ordinary user, and takes its report over.
fn as_user(
    arguments: &Arguments,
    program: &Path,
    target: &Path,
    json: &Path,
) -> anyhow::Result<ExitCode> {
    let place = tempfile::Builder::new().prefix("soak-user-").tempdir_in(target)?;
    let copy = place.path().join("sandgate-to-soak");
    std::fs::copy(program, &copy)?;
    let mut command = again(place.path()).map_err(anyhow::Error::msg)?;
    let written = place.path().join("soak.json");
    command.arg("soak").arg("--lent-scratch").arg(place.path()).arg("--json").arg(&written);
    command.args([
        "--minutes",
        &arguments.minutes.to_string(),
        "--lanes",
        &arguments.lanes.to_string(),
    ]);
    if let Some(seed) = arguments.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if !arguments.only.is_empty() {
        command.args(["--only", &arguments.only.join(",")]);
    }
    let status = command.env(PROGRAM, &copy).status()?;
    std::fs::copy(&written, json).context("the ordinary user has left no report")?;
    println!("Copied to {}.", json.display());
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Arguments, clap::Error> {
        read(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let read = words(&["--minutes", "0.5", "--seed", "7", "--only", "run,mcp"]).expect("good");
        assert_eq!((read.minutes, read.seed, read.as_user), (0.5, Some(7), false));
        assert_eq!(read.only, ["run", "mcp"]);
    }

    #[test]
    fn a_name_that_nothing_has_is_refused() {
        let error = words(&["--only", "rnu"]).expect_err("there is no such thing");
        assert!(error.to_string().contains("rnu"), "{error}");
    }
}
