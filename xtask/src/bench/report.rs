//! Everything that one run found, as it is kept in a file.

use super::machine::{self, Machine};
use super::row::{Outcome, Row};
use super::session::{Effort, Session};
use serde::Serialize;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The rows of one run, and what is needed to make sense of them later.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    taken_at_unix_seconds: u64,
    quick: bool,
    pub(super) machine: Machine,
    pub(super) rows: Vec<Row>,
}

impl Report {
    pub(super) fn of(session: Session) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            taken_at_unix_seconds: now.as_secs(),
            quick: session.effort == Effort::Quick,
            machine: machine::describe(session.load_before),
            rows: session.rows,
        }
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(std::fs::write(path, json)?)
    }

    /// How many rows show something that did not do what it should have done.
    pub(super) fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed { .. }))
    }

    /// How many targets were missed.
    pub(super) fn missed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Measured(f) if f.met == Some(false)))
    }

    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.rows.iter().filter(|row| is(&row.outcome)).count()
    }
}

#[cfg(test)]
pub(super) fn report_of(rows: Vec<Row>) -> Report {
    let machine = Machine {
        kernel: "6.1".to_owned(),
        cores: 2,
        load_before: Some("0.10".to_owned()),
        load_after: None,
    };
    Report { taken_at_unix_seconds: 0, quick: false, machine, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::{Quantity, Target};

    #[test]
    fn a_file_holds_numbers_with_their_units() {
        let row = Row::new("/bin/true", Quantity::Seconds(0.003))
            .against("posix_spawn", Quantity::Seconds(0.002))
            .target(Target::RatioAtMost(1.5));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("bench.json");
        report_of(vec![row]).write(&path).expect("write");
        let text = std::fs::read_to_string(path).expect("read");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let row = &json["rows"][0];
        assert_eq!(row["status"], "measured");
        assert_eq!(row["ours"], serde_json::json!({ "unit": "seconds", "value": 0.003 }));
        assert_eq!(row["reference"]["what"], "posix_spawn");
        assert_eq!(row["reference"]["value"], 0.002);
        assert_eq!(row["ratio"], 1.5);
        assert_eq!(row["target"], serde_json::json!({ "ratio_at_most": 1.5 }));
        assert_eq!(row["met"], true);
    }

    #[test]
    fn rows_can_be_read_back_from_a_file() {
        let measured = Row::new("/bin/true", Quantity::Seconds(0.003))
            .against("posix_spawn", Quantity::Seconds(0.002))
            .target(Target::Within(Quantity::Seconds(0.1)))
            .detail("stretch", Quantity::Ratio(1.25));
        let outcome = Outcome::Skipped { why: "no such program".to_owned() };
        let rows = vec![measured, Row { measurement: "", what: "x".to_owned(), outcome }];
        let json = serde_json::to_string(&rows).expect("rows are JSON");
        assert_eq!(serde_json::from_str::<Vec<Row>>(&json).expect("JSON"), rows);
    }

    #[test]
    fn what_could_not_be_measured_is_neither_missed_nor_failed() {
        let skipped = Outcome::Skipped { why: "no such program".to_owned() };
        let row = Row { measurement: "spawn", what: "x".to_owned(), outcome: skipped };
        let report = report_of(vec![row]);
        assert_eq!((report.missed(), report.failed()), (0, 0));
        let failed = Outcome::Failed { why: "wrong bytes".to_owned() };
        let row = Row { measurement: "spawn", what: "x".to_owned(), outcome: failed };
        assert_eq!(report_of(vec![row]).failed(), 1);
    }
}
