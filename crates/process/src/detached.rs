//! Starts a program that outlives this one: the daemon, and nothing else.
//!
//! It is no command of anybody's. It is this program's own, the same for every caller, so there is
//! nothing in it to judge or to confine.

#![expect(clippy::disallowed_methods, reason = "the daemon is no command: it is what runs them")]

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The longest first word that is read.
const LONGEST_WORD: u64 = 8 * 1024;

/// Starts a program with this environment and no other, and waits for its first word: all that it
/// writes to standard output until it closes that.
///
/// # Errors
/// When it cannot be started.
pub fn start_detached(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> io::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut word = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LONGEST_WORD).read_to_end(&mut word)?;
    }
    // Nobody else waits for it if it ends before we do. Without the thread it stays a zombie until then.
    let waiting = std::thread::Builder::new().name("daemon".to_owned());
    let _ = waiting.spawn(move || child.wait());
    Ok(String::from_utf8_lossy(&word).into_owned())
}
