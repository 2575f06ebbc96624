//! The open questions of a session.

use crate::events::EventLog;
use sandgate_protocol::{
    AnsweredBy, ApplyPatchApprovalRequest, ApprovalId, ApprovalResponse, CallId, Event,
    ExecApprovalRequest, Offers, ReviewDecision,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How many answered questions are remembered, the newest, to tell a second answer that it came too late.
const REMEMBERED: usize = 1024;

/// The open questions of a session, and who could answer them.
#[derive(Debug)]
pub(crate) struct Broker {
    state: Mutex<State>,
    /// How long a question waits; for ever if there is no limit.
    patience: Option<Duration>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<ApprovalId, Waiting>,
    answered: Answered,
    approvers: usize,
    last: u64,
}

/// Who answered a question first, of the questions that were answered last.
#[derive(Debug, Default)]
struct Answered {
    by: HashMap<ApprovalId, String>,
    /// The oldest is the first.
    order: VecDeque<ApprovalId>,
}

impl Answered {
    fn keep(&mut self, id: &ApprovalId, front_end: &str) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.by.insert(id.clone(), front_end.to_owned());
    }
}

/// A question that waits for its answer.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<(ReviewDecision, String)>,
    offers: Offers,
}

/// What a person is asked.
#[derive(Debug, Clone)]
pub enum Question {
    /// Whether a command may run.
    Exec(Box<ExecApprovalRequest>),
    /// Whether files may be changed.
    Patch(Box<ApplyPatchApprovalRequest>),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub decision: ReviewDecision,
    /// Who gave it.
    pub by: AnsweredBy,
}

/// The right to answer a session's questions. A front end has it for the person who sits at it.
///
/// ```
/// use sandgate_protocol::{AskForApproval, Event, ReviewDecision};
/// use sandgate_runtime::{AskedCommand, CommandLine, Delivery, new_call_id};
/// use sandgate_runtime::{Runtime, Session, SessionConfig};
/// use std::sync::Arc;
///
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = Arc::new(Runtime::start()?);
/// # let workspace = tempfile::tempdir()?;
/// # let mut config = SessionConfig::new(workspace.path().to_owned());
/// # config.own_env = std::env::vars_os().collect();
/// config.approval_policy = AskForApproval::UnlessTrusted;
/// let session = Session::start(runtime, config)?;
/// let approver = session.approver("terminal");
/// let mut events = session.events(Delivery::WithoutOutput).await;
/// let person = async {
///     while let Some(told) = events.next().await {
///         if let Event::ExecApprovalRequest(asked) = &told.event {
///             assert_eq!(asked.command_text, "touch list.txt");
///             return approver.answer(&asked.approval_id, ReviewDecision::DENIED);
///         }
///     }
///     Ok(())
/// };
/// let words = ["touch", "list.txt"].map(str::to_owned).to_vec();
/// let asked = AskedCommand::new(CommandLine::Argv(words));
/// let (turn, id) = (session.begin_turn(), new_call_id());
/// let requester = session.requester();
/// let (ran, answered) = tokio::join!(requester.run_command(&id, asked, &turn), person);
/// answered?;
/// println!("{}", ran.unwrap_err());
/// assert!(!workspace.path().join("list.txt").exists());
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Approver {
    broker: Weak<Broker>,
    /// What the other front ends and the audit log are told.
    front_end: String,
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Somebody was faster.
    #[error("{by} has answered this already")]
    AlreadyAnswered {
        /// The front end that was.
        by: String,
    },
    /// There is no such question, or it is no longer open.
    #[error("there is no open question {id}")]
    NoSuchQuestion {
        /// What was named.
        id: ApprovalId,
    },
    /// The question does not offer this.
    #[error("{decision} is not among the answers that this question offers")]
    NotOffered {
        /// What was answered.
        decision: &'static str,
    },
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
}

