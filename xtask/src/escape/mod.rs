//! Tries to get out of our cages and of those of others, and writes `docs/security-comparison.md`.
//!
//! Every attempt is made without a sandbox first; one that fails there shows nothing about sandboxes and is not
//! counted. What counts as an escape is what can be seen from outside, or for a few what was answered inside.

mod attempts;
mod cage;
mod page;
mod suite;
mod trial;

use crate::ordinary_user::{USER, again, home};
use crate::peers::{Peers, Sandbox, Tools, work};
use crate::{bench, sandgate};
use anyhow::Context as _;
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use trial::{Trials, Verdict};

const PAGE: &str = "docs/security-comparison.md";

/// Try to get out of our cages and of others, and write docs/security-comparison.md
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask escape", no_binary_name = true, max_term_width = 100)]
struct Cli {
    /// Install the peers that can be had, below the target directory; needs the network
    #[arg(long)]
    peers: bool,

    /// The attempts that lie beside this project
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,

    /// Make only attempts whose names contain this; the page is left as it is
    #[arg(long, value_name = "WORD")]
    only: Option<String>,

    /// Keep what was found in this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// For a run that another one starts: the target directory
    #[arg(long, hide = true, requires = "lent_program", value_name = "DIR")]
    lent_target: Option<PathBuf>,

    /// The same: the real program
    #[arg(long, hide = true, value_name = "FILE")]
    lent_program: Option<PathBuf>,
}

/// All that was found as one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    user: String,
    /// What counts, by kind: the attempts that succeed without a sandbox.
    counted: BTreeMap<String, Vec<String>>,
    /// How many were made altogether.
    made: usize,
    sandboxes: Vec<Column>,
}

/// What was found in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Column {
    name: String,
    version: String,
    /// Why nothing was tried.
    missing: Option<String>,
    /// What got out, by kind, with what showed it.
    escaped: BTreeMap<String, BTreeMap<String, String>>,
    /// Attempts that could not be made in it.
    broken: Vec<String>,
    /// What it leaves in the workspace by itself.
    left_behind: Vec<String>,
    /// Which of the everyday tasks ended well.
    work: Vec<bool>,
    suite: Option<suite::Found>,
}

pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            error.print()?;
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
        }
    };
    let target = cli.lent_target.clone().map_or_else(sandgate::target_directory, Ok)?;
    let program = match &cli.lent_program {
        Some(program) => program.clone(),
        None => sandgate::build(&target).map_err(anyhow::Error::msg)?,
    };
    let tools = Tools { peers: Peers::below(&target), sandgate: program };
    if cli.peers {
        tools.peers.install(|line| eprintln!("escape: {line}"));
    }
    let beside = crate::workspace_root().join("../shared/escape");
    // Whole: it is run from a directory of its own.
    let suite = match &cli.suite {
        Some(named) => Some(suite::at(named)?),
        None => suite::at(&beside).ok(),
    };
    let beside = cli.lent_program.as_deref().and_then(Path::parent);
    let scratch = scratch(beside.unwrap_or(Path::new("/var/tmp")))?;
    let mut found = vec![find(&cli, &tools, suite.as_deref(), scratch.path())?];
    if cli.lent_program.is_none() {
        match as_user(&cli, &tools, &target, suite.as_deref()) {
            Ok(mut more) => found.append(&mut more),
            Err(why) => eprintln!("escape: not tried as {USER}: {why:#}"),
        }
    }
    if let Some(json) = &cli.json {
        std::fs::write(json, serde_json::to_string_pretty(&found)?)
            .with_context(|| format!("cannot write {}", json.display()))?;
    }
    if cli.lent_program.is_none() {
        let page = page::render(&found, &bench::today(), &bench::kernel());
        if cli.only.is_none() {
            let file = crate::workspace_root().join(PAGE);
            std::fs::write(&file, &page).with_context(|| file.display().to_string())?;
            println!("Written to {PAGE}.");
        } else {
            print!("{page}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Not below /tmp, which a confined command may write to.
fn scratch(place: &Path) -> anyhow::Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("escape-").tempdir_in(place)?)
}

/// The same as an ordinary user.
fn as_user(
    cli: &Cli,
    tools: &Tools,
    target: &Path,
    suite: Option<&Path>,
) -> anyhow::Result<Vec<Found>> {
    let directory = scratch(&home().unwrap_or_else(|| PathBuf::from("/var/tmp")))?;
    let mut command = again(directory.path()).map_err(anyhow::Error::msg)?;
    std::fs::copy(&tools.sandgate, directory.path().join("sandgate"))?;
    let json = directory.path().join("found.json");
    command.args(["escape", "--json"]).arg(&json).arg("--lent-target").arg(target);
    command.arg("--lent-program").arg(directory.path().join("sandgate"));
    if let Some(suite) = suite {
        command.arg("--suite").arg(suite);
    }
    if let Some(only) = &cli.only {
        command.args(["--only", only]);
    }
    let status = command.stdout(Stdio::null()).status()?;
    anyhow::ensure!(status.success(), "it ended with {status}");
    Ok(serde_json::from_str(&std::fs::read_to_string(&json)?)?)
}

/// Everything, as whoever this is.
fn find(cli: &Cli, tools: &Tools, suite: Option<&Path>, scratch: &Path) -> anyhow::Result<Found> {
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { "root" } else { "an ordinary user" }.to_owned();
    let wanted = |name: &str| cli.only.as_deref().is_none_or(|word| name.contains(word));
    let mut attempts = attempts::all();
    attempts.retain(|attempt| wanted(attempt.name));
    let made = attempts.len();
    let mut counted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut sandboxes = Vec::new();
    for sandbox in Sandbox::FOR_ATTEMPTS {
        eprintln!("escape: {}, as {user}: {} attempts", sandbox.name(), attempts.len());
        let mut column = column(sandbox, tools);
        match Trials::begin(sandbox, tools, scratch) {
            Ok(trials) => {
                column.left_behind = trials.left_behind();
                // What nothing held is what there is to hold.
                attempts.retain(|attempt| {
                    let verdict = trials.make(attempt);
                    let escaped = matches!(verdict, Verdict::Escaped(_));
                    column.note(attempt, verdict);
                    sandbox != Sandbox::Plain || escaped
                });
                let step = |_| {};
                column.work = work::all(sandbox, tools, scratch, step).unwrap_or_default();
                if let Some(suite) = suite {
                    let found = suite::run(suite, sandbox, tools, scratch);
                    column.suite =
                        found.map_err(|why| eprintln!("escape: the other set: {why}")).ok();
                }
            }
            Err(why) if sandbox == Sandbox::Plain => {
                anyhow::bail!("nothing can be tried here: {why}")
            }
            Err(why) => column.missing = Some(why),
        }
        if sandbox == Sandbox::Plain {
            for attempt in &attempts {
                counted.entry(attempt.kind.to_owned()).or_default().push(attempt.name.to_owned());
            }
        }
        sandboxes.push(column);
    }
    Ok(Found { user, counted, made, sandboxes })
}

fn column(sandbox: Sandbox, tools: &Tools) -> Column {
    let version = match sandbox.package() {
        Some(package) => tools.peers.find(package).map(|peer| peer.version).unwrap_or_default(),
        None => String::new(),
    };
    Column {
        name: sandbox.name().to_owned(),
        version,
        missing: None,
        escaped: BTreeMap::new(),
        broken: Vec::new(),
        left_behind: Vec::new(),
        work: Vec::new(),
        suite: None,
    }
}

impl Column {
    fn note(&mut self, attempt: &attempts::Attempt, verdict: Verdict) {
        match verdict {
            Verdict::Escaped(what) => {
                let kind = self.escaped.entry(attempt.kind.to_owned()).or_default();
                kind.insert(attempt.name.to_owned(), what);
            }
            Verdict::Held | Verdict::Missing => {}
            Verdict::Broken(why) => self.broken.push(format!("{}: {why}", attempt.name)),
        }
    }
}
