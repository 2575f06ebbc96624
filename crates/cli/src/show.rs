//! What a person, or a program, sees of a running command.

use crate::arguments::Format;
use crate::notes;
use crate::writer::Writer;
use sandgate_protocol::{Event, OutputStream, SandboxType};
use sandgate_runtime::{Observer, WantedEvents};
use std::io;

/// Shows a command on this program's own streams.
pub(crate) struct Show {
    pub(crate) writer: Writer,
    pub(crate) format: Format,
}

impl Observer for Show {
    fn wants(&self) -> WantedEvents {
        match self.format {
            Format::Passthrough => WantedEvents::Beginning,
            Format::JsonLines => WantedEvents::All,
        }
    }

    async fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::ExecCommandBegin(begin) = event
            && begin.sandbox == SandboxType::None
        {
            self.writer.note(notes::unconfined()).await;
        }
        match self.format {
            Format::Passthrough => Ok(()),
            Format::JsonLines => {
                let mut line = serde_json::to_vec(event)?;
                line.push(b'\n');
                self.writer.output(OutputStream::Stdout, &line).await
            }
        }
    }

    async fn output(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        match self.format {
            Format::Passthrough => self.writer.output(stream, bytes).await,
            Format::JsonLines => Ok(()),
        }
    }
}
