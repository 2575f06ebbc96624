//! Who takes what a command writes, as it is.

use sandgate_protocol::{CallId, ExecCommandBegin, OutputStream};
use std::io;
use std::pin::Pin;

/// What an [`OutputTap`] comes to.
pub type Tapped<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// Takes every byte that the commands of a session write, as they come and however many they are: for
/// a front end that shows a command as it is.
///
/// A command is held up while it takes its time, so nothing is lost and nothing piles up. When it
/// fails nobody watches any more: a command that still runs is ended. What it did until then is in its
/// result all the same.
pub trait OutputTap: Send + Sync {
    /// A command is about to start, and does not before this is done. When this fails it does not
    /// start at all.
    fn began<'a>(&'a self, begin: &'a ExecCommandBegin) -> Tapped<'a> {
        let _ = begin;
        Box::pin(async { Ok(()) })
    }

    /// Takes some bytes.
    fn output<'a>(
        &'a self,
        call_id: &'a CallId,
        stream: OutputStream,
        bytes: &'a [u8],
    ) -> Tapped<'a>;
}
