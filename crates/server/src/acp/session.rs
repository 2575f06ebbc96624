//! One session: a conversation, whoever listens to it, and what its person is asked.

use super::permission::{Asked, asked};
use super::updates::{Updates, call};
use crate::ClientApprover;
use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionId, SessionNotification, SessionUpdate};
use sandgate_agent::{Conversation, TurnEnd, UserInput};
use sandgate_protocol::{AgentEvent, ApprovalId, Event, ReviewDecision};
use sandgate_runtime::{Attendance, Events, Session, Stop};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

/// The connection to the editor.
pub(super) type Editor = ConnectionTo<Client>;

/// A session with a model in it.
pub(super) struct Live {
    pub(super) id: SessionId,
    turns: Arc<AsyncMutex<Turns>>,
    /// Calls off the turn that goes on.
    stop: Mutex<Stop>,
    /// What the person should know, and has not been told.
    notes: Mutex<Vec<String>>,
    listening: JoinHandle<()>,
    /// Its questions lie on the desk, too.
    _attendance: Attendance,
    _session: Session,
}

struct Turns {
    conversation: Conversation,
    /// Says that all of a turn was told.
    told: mpsc::Receiver<()>,
}

/// A turn that nothing has been said in yet.
pub(super) struct BegunTurn {
    turns: OwnedMutexGuard<Turns>,
    stop: Stop,
}

impl BegunTurn {
    /// Says something, and has the model do what it does about it.
    pub(super) async fn take(mut self, input: UserInput) -> TurnEnd {
        while self.turns.told.try_recv().is_ok() {}
        let end = self.turns.conversation.turn(input, &self.stop).await;
        // The editor is told how it ended when it knows all that happened.
        let _ = self.turns.told.recv().await;
        end
    }
}

/// What a session begins with.
pub(super) struct Parts {
    pub(super) id: SessionId,
    pub(super) session: Session,
    pub(super) conversation: Conversation,
    pub(super) events: Events,
    pub(super) attendance: Attendance,
    pub(super) approver: ClientApprover,
    pub(super) terminals: bool,
    pub(super) notes: Vec<String>,
}

impl Live {
    pub(super) fn begin(editor: &Editor, parts: Parts) -> Self {
        let Parts { id, session, conversation, events, attendance, approver, terminals, notes } =
            parts;
        let (tell, told) = mpsc::channel(1);
        let listener = Listener {
            editor: editor.clone(),
            id: id.clone(),
            updates: Updates::new(terminals),
            approver: Arc::new(approver),
            asked: HashMap::new(),
            told: tell,
        };
        Self {
            id,
            turns: Arc::new(AsyncMutex::new(Turns { conversation, told })),
            stop: Mutex::default(),
            notes: Mutex::new(notes),
            listening: tokio::spawn(listener.listen(events)),
            _attendance: attendance,
            _session: session,
        }
    }

    /// Begins a turn, which can be called off from now on. None if one is going on.
    pub(super) fn begin_turn(&self) -> Option<BegunTurn> {
        let turns = Arc::clone(&self.turns).try_lock_owned().ok()?;
        let stop = Stop::default();
        *self.stop() = stop.clone();
        Some(BegunTurn { turns, stop })
    }

    /// What the person should know, as sentences, once: before the first prompt an editor does not
    /// expect to be told anything.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls off the turn that goes on, if one does.
    pub(super) fn cancel(&self) {
        self.stop().cancel.cancel();
    }

    /// Calls everything off, and waits until nothing goes on.
    pub(super) async fn end(&self) {
        self.cancel();
        drop(self.turns.lock().await);
    }

    fn stop(&self) -> std::sync::MutexGuard<'_, Stop> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Tells the editor of all that happens.
struct Listener {
    editor: Editor,
    id: SessionId,
    updates: Updates,
    approver: Arc<ClientApprover>,
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
                        let asking = ask(self.editor.clone(), Arc::clone(&self.approver), asked);
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
async fn ask(editor: Editor, approver: Arc<ClientApprover>, asked: Asked) {
    let answered = editor.send_request(asked.request.clone()).block_task().await;
    let decision = match answered {
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
