//! The MCP server: the session's tools for any client of the Model Context Protocol.
//!
//! A connection has one session, opened when its first call comes. Each call is made through the session's
//! [`Requester`](sandgate_runtime::Requester); what it prints becomes progress, what it leaves becomes a
//! result, and what it asks lies on the program's desk and, where the client's person may answer, goes to the
//! client. Both generations of the protocol are spoken: up to 2025-11-25 a question is a request of ours to
//! the client, from 2026-07-28 on it is the answer to the call, which the client makes again.

mod answer;
mod attend;
mod call;
mod connection;
mod form;
mod handler;
mod http;
mod level;
mod place;
mod progress;
mod resources;
mod roots;
mod state;
mod stdio;
mod table;

pub use http::http_service;
pub use stdio::{serve, serve_stdio};

use crate::{ClientPerson, Opener};
use sandgate_runtime::DeskPlace;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What the door is made of.
#[derive(Clone)]
pub struct McpOptions {
    /// Who opens sessions.
    pub opener: Arc<dyn Opener>,
    /// Where questions lie.
    pub desk: DeskPlace,
    /// Who passes on what the client's person answers, where there is one.
    pub person: Option<ClientPerson>,
    /// The tools that are offered; all that the session has if it is not said.
    pub tools: Option<BTreeSet<String>>,
    /// Who says where the sessions work.
    pub workspace: Workspace,
    /// How long a question waits if the settings do not say.
    pub approval_timeout: Duration,
}

/// Who says where a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// The person who started the program.
    Given,
    /// The client, by its roots.
    ByRoots,
}

/// How long a question waits unless somebody says otherwise. Clients give up on a call that takes for ever.
pub const APPROVAL_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest message that is read, in bytes: a patch fits, with its quoting.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
