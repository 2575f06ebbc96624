//! Writes the pages anew that are made from the code. The tests that compare them do it, if they are told to.

#![expect(clippy::disallowed_methods, reason = "runs cargo")]

use anyhow::Context as _;
use std::process::{Command, ExitCode};

/// The tests that make pages, as cargo is told of them.
const PAGES: &[&[&str]] = &[
    &["--test", "page", "--test", "approval_matrix", "--test", "reference"],
    &["--bin", "sandgate", "reference::"],
];

pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.is_empty(), "docs takes no arguments");
    for page in PAGES {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // All packages, so that what was built for other tests is used again.
        cargo.current_dir(crate::workspace_root());
        cargo.args(["test", "--quiet", "--workspace"]).args(*page);
        let status = cargo.env("SANDGATE_BLESS", "1").status().context("cannot start cargo")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("docs: written; git diff shows what changed");
    Ok(ExitCode::SUCCESS)
}
