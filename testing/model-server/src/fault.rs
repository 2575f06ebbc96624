//! What goes wrong.

use serde::Deserialize;

/// What goes wrong with an answer. Where something happens in the middle of a stream, `after` is how
/// many events come first; an answer that is no stream breaks in its middle.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The request is refused, in the API's own words.
    Status {
        /// With this status.
        status: u16,
        /// When to come again: what stands in the header.
        #[serde(default)]
        retry_after: Option<String>,
        /// What the API calls the error; what it usually calls one with that status otherwise.
        #[serde(default)]
        code: Option<String>,
        /// What it says.
        #[serde(default)]
        message: Option<String>,
    },
    /// The request is refused because it is longer than the model can read.
    ContextOverflow,
    /// The connection is closed instead of an answer.
    Disconnect,
    /// No answer comes, and the connection stays open.
    NoAnswer,
    /// The connection is closed.
    Cut {
        /// After so many events.
        after: usize,
    },
    /// The connection is closed in the middle of the first character that has more than one byte.
    CutInCharacter,
    /// The stream says that something went wrong, and ends.
    Error {
        /// After so many events.
        after: usize,
        /// What the API calls it.
        code: String,
        /// What it says.
        message: String,
    },
    /// The response is said to have failed, where the API knows such a thing (Responses), and the
    /// stream ends; elsewhere the same as [`Fault::Error`].
    Failed {
        /// After so many events.
        after: usize,
        /// What the API calls it.
        code: String,
        /// What it says.
        message: String,
    },
    /// Nothing more comes, and the connection stays open.
    Silence {
        /// After so many events.
        after: usize,
    },
    /// An event of this size, of a kind that nobody knows, comes among the others.
    Huge {
        /// After so many events.
        after: usize,
        /// How large it is.
        bytes: usize,
    },
    /// Bytes that are neither UTF-8 nor JSON come among the events.
    Garbage {
        /// After so many events.
        after: usize,
    },
}
