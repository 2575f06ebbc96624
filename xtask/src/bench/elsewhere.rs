//! What `cargo xtask bench` says on a system that it cannot measure.

use std::process::ExitCode;

/// Says why nothing is measured.
pub(crate) fn run(_args: &[String]) -> anyhow::Result<ExitCode> {
    eprintln!(
        "The benchmarks measure Linux: its guard processes, and what /proc tells of them. On this \
         system there is nothing to run."
    );
    Ok(ExitCode::from(2))
}
