//! Runs a command in the terminal that this program was started in.

use crate::error::SpawnError;
use crate::handle::Exit;
use crate::sys::in_place;
use sandgate_sandbox::ExecEnv;

/// Runs a command with this program's own standard streams and terminal, and waits for it.
/// Everything that it started ends with it.
///
/// The calling process enters the cage's namespaces itself, so it must have one thread and nothing
/// else to do afterwards.
///
/// A command that its grant does not confine replaces this program, as if it had been started in its
/// place; the call then returns only if that fails.
///
/// # Errors
/// When the command could not be started, or could not be confined as its grant says.
pub fn run_in_terminal(env: &ExecEnv) -> Result<Exit, SpawnError> {
    SpawnError::check(env)?;
    let result = match env.cage() {
        Some(cage) => in_place::run(env, cage),
        None => Err(in_place::become_unconfined(env)),
    };
    result.map_err(|e| SpawnError::from_launch(env, e))
}
