//! Attends to a call for the request that made it: passes on what it prints, puts its questions to the
//! client's person, ends it when the client wants that, and brings back what it left.

use super::answer::WHERE_TO_ANSWER;
use super::call::Call;
use super::connection::Connection;
use super::form::Question;
use super::handler::Generation;
use super::level::Level;
use super::progress::PAUSE;
use crate::asking::ClientApprover;
use rmcp::model::{
    CallToolResult, ClientResult, ProgressNotificationParam, ProgressToken, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle, ServiceError};
use rmcp::{Peer, RoleServer};
use sandgate_protocol::{ApprovalId, ReviewDecision};
use tokio::time::Instant;

/// How it went.
pub(super) enum Attended {
    /// The call has ended.
    Ended(CallToolResult),
    /// It waits for the client to answer this and to come again.
    Asks(Question),
}

/// A question that the client shows.
struct Shown {
    question: Question,
    request: RequestHandle<RoleServer>,
}

/// A request that waits for a call.
pub(super) struct Attending<'a> {
    call: &'a Call,
    peer: &'a Peer<RoleServer>,
    approver: Option<&'a ClientApprover>,
    generation: Generation,
    level: Level,
    token: Option<ProgressToken>,
    /// How many messages of progress were sent.
    sent: u32,
    /// The last question that the client was not shown, or did not show.
    elsewhere: Option<ApprovalId>,
}

impl<'a> Attending<'a> {
    pub(super) fn new(
        call: &'a Call,
        connection: &'a Connection,
        context: &'a RequestContext<RoleServer>,
    ) -> Self {
        Self {
            call,
            peer: &context.peer,
            approver: connection.answerer(&call.place, context),
            generation: Generation::of(context),
            level: connection.level(context),
            token: context.meta.get_progress_token(),
            sent: 0,
            elsewhere: None,
        }
    }

    /// Attends until the call has ended, or the client is to come again.
    pub(super) async fn attend(mut self, context: &RequestContext<RoleServer>) -> Attended {
        let mut shown: Option<Shown> = None;
        let mut next_piece = Instant::now();
        loop {
            let (question, result, prints) = self.look().await;
            if let Some(result) = result {
                withdraw(shown.take()).await;
                while self.piece(true).await {}
                return Attended::Ended(result);
            }
            let is_old = |shown: &mut Shown| {
                question.as_ref().is_none_or(|question| question.id != shown.question.id)
            };
            withdraw(shown.take_if(is_old)).await;
            if let (Some(question), None) = (question, &shown)
                && self.elsewhere.as_ref() != Some(&question.id)
            {
                match (self.approver, self.generation) {
                    (Some(_), Generation::Stateless) if question.fits() => {
                        return Attended::Asks(question);
                    }
                    (Some(_), Generation::Handshake) if question.fits() => {
                        shown = self.show(question).await;
                    }
                    _ => self.say_where(question.id).await,
                }
            }
            let prints = prints && self.token.is_some();
            tokio::select! {
                biased;
                () = context.ct.cancelled(), if !self.call.cancel.is_cancelled() => {
                    self.call.cancel.cancel();
                }
                said = said(&mut shown) => {
                    if let Some(Shown { question, .. }) = shown.take() {
                        self.answer(question, said).await;
                    }
                }
                () = tokio::time::sleep_until(next_piece), if prints => {
                    self.piece(false).await;
                    next_piece = Instant::now() + PAUSE;
                }
                () = self.call.changed() => {}
            }
        }
    }

    /// The open question, the result, and whether there is output to show. Warnings are passed on.
    async fn look(&self) -> (Option<Question>, Option<CallToolResult>, bool) {
        let (warnings, seen) = {
            let mut state = self.call.state();
            let prints = !state.printed.is_empty();
            let warnings = std::mem::take(&mut state.warnings);
            (warnings, (state.question.clone(), state.result.take(), prints))
        };
        for warning in warnings {
            self.level.tell(self.peer, &warning).await;
        }
        seen
    }

    /// Sends the next piece of output. Whether there was one.
    async fn piece(&mut self, over: bool) -> bool {
        if self.token.is_none() {
            return false;
        }
        let piece = self.call.state().printed.piece(over);
        match piece {
            Some(piece) => self.tell(piece).await,
            None => false,
        }
    }

    /// Sends a message of progress. Whether the client may want more.
    async fn tell(&mut self, message: String) -> bool {
        let Some(token) = self.token.clone() else { return false };
        self.sent += 1;
        let progress = ProgressNotificationParam::new(token, self.sent.into());
        self.peer.notify_progress(progress.with_message(message)).await.is_ok()
    }

    /// Puts a question to the client.
    async fn show(&mut self, question: Question) -> Option<Shown> {
        let request = ServerRequest::ElicitRequest(question.form());
        let options = PeerRequestOptions::no_options();
        match self.peer.send_cancellable_request(request, options).await {
            Ok(request) => Some(Shown { question, request }),
            Err(_) => {
                self.say_where(question.id).await;
                None
            }
        }
    }

    /// Passes on what the client said. One that could not show the question has not answered it.
    async fn answer(&mut self, question: Question, said: Result<ClientResult, ServiceError>) {
        let decision = match said {
            Ok(ClientResult::ElicitResult(filled)) => question.decision(&filled),
            Ok(_) => ReviewDecision::DENIED,
            Err(_) => return self.say_where(question.id).await,
        };
        if let Some(approver) = self.approver {
            self.call.answer(&question, approver, decision);
        }
    }

    /// Says where a question can be answered that the client does not show.
    async fn say_where(&mut self, question: ApprovalId) {
        self.elsewhere = Some(question);
        let message = format!("Waiting for an approval. {WHERE_TO_ANSWER}");
        self.level.tell(self.peer, &message).await;
        self.tell(message + "\n").await;
    }
}

/// What the client says to the question that it shows; for ever nothing if it shows none.
async fn said(shown: &mut Option<Shown>) -> Result<ClientResult, ServiceError> {
    match shown {
        Some(shown) => (&mut shown.request.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
        None => std::future::pending().await,
    }
}

/// Tells the client that a question needs no answer any more.
async fn withdraw(shown: Option<Shown>) {
    if let Some(Shown { request, .. }) = shown {
        // A client that is gone need not be told.
        let _ = request
            .cancel(Some("it was answered elsewhere, or the call has ended".to_owned()))
            .await;
    }
}
