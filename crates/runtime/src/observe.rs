//! Who watches a command.

use sandgate_protocol::{Event, OutputStream};
use std::io;

/// Watches one command from its beginning to its end.
///
/// The command is held up while an observer takes its time, so nothing is lost and nothing piles up.
/// An error means that nobody is watching any more: the command is ended.
pub trait Observer: Send {
    /// A step of the command. Output events are bounded in size and in number; see
    /// [`MAX_DELTA_BYTES`](crate::MAX_DELTA_BYTES) and
    /// [`MAX_EXEC_OUTPUT_DELTAS_PER_CALL`](crate::MAX_EXEC_OUTPUT_DELTAS_PER_CALL).
    fn event(&mut self, event: Event) -> impl Future<Output = io::Result<()>> + Send {
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

/// Nobody watches; the result is all that matters.
impl Observer for () {}
