//! The open questions of all sessions of a program, and the right to answer them.
//!
//! A session's questions are its own, and so are their names. A front end that holds several sessions, or
//! that lets a person answer from elsewhere, has them lie on one desk: each under a name that no other
//! question has, until it is answered. Other programs of the same user see them through a socket in the
//! settings ([`Desk::listen`], [`Desks`]).

#[cfg(unix)]
mod desks;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use desks::{Console, DeskError, DeskWatch, Desks, Listed, PendingQuestion};
#[cfg(unix)]
pub use socket::DeskSocket;

use crate::approval::{AnswerError, Approver};
use crate::events::{Delivery, Events};
use crate::session::Session;
use jiff::Timestamp;
use sandgate_protocol::{
    AnsweredBy, ApprovalId, ApprovalResponse, Event, ReviewDecision, beginnings_of_diffs,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many questions are remembered that are not open any more.
const REMEMBERED: usize = 256;

/// How much of its diffs a list has of a question, in bytes: what fills a few screens.
const MOST_DIFF_BYTES: usize = 32 << 10;

/// The open questions of a program's sessions.
#[derive(Debug)]
pub struct Desk {
    /// What the names of its questions begin with.
    name: String,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    /// Tells the address of the console that this program serves, with what lets a person answer there.
    console: Mutex<Option<ConsoleAddress>>,
}

/// What tells the address.
#[derive(Clone)]
struct ConsoleAddress(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl std::fmt::Debug for ConsoleAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConsoleAddress(…)")
    }
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they came.
    open: BTreeMap<u64, Lying>,
    last: u64,
    /// What became of the last that were open.
    over: VecDeque<(String, Outcome)>,
}

#[derive(Debug)]
struct Lying {
    /// As lists have it.
    shown: OpenQuestion,
    /// What is asked, if lists do not have the whole of it.
    whole: Option<Event>,
    approval_id: ApprovalId,
    approver: Arc<Approver>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// What it is answered by: no other question of any program has it.
    pub id: String,
    /// Who asks.
    #[serde(flatten)]
    pub asker: Asker,
    /// Since when.
    pub asked: Timestamp,
    /// What is asked: an `ExecApprovalRequest` or an `ApplyPatchApprovalRequest`.
    pub question: Event,
    /// Whether something of it is left out, as of long diffs in lists.
    #[serde(rename = "cut", skip_serializing_if = "std::ops::Not::not", default)]
    pub is_cut: bool,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer.
    pub decision: ReviewDecision,
    /// Whose it was.
    pub answered_by: AnsweredBy,
}

/// Whose questions lie on a desk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// What kind of front end the session belongs to: `serve`, `mcp`, `exec`.
    pub front_end: String,
    /// Where it works; what of its name is not UTF-8 is replaced.
    pub workspace: String,
    /// The conversation, if a model of ours asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conversation: Option<String>,
}

/// A place on a desk for whoever only asks: sessions' questions can be laid there, and none answered or read.
#[derive(Debug, Clone)]
pub struct DeskPlace(Arc<Desk>);

impl DeskPlace {
    /// Has a session's questions lie on the desk from now on, like [`Desk::attend`].
    pub async fn attend(&self, session: &Session, asker: Asker) -> Attendance {
        self.0.attend(session, asker).await
    }
}

/// As long as it is there, a session's questions lie on the desk.
#[derive(Debug)]
pub struct Attendance {
    listening: tokio::task::JoinHandle<()>,
    desk: Arc<Desk>,
    approver: Arc<Approver>,
}

impl Default for Desk {
    fn default() -> Self {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let (changed, _) = watch::channel(0);
        // The end of it is random, its beginning is the time.
        Self {
            name: id[24..].to_owned(),
            state: Mutex::default(),
            changed,
            console: Mutex::default(),
        }
    }
}

impl Desk {
    /// Has a session's questions lie here from now on. Whoever answers them here counts as somebody who
    /// can be asked.
    pub async fn attend(self: &Arc<Self>, session: &Session, asker: Asker) -> Attendance {
        let approver = Arc::new(session.approver(&asker.front_end));
        // Not as a front end listens: what was settled before must be heard where it can be shown.
        let events = session.services().events.listen(Delivery::WithoutOutput).await;
        let listening =
            tokio::spawn(listen(Arc::clone(self), events, Arc::clone(&approver), asker));
        Attendance { listening, desk: Arc::clone(self), approver }
    }

    /// A place for one who only asks.
    pub fn place(self: &Arc<Self>) -> DeskPlace {
        DeskPlace(Arc::clone(self))
    }

    /// What the names of its questions begin with, which no other desk's do.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The questions, the oldest first, with no more of their diffs than a list has room for.
    pub fn open(&self) -> Vec<OpenQuestion> {
        self.state().open.values().map(|lying| lying.shown.clone()).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.state().open.len()
    }

