//! What a command left behind when it ended.

use crate::{Denials, ExecError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The exit code of a command that outlived its time limit.
pub const EXIT_CODE_TIMEOUT: i32 = 124;

/// The exit code of a command ended by signal `n` is this plus `n`.
pub const EXIT_CODE_SIGNAL_BASE: i32 = 128;

/// The signal that Ctrl-C sends; its number is the same wherever it exists.
pub const SIGNAL_INTERRUPT: i32 = 2;

/// The signal by which a command is ended from outside.
pub const SIGNAL_KILL: i32 = 9;

/// The result of one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecToolCallOutput {
    /// The command's own exit code, 124 after a timeout, 128 + n after signal n.
    pub exit_code: i32,
    /// The signal that ended the command, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: StreamOutput,
    /// What it wrote to standard error.
    pub stderr: StreamOutput,
    /// Both, in the order of arrival.
    pub aggregated_output: StreamOutput,
    /// From spawn to exit.
    #[serde(rename = "duration_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// The time limit ended it.
    pub timed_out: bool,
    /// Its call was cancelled.
    pub cancelled: bool,
    /// The command ended while something that it started still held its output open.
    pub pipes_still_open: bool,
    /// Processes of the command that could not be ended, because the system did not allow it.
    pub left_running: u32,
    /// What its sandbox refused.
    #[serde(flatten)]
    pub denials: Denials,
}

impl ExecToolCallOutput {
    /// The result of a command that never ran: the reason stands where its errors would.
    pub fn not_started(exit_code: i32, reason: &str) -> Self {
        let text = StreamOutput {
            text: format!("{reason}\n"),
            total_bytes: reason.len() as u64 + 1,
            ..StreamOutput::default()
        };
        Self {
            exit_code,
            signal: None,
            stdout: StreamOutput::default(),
            stderr: text.clone(),
            aggregated_output: text,
            duration: Duration::ZERO,
            timed_out: false,
            cancelled: false,
            pipes_still_open: false,
            left_running: 0,
            denials: Denials::default(),
        }
    }

    /// The outcome as a result: a command that was cut off is an error that carries what it printed.
    ///
    /// # Errors
    /// [`ExecError::Timeout`] or [`ExecError::Signal`] when the command did not end by itself.
    pub fn into_result(self) -> Result<Self, ExecError> {
        if self.timed_out {
            return Err(ExecError::Timeout { output: Box::new(self) });
        }
        match self.signal {
            Some(signal) => Err(ExecError::Signal { signal }),
            None => Ok(self),
        }
    }
}

/// The text of one stream, and how much of it this is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamOutput {
    /// The text; where the middle was dropped a line says so.
    pub text: String,
    /// When the middle was dropped: how many lines stand before the gap.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated_after_lines: Option<u32>,
    /// Everything the command wrote to this stream, in bytes.
    pub total_bytes: u64,
    /// How many of those bytes `text` leaves out.
    pub omitted_bytes: u64,
    /// What became of the file for all of it, when there was more than memory holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spill: Option<Spilled>,
}

/// The file that an output goes to when it is more than memory holds: how much of it is there, and
/// why the rest is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spilled {
    /// What the file can be asked for by; there is none when it could not be made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// How much of the output the file holds: exactly its first bytes.
    pub bytes: u64,
    /// Whether that is all of it.
    pub complete: bool,
    /// What went wrong with the disk. A file that is not complete without an error reached the limit
    /// of its size.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_millis)
    }
}
