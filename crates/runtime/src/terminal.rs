//! A command in the person's own terminal, without capture and without anything kept ready for
//! another one.

use crate::error::RuntimeError;
use sandgate_process::HeadStart;
use sandgate_protocol::{Denials, Enforcement, SandboxPolicy};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A command that the person at the keyboard wants confined.
#[derive(Debug, Clone)]
pub struct TerminalRequest {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it may touch.
    pub policy: SandboxPolicy,
    /// Where it runs, and the workspace of its policy; a relative path starts at this program's own
    /// directory.
    pub workspace: PathBuf,
    /// Its whole environment, before the sandbox adds to it.
    pub env: BTreeMap<OsString, OsString>,
    /// The directory of the person's settings, which no command may write to.
    pub config_home: Option<PathBuf>,
}

/// What became of such a command.
#[derive(Debug, Clone)]
pub struct TerminalOutcome {
    /// Its exit code; 128 + n when signal n ended it.
    pub exit_code: i32,
    /// What its sandbox refused.
    pub denials: Denials,
    namespaces: bool,
    supervised: bool,
    notes: Vec<String>,
}

impl TerminalOutcome {
    /// Whether it had namespaces of its own, where there are such.
    pub fn had_namespaces(&self) -> bool {
        self.namespaces
    }

    /// What really held it.
    #[cfg(target_os = "linux")]
    pub fn enforcement(&self) -> Enforcement {
        let manager = sandgate_sandbox::SandboxManager::new();
        let mut enforced = manager.enforced(self.namespaces, self.supervised);
        enforced.missing.extend(self.notes.iter().cloned());
        enforced
    }

    /// What really held it.
    #[cfg(not(target_os = "linux"))]
    pub fn enforcement(&self) -> Enforcement {
        let _ = (self.namespaces, self.supervised, &self.notes);
        enforcement()
    }
}

/// What this machine's sandbox can enforce.
pub fn enforcement() -> Enforcement {
    sandgate_sandbox::SandboxManager::new().status()
}

/// The roots that a policy makes writable and that are too large to be searched to the end for
/// protected names. What was not looked into there is read-only.
///
/// # Errors
/// When a root cannot be made writable.
pub fn unfinished_roots(
    policy: &SandboxPolicy,
    workspace: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<Vec<PathBuf>, RuntimeError> {
    let nothing_more = sandgate_policy::Extras::default();
    let layout = sandgate_sandbox::Layout::of(policy, workspace, env, &nothing_more)
        .map_err(sandgate_sandbox::SandboxTransformError::from)?;
    Ok(layout.unfinished().to_vec())
}

/// Whether a command with this policy could write to a path, which has no links in it. What is protected inside of a
/// root counts as well.
pub fn could_write(
    policy: &SandboxPolicy,
    workspace: &Path,
    env: &BTreeMap<OsString, OsString>,
    path: &Path,
) -> bool {
    match policy {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => true,
        _ => crate::ours::is_in_reach(path, &crate::ours::writable(policy, workspace, env)),
    }
}

/// Runs a command that the person at the keyboard typed, confined as its policy says, with this
/// program's standard streams and terminal.
///
/// Call it in a program with one thread. `head_start` is what that program began before it knew all of the
/// request, if it did. A policy without a sandbox replaces the program by the
/// command, and on macOS so does one with a sandbox.
///
/// # Errors
/// When the command was not started.
pub fn run_in_terminal_as_person(
    request: TerminalRequest,
    head_start: HeadStart,
) -> Result<TerminalOutcome, RuntimeError> {
    use sandgate_policy::Grant;
    use sandgate_protocol::ExecExpiration;

    let TerminalRequest { command, policy, workspace, env, config_home } = request;
    sandgate_sandbox::check_workspace(&workspace, &env)
        .map_err(sandgate_sandbox::SandboxTransformError::from)?;
    let never = ExecExpiration::Cancellation;
    let params = crate::resolve::resolve_words(command, &workspace, env, never)?;
    let workspace = params.cwd.clone();
    let sandbox = sandgate_sandbox::SandboxManager::new();
    let writable = crate::ours::writable(&policy, &workspace, &params.env);
    let ours = crate::ours::Ours::with_settings(config_home.as_deref());
    ours.refuse_inside(&writable)?;
    ours.protect(&sandbox, &writable);
    let grant = Grant::sandboxed_by_person(params, policy, workspace);
    let env = sandbox.transform(grant)?;
    let ran = sandgate_process::run_in_terminal(&env, head_start)?;
    #[cfg(target_os = "linux")]
    let notes = env.site().map(|site| site.notes()).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    let notes = Vec::new();
    Ok(TerminalOutcome {
        notes,
        exit_code: ran.exit.code(),
        namespaces: ran.had_namespaces(),
        supervised: ran.was_supervised(),
        denials: ran.denials,
    })
}
