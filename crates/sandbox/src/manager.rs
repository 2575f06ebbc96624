//! Chooses and applies the confinement that a grant names.

use crate::{ExecEnv, Layout, RootError};
use sandgate_policy::{Confinement, Grant};
use sandgate_protocol::{Enforcement, NetworkAccess, SandboxPolicy, SandboxType};

/// Tells a command that the network is closed to it.
const NETWORK_DISABLED: &str = "CODEX_SANDBOX_NETWORK_DISABLED";
/// Tells a command what confines it.
#[cfg(not(windows))]
const SANDBOX: &str = "CODEX_SANDBOX";

/// Applies a grant's terms to its command.
#[derive(Debug, Default)]
pub struct SandboxManager {
    #[cfg(windows)]
    windows: crate::windows::WindowsSandbox,
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
        Self { windows }
    }

    /// What this machine can enforce.
    pub fn status(&self) -> Enforcement {
        #[cfg(windows)]
        return self.windows.status();
        #[cfg(not(windows))]
        status()
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
        let network = policy.network_access();
        let mut params = grant.into_params();
        if network == NetworkAccess::Restricted {
            params.env.insert(NETWORK_DISABLED.into(), "1".into());
        }
        if matches!(policy, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. })
        {
            return Ok(ExecEnv::new(params, SandboxType::None));
        }
        let layout = Layout::of(&policy, &workspace, &params.env)?;
        #[cfg(windows)]
        return self.confine_on_windows(params, &layout, network);
        #[cfg(not(windows))]
        confine(params, &layout, network)
    }

    #[cfg(windows)]
    fn confine_on_windows(
        &self,
        mut params: sandgate_protocol::ExecParams,
        layout: &Layout,
        network: NetworkAccess,
    ) -> Result<ExecEnv, SandboxTransformError> {
        let restriction = self.windows.confine(&mut params, layout, network)?;
        Ok(ExecEnv::restricted(params, restriction))
    }
}

#[cfg(target_os = "linux")]
fn confine(
    mut params: sandgate_protocol::ExecParams,
    layout: &Layout,
    network: NetworkAccess,
) -> Result<ExecEnv, SandboxTransformError> {
    params.env.insert(SANDBOX.into(), "linux".into());
    let cage = crate::linux::Cage::build(layout, network)?;
    Ok(ExecEnv::caged(params, cage))
}

#[cfg(target_os = "linux")]
fn status() -> Enforcement {
    crate::linux::status()
}

#[cfg(target_os = "macos")]
fn confine(
    mut params: sandgate_protocol::ExecParams,
    layout: &Layout,
    network: NetworkAccess,
) -> Result<ExecEnv, SandboxTransformError> {
    if status().sandbox == SandboxType::None {
        return Err(SandboxTransformError::Unavailable);
    }
    params.env.insert(SANDBOX.into(), crate::macos::SANDBOX_NAME.into());
    let seatbelt = crate::macos::Seatbelt::build(layout, network)?;
    Ok(ExecEnv::belted(params, seatbelt))
}

#[cfg(target_os = "macos")]
fn status() -> Enforcement {
    crate::macos::status()
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn status() -> Enforcement {
    let missing = vec![SandboxTransformError::Unavailable.to_string()];
    let sandbox = SandboxType::None;
    Enforcement { sandbox, namespaces: false, landlock_abi: 0, seccomp: false, missing }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn confine(
    _params: sandgate_protocol::ExecParams,
    _layout: &Layout,
    _network: NetworkAccess,
) -> Result<ExecEnv, SandboxTransformError> {
    let _ = SANDBOX;
    Err(SandboxTransformError::Unavailable)
}
