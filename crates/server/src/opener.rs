//! How a door comes by sessions.

use sandgate_agent::{Conversation, McpServers};
use sandgate_config::McpServer;
use sandgate_protocol::{AskForApproval, SandboxPolicy, SessionSource};
use sandgate_runtime::{ServerAnswers, Session};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Opens sessions as the person's settings say. Both ways read files, and block while they do.
pub trait Opener: Send + Sync {
    /// A session for calls. What they change together is not told.
    ///
    /// # Errors
    /// When the settings are not in order or the workspace cannot be used.
    fn session(&self, wanted: WantedSession) -> Result<Session, OpenError>;

    /// A session with a model in it.
    ///
    /// # Errors
    /// When the settings are not in order, the workspace cannot be used or there is no such conversation.
    fn conversation(
        &self,
        wanted: WantedSession,
        agent: WantedAgent,
    ) -> Result<OpenedConversation, OpenError>;
}

/// What a client wants of a session. What it does not name is as the settings say.
#[derive(Debug, Clone, Default)]
pub struct WantedSession {
    /// What the session is called by in the record: `serve`, `mcp`, `acp`.
    pub front_end: &'static str,
    /// Where it works.
    pub workspace: Option<PathBuf>,
    /// Who said so.
    pub workspace_from: WorkspaceFrom,
    /// When a person is asked, if that is no looser.
    pub approval_policy: Option<AskForApproval>,
    /// What commands may touch, as far as they may anyway.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// How long a question waits, if the settings do not say.
    pub approval_timeout: Option<Duration>,
}

/// Who said where a session works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkspaceFrom {
    /// Somebody whom the person gave the right to.
    #[default]
    Person,
    /// A program by itself: what it names is written to only if the person has said something about it.
    Client,
}

/// What a client wants of the model.
#[derive(Debug, Clone, Default)]
pub struct WantedAgent {
    /// Who it works for.
    pub source: SessionSource,
    /// Which conversation it is.
    pub conversation: NewConversation,
    /// The model.
    pub model: Option<String>,
    /// Who serves it.
    pub provider: Option<String>,
    /// Servers whose tools it is to have beside those of the settings. They are programs, and none is started that
    /// the person was not asked about.
    pub mcp_servers: Vec<McpServer>,
    /// What was answered about servers in the sessions that this one follows.
    pub server_answers: ServerAnswers,
}

/// Which conversation a client wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NewConversation {
    /// One that begins, and is written down.
    #[default]
    Recorded,
    /// One that begins, and is not.
    Ephemeral,
    /// The one that is written down under this id.
    Resumed(String),
}

/// A session with a model in it, whose servers have not been started yet.
pub struct OpenedConversation {
    /// The session.
    pub session: Session,
    /// The model in it.
    pub conversation: Conversation,
    /// The servers whose tools the model gets.
    pub mcp_servers: Vec<McpServer>,
    /// What of the person's environment those may be given.
    pub own_env: BTreeMap<OsString, OsString>,
    /// What the person should know, as sentences.
    pub notes: Vec<String>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The client asked for what cannot be.
    #[error("{0}")]
    Refused(String),
    /// There is no such conversation.
    #[error("{0}")]
    NoSuchConversation(String),
    /// Something could not be done.
    #[error("{0}")]
    Failed(String),
}

impl OpenedConversation {
    /// Starts the servers. Whoever wants to hear what they ask, and why they fail, listens to the session
    /// before.
    pub fn begin(self) -> (Session, Conversation) {
        let mcp = McpServers::start(&self.session.requester(), self.mcp_servers, &self.own_env);
        (self.session, self.conversation.with_mcp(mcp))
    }
}
