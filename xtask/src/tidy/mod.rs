//! House rules that no compiler checks.
//!
//! Each check is one file and one line in [`CHECKS`]. It reads a [`Tree`] and returns findings; it
//! neither prints nor stops at the first one. `docs/spec/tidy.md` says what each check promises.

mod errno;
mod explained;
mod layers;
mod leftovers;
mod length;
mod links;
mod manifest;
mod names;
mod reach;
mod reasons;
mod rust;
mod spec;
mod threats;
mod tree;
mod unsafety;
mod variables;

use anyhow::Context as _;
use std::fmt;
use std::process::ExitCode;
use tree::Tree;

/// A place that breaks a house rule, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    rust::check,
    spec::check,
    length::check,
    layers::check,
    reach::check,
    unsafety::check,
    errno::check,
    names::check,
    links::check,
    leftovers::check,
    reasons::check,
    explained::check,
    threats::check,
    variables::check,
];

/// Runs every check on the workspace and prints what they found.
pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.is_empty(), "tidy takes no arguments");
    let root = crate::workspace_root();
    let tree = Tree::read(&root).with_context(|| format!("cannot read {}", root.display()))?;
    let findings = findings(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, no findings", tree.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} files, {} findings", tree.len(), findings.len());
    Ok(ExitCode::FAILURE)
}

/// What all checks find, in the order of the places.
fn findings(tree: &Tree) -> Vec<Finding> {
    let mut all: Vec<Finding> = CHECKS.iter().flat_map(|check| check(tree)).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec TIDY.1: Every check runs, and every finding is reported as `path:line:`, the reason
    /// and what to do.
    #[test]
    fn one_run_reports_what_every_check_found_by_place() {
        let tree = Tree::of(&[
            ("crates/policy/src/lib.rs", "#![forbid(unsafe_code)]\nmod misc;\n"),
            ("README.md", "\nSee [the plan](plan.md).\n"),
        ]);
        let lines: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "README.md:2: the link to `plan.md` leads nowhere; name a file that exists",
                "crates/policy/src/lib.rs:2: no module is called `misc`; name it after what it does",
            ]
        );
    }
}
