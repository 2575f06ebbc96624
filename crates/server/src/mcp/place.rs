//! The session of a connection, with those who answer for it.

use super::level::Level;
use crate::ClientPerson;
use crate::asking::ClientApprover;
use rmcp::RoleServer;
use rmcp::service::Peer;
use sandgate_protocol::{CallId, Event};
use sandgate_runtime::{Asker, Attendance, Delivery, DeskPlace, Requester, Session};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::broadcast;

/// A session of a connection. When nobody has it any more, its processes end.
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) requester: Requester,
    /// The directory that was asked for.
    pub(super) wanted: Option<PathBuf>,
    /// Passes on what the client's person answers, once the client has shown that it can ask.
    approver: OnceLock<ClientApprover>,
    _attendance: Attendance,
    /// The calls that started its processes, which their events are known by.
    started: Mutex<VecDeque<(String, CallId)>>,
    /// Tells of processes that printed something or ended, when somebody wants to know.
    printed: OnceLock<broadcast::Sender<String>>,
}

/// How many of the processes that were started are known by their calls: those that came last.
const MOST_STARTED: usize = 1024;

/// How many processes wait for one who wants to know of them.
const WAITING: usize = 256;

impl Place {
    /// Takes a session in, and has its questions lie on the desk.
    pub(super) async fn new(session: Session, wanted: Option<PathBuf>, desk: &DeskPlace) -> Self {
        let requester = session.requester();
        let workspace = requester.workspace().to_string_lossy().into_owned();
        let asker = Asker { front_end: "mcp".to_owned(), workspace, conversation: None };
        let attendance = desk.attend(&session, asker).await;
        Self {
            session,
            requester,
            wanted,
            approver: OnceLock::new(),
            _attendance: attendance,
            started: Mutex::default(),
            printed: OnceLock::new(),
        }
    }

    /// Who passes on what the client's person answers.
    pub(super) fn answerer(&self, person: &ClientPerson) -> &ClientApprover {
        self.approver.get_or_init(|| person(&self.session))
    }

    /// Tells the client of what a person should know and no call is about.
    pub(super) async fn warn(&self, peer: Peer<RoleServer>, level: Level) {
        let mut events = self.session.events(Delivery::WithoutOutput).await;
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let Event::Warning(notice) = &event.event
                    && notice.call_id.is_none()
                {
                    level.tell(&peer, &notice.message).await;
                }
            }
        });
    }

    /// A process was started by this call.
    pub(super) fn started(&self, process: &str, call: CallId) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.len() >= MOST_STARTED {
            started.pop_front();
        }
        started.push_back((process.to_owned(), call));
    }

    /// The call that started a process.
    pub(super) fn starter(&self, process: &str) -> Option<CallId> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.iter().find(|(name, _)| name == process).map(|(_, call)| call.clone())
    }

    /// Hears of processes that print something or end, by their names.
    pub(super) async fn printed(self: &Arc<Self>) -> broadcast::Receiver<String> {
        if let Some(sender) = self.printed.get() {
            return sender.subscribe();
        }
        let mut events = self.session.events(Delivery::Lossy).await;
        let (sender, receiver) = broadcast::channel(WAITING);
        if let Err(sender) = self.printed.set(sender) {
            drop(sender);
            return self.printed.get().map_or(receiver, broadcast::Sender::subscribe);
        }
        let place = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Some(place) = place.upgrade() else { return };
                if let Some(process) = place.process_of(&event.event)
                    && let Some(sender) = place.printed.get()
                {
                    // Nobody may listen just now.
                    let _ = sender.send(process);
                }
            }
        });
        receiver
    }

    fn process_of(&self, event: &Event) -> Option<String> {
        let call = match event {
            Event::ProcessWoke(woke) => return Some(woke.process_id.clone()),
            Event::ExecCommandOutputDelta(delta) => &delta.call_id,
            Event::ExecCommandEnd(end) => &end.call_id,
            _ => return None,
        };
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.iter().find(|(_, starter)| starter == call).map(|(process, _)| process.clone())
    }
}
