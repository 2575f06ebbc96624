//! Why a model did not answer.

use std::time::Duration;

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// There is no key, or none that can be used.
    #[error("{0}")]
    Key(String),
    /// The settings of the provider make no sense.
    #[error("{0}")]
    Settings(String),
    /// The provider could not be reached.
    #[error("cannot reach {provider}: {reason}")]
    Unreachable {
        /// The provider.
        provider: String,
        /// What went wrong.
        reason: String,
    },
    /// The provider said no.
    #[error("{provider} answered {status}: {message}")]
    Status {
        /// The provider.
        provider: String,
        /// The status of its answer.
        status: u16,
        /// What it says.
        message: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Nobody has paid for more.
    #[error("{provider} gives nothing more for this key: {message}")]
    Quota {
        /// The provider.
        provider: String,
        /// What it says.
        message: String,
    },
    /// The conversation does not fit into the model.
    #[error("the conversation is longer than {model} can read: {message}")]
    ContextOverflow {
        /// The model.
        model: String,
        /// What its provider says.
        message: String,
    },
    /// The stream broke off, or said that something went wrong.
    #[error("the answer of {provider} broke off: {reason}")]
    BrokenOff {
        /// The provider.
        provider: String,
        /// What went wrong.
        reason: String,
    },
    /// Nothing came for too long.
    #[error("{provider} was silent for {} s", limit.as_secs())]
    Silent {
        /// The provider.
        provider: String,
        /// How long it may be.
        limit: Duration,
    },
    /// What came cannot be understood.
    #[error("{provider} sent what cannot be understood: {reason}")]
    Malformed {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ModelError {
    /// Whether the same request can come to something if it is made again.
    pub fn can_be_retried(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::BrokenOff { .. } | Self::Silent { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
            Self::Key(_) | Self::Settings(_) | Self::Quota { .. } => false,
            Self::ContextOverflow { .. } | Self::Malformed { .. } => false,
        }
    }
}
