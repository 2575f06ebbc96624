//! The doors through which other programs use the gate.
//!
//! Each door turns what its clients say into calls on a [`Requester`](sandgate_runtime::Requester), and what
//! happens into what they understand. Nothing is judged here. Sessions are opened by an [`Opener`], which
//! knows the person's settings; what a client wants can make them stricter and never looser.

#![forbid(unsafe_code)]

mod acp;
mod asking;
pub mod http;
mod live;
pub mod mcp;
mod opener;
mod web;

pub use acp::{AcpDoor, serve as serve_acp};
pub use asking::{Caller, ClientApprover, ClientPerson};
pub use opener::{
    NewConversation, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
    WorkspaceFrom,
};
