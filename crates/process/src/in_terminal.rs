//! Runs a command in the terminal that this program was started in.

use crate::error::SpawnError;
use crate::handle::Exit;
use crate::sys::{Held, LaunchError, in_place};
use sandgate_protocol::Denials;
use sandgate_sandbox::ExecEnv;

/// A command that ran in the caller's terminal.
#[derive(Debug)]
pub struct RanInTerminal {
    /// How it ended.
    pub exit: Exit,
    /// What its sandbox refused.
    pub denials: Denials,
    pub(crate) held: Held,
}

impl Default for RanInTerminal {
    fn default() -> Self {
        Self { exit: Exit::KILLED, denials: Denials::default(), held: Held::default() }
    }
}

impl RanInTerminal {
    /// Whether it had namespaces of its own.
    pub fn had_namespaces(&self) -> bool {
        self.held.namespaces
    }

    /// Whether all that was refused to it is known.
    pub fn was_supervised(&self) -> bool {
        self.held.supervised
    }
}

/// Runs a command with this program's own standard streams and terminal, and waits for it. On Linux
/// and Windows everything that it started ends with it.
///
/// The calling process must have one thread.
///
/// A command that its grant does not confine replaces this program, as if it had been started in its
/// place, and on macOS so does one that is confined; the call then returns only if that fails. Windows
/// has nothing of the kind.
///
/// # Errors
/// When the command could not be started, or could not be confined as its grant says.
pub fn run_in_terminal(env: &ExecEnv) -> Result<RanInTerminal, SpawnError> {
    SpawnError::check(env)?;
    run(env).map_err(|e| SpawnError::from_launch(env, e))
}

#[cfg(target_os = "linux")]
fn run(env: &ExecEnv) -> Result<RanInTerminal, LaunchError> {
    match env.site() {
        Some(site) => in_place::run(env, site),
        None => Err(in_place::become_unconfined(env)),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn run(env: &ExecEnv) -> Result<RanInTerminal, LaunchError> {
    Err(in_place::become_command(env))
}

#[cfg(windows)]
fn run(env: &ExecEnv) -> Result<RanInTerminal, LaunchError> {
    in_place::run(env).map(|exit| RanInTerminal { exit, ..RanInTerminal::default() })
}
