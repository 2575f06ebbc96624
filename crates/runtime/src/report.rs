//! Tells what a command does: bytes as they come to the session's tap, and events within their bounds
//! to everybody who listens.

use crate::deltas::{Cutter, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
use crate::error::RuntimeError;
use crate::session::Services;
use sandgate_process::{ModelFormat, OutputSink, RawStream};
use sandgate_protocol::{
    CallId, Enforcement, Event, ExecCommandBegin, ExecCommandEnd, ExecCommandOutputDelta,
    ExecCommandOutputOmitted, ExecToolCallOutput, OutputStream,
};
use sandgate_sandbox::ExecEnv;
use std::cmp::Ordering;
use std::io;
use std::sync::Weak;

/// The story of one attempt at a call.
pub(crate) struct Report {
    call_id: CallId,
    /// The session, as long as it is there: a live process may outlast it for a moment.
    services: Weak<Services>,
    stdout: Cutter,
    stderr: Cutter,
    /// Output events so far; the notice that follows the last one counts as one more.
    deltas: u32,
    /// How much of the output the model's form of it holds.
    model_format: ModelFormat,
    /// Why the tap stopped taking bytes, if it did.
    failure: Option<io::Error>,
}

impl Report {
    pub(crate) fn new(call_id: CallId, services: &Services) -> Self {
        Self {
            call_id,
            services: services.me(),
            stdout: Cutter::default(),
            stderr: Cutter::default(),
            deltas: 0,
            model_format: services.config.model_format,
            failure: None,
        }
    }

    /// The command is about to start. `command` is what was asked for; what is started may differ from it in how
    /// its shell is called.
    pub(crate) async fn begin(
        &mut self,
        command: &[String],
        env: &ExecEnv,
        enforcement: Option<Enforcement>,
    ) -> Result<(), RuntimeError> {
        let begin = ExecCommandBegin {
            call_id: self.call_id.clone(),
            command: command.to_vec(),
            cwd: env.cwd().to_owned(),
            sandbox: env.sandbox(),
            enforcement,
        };
        let Some(services) = self.services.upgrade() else { return Ok(()) };
        if let Some(tap) = &services.config.tap {
            tap.began(&begin).await.map_err(RuntimeError::NobodyListens)?;
        }
        services.events.tell(&Event::ExecCommandBegin(begin)).await;
        Ok(())
    }

    /// The command has ended. Gives its result back, and why the tap failed if it did. `aggregated` is
    /// what was kept of both its streams.
    pub(crate) async fn end(
        mut self,
        output: ExecToolCallOutput,
        aggregated: &RawStream,
    ) -> (ExecToolCallOutput, Option<io::Error>) {
        let output = self.tell_end(output, aggregated).await;
        (output, self.failure)
    }

    /// The command could not be started: what began ends, and the error is what the caller gets.
    pub(crate) async fn not_started(mut self, error: RuntimeError) -> RuntimeError {
        let exit_code = i32::from(error.kind().exit_code());
        let output = ExecToolCallOutput::not_started(exit_code, &error.to_string());
        let aggregated = output.aggregated_output.text.clone().into_bytes().into();
        self.tell_end(output, &aggregated).await;
        error
    }

    /// The result may be large, so the event has it for a moment instead of a copy.
    async fn tell_end(
        &mut self,
        output: ExecToolCallOutput,
        aggregated: &RawStream,
    ) -> ExecToolCallOutput {
        self.tell_held_back().await;
        let event = Event::ExecCommandEnd(Box::new(ExecCommandEnd {
            call_id: self.call_id.clone(),
            formatted_output: self.model_format.format(&output, aggregated),
            output,
        }));
        self.event(&event).await;
        let Event::ExecCommandEnd(end) = event else { unreachable!("it was made above") };
        end.output
    }

    /// What was held back for the rest of a character that never came.
    async fn tell_held_back(&mut self) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let held = self.cutter(stream).finish();
            if !held.is_empty() {
                self.delta(stream, &held).await;
            }
        }
    }

    fn cutter(&mut self, stream: OutputStream) -> &mut Cutter {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    async fn tell(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let Some(services) = self.services.upgrade() else { return Ok(()) };
        if let Some(tap) = &services.config.tap {
            tap.output(&self.call_id, stream, bytes).await?;
        }
        // Making events takes time and memory, and nobody may want these.
        let over = self.deltas > MAX_EXEC_OUTPUT_DELTAS_PER_CALL;
        if over || !services.events.wants_output().await {
            return Ok(());
        }
        let joined = self.cutter(stream).join(bytes);
        for piece in self.cutter(stream).cut(joined.as_deref().unwrap_or(bytes)) {
            self.delta(stream, piece).await;
        }
        Ok(())
    }

    /// Sends one piece, or in place of the first one too many the notice.
    async fn delta(&mut self, stream: OutputStream, piece: &[u8]) {
        let call_id = self.call_id.clone();
        let event = match self.deltas.cmp(&MAX_EXEC_OUTPUT_DELTAS_PER_CALL) {
            Ordering::Less => {
                Event::ExecCommandOutputDelta(ExecCommandOutputDelta::new(call_id, stream, piece))
            }
            Ordering::Equal => {
                let after_deltas = self.deltas;
                Event::ExecCommandOutputOmitted(ExecCommandOutputOmitted { call_id, after_deltas })
            }
            Ordering::Greater => return,
        };
        self.deltas += 1;
        self.event(&event).await;
    }

    async fn event(&self, event: &Event) {
        if let Some(services) = self.services.upgrade() {
            services.events.tell(event).await;
        }
    }
}

impl OutputSink for Report {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let told = self.tell(stream, bytes).await;
        told.map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            io::Error::from(kind)
        })
    }
}
