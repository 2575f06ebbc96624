//! What a desk and those who answer there say to each other: JSON, a line each. `docs/spec/desk.md` has
//! the order in which it is said.

use super::{OpenQuestion, Outcome};
use sandgate_protocol::ReviewDecision;
use serde::{Deserialize, Serialize};

/// Which of these languages is spoken.
pub(super) const PROTOCOL: u32 = 1;

/// The longest line that a desk reads, in bytes: an answer, with what the model is told.
pub(super) const LONGEST_REQUEST: usize = 64 << 10;

/// The longest line with a list of questions that it writes, in bytes.
pub(super) const LONGEST_LIST: usize = 8 << 20;

/// The longest line of any kind, in bytes: a question with all of its diffs.
pub(super) const LONGEST_REPLY: usize = 64 << 20;

/// What whoever answers says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// What is open.
    List {},
    /// What is open, now and whenever that changes.
    Watch {},
    /// The whole of a question.
    Question {
        /// Which.
        id: String,
    },
    /// The answer to a question.
    Answer {
        /// The question.
        id: String,
        /// The answer.
        decision: ReviewDecision,
    },
    /// What became of a question that is not open any more.
    Outcome {
        /// The question.
        id: String,
    },
    /// Where the console is.
    Link {},
}

/// What the desk says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Reply {
    /// The first line of every connection.
    Hello {
        /// See [`PROTOCOL`].
        protocol: u32,
        /// The program's version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// What is open, the oldest first.
    Questions {
        /// The questions.
        questions: Vec<OpenQuestion>,
        /// How many more there are, for which a line has no room.
        left_out: u64,
    },
    /// The whole of a question.
    Question {
        /// None if it is not open.
        question: Option<Box<OpenQuestion>>,
    },
    /// The answer counts.
    Answered {},
    /// What became of a question.
    Outcome {
        /// None if it is open, or that is not known.
        outcome: Option<Outcome>,
    },
    /// Where the console is, if there is one.
    Link {
        /// Its address, with the token of whoever may answer.
        address: Option<String>,
    },
    /// It cannot be done.
    Error {
        /// Why.
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            r#"{"type":"list","more":1}"#,
            r#"{"type":"approve_everything"}"#,
            r#"{"type":"answer","id":"a-1"}"#,
            r#"{"type":"answer","id":"a-1","decision":{"decision":"approved"},"by":"console"}"#,
            r#"{"type":"answer","id":"a-1","decision":{"decision":"yes"}}"#,
        ] {
            assert!(serde_json::from_str::<Request>(line).is_err(), "{line}");
        }
        let line = r#"{"type":"answer","id":"a-1","decision":{"decision":"approved"}}"#;
        assert!(serde_json::from_str::<Request>(line).is_ok());
    }
}
