//! What `sandgate sandbox --json` says after the command has ended.

use super::support::Outcome;
use serde_json::Value;

/// One thing that was refused, in the words of the report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denial {
    pub(crate) operation: String,
    pub(crate) target: String,
    pub(crate) syscall: String,
    pub(crate) rule: String,
}

/// The last line of standard error, understood.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) exit_code: i64,
    pub(crate) enforcement: Value,
    pub(crate) denials: Vec<Denial>,
    pub(crate) more: u64,
}

impl Report {
    /// Reads it off the end of a run, and fails when it is not there or is not all that was promised.
    #[track_caller]
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let line = outcome.stderr.lines().next_back().unwrap_or_default();
        let json: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("the last line is no report ({error}): {outcome:?}"));
        let denials = json["denials"].as_array().expect("a list of denials");
        Self {
            exit_code: json["exit_code"].as_i64().expect("an exit code"),
            enforcement: json["enforcement"].clone(),
            denials: denials.iter().map(Denial::of).collect(),
            more: json["more_denials"].as_u64().expect("a number of further denials"),
        }
    }

    /// Whether this machine could enforce everything, evidence included.
    pub(crate) fn is_supervised(&self) -> bool {
        self.enforcement["supervisor"] == true
    }

    pub(crate) fn has_namespaces(&self) -> bool {
        self.enforcement["namespaces"] == true
    }
}

impl Denial {
    fn of(json: &Value) -> Self {
        let word = |key: &str| json[key].as_str().expect("every field is a word").to_owned();
        Self {
            operation: word("operation"),
            target: word("target"),
            syscall: word("syscall"),
            rule: word("rule"),
        }
    }
}
