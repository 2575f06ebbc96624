//! The exit codes of this program. Those between 124 and 127 are what `timeout`, `env` and the shells
//! use for the same things.

use sandgate_protocol::FailureKind;
use sandgate_protocol::{EXIT_CODE_SIGNAL_BASE, ExecToolCallOutput, SIGNAL_KILL};

/// A patch is none, or does not fit the files.
pub(crate) const DOES_NOT_FIT: u8 = 1;
/// A model could not be asked, or took more than it may.
pub(crate) const TURN_FAILED: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// A decision was needed, and nobody could give it.
pub(crate) const NOBODY_DECIDED: u8 = 77;
/// A person, a rule or the policy said no.
pub(crate) const REFUSED: u8 = 78;
/// This program failed.
pub(crate) const FAILED: u8 = 125;
/// Whoever read our output went away: 128 + SIGPIPE, as if that had ended us.
pub(crate) const OUTPUT_CLOSED: u8 = 141;

/// The exit code after a command that did not run.
pub(crate) fn of_failure(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Request => USAGE,
        other => other.exit_code(),
    }
}

/// The exit code after a command that ran. `received` is the last signal that we were sent.
pub(crate) fn of_command(output: &ExecToolCallOutput, received: Option<i32>) -> u8 {
    let code = match (received, output.signal) {
        // We ended it because of that signal; that we used another for it is our own business.
        (Some(signal), Some(SIGNAL_KILL)) => EXIT_CODE_SIGNAL_BASE + signal,
        _ => output.exit_code,
    };
    of_code(code)
}

/// The exit code of a program that a signal called off.
pub(crate) fn of_signal(signal: i32) -> u8 {
    of_code(EXIT_CODE_SIGNAL_BASE + signal)
}

/// Windows has larger codes than we can end with; what matters of those is that they are not 0.
pub(crate) fn of_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
