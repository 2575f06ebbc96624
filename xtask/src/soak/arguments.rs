//! The command line of `cargo xtask soak`.

use clap::Parser;
use std::path::PathBuf;

/// Work the program hard for a while, and check all along that it leaves nothing behind
#[derive(Debug, Clone, Parser)]
#[command(bin_name = "cargo xtask soak", no_binary_name = true, max_term_width = 100)]
pub(super) struct Arguments {
    /// How long to go on
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    pub(super) minutes: f64,

    /// Where the random numbers begin [default: another one each time]
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,

    /// Run it as the ordinary user `sandgate-test`; for root
    #[arg(long)]
    pub(super) as_user: bool,

    /// How many things are done at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(super) lanes: u8,

    /// Do only these things; they are listed below
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// Write the report to this file [default: soak.json in the target directory]
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// For a run that another one starts: where it makes its directories
    #[arg(long, hide = true, value_name = "DIR")]
    pub(super) lent_scratch: Option<PathBuf>,
}
