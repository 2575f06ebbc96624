//! One session: a conversation, whoever listens to it, and what its person is asked.

use super::modes::Modes;
use super::permission::{Asked, asked};
use super::serve::AcpDoor;
use super::updates::{Updates, call};
use crate::{ClientApprover, OpenedConversation};
use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    RequestPermissionOutcome, SessionId, SessionModeId, SessionNotification, SessionUpdate,
};
use sandgate_agent::{Conversation, McpServers, TurnEnd, UserInput};
use sandgate_config::McpServer;
use sandgate_protocol::{AgentEvent, ApprovalId, Event, ReviewDecision};
use sandgate_runtime::{Asker, Attendance, Delivery, Events, ServerAnswers, Session, Stop};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

/// The connection to the editor.
pub(super) type Editor = ConnectionTo<Client>;

/// A session with a model in it.
pub(super) struct Live {
    pub(super) id: SessionId,
    /// Where it works.
    pub(super) cwd: PathBuf,
    /// The servers that the editor named.
    pub(super) mcp_servers: Vec<McpServer>,
    /// What the person said of those, whatever the mode.
    pub(super) server_answers: ServerAnswers,
    pub(super) modes: Modes,
    turns: Arc<AsyncMutex<Turns>>,
    /// Calls off the turn that goes on.
    stop: Lever,
    /// What the person should know, and has not been told.
    notes: Mutex<Vec<String>>,
}

/// Calls off the turn that goes on, or the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct Lever(Arc<Mutex<Stop>>);

impl Lever {
    fn stop(&self) -> std::sync::MutexGuard<'_, Stop> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What turns are taken in: nothing, if the session could not be opened again.
type Turns = Option<Place>;

/// A session of ours, and the conversation in it.
pub(super) struct Place {
    mode: SessionModeId,
    conversation: Conversation,
    /// The servers that the first turn starts. Before it an editor does not expect to be asked anything.
    servers: Vec<McpServer>,
    own_env: BTreeMap<OsString, OsString>,
    /// Says that all of a turn was told.
    told: mpsc::Receiver<()>,
    listening: JoinHandle<()>,
    /// Its questions lie on the desk, too.
    _attendance: Attendance,
    session: Session,
}

/// A turn that nothing has been said in yet.
pub(super) struct BegunTurn {
    turns: OwnedMutexGuard<Turns>,
    stop: Stop,
}

impl BegunTurn {
    /// Says something, and has the model do what it does about it. None if there is nobody to say it to.
    pub(super) async fn take(mut self, input: UserInput) -> Option<TurnEnd> {
        let place = self.turns.as_mut()?;
        while place.told.try_recv().is_ok() {}
        let servers = std::mem::take(&mut place.servers);
        if !servers.is_empty() {
            let requester = place.session.requester();
            place.conversation.talk_with(McpServers::start(&requester, servers, &place.own_env));
        }
        let end = place.conversation.turn(input, &self.stop).await;
        // The editor is told how it ended when it knows all that happened.
        let _ = place.told.recv().await;
        Some(end)
    }

    /// The mode that the session is in.
    pub(super) fn mode(&self) -> Option<&SessionModeId> {
        self.turns.as_ref().map(|place| &place.mode)
    }

    /// Ends what turns were taken in until now, with all that runs there.
    pub(super) async fn leave(&mut self) {
        if let Some(place) = self.turns.take() {
            place.session.end_processes().await;
        }
    }

