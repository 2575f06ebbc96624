//! What a caller is given of a command that ran.

use sandgate_process::SpillReport;
use sandgate_protocol::ExecToolCallOutput;
use std::io;

/// A command that ran, however it ended.
#[derive(Debug)]
pub struct CommandOutcome {
    /// What it left behind.
    pub output: ExecToolCallOutput,
    /// The file that holds all of its output, if that was to be kept and was more than memory holds.
    /// The file goes with the runtime that ran the command, or when many others came after it.
    pub spill: Option<SpillReport>,
    /// Why whoever took its output failed, if that was so. If that was before the command's own end,
    /// the command was ended for it.
    pub unheard: Option<io::Error>,
}
