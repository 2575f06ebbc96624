//! What a client wants to hear of while it works.

// Logging is on its way out of the protocol, and is what clients have now.
#![expect(deprecated, reason = "clients of both generations are told of warnings by it")]

use super::handler::Generation;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};

/// The least that a client wants to hear of; nothing if there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level(Option<LoggingLevel>);

impl Default for Level {
    /// Clients of the older generation hear of warnings unless they say otherwise.
    fn default() -> Self {
        Self(Some(LoggingLevel::Info))
    }
}

impl From<LoggingLevel> for Level {
    fn from(level: LoggingLevel) -> Self {
        Self(Some(level))
    }
}

impl Level {
    /// What a request wants to hear of, on a connection of this level. In the newer generation each says so
    /// itself.
    pub(super) fn of(context: &RequestContext<RoleServer>, connection: Self) -> Self {
        match Generation::of(context) {
            Generation::Handshake => connection,
            Generation::Stateless => Self(context.meta.log_level()),
        }
    }

    /// Tells a client of something that a person should know.
    pub(super) async fn tell(self, peer: &Peer<RoleServer>, message: &str) {
        use LoggingLevel::{Debug, Info, Notice, Warning};
        if matches!(self.0, Some(Debug | Info | Notice | Warning)) {
            let said = LoggingMessageNotificationParam::new(Warning, message.into());
            // A client that is gone need not be told.
            let _ = peer.notify_logging_message(said.with_logger("sandgate")).await;
        }
    }
}
