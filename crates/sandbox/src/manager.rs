//! Chooses and applies the confinement that a grant names.

use crate::ExecEnv;
use sandgate_policy::{Confinement, Grant};
use sandgate_protocol::SandboxType;

/// Applies a grant's terms to its command.
#[derive(Debug, Default)]
pub struct SandboxManager {}

impl SandboxManager {
    /// A manager for this machine.
    pub fn new() -> Self {
        Self {}
    }

    /// Turns a grant into something that can be spawned, confined as the grant says.
    pub fn transform(&self, grant: Grant) -> ExecEnv {
        let sandbox = match grant.confinement() {
            Confinement::Unconfined => SandboxType::None,
        };
        ExecEnv::new(grant.into_params(), sandbox)
    }
}
