//! Where the daemon is found.

use crate::own_socket::{OwnSocket, OwnSocketError, Taken};
use std::path::Path;
use tokio::net::UnixStream;

/// Where the daemon of a person is found. Whoever listens at its socket is the daemon.
#[derive(Debug, Clone)]
pub struct Place(OwnSocket);

impl Place {
    /// The place in these settings.
    pub fn in_settings(settings: &Path) -> Self {
        Self(OwnSocket::new(settings, "daemon", "socket", "lock"))
    }

    /// The settings.
    pub(super) fn settings(&self) -> &Path {
        self.0.settings()
    }

    pub(super) fn directory(&self) -> &Path {
        self.0.directory()
    }

    /// Connects to the daemon. None if there is no daemon.
    pub(super) async fn connect(&self) -> Result<Option<UnixStream>, OwnSocketError> {
        self.0.connect().await
    }

    /// Takes the place of the daemon. None if somebody has it.
    pub(super) fn take(&self) -> Result<Option<Taken>, OwnSocketError> {
        self.0.take()
    }
}
