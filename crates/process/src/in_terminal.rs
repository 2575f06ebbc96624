//! Runs a command in the terminal that this program was started in.

use crate::error::SpawnError;
use crate::handle::Exit;
#[cfg(target_os = "linux")]
use crate::sys::Forerunner;
use crate::sys::{Held, LaunchError, in_place};
use sandgate_protocol::Denials;
#[cfg(target_os = "linux")]
use sandgate_protocol::NetworkAccess;
use sandgate_sandbox::ExecEnv;
#[cfg(target_os = "linux")]
use sandgate_sandbox::linux::Of;

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

/// The start of a command in the terminal, before it is known which. On Linux the namespaces of its cage
/// are made meanwhile, without the network; they are of use if the command turns out to be confined so, and
/// gone without a trace otherwise, or when this is dropped.
#[derive(Default)]
pub struct HeadStart {
    #[cfg(target_os = "linux")]
    sent: Option<Forerunner>,
}

impl HeadStart {
    /// Begins. For a program with one thread; nothing is lost where it cannot be done.
    #[must_use]
    pub fn begin() -> Self {
        #[cfg(target_os = "linux")]
        return Self { sent: Forerunner::send(NetworkAccess::Restricted, Of::Job).ok() };
        #[cfg(not(target_os = "linux"))]
        return Self {};
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
pub fn run_in_terminal(env: &ExecEnv, head_start: HeadStart) -> Result<RanInTerminal, SpawnError> {
    SpawnError::check(env)?;
    run(env, head_start).map_err(|e| SpawnError::from_launch(env, e))
}

#[cfg(target_os = "linux")]
fn run(env: &ExecEnv, HeadStart { sent }: HeadStart) -> Result<RanInTerminal, LaunchError> {
    match env.site() {
        Some(site) => in_place::run(env, site, sent),
        None => {
            // The command would have it as a child that it does not know.
            drop(sent);
            Err(in_place::become_unconfined(env))
        }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn run(env: &ExecEnv, _: HeadStart) -> Result<RanInTerminal, LaunchError> {
    Err(in_place::become_command(env))
}

#[cfg(windows)]
fn run(env: &ExecEnv, _: HeadStart) -> Result<RanInTerminal, LaunchError> {
    in_place::run(env).map(|exit| RanInTerminal { exit, ..RanInTerminal::default() })
}
