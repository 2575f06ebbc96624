//! Turns a grant into an environment that can be spawned.
//!
//! [`SandboxManager::transform`] is the only maker of an [`ExecEnv`], so what reaches the process
//! layer has been granted and has been given the confinement that its grant names.

#![deny(unsafe_code)]

mod denied;
mod exec_env;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod macos;
mod manager;
mod nested;
mod roots;
mod select;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(windows)]
#[path = "sys/windows/mod.rs"]
mod sys;
pub mod windows;

pub use denied::{Denial, denied};
pub use exec_env::ExecEnv;
pub use manager::{SandboxManager, SandboxTransformError};
pub use nested::{is_network_disabled, is_network_disabled_in, is_sandboxed, is_sandboxed_in};
pub use roots::{Found, Layout, Narrowest, RootError, keeps_a_name_free};
pub use select::select_initial;
pub use select::{NotNeeded, PartialEnforcement, SandboxRefusal, Selected, WithoutSandbox};
