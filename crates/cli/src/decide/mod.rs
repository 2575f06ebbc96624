//! Who answers when a decision is needed: the person at the terminal, a prepared answer, or nobody.

mod prompt;
mod words;

pub(crate) use prompt::{ask_person, is_person_there};
pub(crate) use words::Prepared;

use sandgate_protocol::{ApprovalId, Event, ReviewDecision};
use sandgate_runtime::{AnswerError, Approver};
use std::path::PathBuf;

/// What `--decide` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decide {
    /// Ask the person at the terminal, if there is one.
    AtTerminal,
    /// Say yes to everything, this once.
    Approve,
    /// Say no to everything.
    Deny,
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
            Some(file) => Self::FromFile(PathBuf::from(file)),
        }
    }

    /// By what name whoever answers is recorded: a person at the terminal, the program that calls, or
    /// neither.
    pub(crate) fn answering(&self) -> &'static str {
        match self {
            Self::AtTerminal => "terminal",
            Self::ByLines => "call",
            Self::Approve | Self::Deny | Self::FromFile(_) => "prepared answers",
        }
    }
}

/// Who hears what a person writes beside a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feedback {
    /// The model whose call it was.
    ToModel,
    /// Nobody: it is only recorded.
    ToRecord,
}

/// Answers a session's questions.
pub(crate) struct Decider {
    answers: Answers,
    feedback: Feedback,
    /// What was asked and could not be answered.
    unanswered: Vec<String>,
}

enum Answers {
    Terminal(prompt::Terminal),
    Prepared(Prepared),
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
            Decide::ByLines => Answers::Nobody,
        };
        Ok(Self { answers, feedback, unanswered: Vec::new() })
    }

    /// Whether anybody can answer.
    pub(crate) fn can_answer(&self) -> bool {
        !matches!(self.answers, Answers::Nobody)
    }

    /// Whether a person is asked, who sees the question.
    pub(crate) fn is_person(&self) -> bool {
        matches!(self.answers, Answers::Terminal(_))
    }

    /// What was asked and could not be answered, as sentences.
    pub(crate) fn unanswered(&self) -> &[String] {
        &self.unanswered
    }

    /// The answer to a question that somebody else asks: no, if there is no other.
    #[cfg(unix)]
    pub(crate) async fn decide(&mut self, event: &Event) -> Option<(ApprovalId, ReviewDecision)> {
        let (id, question) = question(event)?;
        let decision = self.decision(&question).await;
        let decision = decision.unwrap_or_else(|| {
            self.unanswered.push(question.summary());
            ReviewDecision::DENIED
        });
        Some((id.clone(), decision))
    }

    /// Answers an event, if it is a question. Gives back the answer that counts.
    pub(crate) async fn hear(
        &mut self,
        event: &Event,
        approver: Option<&Approver>,
    ) -> Option<ReviewDecision> {
        let (id, question) = question(event)?;
        let decision = self.decision(&question).await;
        let (approver, Some(decision)) = (approver?, decision) else {
            return approver.map(|approver| self.refuse(approver, id, &question));
        };
        match approver.answer(id, decision.clone()) {
            Ok(()) => Some(decision),
            Err(AnswerError::NotOffered { .. }) => Some(self.refuse(approver, id, &question)),
            // Somebody else has answered, or the question is over.
            Err(_) => None,
        }
    }

    async fn decision(&mut self, question: &prompt::Question<'_>) -> Option<ReviewDecision> {
        match &mut self.answers {
            Answers::Terminal(terminal) => terminal.ask(question, self.feedback).await,
            Answers::Prepared(prepared) => prepared.next(),
            Answers::Nobody => None,
        }
    }

    /// No, because there is no answer to this.
    fn refuse(
        &mut self,
        approver: &Approver,
        id: &ApprovalId,
        question: &prompt::Question<'_>,
    ) -> ReviewDecision {
        self.unanswered.push(question.summary());
        let _ = approver.answer(id, ReviewDecision::DENIED);
        ReviewDecision::DENIED
    }
}

/// What an event asks, if it asks something.
fn question(event: &Event) -> Option<(&ApprovalId, prompt::Question<'_>)> {
    match event {
        Event::ExecApprovalRequest(request) => {
            Some((&request.approval_id, prompt::Question::Exec(request)))
        }
        Event::ApplyPatchApprovalRequest(request) => {
            Some((&request.approval_id, prompt::Question::Patch(request)))
        }
        _ => None,
    }
}
