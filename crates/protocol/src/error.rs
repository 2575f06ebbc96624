//! How a command can fail to give a plain result.

use crate::ExecToolCallOutput;

/// A command that did not run to its own end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// It outlived its time limit; what it printed until then is kept.
    #[error("the command was ended after {} ms, its time limit", output.duration.as_millis())]
    Timeout {
        /// What it had done by then.
        output: Box<ExecToolCallOutput>,
    },
    /// The sandbox blocked it.
    #[error("the sandbox blocked the command (exit code {})", output.exit_code)]
    Denied {
        /// What it had done by then.
        output: Box<ExecToolCallOutput>,
    },
    /// A signal ended it.
    #[error("the command was ended by signal {signal}")]
    Signal {
        /// The signal's number.
        signal: i32,
    },
    /// It could not be started, or its output could not be read.
    #[error("{message}")]
    IoError {
        /// What happened, with what, and what to do.
        message: String,
    },
    /// A person or a rule said no.
    #[error("{reason}")]
    Rejected {
        /// Who said no, and why.
        reason: String,
    },
}
