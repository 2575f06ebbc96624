//! Turns a grant into an environment that can be spawned.
//!
//! [`SandboxManager::transform`] is the only maker of an [`ExecEnv`], so what reaches the process
//! layer has been granted and has been given the confinement that its grant names.

#![deny(unsafe_code)]

mod exec_env;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod macos;
mod manager;
mod roots;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(windows)]
#[path = "sys/windows/mod.rs"]
mod sys;
pub mod windows;

pub use exec_env::ExecEnv;
pub use manager::{SandboxManager, SandboxTransformError};
pub use roots::{Layout, RootError};
