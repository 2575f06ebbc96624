//! What all requests share.

use super::approvals::Questions;
use super::crowd::Crowd;
use super::guard::Reached;
use super::problem::Problem;
use super::tokens::Tokens;
use crate::asking::{Caller, ClientPerson};
use crate::live::{Conversations, LiveConversation};
use crate::opener::{Opener, WantedSession};
use axum::http::{Method, Uri};
use sandgate_protocol::{Enforcement, visible_line};
use sandgate_runtime::{Asker, Attendance, Desk, Session, Stop};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the sessions of this door are called in the record.
pub(crate) const FRONT_END: &str = "serve";

/// How often a person is told that something was refused, in a minute.
const MOST_NOTES: u32 = 10;

/// What a server is made with.
pub struct ServerOptions {
    /// Opens sessions.
    pub opener: Arc<dyn Opener>,
    /// Where their questions lie.
    pub desk: Arc<Desk>,
    /// The directory of the person's settings: the recorded conversations and the audit log are there.
    pub settings: Option<PathBuf>,
    /// Where files without names take up room.
    pub scratch: PathBuf,
    /// Where requesters may work: in these, and below them. The first is where they work if they do not say.
    pub workspaces: Vec<PathBuf>,
    /// Who passes on what a person answers at an MCP client that has the approver's token.
    pub person: Option<ClientPerson>,
    /// Who is let in.
    pub tokens: Arc<Tokens>,
    /// How the server is reached.
    pub reached: Reached,
    /// What this machine's sandbox can enforce.
    pub enforcement: Enforcement,
    /// What the program counts, as text that Prometheus reads.
    pub figures: Box<dyn Fn() -> String + Send + Sync>,
    /// Tells the person who started the server something, as a line.
    pub notes: Box<dyn Fn(&str) + Send + Sync>,
    /// How much clients may take.
    pub limits: Limits,
}

/// How much clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections there may be at once.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may wait for one.
    pub head: Duration,
    /// How long a client may read nothing of what it is sent.
    pub reading: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How large what requesters send may be together, as long as it is worked on, in bytes.
    pub bodies: u64,
    /// How large a conversation's events may be before output is left out, in bytes.
    pub events: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            head: Duration::from_secs(15),
            reading: Duration::from_secs(30),
            body: Duration::from_secs(30),
            bodies: 256 << 20,
            events: 256 << 20,
        }
    }
}

/// A server: what all requests share.
pub struct Server {
    pub(super) opener: Arc<dyn Opener>,
    pub(super) desk: Arc<Desk>,
    pub(super) questions: Questions,
    pub(super) settings: Option<PathBuf>,
    pub(super) scratch: PathBuf,
    pub(super) workspaces: Arc<[PathBuf]>,
    pub(super) person: Option<ClientPerson>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) reached: Reached,
    pub(super) enforcement: Enforcement,
    pub(super) figures: Box<dyn Fn() -> String + Send + Sync>,
    notes: Box<dyn Fn(&str) + Send + Sync>,
    pub(super) limits: Limits,
    pub(super) conversations: Conversations,
    /// One conversation is opened at a time, so that nobody opens the same one twice.
    pub(super) opening: tokio::sync::Mutex<()>,
    /// The session for calls that belong to no conversation.
    own: tokio::sync::Mutex<Option<Arc<OwnSession>>>,
    told: Mutex<Told>,
    pub(super) crowd: Arc<Crowd>,
    /// Ends everything.
    pub(super) stop: Stop,
}

/// A session for calls that belong to no conversation.
pub(super) struct OwnSession {
    pub(super) session: Session,
    _attendance: Attendance,
}

/// How often the person was told of something lately.
struct Told {
    since: Instant,
    notes: u32,
}

