//! Tells an observer what a command does: bytes as they come, and events within their bounds.

use crate::deltas::{Cutter, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
use crate::error::RuntimeError;
use crate::observe::Observer;
use crate::session::Session;
use sandgate_process::{ModelFormat, OutputSink};
use sandgate_protocol::{
    CallId, Event, ExecCommandBegin, ExecCommandEnd, ExecCommandOutputDelta,
    ExecCommandOutputOmitted, ExecToolCallOutput, OutputStream,
};
use sandgate_sandbox::ExecEnv;
use std::cmp::Ordering;
use std::io;

/// The session's directory is made when a command has written this much, well before it has written
/// enough to spill. A command that writes less leaves the file system alone.
pub(crate) const PREPARE_SPILL_BYTES: usize = 256 * 1024;

/// The story of one call, told to one observer.
pub(crate) struct Report<'a, O> {
    call_id: CallId,
    observer: &'a mut O,
    stdout: Cutter,
    stderr: Cutter,
    /// Output events so far; the notice that follows the last one counts as one more.
    deltas: u32,
    seen_bytes: usize,
    /// Where everything is kept, if it is.
    spill: Option<&'a Session>,
    /// Why the observer stopped listening, if it did.
    failure: Option<io::Error>,
}

impl<'a, O: Observer> Report<'a, O> {
    pub(crate) fn new(call_id: CallId, observer: &'a mut O, spill: Option<&'a Session>) -> Self {
        Self {
            call_id,
            observer,
            stdout: Cutter::default(),
            stderr: Cutter::default(),
            deltas: 0,
            seen_bytes: 0,
            spill,
            failure: None,
        }
    }

    /// The command is about to start.
    pub(crate) async fn begin(&mut self, env: &ExecEnv) -> Result<(), RuntimeError> {
        let begin = ExecCommandBegin {
            call_id: self.call_id.clone(),
            command: env.command().to_vec(),
            cwd: env.cwd().to_owned(),
            sandbox: env.sandbox(),
        };
        let told = self.observer.event(Event::ExecCommandBegin(begin)).await;
        told.map_err(RuntimeError::NobodyListens)
    }

    /// The command has ended.
    pub(crate) async fn end(mut self, output: &ExecToolCallOutput) -> Result<(), RuntimeError> {
        if let Some(failure) = self.failure {
            return Err(RuntimeError::NobodyListens(failure));
        }
        self.tell_end(output).await.map_err(RuntimeError::NobodyListens)
    }

    /// The command could not be started: what began ends, and the error is what the caller gets.
    pub(crate) async fn not_started(mut self, error: RuntimeError) -> RuntimeError {
        let exit_code = i32::from(error.kind().exit_code());
        let output = ExecToolCallOutput::not_started(exit_code, &error.to_string());
        // The first failure is the one worth telling.
        let _ = self.tell_end(&output).await;
        error
    }

    async fn tell_end(&mut self, output: &ExecToolCallOutput) -> io::Result<()> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let held = self.cutter(stream).finish();
            if !held.is_empty() {
                self.delta(stream, &held).await?;
            }
        }
        let end = ExecCommandEnd {
            call_id: self.call_id.clone(),
            output: output.clone(),
            formatted_output: ModelFormat::default().format(output),
        };
        self.observer.event(Event::ExecCommandEnd(Box::new(end))).await
    }

    fn cutter(&mut self, stream: OutputStream) -> &mut Cutter {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    async fn tell(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.observer.output(stream, bytes).await?;
        if self.deltas > MAX_EXEC_OUTPUT_DELTAS_PER_CALL {
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
        self.observer.event(event).await
    }
}

impl<O: Observer> OutputSink for Report<'_, O> {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.seen_bytes = self.seen_bytes.saturating_add(bytes.len());
        if self.seen_bytes >= PREPARE_SPILL_BYTES
            && let Some(session) = self.spill.take()
        {
            session.make();
        }
        let told = self.tell(stream, bytes).await;
        told.map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            io::Error::from(kind)
        })
    }
}
