//! What a front end asks for, before any name in it has been looked up.

use sandgate_process::{Login, Stdin};
use sandgate_protocol::CallId;

/// A command, in one of the two ways in which people write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// Text that a shell is to read.
    Script {
        /// The text.
        text: String,
        /// The shell, by name or absolute path; the session's when there is none.
        shell: Option<String>,
        /// Whether it reads the person's profile first.
        login: Login,
    },
    /// A program and its arguments, which no shell ever sees.
    Argv(Vec<String>),
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandInput {
    /// Nowhere: its first read finds the end.
    #[default]
    Nothing,
    /// It reads what this program would have read.
    Inherited,
}

impl From<CommandInput> for Stdin {
    fn from(input: CommandInput) -> Self {
        match input {
            CommandInput::Nothing => Self::Null,
            CommandInput::Inherited => Self::Inherit,
        }
    }
}

/// What becomes of output that is more than memory may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepOutput {
    /// Its beginning and its end are kept. For a front end that takes all of it as it comes.
    #[default]
    HeadAndTail,
    /// All of it goes to a file, which lives as long as the session.
    Everything,
}

/// An id for a call that nobody has named yet. Ids sort by the time they were made.
pub fn new_call_id() -> CallId {
    CallId::new(format!("call_{}", uuid::Uuid::now_v7().simple()))
}
