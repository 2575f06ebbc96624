//! A small daemon of one person's own, in which processes live on when the program that started them has
//! ended: behind `sandgate session`, `sandgate attach` and `keep_alive`.
//!
//! It listens on a socket that only its user can reach, and that nothing in a cage can. It judges,
//! confines and records like every other front end, because it is one: a [`Session`](crate::Session) for
//! each set of terms. Questions go down the connection that the call came by. See
//! `docs/design/daemon.md`.

mod attach;
mod client;
mod connection;
mod keep;
mod keeper;
mod place;
mod pool;
mod server;
mod wire;

pub use client::{Client, Launcher, stop};
pub use keep::{Described, KeepRequest, KeptReply};
pub(crate) use keeper::{Keeper, KeptProcess, list_kept};
pub use place::Place;
pub use pool::Farewell;
pub use server::Daemon;
pub use wire::{
    Base64, CallResult, Environment, LONGEST_LINE, PROTOCOL, Reply, Request, SessionTerms, WireCall,
};

use crate::own_socket::OwnSocketError;
use std::io;

/// Why there is no daemon, or no answer of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// There is no place for it.
    #[error("there is no directory for settings, and so no place for a daemon; set HOME")]
    NoSettings,
    /// Its socket cannot be used.
    #[error("there is no daemon to be had: {0}")]
    Place(#[from] OwnSocketError),
    /// It could not be started.
    #[error("the daemon could not be started: {reason}")]
    NotStarted {
        /// Why.
        reason: String,
    },
    /// The one that runs speaks another language.
    #[error(
        "the daemon that runs (process {pid}) is of version {version}; end it and its processes with: \
         sandgate session stop"
    )]
    OtherVersion {
        /// Its process id.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// It ended, or closed the connection.
    #[error("the daemon has ended, and all its processes with it")]
    Gone,
    /// The connection failed.
    #[error("the connection to the daemon failed: {0}")]
    Connection(io::Error),
    /// It said no.
    #[error("{0}")]
    Refused(String),
}