impl Broker {
    pub(crate) fn new(patience: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), patience })
    }

    /// Lets a person answer, through the front end of this name.
    pub(crate) fn approver(self: &Arc<Self>, front_end: &str) -> Approver {
        self.state().approvers += 1;
        Approver { broker: Arc::downgrade(self), front_end: front_end.to_owned() }
    }

    /// A name for the next question.
    pub(crate) fn next_id(&self) -> ApprovalId {
        let mut state = self.state();
        state.last += 1;
        ApprovalId::new(format!("approval_{}", state.last))
    }

    /// Asks, and waits for the first answer, the end of patience or the end of the work.
    pub(crate) async fn ask(
        &self,
        question: Question,
        events: &Arc<EventLog>,
        cancelled: &CancellationToken,
    ) -> Answer {
        let (id, call_id) = question.names();
        let Some(answer) = self.open(&id, question.offers()) else {
            return self.close(id, call_id, no(AnsweredBy::Nobody), events).await;
        };
        // Should the asker be dropped while it waits, its question goes with it.
        let mut open = Open { broker: self, names: (&id, &call_id), events, told: Told::Cancelled };
        events.tell(&question.into_event()).await;
        let patience = async {
            match self.patience {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = answer => match answer {
                Ok((decision, front_end)) => Answer { decision, by: AnsweredBy::Person(front_end) },
                Err(_) => no(AnsweredBy::Nobody),
            },
            () = cancelled.cancelled() => Answer {
                decision: ReviewDecision::Abort,
                by: AnsweredBy::Cancelled,
            },
            () = patience => no(AnsweredBy::Timeout),
        };
        open.told = Told::Answered(answer.clone());
        let answer = self.close(id.clone(), call_id.clone(), answer, events).await;
        open.told = Told::Already;
        answer
    }

    fn open(
        &self,
        id: &ApprovalId,
        offers: Offers,
    ) -> Option<oneshot::Receiver<(ReviewDecision, String)>> {
        let mut state = self.state();
        if state.approvers == 0 {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        state.open.insert(id.clone(), Waiting { answer, offers });
        Some(receiver)
    }

    async fn close(
        &self,
        approval_id: ApprovalId,
        call_id: CallId,
        answer: Answer,
        events: &EventLog,
    ) -> Answer {
        events.tell(&response(approval_id, call_id, answer.clone())).await;
        answer
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no(by: AnsweredBy) -> Answer {
    Answer { decision: ReviewDecision::DENIED, by }
}

/// A question of which everybody was told, or is being told.
struct Open<'a> {
    broker: &'a Broker,
    names: (&'a ApprovalId, &'a CallId),
    events: &'a Arc<EventLog>,
    told: Told,
}

/// What everybody is to be told of the end of a question.
enum Told {
    /// It is withdrawn.
    Cancelled,
    /// It was answered.
    Answered(Answer),
    /// They were.
    Already,
}

impl Drop for Open<'_> {
    /// Whoever shows a question must hear of its end, also when nobody is left who waits for its answer.
    fn drop(&mut self) {
        let (id, call_id) = self.names;
        self.broker.state().open.remove(id);
        let answer = match std::mem::replace(&mut self.told, Told::Already) {
            Told::Already => return,
            Told::Answered(answer) => answer,
            Told::Cancelled => {
                Answer { decision: ReviewDecision::Abort, by: AnsweredBy::Cancelled }
            }
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let response = response(id.clone(), call_id.clone(), answer);
        let events = Arc::clone(self.events);
        runtime.spawn(async move { events.tell(&response).await });
    }
}

fn response(approval_id: ApprovalId, call_id: CallId, answer: Answer) -> Event {
    let Answer { decision, by: answered_by } = answer;
    Event::ApprovalResponse(ApprovalResponse::new(approval_id, call_id, decision, answered_by))
}

impl Question {
    /// The same, asked by this subagent or by the session itself.
    pub(crate) fn asked_by(mut self, subagent: Option<String>) -> Self {
        match &mut self {
            Self::Exec(request) => request.agent = subagent,
            Self::Patch(request) => request.agent = subagent,
        }
        self
    }

    fn names(&self) -> (ApprovalId, CallId) {
        match self {
            Self::Exec(request) => (request.approval_id.clone(), request.call_id.clone()),
            Self::Patch(request) => (request.approval_id.clone(), request.call_id.clone()),
        }
    }

    fn offers(&self) -> Offers {
        match self {
            Self::Exec(request) => request.offers(),
            Self::Patch(request) => request.offers(),
        }
    }

    fn into_event(self) -> Event {
        match self {
            Self::Exec(request) => Event::ExecApprovalRequest(request),
            Self::Patch(request) => Event::ApplyPatchApprovalRequest(request),
        }
    }
}

impl Approver {
    /// Answers a question.
    ///
    /// # Errors
    /// When the answer does not count.
    pub fn answer(&self, id: &ApprovalId, decision: ReviewDecision) -> Result<(), AnswerError> {
        self.answer_as(id, decision, &self.front_end)
    }

    /// Answers a question in the name of another front end, for one through which others answer.
    pub(crate) fn answer_as(
        &self,
        id: &ApprovalId,
        decision: ReviewDecision,
        front_end: &str,
    ) -> Result<(), AnswerError> {
        let broker = self.broker.upgrade().ok_or(AnswerError::SessionEnded)?;
        let mut state = broker.state();
        let too_late = |state: &State| match state.answered.by.get(id) {
            Some(by) => AnswerError::AlreadyAnswered { by: by.clone() },
            None => AnswerError::NoSuchQuestion { id: id.clone() },
        };
        let Some(waiting) = state.open.get(id) else { return Err(too_late(&state)) };
        if !waiting.offers.has(&decision) {
            return Err(AnswerError::NotOffered { decision: decision.name() });
        }
        let Some(waiting) = state.open.remove(id) else { return Err(too_late(&state)) };
        if waiting.answer.send((decision, front_end.to_owned())).is_err() {
            return Err(too_late(&state));
        }
        state.answered.keep(id, front_end);
        Ok(())
    }
}

impl Drop for Approver {
    /// When nobody is left who could answer, whoever waits is told.
    fn drop(&mut self) {
        if let Some(broker) = self.broker.upgrade() {
            let mut state = broker.state();
            state.approvers -= 1;
            if state.approvers == 0 {
                state.open.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Delivery;
    use sandgate_protocol::GrantScope;

    fn question(broker: &Broker) -> (ApprovalId, Question) {
        let approval_id = broker.next_id();
        let request = ApplyPatchApprovalRequest {
            approval_id: approval_id.clone(),
            call_id: CallId::new("call"),
            changes: Vec::new(),
            reason: "because".to_owned(),
            grant_root: None,
            only_once: false,
            agent: None,
        };
        (approval_id, Question::Patch(Box::new(request)))
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_the_second_is_told() {
        let broker = Broker::new(None);
        let (first, second) = (broker.approver("terminal"), broker.approver("browser"));
        let log = Arc::new(EventLog::default());
        let mut events = log.listen(Delivery::Complete).await;
        let (id, question) = question(&broker);
        let never = CancellationToken::new();
        let person = async {
            let asked = events.next().await.unwrap();
            assert!(matches!(asked.event, Event::ApplyPatchApprovalRequest(_)));
            first.answer(&id, ReviewDecision::Approved).unwrap();
            let late = second.answer(&id, ReviewDecision::Abort).unwrap_err();
            assert_eq!(late, AnswerError::AlreadyAnswered { by: "terminal".to_owned() });
        };
        let (answer, ()) = tokio::join!(broker.ask(question, &log, &never), person);
        assert_eq!(answer.decision, ReviewDecision::Approved);
        assert_eq!(answer.by, AnsweredBy::Person("terminal".to_owned()));
        let answered = events.next().await.unwrap();
        assert!(matches!(answered.event, Event::ApprovalResponse(_)));
    }

    /// spec ASKING.13: Who comes second with an answer is told who was first, for the last 1024 questions of a session.
    #[test]
    fn only_the_oldest_answer_is_forgotten() {
        let broker = Broker::new(None);
        let approver = broker.approver("terminal");
        let answered: Vec<ApprovalId> = (0..=REMEMBERED).map(|_| broker.next_id()).collect();
        for id in &answered {
            let _waits = broker.open(id, question(&broker).1.offers()).unwrap();
            approver.answer(id, ReviewDecision::Approved).unwrap();
        }
        let late = |id: &ApprovalId| approver.answer(id, ReviewDecision::Abort).unwrap_err();
        let (oldest, others) = answered.split_first().unwrap();
        assert_eq!(late(oldest), AnswerError::NoSuchQuestion { id: oldest.clone() });
        let first = AnswerError::AlreadyAnswered { by: "terminal".to_owned() };
        assert!(others.iter().all(|id| late(id) == first));
        assert_eq!(broker.state().answered.by.len(), REMEMBERED);
    }

    /// spec ASKING.12: A question goes with its call, however that ends: whoever shows it is told that it was
    /// cancelled, and nobody can answer it any more.
    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_withdrawn() {
        let broker = Broker::new(None);
        let approver = broker.approver("terminal");
        let log = Arc::new(EventLog::default());
        let mut events = log.listen(Delivery::Complete).await;
        let (id, question) = question(&broker);
        let never = CancellationToken::new();
        tokio::select! {
            answer = broker.ask(question, &log, &never) => panic!("nobody answers: {answer:?}"),
            asked = events.next() => {
                assert!(matches!(asked.unwrap().event, Event::ApplyPatchApprovalRequest(_)));
            }
        }
        let withdrawn = events.next().await.unwrap();
        let Event::ApprovalResponse(response) = &withdrawn.event else { panic!("{withdrawn:?}") };
        assert_eq!((&response.approval_id, &response.answered_by), (&id, &AnsweredBy::Cancelled));
        let late = approver.answer(&id, ReviewDecision::Approved).unwrap_err();
        assert_eq!(late, AnswerError::NoSuchQuestion { id });
    }

    #[tokio::test]
    async fn what_was_not_offered_is_no_answer() {
        let broker = Broker::new(None);
        let approver = broker.approver("terminal");
        let (id, mut question) = question(&broker);
        if let Question::Patch(request) = &mut question {
            request.only_once = true;
        }
        let (log, never) = (Arc::new(EventLog::default()), CancellationToken::new());
        let person = async {
            while broker.state().open.is_empty() {
                tokio::task::yield_now().await;
            }
            let grant = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session };
            for not_offered in
                [ReviewDecision::ApprovedWithRule, ReviewDecision::ApprovedForSession, grant]
            {
                let decision = not_offered.name();
                let wrong = approver.answer(&id, not_offered).unwrap_err();
                assert_eq!(wrong, AnswerError::NotOffered { decision });
            }
            approver.answer(&id, ReviewDecision::DENIED).unwrap();
        };
        let (answer, ()) = tokio::join!(broker.ask(question, &log, &never), person);
        assert_eq!(answer.decision, ReviewDecision::DENIED);
    }

    #[tokio::test]
    async fn without_anybody_to_answer_it_is_a_no_at_once() {
        let broker = Broker::new(None);
        let (_, question) = question(&broker);
        let answer = broker.ask(question, &Arc::default(), &CancellationToken::new()).await;
        assert_eq!(answer, no(AnsweredBy::Nobody));
    }

    #[tokio::test]
    async fn when_the_last_who_could_answer_leaves_it_is_a_no() {
        let broker = Broker::new(None);
        let approver = broker.approver("terminal");
        let (_, question) = question(&broker);
        let (log, never) = (Arc::new(EventLog::default()), CancellationToken::new());
        let leave = async {
            while broker.state().open.is_empty() {
                tokio::task::yield_now().await;
            }
            drop(approver);
        };
        let (answer, ()) = tokio::join!(broker.ask(question, &log, &never), leave);
        assert_eq!(answer, no(AnsweredBy::Nobody));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_patience_is_a_no() {
        let broker = Broker::new(Some(Duration::from_secs(60)));
        let approver = broker.approver("terminal");
        let (id, question) = question(&broker);
        let answer = broker.ask(question, &Arc::default(), &CancellationToken::new()).await;
        assert_eq!(answer, no(AnsweredBy::Timeout));
        let late = approver.answer(&id, ReviewDecision::Approved).unwrap_err();
        assert_eq!(late, AnswerError::NoSuchQuestion { id });
    }

    #[tokio::test]
    async fn the_end_of_the_work_ends_the_question() {
        let broker = Broker::new(None);
        let _approver = broker.approver("terminal");
        let (_, question) = question(&broker);
        let stop = CancellationToken::new();
        stop.cancel();
        let answer = broker.ask(question, &Arc::default(), &stop).await;
        assert_eq!((answer.decision, answer.by), (ReviewDecision::Abort, AnsweredBy::Cancelled));
    }
}
