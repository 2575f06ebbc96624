//! Who watches a command.

use sandgate_protocol::{CallId, Event, OutputStream};
use std::io;
use std::pin::Pin;

/// Watches one command from its beginning to its end.
///
/// The command is held up while an observer takes its time, so nothing is lost and nothing piles up.
/// An error means that nobody is watching any more: the observer is told nothing further, and a
/// command that still runs is ended. What it did until then is in its result all the same.
pub trait Observer: Send {
    /// The events that it wants. Asked once, before the beginning.
    fn wants(&self) -> WantedEvents {
        WantedEvents::All
    }

    /// A step of the command. Output events are bounded in size and in number; see
    /// [`MAX_DELTA_BYTES`](crate::MAX_DELTA_BYTES) and
    /// [`MAX_EXEC_OUTPUT_DELTAS_PER_CALL`](crate::MAX_EXEC_OUTPUT_DELTAS_PER_CALL).
    fn event(&mut self, event: &Event) -> impl Future<Output = io::Result<()>> + Send {
        let _ = event;
        async { Ok(()) }
    }

    /// Every byte that the command writes, in the order of arrival, however many they are.
    fn output(
        &mut self,
        stream: OutputStream,
        bytes: &[u8],
    ) -> impl Future<Output = io::Result<()>> + Send {
        let _ = (stream, bytes);
        async { Ok(()) }
    }
}

/// Takes every byte that the commands of a session write, as they come: for a front end that shows a
/// command as it is. A command is held up while it takes its time, and ended if it fails.
pub trait OutputTap: Send + Sync {
    /// Takes some bytes.
    fn output<'a>(
        &'a self,
        call_id: &'a CallId,
        stream: OutputStream,
        bytes: &'a [u8],
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;
}

/// The events that an observer is given. Making them takes time and memory, so nobody is given those
/// that they would only throw away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WantedEvents {
    /// All of them.
    All,
    /// The beginning, which says what will confine the command. What follows is in the bytes and in
    /// the result.
    Beginning,
}

/// Nobody watches; the result is all that matters.
impl Observer for () {
    fn wants(&self) -> WantedEvents {
        WantedEvents::Beginning
    }
}

/// Whoever watches may be lent.
impl<O: Observer> Observer for &mut O {
    fn wants(&self) -> WantedEvents {
        O::wants(self)
    }

    fn event(&mut self, event: &Event) -> impl Future<Output = io::Result<()>> + Send {
        O::event(self, event)
    }

    fn output(
        &mut self,
        stream: OutputStream,
        bytes: &[u8],
    ) -> impl Future<Output = io::Result<()>> + Send {
        O::output(self, stream, bytes)
    }
}
