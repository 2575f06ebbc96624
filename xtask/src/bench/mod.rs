//! Measures the process layer, the cage and the judge against the lower limit beside them, in one run, as ratios.
//!
//! Each measurement is one file and one line in [`MEASUREMENTS`]. It gives rows; it neither prints
//! nor decides what a missed target means. `docs/measuring.md` says what each row stands for.

mod agent;
mod arguments;
pub(crate) mod bare;
mod compare;
mod concurrency;
mod config;
mod interactive;
mod leaks;
pub(crate) mod library;
pub(crate) mod machine;
mod mcp;
mod orchestrator;
mod page;
mod patch;
mod policy;
pub(crate) mod processes;
mod program;
mod progress;
mod report;
mod row;
pub(crate) mod samples;
pub(crate) mod sandbox;
mod session;
mod spawn;
mod table;
mod throughput;
mod tree_kill;

pub(crate) use machine::{kernel, today};

use crate::peers::Peers;
use anyhow::Context as _;
use arguments::Arguments;
use report::Report;
use session::Session;
use std::process::ExitCode;

/// One measurement, or several that are made in the same way.
struct Measurement {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Session),
}

const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "spawn", about: "what starting a command costs", run: spawn::measure },
    Measurement {
        name: "throughput",
        about: "how fast output goes through, and in how much memory",
        run: throughput::measure,
    },
    Measurement {
        name: "concurrency",
        about: "200 commands at once, each exact",
        run: concurrency::measure,
    },
    Measurement {
        name: "tree-kill",
        about: "how long the last process of a tree lives on",
        run: tree_kill::measure,
    },
    Measurement {
        name: "leaks",
        about: "what a thousand commands leave behind",
        run: leaks::measure,
    },
    Measurement {
        name: "program",
        about: "what the program itself costs, from start to end",
        run: program::measure,
    },
    Measurement {
        name: "sandbox",
        about: "what the cage costs, and what others cost",
        run: sandbox::measure,
    },
    Measurement { name: "config", about: "what reading the settings costs", run: config::measure },
    Measurement { name: "policy", about: "what judging a command costs", run: policy::measure },
    Measurement {
        name: "orchestrator",
        about: "what a tool call adds to its command",
        run: orchestrator::measure,
    },
    Measurement {
        name: "session",
        about: "how long a live process takes to answer",
        run: interactive::measure,
    },
    Measurement { name: "agent", about: "what the program adds to a model", run: agent::measure },
    Measurement { name: "mcp", about: "what a call costs an MCP client", run: mcp::measure },
    Measurement {
        name: "patch",
        about: "what a large patch costs, from its text to the disk",
        run: patch::measure,
    },
    Measurement { name: compare::TRUE, about: "/bin/true in every sandbox", run: compare::start },
    Measurement {
        name: compare::SHELL,
        about: "a login shell in every sandbox",
        run: compare::shell,
    },
    Measurement {
        name: compare::MEMORY,
        about: "what sandboxes hold of memory while a command sleeps",
        run: compare::memory,
    },
    Measurement {
        name: compare::WORK,
        about: "how much everyday work sandboxes let be done",
        run: compare::work,
    },
    Measurement {
        name: compare::LIVE,
        about: "a line to a live bash, by others too",
        run: compare::live,
    },
    Measurement {
        name: compare::SERVERS,
        about: "a call of an MCP client, by others too",
        run: compare::servers,
    },
    Measurement {
        name: compare::AGENT,
        about: "the reference agent on the same work",
        run: compare::agent,
    },
];

/// Set for the run that an unoptimised build starts, so that it cannot start another one.
const STARTED_OPTIMISED: &str = "SANDGATE_BENCH_OPTIMISED";

/// Runs the measurements that were asked for, prints a table and writes JSON.
pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    match args.split_first().map(|(flag, rest)| (flag.as_str(), rest)) {
        Some((sandbox::LOOP_FLAG, rest)) => return sandbox::run_loop(rest),
        Some((sandbox::COMPILE_FLAG, rest)) => return sandbox::compile_again_and_again(rest),
        _ => {}
    }
    let arguments = match arguments::read(args) {
        Ok(arguments) => arguments,
        Err(error) => {
            error.print().context("cannot print what is wrong with the arguments")?;
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
        }
    };
    if cfg!(debug_assertions) && std::env::var_os(STARTED_OPTIMISED).is_none() {
        return run_optimised(args);
    }
    measure(&arguments)
}

fn measure(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = crate::sandgate::target_directory()?;
    if arguments.peers {
        Peers::below(&target).install(|line| eprintln!("bench: {line}"));
    }
    let mut session = Session::new(arguments, &target);
    for measurement in MEASUREMENTS {
        if arguments.wants(measurement.name) {
            session.begin(measurement.name);
            (measurement.run)(&mut session);
        }
    }
    let report = Report::of(session);
    print!("{}", table::render(&report));
    let json = arguments.json.clone().unwrap_or_else(|| target.join("bench.json"));
    report.write(&json).with_context(|| format!("cannot write {}", json.display()))?;
    println!("Written to {}.", json.display());
    if arguments.peers {
        write_page(&report, &Peers::below(&target), arguments)?;
    }
    let failed = report.failed() > 0 || (arguments.check && report.missed() > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The page for people, and its plots.
fn write_page(report: &Report, peers: &Peers, arguments: &Arguments) -> anyhow::Result<()> {
    let command = format!("cargo xtask bench {}", arguments.as_typed);
    for (name, text) in page::files(report, peers, command.trim_end(), &today()) {
        let file = crate::workspace_root().join(name);
        let directory = file.parent().context("a file is in a directory")?;
        std::fs::create_dir_all(directory)?;
        std::fs::write(&file, text).with_context(|| format!("cannot write {name}"))?;
        println!("Written to {name}.");
    }
    Ok(())
}

/// The figures of an unoptimised build say nothing, so it hands over to an optimised one.
#[expect(clippy::disallowed_methods, reason = "starts cargo, as the person who typed this would")]
fn run_optimised(args: &[String]) -> anyhow::Result<ExitCode> {
    eprintln!("bench: built without optimisation; going on through `cargo run --release`");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask", "--manifest-path"])
        .arg(crate::workspace_root().join("Cargo.toml"))
        .args(["--", "bench"])
        .args(args)
        .env(STARTED_OPTIMISED, "1")
        .status()
        .context("cannot start cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
