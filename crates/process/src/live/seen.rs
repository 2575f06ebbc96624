//! What is seen of a process in one look, on every system.

use std::time::Duration;

/// What was seen in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(any(target_os = "linux", test)),
    expect(dead_code, reason = "other systems show nothing")
)]
pub(crate) enum Seen {
    /// Somebody waits for input, and nobody works.
    Waiting(Waiter),
    /// Somebody works, or waits for something else.
    Working,
    /// The system does not let us see what they do.
    Hidden,
}

/// The thread that waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) thread: i32,
    /// How long it has run in all, in nanoseconds; not the same as before if it has run since.
    pub(crate) has_run: Option<u64>,
    /// It will go on without input after this time.
    pub(crate) limit: Option<Duration>,
    /// It passes on what comes from elsewhere, so that it waits for input tells little.
    pub(crate) relays: bool,
}
