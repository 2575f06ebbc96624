//! Chooses and applies the confinement that a grant names.

use crate::nested::NETWORK_DISABLED;
#[cfg(target_os = "macos")]
use crate::nested::SANDBOX;
use crate::{Denial, ExecEnv, PartialEnforcement, RootError, Selected};
use sandgate_policy::{Confinement, Grant};
use sandgate_protocol::{
    Enforcement, ExecToolCallOutput, NetworkAccess, SandboxPolicy, SandboxType,
    SandboxablePreference,
};

/// Applies a grant's terms to its command.
///
/// One serves all commands of a session: what is costly to find out (what this machine can do, where protected names
/// are) is found out once.
///
/// ```
/// use sandgate_protocol::{SandboxPolicy, SandboxablePreference};
/// use sandgate_sandbox::{PartialEnforcement, SandboxManager, Selected};
///
/// let manager = SandboxManager::new();
/// let policy = SandboxPolicy::ReadOnly;
/// match manager.select_initial(&policy, SandboxablePreference::Auto, PartialEnforcement::Refused) {
///     Selected::Confined(sandbox) => println!("by {sandbox:?}"),
///     Selected::Refused(why) => println!("not at all: {why}"),
///     Selected::Unconfined(_) | Selected::NeedsApproval(_) => unreachable!("all of it is wanted"),
/// }
/// ```
#[derive(Debug, Default)]
pub struct SandboxManager {
    #[cfg(target_os = "linux")]
    cages: crate::linux::Cages,
    #[cfg(windows)]
    windows: crate::windows::WindowsSandbox,
    status: std::sync::OnceLock<Enforcement>,
    /// Directories that no confined command may write to, wherever they lie.
    ours: std::sync::Mutex<std::collections::BTreeSet<std::path::PathBuf>>,
}