    /// The whole of a question that is open.
    pub fn question(&self, id: &str) -> Option<OpenQuestion> {
        let state = self.state();
        let lying = self.lying(&state, id)?;
        Some(match &lying.whole {
            Some(whole) => {
                let (id, asker) = (lying.shown.id.clone(), lying.shown.asker.clone());
                let (asked, question) = (lying.shown.asked, whole.clone());
                OpenQuestion { id, asker, asked, question, is_cut: false }
            }
            None => lying.shown.clone(),
        })
    }

    /// What lies under this name.
    fn lying<'a>(&self, state: &'a State, id: &str) -> Option<&'a Lying> {
        let number = id.strip_prefix(&self.name)?.strip_prefix('-')?.parse().ok()?;
        state.open.get(&number).filter(|lying| lying.shown.id == id)
    }

    /// Tells of every change to what is open.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Answers a question, in the name of this front end.
    ///
    /// # Errors
    /// When the answer does not count.
    pub fn answer(&self, id: &str, decision: ReviewDecision, by: &str) -> Result<(), AnswerError> {
        let found = {
            let state = self.state();
            let lying = self.lying(&state, id);
            lying.map(|lying| (lying.approval_id.clone(), Arc::clone(&lying.approver)))
        };
        let (approval_id, approver) = found.ok_or_else(|| match self.outcome(id) {
            Some(Outcome { answered_by: AnsweredBy::Person(by), .. }) => {
                AnswerError::AlreadyAnswered { by }
            }
            _ => AnswerError::NoSuchQuestion { id: ApprovalId::new(id) },
        })?;
        approver.answer_as(&approval_id, decision, by)
    }

    /// What became of a question that was open here.
    pub fn outcome(&self, id: &str) -> Option<Outcome> {
        let state = self.state();
        let (_, outcome) = state.over.iter().find(|(over, _)| over == id)?;
        Some(outcome.clone())
    }

    /// Has whoever may answer on this desk told where this program serves a console. It is asked each time,
    /// because an address may count once.
    pub fn set_console(&self, address: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let address = ConsoleAddress(Arc::new(address));
        *self.console.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    #[cfg(unix)]
    fn console(&self) -> Option<String> {
        let address = self.console.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        (address.0)()
    }

    fn lay(
        &self,
        asker: &Asker,
        approver: &Arc<Approver>,
        approval_id: &ApprovalId,
        event: &Event,
    ) {
        let short = shortened(event);
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let is_cut = short.is_some();
        let shown = OpenQuestion {
            id: format!("{}-{number}", self.name),
            asker: asker.clone(),
            asked: Timestamp::now(),
            question: short.unwrap_or_else(|| event.clone()),
            is_cut,
        };
        let lying = Lying {
            shown,
            whole: is_cut.then(|| event.clone()),
            approval_id: approval_id.clone(),
            approver: Arc::clone(approver),
        };
        state.open.insert(number, lying);
        drop(state);
        self.tell();
    }

    /// Takes away a question that this approver could answer, and remembers what became of it.
    fn settle(&self, approver: &Arc<Approver>, response: &ApprovalResponse) {
        let mut state = self.state();
        let is_it = |lying: &Lying| {
            Arc::ptr_eq(&lying.approver, approver) && lying.approval_id == response.approval_id
        };
        let settled = state.open.extract_if(.., |_, lying| is_it(lying)).next();
        if let Some((_, lying)) = settled {
            let outcome = Outcome {
                decision: response.decision.clone(),
                answered_by: response.answered_by.clone(),
            };
            if state.over.len() >= REMEMBERED {
                state.over.pop_front();
            }
            state.over.push_back((lying.shown.id, outcome));
        }
        drop(state);
        self.tell();
    }

    /// Takes away all that this approver could answer.
    fn take(&self, approver: &Arc<Approver>) {
        self.state().open.retain(|_, lying| !Arc::ptr_eq(&lying.approver, approver));
        self.tell();
    }

    fn tell(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question as lists have it, if that is less than the whole.
fn shortened(question: &Event) -> Option<Event> {
    let Event::ApplyPatchApprovalRequest(request) = question else { return None };
    let changes = beginnings_of_diffs(&request.changes, MOST_DIFF_BYTES)?;
    Some(Event::ApplyPatchApprovalRequest(Box::new(request.with_changes(changes))))
}

async fn listen(desk: Arc<Desk>, mut events: Events, approver: Arc<Approver>, asker: Asker) {
    while let Some(event) = events.next().await {
        match (event.event.asks(), &event.event) {
            (Some(id), question) => desk.lay(&asker, &approver, id, question),
            (None, Event::ApprovalResponse(response)) => desk.settle(&approver, response),
            _ => {}
        }
    }
    desk.take(&approver);
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.listening.abort();
        self.desk.take(&self.approver);
    }
}
