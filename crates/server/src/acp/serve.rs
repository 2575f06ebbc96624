//! What an editor asks for.

use super::content::{chunk, input};
use super::session::{BegunTurn, Editor, Live, Parts, tell};
use super::terminal;
use super::updates::replayed;
use crate::{ClientPerson, NewConversation, OpenError, Opener, WantedAgent, WantedSession};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    PromptCapabilities, PromptRequest, PromptResponse, SessionId, SessionUpdate, StopReason,
};
use agent_client_protocol::{Agent, Error, Lines};
use futures_util::{SinkExt, StreamExt as _};
use sandgate_agent::{ModelError, TurnEnd};
use sandgate_protocol::{SessionSource, visible_line};
use sandgate_runtime::{Asker, Delivery, DeskPlace};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

/// The longest message of an editor, in bytes: a prompt with pictures.
const LONGEST_MESSAGE: usize = 64 << 20;

/// How many sessions there may be.
const MOST_SESSIONS: usize = 64;

/// What the protocol calls a resource that is not there.
const NOT_FOUND: i32 = -32002;

/// How long the end of all that goes on is waited for when the editor has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is needed to serve an editor.
pub struct AcpDoor {
    /// Opens its sessions.
    pub opener: Arc<dyn Opener>,
    /// Where their questions lie, beside being asked in the editor.
    pub desk: DeskPlace,
    /// Lets the person at the editor answer the questions of a session.
    pub person: ClientPerson,
}

