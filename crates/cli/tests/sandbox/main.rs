//! `sandgate sandbox`, from the outside: what a confined command can and cannot do to the world.
//!
//! Each probe looks at the world as well as at the answer.

#![cfg(target_os = "linux")]

mod cage;
mod command;
mod escape;
mod evidence;
mod files;
mod honest;
mod last;
mod many;
mod names;
mod network;
mod ours;
mod probes;
mod processes;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/strace.rs"]
mod strace;
#[path = "../support/mod.rs"]
mod support;
mod work;
