//! On which processor a caller goes on.
//!
//! Asking is quickest where the supervisor and the caller take turns on one processor, and the kernel can be told to
//! wake each of them where the other one is. For a thread that asks again and again that is right. Where several are at
//! work at once it is not: the supervisor may have stayed where it answered somebody else, and a caller that is woken
//! there leaves its own processor idle and queues for one that is busy. Such a caller is woken wherever the kernel likes.

use crate::sys::notify::{self, Asked, Reply, Wake};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// How often in a row a thread has asked before it is taken for one that asks again and again.
const IN_A_ROW: u32 = 4;

/// Who asks.
pub(super) struct Turns {
    thread: i32,
    count: u32,
}

impl Turns {
    pub(super) const fn new() -> Self {
        Self { thread: 0, count: 0 }
    }

    /// Answers a question.
    ///
    /// # Errors
    /// As [`notify::reply`].
    pub(super) fn reply(
        &mut self,
        listener: BorrowedFd<'_>,
        asked: &Asked,
        reply: Reply,
    ) -> Result<(), Errno> {
        if self.asks_on(asked.thread) {
            return notify::reply(listener, asked.id, reply);
        }
        notify::wake(listener, Wake::Anywhere);
        let heard = notify::reply(listener, asked.id, reply);
        notify::wake(listener, Wake::Here);
        heard
    }

    /// Whether a thread, which asks now, has asked again and again.
    const fn asks_on(&mut self, thread: i32) -> bool {
        if thread != self.thread {
            *self = Self { thread, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_on_is_told_from_several() {
        let mut turns = Turns::new();
        assert_eq!(
            [7, 7, 7, 7, 7].map(|thread| turns.asks_on(thread)),
            [false, false, false, true, true]
        );
        assert_eq!(
            [8, 7, 8, 7, 7, 7, 7].map(|thread| turns.asks_on(thread)),
            [false, false, false, false, false, false, true]
        );
    }
}
