//! What a release came to, and what it may come to.

use super::graph::Graph;
use std::path::Path;

/// One figure and its limit.
pub(super) struct Figure {
    what: &'static str,
    found: u64,
    limit: u64,
    unit: &'static str,
}

const MIB: u64 = 1024 * 1024;

/// Counts and weighs.
pub(super) fn of(graph: &Graph, program: &Path, seconds: u64) -> anyhow::Result<Vec<Figure>> {
    let foreign = graph.needed().filter(|(_, package)| package.is_foreign).count() as u64;
    let bytes = std::fs::metadata(program)?.len();
    Ok(vec![
        Figure { what: "crates of others in the program", found: foreign, limit: 400, unit: "" },
        Figure { what: "the program", found: bytes.div_ceil(MIB), limit: 25, unit: " MiB" },
        Figure {
            what: "this build (from nothing, it counts)",
            found: seconds,
            limit: 480,
            unit: " s",
        },
    ])
}

/// Prints them. Whether one is over its limit.
pub(super) fn print(figures: &[Figure]) -> bool {
    for Figure { what, found, limit, unit } in figures {
        let word = if found > limit { "OVER" } else { "ok" };
        println!("{word:>4}  {what}: {found}{unit} (at most {limit}{unit})");
    }
    figures.iter().any(|figure| figure.found > figure.limit)
}