    /// Has turns taken in another place from now on.
    pub(super) fn enter(&mut self, place: Place) {
        *self.turns = Some(place);
    }
}

impl Place {
    /// Tells the editor what happens there from now on, under the name that it knows the session by.
    pub(super) async fn begin(
        editor: &Editor,
        id: &SessionId,
        door: &AcpDoor,
        stop: &Lever,
        terminals: bool,
        mode: SessionModeId,
        opened: OpenedConversation,
    ) -> Self {
        let OpenedConversation { session, conversation, mcp_servers, own_env, .. } = opened;
        let asker = Asker {
            front_end: "acp".to_owned(),
            workspace: session.requester().workspace().to_string_lossy().into_owned(),
            conversation: Some(conversation.id().to_owned()),
        };
        let events = session.events(Delivery::Lossy).await;
        let attendance = door.desk.attend(&session, asker).await;
        let (tell, told) = mpsc::channel(1);
        let listener = Listener {
            editor: editor.clone(),
            id: id.clone(),
            updates: Updates::new(terminals),
            approver: Arc::new((door.person)(&session)),
            stop: stop.clone(),
            asked: HashMap::new(),
            told: tell,
        };
        Self {
            mode,
            conversation,
            servers: mcp_servers,
            own_env,
            told,
            listening: tokio::spawn(listener.listen(events)),
            _attendance: attendance,
            session,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// What a session begins with.
pub(super) struct Parts {
    pub(super) id: SessionId,
    pub(super) cwd: PathBuf,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) server_answers: ServerAnswers,
    pub(super) modes: Modes,
    pub(super) stop: Lever,
    pub(super) place: Place,
    pub(super) notes: Vec<String>,
}

impl Live {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { id, cwd, mcp_servers, server_answers, modes, stop, place, notes } = parts;
        Self {
            id,
            cwd,
            mcp_servers,
            server_answers,
            modes,
            turns: Arc::new(AsyncMutex::new(Some(place))),
            stop,
            notes: Mutex::new(notes),
        }
    }

    /// Begins a turn, which can be called off from now on. None if one is going on.
    pub(super) fn begin_turn(&self) -> Option<BegunTurn> {
        let turns = Arc::clone(&self.turns).try_lock_owned().ok()?;
        let stop = Stop::default();
        *self.stop.stop() = stop.clone();
        Some(BegunTurn { turns, stop })
    }

    /// Has the person told something before the next turn.
    pub(super) fn add_notes(&self, notes: Vec<String>) {
        self.notes().extend(notes);
    }

    /// What the person should know, as sentences, once: before the first prompt an editor does not
    /// expect to be told anything.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes())
    }

    /// Calls off the turn that goes on, if one does.
    pub(super) fn cancel(&self) {
        self.stop.stop().cancel.cancel();
    }

    /// Calls everything off, and waits until nothing goes on.
    pub(super) async fn end(&self) {
        self.cancel();
        drop(self.turns.lock().await);
    }

    /// What calls it off, for another place.
    pub(super) fn lever(&self) -> &Lever {
        &self.stop
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the editor of all that happens.
struct Listener {
    editor: Editor,
    id: SessionId,
    updates: Updates,
    approver: Arc<ClientApprover>,
    stop: Lever,
    /// The questions that the editor has been asked.
    asked: HashMap<ApprovalId, AbortHandle>,
    told: mpsc::Sender<()>,
}

impl Listener {
    async fn listen(mut self, mut events: Events) {
        while let Some(event) = events.next().await {
            for update in self.updates.of(&event.event) {
                tell(&self.editor, &self.id, update);
            }
            match &event.event {
                Event::ApprovalResponse(response) => {
                    // Whoever answered: the editor need not any more.
                    if let Some(asking) = self.asked.remove(&response.approval_id) {
                        asking.abort();
                    }
                }
                Event::Agent(AgentEvent::TaskComplete { .. } | AgentEvent::TurnAborted { .. }) => {
                    // Nobody waits if nobody prompted.
                    let _ = self.told.try_send(());
                }
                question => {
                    if let Some(asked) = asked(&self.id, question, call) {
                        let id = asked.approval_id.clone();
                        let (editor, approver) = (self.editor.clone(), Arc::clone(&self.approver));
                        let asking = ask(editor, approver, self.stop.clone(), asked);
                        self.asked.insert(id, tokio::spawn(asking).abort_handle());
                    }
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.asked.values().for_each(AbortHandle::abort);
    }
}

/// Asks the person at the editor. To drop this takes the question back.
async fn ask(editor: Editor, approver: Arc<ClientApprover>, stop: Lever, asked: Asked) {
    let answered = editor.send_request(asked.request.clone()).block_task().await;
    let decision = match answered {
        // The question goes with the turn that it was asked in. The person has said nothing to it.
        Ok(response)
            if response.outcome == RequestPermissionOutcome::Cancelled
                && stop.stop().cancel.is_cancelled() =>
        {
            return;
        }
        Ok(response) => asked.decision(&response.outcome),
        Err(error) => {
            let why = format!("the editor did not ask: {}", error.message);
            ReviewDecision::Denied { feedback: Some(why) }
        }
    };
    // Somebody else may have been faster.
    let _ = approver.answer(&asked.approval_id, decision);
}

/// Tells the editor something. One that is gone hears nothing.
pub(super) fn tell(editor: &Editor, id: &SessionId, update: SessionUpdate) {
    let _ = editor.send_notification(SessionNotification::new(id.clone(), update));
}
