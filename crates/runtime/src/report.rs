//! Tells an observer what a command does: bytes as they come, and events within their bounds.

use crate::deltas::{Cutter, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
use crate::error::RuntimeError;
use crate::observe::{Observer, WantedEvents};
use sandgate_process::{ModelFormat, OutputSink, RawStream};
use sandgate_protocol::{
    CallId, Enforcement, Event, ExecCommandBegin, ExecCommandEnd, ExecCommandOutputDelta,
    ExecCommandOutputOmitted, ExecToolCallOutput, OutputStream,
};
use sandgate_sandbox::ExecEnv;
use std::cmp::Ordering;
use std::io;

/// The story of one call, told to one observer.
pub(crate) struct Report<'a, O> {
    call_id: CallId,
    observer: &'a mut O,
    wanted: WantedEvents,
    stdout: Cutter,
    stderr: Cutter,
    /// Output events so far; the notice that follows the last one counts as one more.
    deltas: u32,
    /// How much of the output the model's form of it holds.
    model_format: ModelFormat,
    /// Why the observer stopped listening, if it did.
    failure: Option<io::Error>,
}

impl<'a, O: Observer> Report<'a, O> {
    pub(crate) fn new(call_id: CallId, observer: &'a mut O, model_format: ModelFormat) -> Self {
        Self {
            call_id,
            wanted: observer.wants(),
            observer,
            stdout: Cutter::default(),
            stderr: Cutter::default(),
            deltas: 0,
            model_format,
            failure: None,
        }
    }

    /// The command is about to start.
    pub(crate) async fn begin(
        &mut self,
        env: &ExecEnv,
        enforcement: Option<Enforcement>,
    ) -> Result<(), RuntimeError> {
        let begin = ExecCommandBegin {
            call_id: self.call_id.clone(),
            command: env.command().to_vec(),
            cwd: env.cwd().to_owned(),
            sandbox: env.sandbox(),
            enforcement,
        };
        let told = self.observer.event(&Event::ExecCommandBegin(begin)).await;
        told.map_err(RuntimeError::NobodyListens)
    }

    /// The command has ended. Gives its result back, and why the observer stopped listening if it did.
    /// `aggregated` is what was kept of both its streams.
    pub(crate) async fn end(
        mut self,
        output: ExecToolCallOutput,
        aggregated: &RawStream,
    ) -> (ExecToolCallOutput, Option<io::Error>) {
        match self.failure.take() {
            Some(failure) => (output, Some(failure)),
            None => self.tell_end(output, aggregated).await,
        }
    }

    /// The command could not be started: what began ends, and the error is what the caller gets.
    pub(crate) async fn not_started(mut self, error: RuntimeError) -> RuntimeError {
        let exit_code = i32::from(error.kind().exit_code());
        let output = ExecToolCallOutput::not_started(exit_code, &error.to_string());
        let aggregated = output.aggregated_output.text.clone().into_bytes().into();
        // The first failure is the one worth telling.
        let _ = self.tell_end(output, &aggregated).await;
        error
    }

    /// The result may be large, so the event has it for a moment instead of a copy.
    async fn tell_end(
        &mut self,
        output: ExecToolCallOutput,
        aggregated: &RawStream,
    ) -> (ExecToolCallOutput, Option<io::Error>) {
        if self.wanted == WantedEvents::Beginning {
            return (output, None);
        }
        if let Err(error) = self.tell_held_back().await {
            return (output, Some(error));
        }
        let event = Event::ExecCommandEnd(Box::new(ExecCommandEnd {
            call_id: self.call_id.clone(),
            formatted_output: self.model_format.format(&output, aggregated),
            output,
        }));
        let told = self.observer.event(&event).await;
        let Event::ExecCommandEnd(end) = event else { unreachable!("it was made above") };
        (end.output, told.err())
    }

    /// What was held back for the rest of a character that never came.
    async fn tell_held_back(&mut self) -> io::Result<()> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let held = self.cutter(stream).finish();
            if !held.is_empty() {
                self.delta(stream, &held).await?;
            }
        }
        Ok(())
    }

    fn cutter(&mut self, stream: OutputStream) -> &mut Cutter {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    async fn tell(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.observer.output(stream, bytes).await?;
        if self.wanted == WantedEvents::Beginning || self.deltas > MAX_EXEC_OUTPUT_DELTAS_PER_CALL {
            return Ok(());
        }
        let joined = self.cutter(stream).join(bytes);
        for piece in self.cutter(stream).cut(joined.as_deref().unwrap_or(bytes)) {
            self.delta(stream, piece).await?;
        }
        Ok(())
    }

    /// Sends one piece, or in place of the first one too many the notice.
    async fn delta(&mut self, stream: OutputStream, piece: &[u8]) -> io::Result<()> {
        let call_id = self.call_id.clone();
        let event = match self.deltas.cmp(&MAX_EXEC_OUTPUT_DELTAS_PER_CALL) {
            Ordering::Less => {
                Event::ExecCommandOutputDelta(ExecCommandOutputDelta::new(call_id, stream, piece))
            }
            Ordering::Equal => {
                let after_deltas = self.deltas;
                Event::ExecCommandOutputOmitted(ExecCommandOutputOmitted { call_id, after_deltas })
            }
            Ordering::Greater => return Ok(()),
        };
        self.deltas += 1;
        self.observer.event(&event).await
    }
}

impl<O: Observer> OutputSink for Report<'_, O> {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let told = self.tell(stream, bytes).await;
        told.map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            io::Error::from(kind)
        })
    }
}
