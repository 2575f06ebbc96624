//! The door for editors: an agent of the Agent Client Protocol, version 1, on standard input and output.
//!
//! A session of the protocol is a session of ours with a model in it, or several one after the other, in
//! different modes. What happens there becomes updates, its questions become requests for permission, and
//! nothing is judged here. Commands run where all commands run: the editor's own terminals and its files are
//! not used, because they are outside of the cage.
//!
//! The SDK is used in this module and nowhere else.

mod content;
mod diff;
mod frames;
mod modes;
mod permission;
mod serve;
mod servers;
mod session;
mod terminal;
mod updates;

pub use serve::{AcpDoor, serve};
