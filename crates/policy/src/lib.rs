//! Pure judgement: what a command may do, and the grant that says so.
//!
//! This crate opens no file and starts no process. What it decides on has been resolved before it
//! is called, and what it decided travels on as a [`Grant`], which nothing else can make.

#![forbid(unsafe_code)]

mod grant;
mod program;

mod approval;
pub mod command;
pub mod danger;
pub mod explain;
mod judge;
mod permission;
mod requirement;
pub mod rules;
pub mod safe;
pub mod script;
mod surroundings;
pub mod wrapper;

pub use approval::{
    Approvable, ApprovalKey, ApprovalStore, Content, MAX_KEYS, MAX_ROOTS, Remembered, RootRefused,
    Runs, runs,
};
pub use grant::{Confinement, Extras, Grant, Grantor};
pub use judge::{Class, Judgement, Part, Ruling, judge};
pub use permission::Permission;
pub use program::is_system_program;
pub use requirement::{ApprovalRequirement, BypassSandbox, SandboxAvailability, Terms};
pub use requirement::{PatchReach, Policies, approval_matrix, patch_requirement, requirement};
pub use surroundings::Surroundings;
