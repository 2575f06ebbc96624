//! Chooses and applies the confinement that a grant names.

use crate::nested::{NETWORK_DISABLED, SANDBOX};
use crate::{ExecEnv, Layout, RootError};
use sandgate_policy::{Confinement, Grant};
use sandgate_protocol::{Enforcement, NetworkAccess, SandboxPolicy, SandboxType};

/// Applies a grant's terms to its command.
#[derive(Debug, Default)]
pub struct SandboxManager {}

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
    /// This system has no sandbox yet.
    #[error("there is no sandbox for this system yet")]
    Unavailable,
}

impl SandboxManager {
    /// A manager for this machine.
    pub fn new() -> Self {
        Self {}
    }

    /// What this machine can enforce.
    pub fn status(&self) -> Enforcement {
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
        let layout = Layout::of(&policy, &workspace, &params.env, &extras)?;
        confine(params, &layout, network)
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
    Ok(ExecEnv::caged(params, std::sync::Arc::new(cage)))
}

#[cfg(target_os = "linux")]
fn status() -> Enforcement {
    crate::linux::status()
}

#[cfg(not(target_os = "linux"))]
fn status() -> Enforcement {
    let missing = vec![SandboxTransformError::Unavailable.to_string()];
    let sandbox = SandboxType::None;
    Enforcement {
        sandbox,
        namespaces: false,
        landlock_abi: 0,
        seccomp: false,
        supervisor: false,
        missing,
    }
}

#[cfg(not(target_os = "linux"))]
fn confine(
    _params: sandgate_protocol::ExecParams,
    _layout: &Layout,
    _network: NetworkAccess,
) -> Result<ExecEnv, SandboxTransformError> {
    let _ = SANDBOX;
    Err(SandboxTransformError::Unavailable)
}