/// Serves one editor until it closes the connection. Then all that it had started has ended.
///
/// # Errors
/// When the connection fails.
pub async fn serve(
    door: AcpDoor,
    reading: impl AsyncRead + Send + 'static,
    writing: impl AsyncWrite + Send + 'static,
) -> io::Result<()> {
    let served =
        Arc::new(Served { door, sessions: Mutex::default(), terminals: AtomicBool::new(false) });
    let lines = LinesCodec::new_with_max_length(LONGEST_MESSAGE);
    let incoming = FramedRead::new(reading, lines).map(|line| line.map_err(of_line));
    let outgoing = FramedWrite::new(writing, LinesCodec::new());
    let outgoing = SinkExt::<String>::sink_map_err(outgoing, of_line);
    let transport = Lines::new(Box::pin(outgoing), Box::pin(incoming));
    let [greets, begins, loads, prompts, cancels] = [(); 5].map(|()| Arc::clone(&served));
    let connection = Agent
        .v1()
        .name("sandgate")
        .on_receive_request(
            async move |request: InitializeRequest, responder: Responder<InitializeResponse>, _| {
                responder.respond(greets.greet(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest,
                        responder: Responder<NewSessionResponse>,
                        editor: Editor| {
                let served = Arc::clone(&begins);
                tokio::spawn(async move {
                    let begun = served.begin(&editor, request).await;
                    responder.respond_with_result(begun.map(NewSessionResponse::new))
                });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest,
                        responder: Responder<LoadSessionResponse>,
                        editor: Editor| {
                let served = Arc::clone(&loads);
                tokio::spawn(async move {
                    let loaded = served.load(&editor, request).await;
                    responder.respond_with_result(loaded.map(|()| LoadSessionResponse::new()))
                });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse>,
                        editor: Editor| {
                // Before the next message is read, which may call it off.
                let begun = prompts.find(&request.session_id).and_then(|live| {
                    let turn = live.begin_turn();
                    let turn =
                        turn.ok_or_else(|| refused("this session is at work; cancel that first"));
                    Ok((live, turn?))
                });
                let (live, turn) = match begun {
                    Ok(begun) => begun,
                    Err(error) => return responder.respond_with_error(error),
                };
                tokio::spawn(async move {
                    responder.respond_with_result(prompt(&editor, &live, turn, request).await)
                });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |request: CancelNotification, _| {
                if let Ok(live) = cancels.find(&request.session_id) {
                    live.cancel();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(transport)
        .await;
    // Nothing goes on for an editor that is not there.
    let sessions: Vec<_> = served.sessions().drain().map(|(_, live)| live).collect();
    let ended = futures_util::future::join_all(sessions.iter().map(|live| live.end()));
    let _ = tokio::time::timeout(PATIENCE, ended).await;
    connection.map_err(|error| io::Error::other(error.message))
}

fn of_line(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        error @ LinesCodecError::MaxLineLengthExceeded => io::Error::other(error),
    }
}

/// An editor that is served.
struct Served {
    door: AcpDoor,
    sessions: Mutex<HashMap<SessionId, Arc<Live>>>,
    /// Whether it shows output that is sent along.
    terminals: AtomicBool,
}

impl Served {
    fn greet(&self, request: &InitializeRequest) -> InitializeResponse {
        self.terminals.store(terminal::is_shown(&request.client_capabilities), Ordering::Relaxed);
        let prompts = PromptCapabilities::new().image(true).embedded_context(true);
        let capabilities = AgentCapabilities::new().load_session(true).prompt_capabilities(prompts);
        let info = Implementation::new("sandgate", env!("CARGO_PKG_VERSION")).title("Sandgate");
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info)
    }

    async fn begin(&self, editor: &Editor, request: NewSessionRequest) -> Result<SessionId, Error> {
        let conversation = NewConversation::Recorded;
        let live = self.open(editor, request.cwd, conversation, &request.mcp_servers).await?;
        Ok(live.id.clone())
    }

    /// Goes on with a conversation. All of it is told before it is said to be loaded.
    async fn load(&self, editor: &Editor, request: LoadSessionRequest) -> Result<(), Error> {
        let id = request.session_id.0.to_string();
        if self.sessions().contains_key(&request.session_id) {
            return Err(refused("this session is open already"));
        }
        let conversation = NewConversation::Resumed(id);
        self.open(editor, request.cwd, conversation, &request.mcp_servers).await?;
        Ok(())
    }

    async fn open(
        &self,
        editor: &Editor,
        cwd: PathBuf,
        wanted: NewConversation,
        mcp_servers: &[McpServer],
    ) -> Result<Arc<Live>, Error> {
        if self.sessions().len() >= MOST_SESSIONS {
            return Err(refused(&format!("there are {MOST_SESSIONS} sessions, which is the most")));
        }
        if !cwd.is_absolute() {
            return Err(refused("the directory of a session must be named by its whole path"));
        }
        let session =
            WantedSession { front_end: "acp", workspace: Some(cwd), ..WantedSession::default() };
        let is_resumed = matches!(wanted, NewConversation::Resumed(_));
        let agent = WantedAgent {
            source: SessionSource::Interactive,
            conversation: wanted,
            ..WantedAgent::default()
        };
        let opener = Arc::clone(&self.door.opener);
        let opened = tokio::task::spawn_blocking(move || opener.conversation(session, agent));
        let mut opened =
            opened.await.map_err(|error| failed(&error.to_string()))?.map_err(of_open)?;
        if !mcp_servers.is_empty() {
            let note = "the MCP servers of the editor are not used; those of your settings are";
            opened.notes.push(note.to_owned());
        }
        let id = SessionId::new(opened.conversation.id());
        if is_resumed {
            for update in replayed(opened.conversation.items()) {
                tell(editor, &id, update);
            }
        }
        let notes = std::mem::take(&mut opened.notes);
        let asker = Asker {
            front_end: "acp".to_owned(),
            workspace: opened.session.requester().workspace().to_string_lossy().into_owned(),
            conversation: Some(opened.conversation.id().to_owned()),
        };
        let events = opened.session.events(Delivery::Lossy).await;
        let attendance = self.door.desk.attend(&opened.session, asker).await;
        let approver = (self.door.person)(&opened.session);
        let terminals = self.terminals.load(Ordering::Relaxed);
        let (session, conversation) = opened.begin();
        let parts =
            Parts { id, session, conversation, events, attendance, approver, terminals, notes };
        let live = Arc::new(Live::begin(editor, parts));
        self.sessions().insert(live.id.clone(), Arc::clone(&live));
        Ok(live)
    }

    fn find(&self, id: &SessionId) -> Result<Arc<Live>, Error> {
        let found = self.sessions().get(id).cloned();
        found.ok_or_else(|| refused("there is no such session"))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Arc<Live>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a turn, and says how it ended.
async fn prompt(
    editor: &Editor,
    live: &Live,
    turn: BegunTurn,
    request: PromptRequest,
) -> Result<PromptResponse, Error> {
    let input = input(request.prompt).map_err(refused)?;
    for note in live.take_notes() {
        let note = format!("{}\n", visible_line(&note));
        tell(editor, &live.id, SessionUpdate::AgentThoughtChunk(chunk(note)));
    }
    let reason = match turn.take(input).await {
        TurnEnd::Complete { .. } => StopReason::EndTurn,
        TurnEnd::Aborted => StopReason::Cancelled,
        TurnEnd::Limit(why) => {
            tell(editor, &live.id, SessionUpdate::AgentMessageChunk(chunk(why)));
            StopReason::MaxTurnRequests
        }
        TurnEnd::Failed(error @ ModelError::Key(_)) => {
            let mut needed = Error::auth_required();
            needed.message = error.to_string();
            return Err(needed);
        }
        TurnEnd::Failed(error) => return Err(failed(&error.to_string())),
    };
    Ok(PromptResponse::new(reason))
}

fn of_open(error: OpenError) -> Error {
    match error {
        OpenError::Refused(why) => refused(&why),
        OpenError::NoSuchConversation(why) => Error::new(NOT_FOUND, why),
        OpenError::Failed(why) => failed(&why),
    }
}

/// The editor asked for what cannot be.
fn refused(why: &str) -> Error {
    let mut error = Error::invalid_params();
    why.clone_into(&mut error.message);
    error
}

fn failed(why: &str) -> Error {
    let mut error = Error::internal_error();
    why.clone_into(&mut error.message);
    error
}
