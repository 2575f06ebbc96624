//! Who answers when a decision is needed: the person at the terminal or elsewhere, a prepared answer, or
//! nobody.

mod desk;
mod prompt;
mod words;

pub(crate) use desk::{lay_beside_terminal, lay_on_desk};
pub(crate) use prompt::{ask_person, is_person_there};
pub(crate) use words::{Prepared, decision};

use crate::notes;
use prompt::Page;
use sandgate_protocol::{AnsweredBy, ApprovalId, Event, ReviewDecision, ShownQuestion};
use sandgate_runtime::{AnswerError, Approver};
use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What `--decide` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decide {
    /// Ask the person at the terminal, if there is one.
    AtTerminal,
    /// Say yes to everything, this once.
    Approve,
    /// Say no to everything.
    Deny,
    /// Wait for `sandgate approvals`, or for the console.
    Elsewhere,
    /// Whoever sends the calls sends the answers too.
    ByLines,
    /// Take the answers from a file, one after the other.
    FromFile(PathBuf),
}

impl Decide {
    /// What the word after `--decide` means.
    pub(crate) fn of(word: Option<&str>) -> Self {
        match word {
            None => Self::AtTerminal,
            Some("approve") => Self::Approve,
            Some("deny") => Self::Deny,
            Some("stdin") => Self::ByLines,
            Some("approvals") => Self::Elsewhere,
            Some(file) => Self::FromFile(PathBuf::from(file)),
        }
    }

    /// By what name whoever answers is recorded: a person at the terminal, the program that calls, or
    /// neither.
    pub(crate) fn answering(&self) -> &'static str {
        match self {
            Self::AtTerminal => "terminal",
            Self::ByLines => "call",
            Self::Elsewhere => "approvals",
            Self::Approve | Self::Deny | Self::FromFile(_) => "prepared answers",
        }
    }
}

/// Who hears what a person writes beside a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feedback {
    /// The model whose call it was.
    Model,
    /// The program that made the call by itself.
    Caller,
    /// Nobody: it is only recorded.
    Record,
}

/// Answers a session's questions, one after the other.
///
/// It hears every event of the session: questions, and answers that others gave. What it has to say comes
/// out of [`answer`](Self::answer), which is waited for beside the work.
pub(crate) struct Decider {
    answers: Answers,
    feedback: Feedback,
    /// The open questions, the first of which is asked.
    open: VecDeque<Open>,
    /// Where the answer to the first will come from, while a person is asked.
    asked: Option<oneshot::Receiver<Option<ReviewDecision>>>,
    on_terminal: OnTerminal,
    /// What was asked and could not be answered.
    unanswered: Vec<String>,
}

struct Open {
    question: Event,
    /// What the person should know before the question.
    heading: String,
    feedback: Feedback,
}

/// The question that the person at the terminal is asked, while they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct OnTerminal(Arc<Mutex<Option<ApprovalId>>>);

impl OnTerminal {
    /// The person pressed Ctrl-C, which at a question is their answer. Elsewhere it is none.
    pub(crate) fn call_off(&self, approver: Option<&Approver>) {
        if let (Some(id), Some(approver)) = (self.id(), approver) {
            // Somebody else may have been faster.
            let _ = approver.answer(&id, ReviewDecision::Abort);
        }
    }

    /// What the question is known by.
    pub(crate) fn id(&self) -> Option<ApprovalId> {
        self.asked().clone()
    }

    fn asked(&self) -> MutexGuard<'_, Option<ApprovalId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Answers {
    Terminal(prompt::Terminal),
    Prepared(Prepared),
    /// Others answer.
    Elsewhere,
    Nobody,
}

impl Decider {
    /// Prepares to answer.
    ///
    /// # Errors
    /// When the file of answers cannot be read.
    pub(crate) fn new(decide: &Decide, feedback: Feedback) -> std::io::Result<Self> {
        let answers = match decide {
            Decide::AtTerminal => match prompt::Terminal::open() {
                Some(terminal) => Answers::Terminal(terminal),
                None => Answers::Nobody,
            },
            Decide::Approve => Answers::Prepared(Prepared::always(ReviewDecision::Approved)),
            Decide::Deny => Answers::Prepared(Prepared::always(ReviewDecision::DENIED)),
            Decide::FromFile(path) => Answers::Prepared(Prepared::read(path)?),
            Decide::Elsewhere => Answers::Elsewhere,
            Decide::ByLines => Answers::Nobody,
        };
        let (open, unanswered) = (VecDeque::new(), Vec::new());
        Ok(Self {
            answers,
            feedback,
            open,
            asked: None,
            on_terminal: OnTerminal::default(),
            unanswered,
        })
    }

    /// Whether anybody can answer here.
    pub(crate) fn can_answer(&self) -> bool {
        !matches!(self.answers, Answers::Nobody | Answers::Elsewhere)
    }

    /// Whether a person is asked, who sees the question.
    pub(crate) fn is_person(&self) -> bool {
        matches!(self.answers, Answers::Terminal(_))
    }

    /// Whether a question is on the terminal, and nothing else should be shown there.
    pub(crate) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// What is asked there, for whoever hears of Ctrl-C.
    pub(crate) fn on_terminal(&self) -> OnTerminal {
        self.on_terminal.clone()
    }

