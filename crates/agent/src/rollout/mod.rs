//! Conversations on disk: each is a file that is only ever added to, in the directory of the person's
//! settings, which no command can write to.

mod find;
mod read;
mod write;

pub use find::{Found, find, list};
pub use read::{Recorded, read};
pub use write::Rollout;

use sandgate_protocol::{ResponseItem, SessionSource, TokenUsage};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Something is wrong with a recorded conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RolloutError {
    /// There is none of that name.
    #[error("there is no conversation {0:?}; sandgate sessions list shows what there is")]
    NotFound(String),
    /// There is none at all.
    #[error("no conversation was written down yet; sandgate exec begins one")]
    None,
    /// The name fits several.
    #[error("{0:?} is the beginning of several conversations; write more of it")]
    Ambiguous(String),
    /// Another program goes on with it.
    #[error("{} is in use by another sandgate", .0.display())]
    InUse(PathBuf),
    /// It is none.
    #[error("{}: {reason}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system did not let us.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl RolloutError {
    /// For `map_err`: what was tried, with what.
    fn doing(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), reason: reason.into() }
    }
}

/// How a conversation began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// What it is known by.
    pub id: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// Where it works.
    pub cwd: PathBuf,
    /// Who it works for.
    pub source: SessionSource,
    /// The conversation that it works for, if it is a subagent's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// The model.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// The version of this program.
    pub version: String,
    /// What the model was told to be.
    pub instructions: String,
}

impl SessionMeta {
    /// Whether another conversation began it.
    pub fn is_of_subagent(&self) -> bool {
        matches!(self.source, SessionSource::SubAgent(_))
    }
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    /// When it was written.
    at: jiff::Timestamp,
    #[serde(flatten)]
    entry: Entry,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// How it began: always the first line.
    SessionMeta(SessionMeta),
    /// Something was said or done.
    Item { item: ResponseItem },
    /// The history was made shorter: it is this from now on.
    Compacted { items: Vec<ResponseItem> },
    /// What a request used.
    Usage { usage: TokenUsage },
    /// What a later version writes.
    #[serde(other)]
    Unknown,
}

/// Where conversations are kept.
fn directory(config_home: &Path) -> PathBuf {
    config_home.join("sessions")
}
