//! The apply_patch language as a library: read a patch, plan what it does, show it, do it.
//!
//! ```text
//! text ─▶ Patch ─▶ Plan ─▶ check against the roots ─▶ apply
//! ```
//!
//! [`Patch`] is what was written, [`Plan`] is what it comes to for the files as they are, with nothing
//! done yet. [`Plan::check`] says what of it lies where nobody may write, so that a person can be
//! asked. [`apply`] does all of it or nothing, and [`recover`] puts in order what a crash left.
//! `docs/design/patch.md` says why each of them is as it is.

#![forbid(unsafe_code)]

mod apply;
#[cfg(all(test, unix))]
mod crash_tests;
mod diff;
mod disk;
mod journal;
mod lines;
mod parse;
mod patch;
mod paths;
mod plan;
mod recognise;
mod recover;
mod rewrite;
mod roots;
mod seek;
mod tree;
mod undo;

pub use apply::{Applied, ApplyError, apply};
pub use diff::{Counts, unified};
pub use disk::Disk;
pub use parse::{LARGEST_TEXT, MOST_PARTS, ParseError, Problem};
pub use patch::{Hunk, HunkLine, Patch, Section};
pub use plan::{FileChange, Files, Found, Look, LookError, Plan, PlanError, Reason};
pub use recognise::{PatchText, from_here_document, from_script};
pub use recover::{RecoverError, Recovered, Resolution, recover};
pub use rewrite::{Mismatch, Place};
pub use roots::{Outside, Roots, Why};
pub use undo::{Left, LeftAlone};