/// Why a command could not be confined. It must then not run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxTransformError {
    /// A directory cannot be a writable root.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The cage could not be built.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Cage(#[from] crate::linux::CageError),
    /// There is no Seatbelt profile for the roots.
    #[cfg(target_os = "macos")]
    #[error(transparent)]
    Seatbelt(#[from] crate::macos::SeatbeltError),
    /// The sandbox for Windows is off, or could not be set up.
    #[cfg(windows)]
    #[error(transparent)]
    Windows(#[from] crate::windows::WindowsError),
    /// This system has no sandbox.
    #[error("there is no sandbox for this system")]
    Unavailable,
}

impl SandboxManager {
    /// A manager for this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// A manager that confines commands with the sandbox for Windows, which is experimental, if the
    /// person wants it.
    #[cfg(windows)]
    pub fn with_windows(windows: crate::windows::WindowsSandbox) -> Self {
        Self { windows, ..Self::default() }
    }

    /// Keeps a directory of our own from being written to by any confined command from now on, wherever
    /// it lies and whatever the command's environment says.
    pub fn protect(&self, directory: std::path::PathBuf) {
        self.ours.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(directory);
    }

    fn ours(&self) -> std::collections::BTreeSet<std::path::PathBuf> {
        self.ours.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Where the commands of a session may write and what in there must stay as it is, as it is now; see
    /// [`Layout::of`](crate::Layout::of). Directories of our own are among what must.
    ///
    /// # Errors
    /// When something that was asked for cannot be opened.
    pub fn layout(
        &self,
        policy: &SandboxPolicy,
        workspace: &std::path::Path,
        env: &std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    ) -> Result<crate::Layout, RootError> {
        let nothing_more = sandgate_policy::Extras::default();
        let roots =
            crate::roots::Unsearched::of(policy, workspace, env, &nothing_more, self.ours())?;
        Ok(roots.search())
    }

    /// What this machine can enforce. It is tried once.
    pub fn status(&self) -> Enforcement {
        self.status.get_or_init(|| self.try_status()).clone()
    }

    /// What really holds a command that had namespaces of its own, or not, and a supervisor, or not.
    #[cfg(target_os = "linux")]
    pub fn enforced(&self, namespaces: bool, supervised: bool) -> Enforcement {
        crate::linux::enforced(namespaces, supervised)
    }

    /// Turns a grant into something that can be spawned, confined as the grant says.
    ///
    /// # Errors
    /// When it cannot be confined like that.
    pub fn transform(&self, grant: Grant) -> Result<ExecEnv, SandboxTransformError> {
        let (policy, workspace) = match grant.confinement() {
            Confinement::Unconfined => {
                return Ok(ExecEnv::new(grant.into_params(), SandboxType::None));
            }
            Confinement::Sandboxed { policy, workspace } => (policy.clone(), workspace.clone()),
        };
        let network = grant.network_access();
        let extras = grant.extras().clone();
        let mut params = grant.into_params();
        if network == NetworkAccess::Restricted {
            params.env.insert(NETWORK_DISABLED.into(), "1".into());
        }
        if matches!(policy, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. })
        {
            return Ok(ExecEnv::new(params, SandboxType::None));
        }
        #[cfg(target_os = "linux")]
        return self.cages.confine(params, &policy, &workspace, &extras, network, self.ours());
        #[cfg(not(target_os = "linux"))]
        {
            let ours = self.ours();
            let roots =
                crate::roots::Unsearched::of(&policy, &workspace, &params.env, &extras, ours)?;
            self.confine(params, &roots.search(), network)
        }
    }

    /// What confines a command at first: the policy's sandbox, none because none is needed, or none
    /// because none can be had, which somebody has to approve.
    pub fn select_initial(
        &self,
        policy: &SandboxPolicy,
        preference: SandboxablePreference,
        partial: PartialEnforcement,
    ) -> Selected {
        crate::select_initial(policy, preference, partial, &self.status())
    }

    /// Whether a command failed because of its sandbox. `supervised` says that all that was refused
    /// to it is known.
    pub fn denied(
        &self,
        sandbox: SandboxType,
        supervised: bool,
        output: &ExecToolCallOutput,
    ) -> Option<Denial> {
        crate::denied(sandbox, supervised, output, &output.denials)
    }
}

#[cfg(target_os = "linux")]
impl SandboxManager {
    fn try_status(&self) -> Enforcement {
        crate::linux::status()
    }
}

#[cfg(target_os = "macos")]
impl SandboxManager {
    fn try_status(&self) -> Enforcement {
        crate::macos::status()
    }

    fn confine(
        &self,
        mut params: sandgate_protocol::ExecParams,
        layout: &crate::Layout,
        network: NetworkAccess,
    ) -> Result<ExecEnv, SandboxTransformError> {
        if self.status().sandbox == SandboxType::None {
            return Err(SandboxTransformError::Unavailable);
        }
        params.env.insert(SANDBOX.into(), crate::macos::SANDBOX_NAME.into());
        let seatbelt = crate::macos::Seatbelt::build(layout, network)?;
        Ok(ExecEnv::belted(params, seatbelt))
    }
}

#[cfg(windows)]
impl SandboxManager {
    fn try_status(&self) -> Enforcement {
        self.windows.status()
    }

    fn confine(
        &self,
        mut params: sandgate_protocol::ExecParams,
        layout: &crate::Layout,
        network: NetworkAccess,
    ) -> Result<ExecEnv, SandboxTransformError> {
        let restriction = self.windows.confine(&mut params, layout, network)?;
        Ok(ExecEnv::restricted(params, restriction))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
impl SandboxManager {
    fn try_status(&self) -> Enforcement {
        let missing = vec![SandboxTransformError::Unavailable.to_string()];
        Enforcement {
            sandbox: SandboxType::None,
            namespaces: false,
            landlock_abi: 0,
            seccomp: false,
            supervisor: false,
            missing,
        }
    }

    fn confine(
        &self,
        _params: sandgate_protocol::ExecParams,
        _layout: &crate::Layout,
        _network: NetworkAccess,
    ) -> Result<ExecEnv, SandboxTransformError> {
        Err(SandboxTransformError::Unavailable)
    }
}
