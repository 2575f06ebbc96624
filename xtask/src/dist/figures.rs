//! What a release came to, and what it may come to.

use super::graph::Graph;
use std::path::Path;
use std::time::Duration;

/// One figure and its limit.
pub(super) struct Figure {
    what: &'static str,
    found: f64,
    limit: f64,
    unit: &'static str,
    counts: bool,
}

/// How a build was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With nothing there that had been compiled before.
    FromNothing,
    /// With some of it there. How long it took says nothing.
    FromSome,
}

/// Counts and weighs.
pub(super) fn of(
    graph: &Graph,
    program: &Path,
    took: Duration,
    start: Start,
) -> anyhow::Result<Vec<Figure>> {
    let foreign = graph.needed().filter(|(_, package)| package.is_foreign).count();
    let bytes = std::fs::metadata(program)?.len();
    let figure = |what, found, limit, unit| Figure { what, found, limit, unit, counts: true };
    let build = match start {
        Start::FromNothing => figure("the build, from nothing", took.as_secs_f64(), 480.0, " s"),
        Start::FromSome => Figure {
            counts: false,
            ..figure("the build, with some of it there before", took.as_secs_f64(), 480.0, " s")
        },
    };
    Ok(vec![
        figure("crates of others in the program", foreign as f64, 400.0, ""),
        figure("the program", bytes as f64 / f64::from(1 << 20), 25.0, " MiB"),
        build,
    ])
}

/// Prints them. Whether one is over its limit.
pub(super) fn print(figures: &[Figure]) -> bool {
    for figure in figures {
        let Figure { what, found, limit, unit, counts } = figure;
        let word = match (counts, figure.is_over()) {
            (false, _) => "-",
            (true, true) => "OVER",
            (true, false) => "ok",
        };
        let places = usize::from(found.fract() > 0.0);
        println!("{word:>4}  {what}: {found:.places$}{unit} (at most {limit}{unit})");
    }
    figures.iter().any(Figure::is_over)
}

impl Figure {
    fn is_over(&self) -> bool {
        self.counts && self.found > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::small;
    use super::*;

    /// Whether a release of a small program is over a limit.
    fn over(bytes: u64, seconds: u64, start: Start) -> bool {
        let program = tempfile::NamedTempFile::new().unwrap();
        program.as_file().set_len(bytes).unwrap();
        let took = Duration::from_secs(seconds);
        print(&of(&small(), program.path(), took, start).unwrap())
    }

    #[test]
    fn a_release_is_held_to_its_limits() {
        let limit = 25 << 20;
        assert!(!over(limit, 480, Start::FromNothing));
        assert!(over(limit + 1, 480, Start::FromNothing));
        assert!(over(limit, 481, Start::FromNothing));
        assert!(!over(limit, 481, Start::FromSome));
    }
}
