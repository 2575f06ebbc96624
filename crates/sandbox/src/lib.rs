//! Turns a grant into an environment that can be spawned.
//!
//! [`SandboxManager::transform`] is the only maker of an [`ExecEnv`], so what reaches the process
//! layer has been granted and has been given the confinement that its grant names.

#![forbid(unsafe_code)]

mod exec_env;
mod manager;

pub use exec_env::ExecEnv;
pub use manager::SandboxManager;
