//! One conversation that is open: its session, its model, and its events.

use super::events::{EventFile, Reading};
use crate::opener::OpenedConversation;
use jiff::Timestamp;
use sandgate_agent::{Conversation, UserInput};
use sandgate_protocol::{
    AgentEvent, AskForApproval, Event, ResponseItem, Role, SandboxPolicy, TokenUsage,
};
use sandgate_runtime::{Asker, Attendance, Delivery, Desk, Events, Requester, Session, Stop};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest title, in characters.
const TITLE_CHARACTERS: usize = 120;

/// A conversation that is open.
pub(crate) struct LiveConversation {
    pub(crate) about: About,
    pub(crate) events: Arc<EventFile>,
    session: Session,
    conversation: tokio::sync::Mutex<Conversation>,
    facts: Mutex<Facts>,
    /// Ends all that is done in it.
    stop: Stop,
    /// As long as this is there, its questions lie on the desk.
    _attendance: Attendance,
}

/// What does not change about it.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) approval_policy: AskForApproval,
    pub(crate) sandbox: SandboxPolicy,
    pub(crate) started: Timestamp,
    pub(crate) is_recorded: bool,
}

/// What does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) title: Option<String>,
    pub(crate) usage: TokenUsage,
    pub(crate) context_window: Option<u64>,
    /// What was said, as it was when the last turn ended; of one that is not written down.
    pub(crate) items: Vec<ResponseItem>,
    /// The levers on the turn that is being taken.
    turn: Option<Stop>,
}

/// A turn is being taken already, or the conversation is being closed.
#[derive(Debug)]
pub(crate) struct Busy;

impl LiveConversation {
    /// Begins to listen to a session, and to let its model work.
    pub(crate) async fn begin(
        opened: OpenedConversation,
        front_end: &str,
        desk: &Arc<Desk>,
        scratch: &Path,
        most_bytes: u64,
    ) -> io::Result<Arc<Self>> {
        let events = EventFile::in_directory(scratch, most_bytes)?;
        let heard = opened.session.events(Delivery::Complete).await;
        let about = about(&opened);
        let asker = Asker {
            front_end: front_end.to_owned(),
            workspace: about.cwd.to_string_lossy().into_owned(),
            conversation: Some(about.id.clone()),
        };
        let attendance = desk.attend(&opened.session, asker).await;
        let facts = Facts {
            title: opened.conversation.items().iter().find_map(title_of),
            usage: opened.conversation.used(),
            context_window: opened.conversation.context_window(),
            items: kept_items(&opened.conversation),
            turn: None,
        };
        let (notes, requester) = (opened.notes.clone(), opened.session.requester());
        let (session, conversation) = opened.begin();
        let live = Arc::new(Self {
            about,
            events: Arc::clone(&events),
            session,
            conversation: tokio::sync::Mutex::new(conversation),
            facts: Mutex::new(facts),
            stop: Stop::default(),
            _attendance: attendance,
        });
        // It must not keep the session alive that it listens to.
        tokio::spawn(write_down(heard, events, Arc::downgrade(&live)));
        for note in notes {
            requester.warn(note).await;
        }
        Ok(live)
    }

    /// Has a turn taken. What happens in it can be read.
    pub(crate) fn begin_turn(self: &Arc<Self>, input: UserInput) -> Result<Reading, Busy> {
        let stop = self.stop.child();
        {
            let mut facts = self.facts();
            if facts.turn.is_some() || self.stop.cancel.is_cancelled() {
                return Err(Busy);
            }
            facts.turn = Some(stop.clone());
            facts.title.get_or_insert_with(|| first_line(&input.text));
        }
        let turn = self.events.progress().borrow().turns;
        let reading = self.events.turn(turn);
        tokio::spawn(take_turn(Arc::clone(self), input, stop, turn));
        Ok(reading)
    }

    /// Calls the turn off, if one is being taken.
    pub(crate) fn interrupt(&self) {
        if let Some(stop) = &self.facts().turn {
            stop.cancel.cancel();
        }
    }

    /// Whether a turn is being taken.
    pub(crate) fn is_working(&self) -> bool {
        self.facts().turn.is_some()
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn requester(&self) -> Requester {
        self.session.requester()
    }

    /// What calls in it hang on.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.child()
    }

    /// Ends all that is done in it, waits for that, and tells subscribers that there is no more.
    pub(crate) async fn close(&self) {
        self.stop.cancel.cancel();
        drop(self.conversation.lock().await);
        self.session.end_processes().await;
        self.events.close();
    }
}

async fn take_turn(live: Arc<LiveConversation>, input: UserInput, stop: Stop, turn: usize) {
    // Whatever becomes of it, another one can be taken then.
    let _over = Over(Arc::clone(&live));
    let mut conversation = live.conversation.lock().await;
    conversation.turn(input, &stop).await;
    let items = kept_items(&conversation);
    drop(conversation);
    live.facts().items = items;
    // The next turn begins where this one has ended, so its end must be written.
    let mut progress = live.events.progress();
    let _ = progress.wait_for(|written| written.turns > turn || written.closed).await;
}

struct Over(Arc<LiveConversation>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.facts().turn = None;
    }
}

/// Writes down what happens, until the session is over.
async fn write_down(
    mut heard: Events,
    events: Arc<EventFile>,
    live: std::sync::Weak<LiveConversation>,
) {
    while let Some(event) = heard.next().await {
        if let Event::Agent(AgentEvent::TokenCount { total, context_window, .. }) = &event.event
            && let Some(live) = live.upgrade()
        {
            let mut facts = live.facts();
            facts.usage = *total;
            facts.context_window = context_window.or(facts.context_window);
        }
        if let Err(error) = events.append(&event) {
            tracing::error!(%error, "the events of a conversation can no longer be kept");
        }
    }
    events.close();
}

fn about(opened: &OpenedConversation) -> About {
    let (requester, conversation) = (opened.session.requester(), &opened.conversation);
    About {
        id: conversation.id().to_owned(),
        cwd: requester.workspace().to_owned(),
        model: conversation.model().to_owned(),
        provider: conversation.provider().to_owned(),
        approval_policy: requester.approval_policy(),
        sandbox: requester.sandbox_policy().clone(),
        started: Timestamp::now(),
        is_recorded: conversation.is_recorded(),
    }
}

/// What is not read from disk when somebody wants to know it.
fn kept_items(conversation: &Conversation) -> Vec<ResponseItem> {
    match conversation.is_recorded() {
        true => Vec::new(),
        false => conversation.items().to_vec(),
    }
}

fn title_of(item: &ResponseItem) -> Option<String> {
    match item {
        ResponseItem::Message { role: Role::User, .. } => item.text().map(|text| first_line(&text)),
        _ => None,
    }
}

/// The first line of what a person said.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(TITLE_CHARACTERS).collect()
}
