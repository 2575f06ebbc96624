//! Answers of the person who sits at a client.

use sandgate_protocol::{ApprovalId, ReviewDecision};
use sandgate_runtime::{AnswerError, Approver, Session};
use std::sync::Arc;

/// Lets the person at a client answer the questions of a session. Whoever puts the program together makes
/// it, for doors whose clients have a person of their own.
pub type ClientPerson = Arc<dyn Fn(&Session) -> ClientApprover + Send + Sync>;

/// The right to pass on what the person at a client answered. A door carries it, and cannot make one: who
/// puts the program together decides which clients have a person of their own.
#[derive(Debug)]
pub struct ClientApprover(Approver);

impl ClientApprover {
    /// Lets a client's person answer the questions of a session.
    pub fn new(approver: Approver) -> Self {
        Self(approver)
    }

    /// Passes on an answer.
    ///
    /// # Errors
    /// When it does not count.
    pub fn answer(&self, id: &ApprovalId, decision: ReviewDecision) -> Result<(), AnswerError> {
        self.0.answer(id, decision)
    }
}

/// On whose behalf a client over HTTP calls, by the token that it came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Whoever asks for things to be done: an agent.
    Requester,
    /// Whoever says what may be done: a person.
    Approver,
}
