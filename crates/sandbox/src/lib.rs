//! Turns a grant into an environment that can be spawned.
//!
//! [`SandboxManager::transform`] is the only maker of an [`ExecEnv`], so what reaches the process
//! layer has been granted and has been given the confinement that its grant names.
//!
//! # From a grant to something that can be spawned
//!
//! ```
//! use sandgate_policy::Grant;
//! use sandgate_protocol::{ExecExpiration, ExecParams, SandboxPermissions, SandboxPolicy, SandboxType};
//! use sandgate_sandbox::SandboxManager;
//!
//! let workspace = tempfile::tempdir()?;
//! let params = ExecParams {
//!     command: ["touch", "/etc/hosts"].map(str::to_owned).to_vec(),
//!     program: "/usr/bin/touch".into(),
//!     cwd: workspace.path().canonicalize()?,
//!     env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
//!     expiration: ExecExpiration::DefaultTimeout,
//!     sandbox_permissions: SandboxPermissions::UseDefault,
//!     justification: None,
//!     arg0: None,
//! };
//! let manager = SandboxManager::new();
//! let available = manager.status();
//! for missing in &available.missing {
//!     eprintln!("this machine lacks: {missing}");
//! }
//! # if available.sandbox == SandboxType::None { return Ok(()) }
//!
//! let policy = SandboxPolicy::workspace_write();
//! let grant = Grant::sandboxed_by_person(params, policy, workspace.path().to_owned());
//! let env = manager.transform(grant)?;
//! assert_eq!(env.sandbox(), available.sandbox);
//! assert_eq!(env.command(), ["touch", "/etc/hosts"]);
//! // `sandgate_process::execute` runs it, and its result says what was refused.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use roots::{
    Found, Layout, Narrowest, RootError, check_workspace, is_git_directory, keeps_a_name_free,
};
pub use select::select_initial;
pub use select::{NotNeeded, PartialEnforcement, SandboxRefusal, Selected, WithoutSandbox};