impl Server {
    /// One that has nothing open yet.
    pub fn new(options: ServerOptions) -> Arc<Self> {
        let canonical = |directory: PathBuf| directory.canonicalize().unwrap_or(directory);
        Arc::new(Self {
            opener: options.opener,
            questions: Questions::on(Arc::clone(&options.desk), options.settings.as_deref()),
            desk: options.desk,
            settings: options.settings,
            scratch: options.scratch,
            workspaces: options.workspaces.into_iter().map(canonical).collect(),
            person: options.person,
            tokens: options.tokens,
            reached: options.reached,
            enforcement: options.enforcement,
            figures: options.figures,
            notes: options.notes,
            limits: options.limits,
            conversations: Conversations::default(),
            opening: tokio::sync::Mutex::default(),
            own: tokio::sync::Mutex::default(),
            told: Mutex::new(Told { since: Instant::now(), notes: 0 }),
            crowd: Crowd::new(options.limits.connections, options.limits.bodies),
            stop: Stop::default(),
        })
    }

    /// Ends all that is done, and waits for it.
    pub async fn close(&self) {
        self.stop.cancel.cancel();
        self.conversations.close_all().await;
        if let Some(own) = self.own.lock().await.take() {
            own.session.end_processes().await;
        }
    }

    /// Writes down that a request was refused, and tells the person, though not too often.
    pub(super) fn refused(&self, problem: &Problem, method: &Method, uri: &Uri) {
        let path: String = uri.path().chars().take(200).collect();
        let what = format!("{problem}: {method} {path}");
        self.note(&visible_line(&format!("refused a request: {what}")));
    }

    /// Tells the person something, though not too often, and the log in any case.
    pub(super) fn note(&self, line: &str) {
        tracing::warn!("{line}");
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.since.elapsed() > Duration::from_secs(60) {
            *told = Told { since: Instant::now(), notes: 0 };
        }
        told.notes += 1;
        match told.notes {
            0..MOST_NOTES => (self.notes)(line),
            MOST_NOTES => {
                (self.notes)(line);
                (self.notes)("more of this is only in the log, for a minute (SANDGATE_LOG=warn)");
            }
            _ => {}
        }
    }

    /// The session for calls that belong to no conversation, which the first of them opens.
    pub(super) async fn own_session(&self) -> Result<Arc<OwnSession>, Problem> {
        let mut own = self.own.lock().await;
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        let wanted = WantedSession {
            front_end: FRONT_END,
            workspace: self.workspaces.first().cloned(),
            ..WantedSession::default()
        };
        let session = self.blocking(move |opener| opener.session(wanted)).await??;
        let attendance = self.desk.attend(&session, asker(&session)).await;
        let opened = Arc::new(OwnSession { session, _attendance: attendance });
        *own = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The same, if one was opened.
    pub(super) async fn opened_session(&self) -> Option<Arc<OwnSession>> {
        self.own.lock().await.clone()
    }

    /// Does something that blocks.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Opener) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let opener = Arc::clone(&self.opener);
        tokio::task::spawn_blocking(move || work(&*opener)).await.map_err(Problem::failed)
    }

    /// Whether a caller may use what works in this directory, which is a real path: whoever approves may,
    /// and whoever requests where requesters may work.
    pub(super) fn lets_use(&self, caller: Caller, directory: &Path) -> bool {
        match caller {
            Caller::Approver => true,
            Caller::Requester => {
                let goes_up = directory.components().any(|part| part == Component::ParentDir);
                !goes_up && self.workspaces.iter().any(|root| directory.starts_with(root))
            }
        }
    }

    /// The open conversations that a caller may use, the one that was opened last first.
    pub(super) fn conversations_of(&self, caller: Caller) -> Vec<Arc<LiveConversation>> {
        let mut all = self.conversations.all();
        all.retain(|live| self.lets_use(caller, &live.about.cwd));
        all
    }
}

fn asker(session: &Session) -> Asker {
    let workspace = session.requester().workspace().to_string_lossy().into_owned();
    Asker { front_end: FRONT_END.to_owned(), workspace, conversation: None }
}
