//! What a person, or a program, sees of a running command.

use super::arguments::Format;
use crate::notes;
use crate::writer::Writer;
use sandgate_protocol::{CallId, ExecCommandBegin, OutputStream, SandboxType, SessionEvent};
use sandgate_runtime::{OutputTap, Stop, Tapped};
use std::io;

/// Shows a command on this program's own streams.
pub(super) struct Show {
    pub(super) writer: Writer,
    pub(super) format: Format,
    pub(super) stop: Stop,
}

impl Show {
    /// Writes an event, where events are wanted.
    pub(super) async fn event(&self, event: &SessionEvent) -> io::Result<()> {
        match self.format {
            Format::Passthrough => Ok(()),
            Format::JsonLines => {
                let mut line = serde_json::to_vec(event)?;
                line.push(b'\n');
                self.write(OutputStream::Stdout, &line).await
            }
        }
    }

    /// Writes what must arrive. If it cannot, all is in vain.
    async fn write(&self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let written = self.writer.output(stream, bytes).await;
        if written.is_err() {
            self.stop.cancel.cancel();
        }
        written
    }
}

impl OutputTap for Show {
    fn began<'a>(&'a self, begin: &'a ExecCommandBegin) -> Tapped<'a> {
        Box::pin(async {
            if begin.sandbox == SandboxType::None {
                self.writer.note(notes::unconfined()).await;
            }
            Ok(())
        })
    }

    fn output<'a>(&'a self, _: &'a CallId, stream: OutputStream, bytes: &'a [u8]) -> Tapped<'a> {
        Box::pin(async move {
            match self.format {
                Format::Passthrough => self.write(stream, bytes).await,
                Format::JsonLines => Ok(()),
            }
        })
    }
}
