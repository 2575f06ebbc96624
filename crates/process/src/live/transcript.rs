//! What a live process has printed since it was last asked, in the form in which that is told.

use crate::output::{HeadTailBuffer, RawStream};
use std::ops::Range;

/// How much of what nobody has asked for yet is kept in memory, as head and tail.
const UNREAD_BYTES: usize = 1024 * 1024;

/// What a process has printed, as it comes.
#[derive(Debug)]
pub(crate) struct Transcript {
    unread: HeadTailBuffer,
    /// Where what was not asked for yet begins, in all that was printed.
    since: u64,
    printed: u64,
}

/// What was printed since it was last asked for.
#[derive(Debug)]
pub struct Printed {
    /// What a person would have read of it.
    pub text: RawStream,
    /// Where it stands in all that was printed, as it was printed.
    pub range: Range<u64>,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self { unread: HeadTailBuffer::new(UNREAD_BYTES), since: 0, printed: 0 }
    }

    /// Takes what was printed next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        self.unread.push(bytes);
    }

    /// How much was printed in all.
    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    /// What was printed and not taken yet.
    pub(crate) fn unread(&self) -> &HeadTailBuffer {
        &self.unread
    }

    /// Takes what was printed since the last time.
    pub(crate) fn take(&mut self) -> Printed {
        let unread = std::mem::replace(&mut self.unread, HeadTailBuffer::new(UNREAD_BYTES));
        let range = self.since..self.printed;
        self.since = self.printed;
        Printed { text: unread.into(), range }
    }
}
