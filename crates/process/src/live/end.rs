//! How a live process ended, with what it printed or without.

use crate::drive::Finished;
use crate::output::RawStream;
use crate::stop::Cause;
use sandgate_protocol::ExecToolCallOutput;

/// How a live process ended.
#[derive(Debug, Clone)]
pub struct LiveEnd {
    /// How it ended and what it left, as for any command.
    pub output: ExecToolCallOutput,
    /// The beginning and the end of what it printed.
    pub printed: RawStream,
    /// Whether what was refused to it is known at all.
    pub supervised: bool,
}

impl LiveEnd {
    pub(crate) fn new(finished: Finished, printed: RawStream) -> Self {
        let text = printed.to_stream_output(None);
        let output = ExecToolCallOutput {
            exit_code: finished.exit.code(),
            signal: finished.exit.signal(),
            stdout: text.clone(),
            stderr: RawStream::from(Vec::new()).to_stream_output(None),
            aggregated_output: text,
            duration: finished.duration,
            timed_out: false,
            cancelled: finished.cause == Some(Cause::Cancelled),
            pipes_still_open: finished.pipes_still_open,
            left_running: finished.left_running,
            denials: finished.denials,
        };
        Self { output, printed, supervised: finished.held.supervised }
    }

    /// The same without what it printed, for whoever keeps it.
    pub(super) fn without_output(&self) -> Self {
        let nothing = RawStream::from(Vec::new());
        let text = nothing.to_stream_output(None);
        let Self { output, supervised, .. } = self;
        let output = ExecToolCallOutput {
            exit_code: output.exit_code,
            signal: output.signal,
            stdout: text.clone(),
            stderr: text.clone(),
            aggregated_output: text,
            duration: output.duration,
            timed_out: output.timed_out,
            cancelled: output.cancelled,
            pipes_still_open: output.pipes_still_open,
            left_running: output.left_running,
            denials: output.denials.clone(),
        };
        Self { output, printed: nothing, supervised: *supervised }
    }

    /// The same with what it printed.
    pub(super) fn with_output(self, printed: RawStream) -> Self {
        let text = printed.to_stream_output(None);
        let output =
            ExecToolCallOutput { stdout: text.clone(), aggregated_output: text, ..self.output };
        Self { output, printed, ..self }
    }
}
