//! A command that is ready to be spawned.

use sandgate_protocol::{ExecExpiration, ExecParams, SandboxType};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A granted command with its confinement in place. Only the sandbox manager makes one.
///
/// See [`SandboxManager::transform`](crate::SandboxManager::transform).
#[derive(Debug, Clone)]
pub struct ExecEnv {
    params: ExecParams,
    sandbox: SandboxType,
    #[cfg(target_os = "linux")]
    site: Option<std::sync::Arc<crate::linux::Site>>,
    #[cfg(target_os = "macos")]
    seatbelt: Option<std::sync::Arc<crate::macos::Seatbelt>>,
    #[cfg(windows)]
    restriction: Option<std::sync::Arc<crate::windows::Restriction>>,
}

impl ExecEnv {
    pub(crate) fn new(params: ExecParams, sandbox: SandboxType) -> Self {
        Self {
            params,
            sandbox,
            #[cfg(target_os = "linux")]
            site: None,
            #[cfg(target_os = "macos")]
            seatbelt: None,
            #[cfg(windows)]
            restriction: None,
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn caged(params: ExecParams, site: std::sync::Arc<crate::linux::Site>) -> Self {
        Self { params, sandbox: SandboxType::LinuxSeccomp, site: Some(site) }
    }

    /// The cage that its process must enter before the program runs.
    #[cfg(target_os = "linux")]
    pub fn site(&self) -> Option<&std::sync::Arc<crate::linux::Site>> {
        self.site.as_ref()
    }

    #[cfg(target_os = "macos")]
    pub(crate) fn belted(params: ExecParams, seatbelt: crate::macos::Seatbelt) -> Self {
        let seatbelt = Some(std::sync::Arc::new(seatbelt));
        Self { params, sandbox: SandboxType::MacosSeatbelt, seatbelt }
    }

    /// The profile that its process must be entered into.
    #[cfg(target_os = "macos")]
    pub fn seatbelt(&self) -> Option<&crate::macos::Seatbelt> {
        self.seatbelt.as_deref()
    }

    #[cfg(windows)]
    pub(crate) fn restricted(
        params: ExecParams,
        restriction: std::sync::Arc<crate::windows::Restriction>,
    ) -> Self {
        let sandbox = SandboxType::WindowsRestrictedToken;
        Self { params, sandbox, restriction: Some(restriction) }
    }

    /// What its process must be started with.
    #[cfg(windows)]
    pub fn restriction(&self) -> Option<&std::sync::Arc<crate::windows::Restriction>> {
        self.restriction.as_ref()
    }

    /// The file to execute.
    pub fn program(&self) -> &Path {
        &self.params.program
    }

    /// The command, as events and people see it.
    pub fn command(&self) -> &[String] {
        &self.params.command
    }

    /// The argument vector that the program receives, its name for itself first.
    pub fn argv(&self) -> impl Iterator<Item = &OsStr> {
        let (first, rest) = match self.params.command.split_first() {
            Some((first, rest)) => (Some(self.params.arg0.as_ref().unwrap_or(first)), rest),
            None => (None, &[][..]),
        };
        first.into_iter().chain(rest).map(OsStr::new)
    }

    /// Where it runs.
    pub fn cwd(&self) -> &Path {
        &self.params.cwd
    }

    /// Its whole environment.
    pub fn env(&self) -> &BTreeMap<OsString, OsString> {
        &self.params.env
    }

    /// When it is ended.
    pub fn expiration(&self) -> ExecExpiration {
        self.params.expiration
    }

    /// What confines it.
    pub fn sandbox(&self) -> SandboxType {
        self.sandbox
    }
}
