//! One run of the benchmark program: what was asked of it, and what it has found so far.

use super::arguments::Arguments;
use super::machine;
use super::progress::Progress;
use super::row::{Outcome, Row};
use super::sandbox::Lent;
use crate::peers::{Peers, Tools};
use crate::sandgate;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How much trouble is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Enough samples for a figure that can be quoted.
    Full,
    /// Enough to see that everything works.
    Quick,
}

/// What measurements are handed, and hand their rows to.
pub(super) struct Session {
    pub(super) effort: Effort,
    pub(super) only: Option<String>,
    pub(super) rows: Vec<Row>,
    pub(super) load_before: Option<String>,
    progress: Progress,
    measurement: &'static str,
    target: PathBuf,
    /// What another run gave this one, which it started as another user.
    lent: Option<Lent>,
    program: OnceLock<Result<PathBuf, String>>,
}

/// A measurement that cannot be made on this machine, and why. Told, and no failure.
#[derive(Debug)]
pub(super) struct Impossible(pub(super) String);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

impl Session {
    pub(super) fn new(asked: &Arguments, target: &Path) -> Self {
        Self {
            effort: asked.effort,
            only: asked.only.clone(),
            rows: Vec::new(),
            load_before: machine::load_average(),
            progress: Progress::new(),
            measurement: "",
            target: target.to_owned(),
            lent: asked.lent.clone(),
            program: OnceLock::new(),
        }
    }

    /// Names the measurement that the next rows belong to.
    pub(super) fn begin(&mut self, measurement: &'static str) {
        self.measurement = measurement;
    }

    /// Takes one measurement, if it is wanted. `what` is shown meanwhile, and is the row if there is no figure.
    pub(super) fn take(
        &mut self,
        what: &str,
        measure: impl FnOnce(&Self, &Progress) -> anyhow::Result<Vec<Row>>,
    ) {
        if self.only.as_ref().is_none_or(|only| what.contains(only)) {
            self.take_all(what, measure);
        }
    }

    /// The same for something that takes measurements of its own, of which some may be wanted.
    pub(super) fn take_all(
        &mut self,
        what: &str,
        measure: impl FnOnce(&Self, &Progress) -> anyhow::Result<Vec<Row>>,
    ) {
        self.progress.begin(&format!("{}: {what}", self.measurement));
        let found = measure(self, &self.progress);
        self.progress.end();
        let rows = found.unwrap_or_else(|error| {
            let why = format!("{error:#}");
            let outcome = match error.downcast_ref::<Impossible>() {
                Some(_) => Outcome::Skipped { why },
                None => Outcome::Failed { why },
            };
            vec![Row { measurement: "", what: what.to_owned(), outcome }]
        });
        self.rows.extend(rows.into_iter().map(|row| Row { measurement: self.measurement, ..row }));
    }

    /// How often something is done.
    pub(super) fn times(&self, full: usize, quick: usize) -> usize {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => quick,
        }
    }

    /// Whether another run started this one.
    pub(super) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// A directory on the disk that the project is built on, gone when it is dropped.
    pub(super) fn scratch(&self) -> anyhow::Result<tempfile::TempDir> {
        let place = self.lent.as_ref().map_or(&self.target, |lent| &lent.scratch);
        Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(place)?)
    }

    /// What it takes to start the programs of others, and ours beside them.
    pub(super) fn tools(&self) -> anyhow::Result<Tools> {
        let sandgate = self.program()?.to_owned();
        Ok(Tools { peers: Peers::below(&self.target), sandgate })
    }

    /// The file of the real program, as it is shipped.
    pub(super) fn program(&self) -> anyhow::Result<&Path> {
        if let Some(lent) = &self.lent {
            return Ok(&lent.program);
        }
        match self.program.get_or_init(|| sandgate::build(&self.target)) {
            Ok(program) => Ok(program),
            Err(why) => Err(Impossible(why.clone()).into()),
        }
    }
}