    /// Whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// What was asked and could not be answered, as sentences.
    pub(crate) fn unanswered(&self) -> &[String] {
        &self.unanswered
    }

    /// Hears what happens: asks what is asked, and takes a question back that others have answered. Gives
    /// back that one.
    pub(crate) fn hear(&mut self, event: &Event) -> Option<Event> {
        if let Event::ApprovalResponse(response) = event {
            let said = over_by(&response.answered_by, &response.decision);
            return self.take_back(&response.approval_id, &said);
        }
        if event.asks().is_some() {
            self.hear_from(event, String::new(), self.feedback);
        }
        None
    }

    /// Asks a question, below what the person should know of who asks.
    pub(crate) fn hear_from(&mut self, event: &Event, heading: String, feedback: Feedback) {
        self.open.push_back(Open { question: event.clone(), heading, feedback });
        if self.open.len() == 1 {
            self.ask();
        }
    }

    /// Takes a question back, for this reason.
    pub(crate) fn take_back(&mut self, id: &ApprovalId, said: &str) -> Option<Event> {
        let is_it = |open: &Open| open.question.asks() == Some(id);
        let at = self.open.iter().position(is_it)?;
        let open = self.open.remove(at)?;
        if at == 0 {
            *self.on_terminal.asked() = None;
            if let (Some(_), Answers::Terminal(terminal)) = (self.asked.take(), &self.answers) {
                terminal.say(said);
            }
            self.ask();
        }
        Some(open.question)
    }

    /// Asks the first open question, where that takes time.
    fn ask(&mut self) {
        let Some(open) = self.open.front() else { return };
        let Some(page) = Page::of(&open.question) else { return };
        match &self.answers {
            Answers::Terminal(terminal) => {
                let (answer, asked) = oneshot::channel();
                // Before it is shown: whoever sees it may press Ctrl-C at once.
                *self.on_terminal.asked() = open.question.asks().cloned();
                // If that fails the sender is dropped, which counts as a terminal that is gone.
                terminal.ask(&open.heading, page, open.feedback, answer);
                self.asked = Some(asked);
            }
            Answers::Elsewhere => {
                let what = sentence(&open.question);
                let what = format!("waiting for an answer by sandgate approvals: {what}");
                let _ = std::io::stderr().write_all(&notes::status(&what));
            }
            Answers::Prepared(_) | Answers::Nobody => {}
        }
    }

    /// The next answer, and to what: none if there is no answer. Can be dropped and called again.
    pub(crate) async fn decided(&mut self) -> (Event, Option<ReviewDecision>) {
        if self.open.is_empty() {
            return std::future::pending().await;
        }
        let decision = match (&mut self.answers, &mut self.asked) {
            (Answers::Terminal(_), Some(asked)) => asked.await.ok().flatten(),
            (Answers::Prepared(prepared), _) => prepared.next(),
            (Answers::Elsewhere, _) => return std::future::pending().await,
            (Answers::Terminal(_) | Answers::Nobody, _) => None,
        };
        self.asked = None;
        *self.on_terminal.asked() = None;
        let Some(open) = self.open.pop_front() else { return std::future::pending().await };
        self.ask();
        (open.question, decision)
    }

    /// The same for a question that somebody else asks: the answer is no, if there is no other.
    #[cfg(unix)]
    pub(crate) async fn decide(&mut self) -> (ApprovalId, ReviewDecision) {
        loop {
            let (event, decision) = self.decided().await;
            let Some(id) = event.asks() else { continue };
            let decision = decision.unwrap_or_else(|| {
                self.unanswered.push(sentence(&event));
                ReviewDecision::DENIED
            });
            return (id.clone(), decision);
        }
    }

    /// Waits for an answer and gives it. Says to which question, and which answer counts; none if somebody
    /// else was faster. Can be dropped and called again.
    pub(crate) async fn answer(
        &mut self,
        approver: Option<&Approver>,
    ) -> (Event, Option<ReviewDecision>) {
        let (event, decision) = self.decided().await;
        let counts = self.pass_on(&event, decision, approver);
        (event, counts)
    }

    fn pass_on(
        &mut self,
        event: &Event,
        decision: Option<ReviewDecision>,
        approver: Option<&Approver>,
    ) -> Option<ReviewDecision> {
        let id = event.asks()?;
        let approver = approver?;
        let answered = decision.map(|decision| (approver.answer(id, decision.clone()), decision));
        match answered {
            Some((Ok(()), decision)) => Some(decision),
            // Somebody else has answered, or the question is over.
            Some((Err(error), _)) if !matches!(error, AnswerError::NotOffered { .. }) => None,
            // No, because there is no answer to this.
            Some((Err(_), _)) | None => {
                self.unanswered.push(sentence(event));
                let _ = approver.answer(id, ReviewDecision::DENIED);
                Some(ReviewDecision::DENIED)
            }
        }
    }
}

/// Why a question is not open any more, as a sentence.
pub(crate) fn over_by(answered_by: &AnsweredBy, decision: &ReviewDecision) -> String {
    let said = format!("{} {}.", answered_by.said(), decision.in_words());
    let mut letters = said.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A question as one sentence.
pub(crate) fn sentence(event: &Event) -> String {
    ShownQuestion::of(event).map(|question| question.sentence()).unwrap_or_default()
}
