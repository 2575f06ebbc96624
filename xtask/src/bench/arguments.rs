//! The command line of `cargo xtask bench`.

use super::MEASUREMENTS;
use super::sandbox::Lent;
use super::session::Effort;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use std::path::PathBuf;

/// What is to be measured, and what becomes of it.
#[derive(Debug)]
pub(super) struct Arguments {
    /// The measurements; none means all.
    names: Vec<String>,
    pub(super) json: Option<PathBuf>,
    pub(super) effort: Effort,
    /// Part of the names of the rows that are taken, if not all are.
    pub(super) only: Option<String>,
    /// Whether a missed target is an error.
    pub(super) check: bool,
    /// Whether the programs of others are installed first, and the page is written.
    pub(super) peers: bool,
    /// What decides what is measured, as it would be typed.
    pub(super) as_typed: String,
    /// What the run that started this one has given it.
    pub(super) lent: Option<Lent>,
}

impl Arguments {
    pub(super) fn wants(&self, name: &str) -> bool {
        let is_comparison = name.starts_with("peers-");
        match self.names.is_empty() {
            true => is_comparison == self.peers,
            false => self.names.iter().any(|wanted| wanted == name),
        }
    }
}

/// Measure against the lower limits beside it, and print the ratios
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", no_binary_name = true, max_term_width = 100)]
struct Cli {
    /// What to measure [default: everything of ours, with --peers everything beside others]
    #[arg(value_name = "NAME", value_parser = measurement)]
    names: Vec<String>,

    /// Write the figures to this file [default: bench.json in the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Take fewer samples: good enough to see that everything works
    #[arg(long)]
    quick: bool,

    /// Take only what has this in its name, as it is shown meanwhile
    #[arg(long, value_name = "TEXT", conflicts_with = "peers")]
    only: Option<String>,

    /// End with exit code 1 when a target is missed
    #[arg(long)]
    check: bool,

    /// Install the peers that can be had, below the target directory, measure beside them and write
    /// docs/benchmarks.md; needs the network
    #[arg(long)]
    peers: bool,

    /// For a run that another one starts: where it makes its directories
    #[arg(long, hide = true, requires = "lent_program", value_name = "DIR")]
    lent_scratch: Option<PathBuf>,

    /// The same: the real program
    #[arg(long, hide = true, requires = "lent_scratch", value_name = "FILE")]
    lent_program: Option<PathBuf>,
}

/// # Errors
/// When the arguments make no sense, or ask for help; the error is what is to be printed.
pub(super) fn read(args: &[String]) -> Result<Arguments, clap::Error> {
    let list: String = MEASUREMENTS
        .iter()
        .map(|measurement| format!("\n  {:<12} {}", measurement.name, measurement.about))
        .collect();
    let command = Cli::command().after_help(format!("Measurements:{list}"));
    let Cli { names, json, quick, only, check, peers, lent_scratch, lent_program } =
        Cli::from_arg_matches(&command.try_get_matches_from(args)?)?;
    let effort = if quick { Effort::Quick } else { Effort::Full };
    let lent = lent_scratch.zip(lent_program).map(|(scratch, program)| Lent { scratch, program });
    let flags = [("--peers", peers), ("--quick", quick)];
    let flags = flags.into_iter().filter_map(|(flag, given)| given.then_some(flag));
    let as_typed = flags.chain(names.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    Ok(Arguments { names, json, effort, only, check, peers, as_typed, lent })
}

fn measurement(name: &str) -> Result<String, String> {
    match MEASUREMENTS.iter().any(|measurement| measurement.name == name) {
        true => Ok(name.to_owned()),
        false => Err("there is no such measurement; --help lists them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Arguments, clap::Error> {
        read(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn without_a_name_everything_of_ours_is_measured_or_everything_beside_others() {
        let all = words(&["--quick"]).expect("good arguments");
        let beside = words(&["--peers"]).expect("good arguments");
        for measurement in MEASUREMENTS {
            assert_ne!(all.wants(measurement.name), beside.wants(measurement.name));
        }
        assert!(all.wants("spawn") && beside.wants("peers-true"));
        assert_eq!((all.effort, all.check), (Effort::Quick, false));
    }

    #[test]
    fn only_what_is_named_is_measured() {
        let some = words(&["spawn", "leaks", "--check"]).expect("good arguments");
        assert!(some.wants("spawn") && some.wants("leaks") && !some.wants("throughput"));
        assert_eq!((some.effort, some.check), (Effort::Full, true));
        assert_eq!(some.only, None);
        let one = words(&["sandbox", "--only", "make"]).expect("good arguments");
        assert_eq!(one.only.as_deref(), Some("make"));
        assert!(words(&["--peers", "--only", "make"]).is_err(), "the page is whole");
    }

    #[test]
    fn a_name_that_nothing_has_is_refused() {
        let error = words(&["spwan"]).expect_err("no such measurement");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("spwan"), "{error}");
    }
}
