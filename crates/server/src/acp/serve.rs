//! What an editor asks for.

use super::content::{chunk, input};
use super::frames::Frames;
use super::modes::{Mode, Modes, Policies};
use super::servers::programs;
use super::session::{BegunTurn, Editor, Lever, Live, Parts, Place, tell};
use super::terminal;
use super::updates::replayed;
use crate::{
    ClientPerson, NewConversation, OpenError, OpenedConversation, Opener, WantedAgent,
    WantedSession,
};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CurrentModeUpdate, Implementation, InitializeRequest,
    InitializeResponse, LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest,
    NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, SessionId,
    SessionModeId, SessionUpdate, SetSessionModeRequest, SetSessionModeResponse, StopReason,
};
use agent_client_protocol::{Agent, Error, Lines};
use futures_util::SinkExt;
use sandgate_agent::{ModelError, TurnEnd};
use sandgate_protocol::{SessionSource, visible_line};
use sandgate_runtime::{DeskPlace, Requester, ServerAnswers};
use std::collections::{HashMap, HashSet};
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
    let served = Arc::new(Served {
        door,
        sessions: Mutex::default(),
        opening: Mutex::default(),
        terminals: AtomicBool::new(false),
    });
    let incoming = FramedRead::new(reading, Frames::up_to(LONGEST_MESSAGE));
    let outgoing = FramedWrite::new(writing, LinesCodec::new());
    let outgoing = SinkExt::<String>::sink_map_err(outgoing, of_line);
    let transport = Lines::new(Box::pin(outgoing), Box::pin(incoming));
    let [greets, begins, loads, chooses, prompts, cancels] = [(); 6].map(|()| Arc::clone(&served));
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
                    responder.respond_with_result(begun.map(|live| {
                        NewSessionResponse::new(live.id.clone()).modes(live.modes.told())
                    }))
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
                    responder.respond_with_result(
                        loaded.map(|live| LoadSessionResponse::new().modes(live.modes.told())),
                    )
                });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest,
                        responder: Responder<SetSessionModeResponse>,
                        editor: Editor| {
                // Before the next message is read, which may be a prompt.
                let (live, turn) = match chooses.begin_turn(&request.session_id) {
                    Ok(begun) => begun,
                    Err(error) => return responder.respond_with_error(error),
                };
                let served = Arc::clone(&chooses);
                tokio::spawn(async move {
                    let chosen = served.choose(&editor, &live, turn, &request.mode_id).await;
                    responder.respond_with_result(chosen.map(|()| SetSessionModeResponse::new()))
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
                let (live, turn) = match prompts.begin_turn(&request.session_id) {
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
    opening: Mutex<Opening>,
    /// Whether it shows output that is sent along.
    terminals: AtomicBool,
}

/// What is being opened.
#[derive(Default)]
struct Opening {
    /// How many.
    count: usize,
    /// Which of the conversations that are written down.
    resumed: HashSet<String>,
}

/// A place for a session that is being opened.
struct Reserved<'a> {
    served: &'a Served,
    resumed: Option<String>,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut opening = self.served.opening();
        opening.count -= 1;
        if let Some(id) = &self.resumed {
            opening.resumed.remove(id);
        }
    }
}

impl Served {
    /// A place for another session, of the conversation of this name if it is not a new one.
    fn reserve(&self, resumed: Option<&str>) -> Result<Reserved<'_>, Error> {
        let sessions = self.sessions();
        let mut opening = self.opening();
        if sessions.len() + opening.count >= MOST_SESSIONS {
            return Err(refused(&format!("there are {MOST_SESSIONS} sessions, which is the most")));
        }
        if let Some(id) = resumed
            && (sessions.contains_key(&SessionId::new(id)) || opening.resumed.contains(id))
        {
            return Err(refused("this session is open already"));
        }
        opening.count += 1;
        let resumed = resumed.map(str::to_owned);
        opening.resumed.extend(resumed.clone());
        Ok(Reserved { served: self, resumed })
    }

    fn opening(&self) -> std::sync::MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn greet(&self, request: &InitializeRequest) -> InitializeResponse {
        self.terminals.store(terminal::is_shown(&request.client_capabilities), Ordering::Relaxed);
        let prompts = PromptCapabilities::new().image(true).embedded_context(true);
        let capabilities = AgentCapabilities::new().load_session(true).prompt_capabilities(prompts);
        let info = Implementation::new("sandgate", env!("CARGO_PKG_VERSION")).title("Sandgate");
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info)
    }

    async fn begin(&self, editor: &Editor, request: NewSessionRequest) -> Result<Arc<Live>, Error> {
        let conversation = NewConversation::Recorded;
        self.open(editor, request.cwd, conversation, request.mcp_servers).await
    }

    /// Goes on with a conversation. All of it is told before it is said to be loaded.
    async fn load(&self, editor: &Editor, request: LoadSessionRequest) -> Result<Arc<Live>, Error> {
        let id = request.session_id.0.to_string();
        let conversation = NewConversation::Resumed(id);
        self.open(editor, request.cwd, conversation, request.mcp_servers).await
    }

    async fn open(
        &self,
        editor: &Editor,
        cwd: PathBuf,
        wanted: NewConversation,
        mcp_servers: Vec<McpServer>,
    ) -> Result<Arc<Live>, Error> {
        if !cwd.is_absolute() {
            return Err(refused("the directory of a session must be named by its whole path"));
        }
        let resumed = match &wanted {
            NewConversation::Resumed(id) => Some(id.as_str()),
            _ => None,
        };
        let is_resumed = resumed.is_some();
        let _reserved = self.reserve(resumed)?;
        let (mcp_servers, mut notes) = programs(mcp_servers);
        let server_answers = ServerAnswers::default();
        let servers = (mcp_servers.clone(), server_answers.clone());
        let mut opened = self.converse(cwd, wanted, None, servers).await?;
        let id = SessionId::new(opened.conversation.id());
        // The beginning of a name names it too.
        if self.sessions().contains_key(&id) {
            return Err(refused("this session is open already"));
        }
        if is_resumed {
            for update in replayed(opened.conversation.items()) {
                tell(editor, &id, update);
            }
        }
        notes.append(&mut opened.notes);
        let requester = opened.session.requester();
        let settings = policies_of(&requester);
        let modes = match opened.conversation.is_recorded() {
            true => Modes::within(&settings, requester.workspace()),
            false => Modes::one(settings),
        };
        // Looked up once: a link that leads elsewhere by then does not take another mode there.
        let cwd = requester.workspace().to_owned();
        let stop = Lever::default();
        let place = self.place(editor, &id, &stop, modes.first(), opened).await;
        let parts = Parts { id, cwd, mcp_servers, server_answers, modes, stop, place, notes };
        let live = Arc::new(Live::new(parts));
        self.sessions().insert(live.id.clone(), Arc::clone(&live));
        Ok(live)
    }

    /// Has a session opened, by the settings of its directory and as far as these policies.
    async fn converse(
        &self,
        cwd: PathBuf,
        conversation: NewConversation,
        policies: Option<&Policies>,
        (mcp_servers, server_answers): (Vec<sandgate_config::McpServer>, ServerAnswers),
    ) -> Result<OpenedConversation, Error> {
        let session = WantedSession {
            front_end: "acp",
            workspace: Some(cwd),
            approval_policy: policies.map(|policies| policies.approval),
            sandbox_policy: policies.map(|policies| policies.sandbox.clone()),
            ..WantedSession::default()
        };
        let agent = WantedAgent {
            source: SessionSource::Interactive,
            conversation,
            mcp_servers,
            server_answers,
            ..WantedAgent::default()
        };
        let opener = Arc::clone(&self.door.opener);
        let opened = tokio::task::spawn_blocking(move || opener.conversation(session, agent));
        opened.await.map_err(|error| failed(&error.to_string()))?.map_err(of_open)
    }

    async fn place(
        &self,
        editor: &Editor,
        id: &SessionId,
        stop: &Lever,
        mode: &Mode,
        opened: OpenedConversation,
    ) -> Place {
        let terminals = self.terminals.load(Ordering::Relaxed);
        Place::begin(editor, id, &self.door, stop, terminals, mode.id(), opened).await
    }

    /// Goes on with a session in another mode. The policies of a session hold as long as it lives, so what ran under
    /// those before ends, and what was approved under them is forgotten. What was said of servers holds: they are
    /// confined by a policy of their own.
    async fn choose(
        &self,
        editor: &Editor,
        live: &Live,
        mut turn: BegunTurn,
        mode: &SessionModeId,
    ) -> Result<(), Error> {
        let mode = live.modes.find(mode).ok_or_else(|| refused("there is no such mode here"))?;
        if turn.mode() == Some(&mode.id()) {
            return Ok(());
        }
        turn.leave().await;
        let conversation = NewConversation::Resumed(live.id.0.to_string());
        let servers = (live.mcp_servers.clone(), live.server_answers.clone());
        let cwd = live.cwd.clone();
        let mut opened = self.converse(cwd, conversation, Some(&mode.policies), servers).await?;
        let taken = policies_of(&opened.session.requester());
        if taken != mode.policies {
            let now = taken.in_words();
            let note = format!("your settings have become stricter than this mode: {now}");
            live.add_notes(vec![note]);
        }
        live.add_notes(std::mem::take(&mut opened.notes));
        turn.enter(self.place(editor, &live.id, live.lever(), mode, opened).await);
        let update = CurrentModeUpdate::new(mode.id());
        tell(editor, &live.id, SessionUpdate::CurrentModeUpdate(update));
        Ok(())
    }

    /// The session of this name, and a turn in it.
    fn begin_turn(&self, id: &SessionId) -> Result<(Arc<Live>, BegunTurn), Error> {
        let live = self.find(id)?;
        let turn = live.begin_turn();
        let turn = turn.ok_or_else(|| refused("this session is at work; cancel that first"))?;
        Ok((live, turn))
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
    let Some(end) = turn.take(input).await else {
        return Err(failed(
            "this session could not be opened in the mode that was chosen; choose another",
        ));
    };
    let reason = match end {
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

fn policies_of(requester: &Requester) -> Policies {
    let (approval, sandbox) = (requester.approval_policy(), requester.sandbox_policy().clone());
    Policies { approval, sandbox }
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
