//! Signals to the caller's own group of processes, where Landlock does not keep signals in.
//!
//! A command in the person's terminal is in the group that sandgate was called in, and so are its callers. They
//! have no number in the cage, but `kill 0` means them as well. So it is sent here, to those of the group that
//! are in the cage. Who has left that group cannot come back: it has no number to be named by.

use super::Answer;
use super::listeners::any_number;
use super::thread::Status;
use crate::sys::notify::{Asked, signal};
use rustix::io::Errno;

/// The guard, which has a group of its own or is the host's.
const FIRST_PROCESS: u64 = 1;

/// Sends a signal to the processes of the cage that are in its caller's group.
pub(super) fn send(asked: &Asked) -> Answer {
    let Some(group) = u64::try_from(asked.thread).ok().and_then(group_of) else {
        return Answer::Fail(Errno::SRCH);
    };
    if group != 0 {
        return Answer::Continue;
    }
    let [_, number, ..] = asked.arguments;
    let number = ((number & u64::from(u32::MAX)) as u32).cast_signed();
    let mut result = Err(Errno::SRCH);
    any_number(c"/proc", |process| {
        if process != FIRST_PROCESS && group_of(process) == Some(0) {
            let sent = i32::try_from(process).map_err(|_| Errno::SRCH);
            let sent = sent.and_then(|process| signal(process, number));
            result = result.or(sent);
        }
        // Everybody is meant.
        false
    });
    match result {
        Ok(()) => Answer::Done,
        Err(errno) => Answer::Fail(errno),
    }
}

/// The number of a process's group in the cage; 0 for one that was made outside.
fn group_of(process: u64) -> Option<u64> {
    Status::read(i32::try_from(process).ok()?)?.number(b"NSpgid:", 10)
}
