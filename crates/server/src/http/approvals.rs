//! The open questions, and their answers.

use super::body::{Json, Path};
use super::elsewhere::{Elsewhere, Heard, unknown};
use super::problem::Problem;
use super::server::Server;
use super::sse::{self, Source, streamed};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use sandgate_protocol::{GrantScope, ReviewDecision, ShownQuestion};
use sandgate_runtime::{AnswerError, Desk, OpenQuestion};
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use utoipa::ToSchema;
use utoipa::openapi::Ref;

/// Who answers, as the record has it.
const ANSWERED_BY: &str = "console";

/// How many answered questions are remembered, to tell whoever comes second.
const REMEMBERED: usize = 256;

/// The longest word to a model that goes with a no, in characters.
const MOST_FEEDBACK: usize = 16 * 1024;

/// The questions that can be answered here: those on the desk of this program, and those of the others.
pub(super) struct Questions {
    desk: Arc<Desk>,
    elsewhere: Elsewhere,
    answered: Mutex<VecDeque<String>>,
}

impl Questions {
    pub(super) fn on(desk: Arc<Desk>, settings: Option<&std::path::Path>) -> Self {
        let elsewhere = Elsewhere::in_settings(settings, &desk);
        Self { desk, elsewhere, answered: Mutex::default() }
    }

    /// How many this program has.
    pub(super) fn count(&self) -> usize {
        self.desk.count()
    }

    /// All that are open.
    async fn open(&self) -> Approvals {
        let mut elsewhere = self.elsewhere.watch();
        // It fails when the server ends.
        let heard = elsewhere.wait_for(Option::is_some).await;
        self.with(heard.ok().and_then(|heard| heard.clone()).as_deref().unwrap_or_default())
    }

    /// Ours, with those of others.
    fn with(&self, elsewhere: &[OpenQuestion]) -> Approvals {
        let mut open = self.desk.open();
        open.extend_from_slice(elsewhere);
        open.sort_by_key(|question| question.asked);
        Approvals { approvals: open.into_iter().filter_map(Approval::of).collect() }
    }

    /// The whole of one, of which a list may have less.
    async fn question(&self, id: &str) -> Result<Approval, Problem> {
        let question = match self.desk.question(id) {
            Some(question) => question,
            None => self.elsewhere.question(id).await?,
        };
        Approval::of(question).ok_or_else(|| unknown(id))
    }

    async fn answer(&self, id: &str, decision: ReviewDecision) -> Result<(), Problem> {
        match self.desk.answer(id, decision.clone(), ANSWERED_BY) {
            Ok(()) => {
                self.remember(id);
                Ok(())
            }
            Err(AnswerError::NoSuchQuestion { .. }) if self.has_answered(id) => {
                Err(AnswerError::AlreadyAnswered { by: ANSWERED_BY.to_owned() }.into())
            }
            Err(AnswerError::NoSuchQuestion { .. }) => {
                self.elsewhere.answer(id, decision).await?;
                self.remember(id);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn has_answered(&self, id: &str) -> bool {
        self.answered().iter().any(|one| one == id)
    }

    fn remember(&self, id: &str) {
        let mut answered = self.answered();
        if answered.len() >= REMEMBERED {
            answered.pop_front();
        }
        answered.push_back(id.to_owned());
    }

    fn answered(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open questions, the oldest first. One that has `cut` has no more of its diffs than their beginnings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Approvals {
    approvals: Vec<Approval>,
}

/// A question that waits for its answer, as it is asked and in words.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Approval {
    #[serde(flatten)]
    #[schema(value_type = OpenQuestionForm)]
    open: OpenQuestion,
    /// The same in the words in which every front end puts it, harmless to show.
    #[schema(schema_with = shown_schema)]
    shown: ShownQuestion,
}

/// A question that waits for its answer.
#[derive(ToSchema)]
#[schema(as = OpenQuestion)]
#[expect(dead_code, reason = "only the document names it")]
pub(crate) struct OpenQuestionForm {
    /// What it is answered by: no other question of any program has it.
    id: String,
    /// What kind of front end asks: `serve`, `mcp`, `exec`.
    front_end: String,
    /// Where that works.
    workspace: String,
    /// The conversation, if a model of ours asks.
    conversation: Option<String>,
    /// Since when.
    asked: String,
    /// What is asked: an `ExecApprovalRequest` or an `ApplyPatchApprovalRequest`, as events have them.
    #[schema(value_type = Object)]
    question: (),
    /// Whether something of it is left out, as of long diffs in lists.
    cut: Option<bool>,
}

/// What the document says of a question in words; [`shown_schemas`] are what that is.
fn shown_schema() -> Ref {
    Ref::from_schema_name("ShownQuestion")
}

/// The parts of the document that come from the types of the protocol.
pub(super) fn shown_schemas() -> serde_json::Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    generator.subschema_for::<ShownQuestion>();
    generator.take_definitions(true)
}

impl Approval {
    fn of(open: OpenQuestion) -> Option<Self> {
        let shown = ShownQuestion::of(&open.question)?;
        Some(Self { open, shown })
    }
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum AnswerBody {
    /// Yes, this once.
    Approved {},
    /// Yes, and do not ask again for the same in this session.
    ApprovedForSession {},
    /// Yes, and the proposed rule is kept.
    ApprovedWithRule {},
    /// Only what was blocked is opened.
    ApprovedWithGrant {
        /// For how long.
        #[schema(value_type = ScopeWord)]
        scope: GrantScope,
    },
    /// No; the work goes on without it.
    Denied {
        /// What the model is told.
        #[schema(max_length = 16384)]
        feedback: Option<String>,
    },
    /// No, and the work stops.
    Abort {},
}

/// How long a grant lasts.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the document names it")]
pub(crate) enum ScopeWord {
    Call,
    Session,
}

/// Lists the open questions.
#[utoipa::path(get, path = "/approvals", tag = "approvals", responses((status = 200, body = Approvals)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> axum::Json<Approvals> {
    axum::Json(server.questions.open().await)
}

/// One of them, with the whole of its diffs.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals",
    params(("id" = String, Path, description = "The question")),
    responses((status = 200, body = Approval)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Approval>, Problem> {
    server.questions.question(&id).await.map(axum::Json)
}

/// All open questions, again whenever they change.
#[utoipa::path(get, path = "/approvals/events", tag = "approvals",
    responses((status = 200, body = sse::Sent, content_type = "text/event-stream",
        description = "Events of the type `approvals`, each with the whole list as `data`")))]
pub(super) async fn events(State(server): State<Arc<Server>>) -> Response {
    let changes = server.questions.desk.changes();
    let mut elsewhere = server.questions.elsewhere.watch();
    // The list as it is comes first.
    elsewhere.mark_changed();
    streamed(Watching { changes, elsewhere, is_alone: false, server })
}

struct Watching {
    server: Arc<Server>,
    changes: watch::Receiver<u64>,
    elsewhere: watch::Receiver<Heard>,
    /// Whether nothing will ever come from there.
    is_alone: bool,
}

impl Source for Watching {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            tokio::select! {
                () = self.server.stop.cancel.cancelled() => return Ok(None),
                changed = self.changes.changed() => if changed.is_err() {
                    return Ok(None);
                },
                changed = self.elsewhere.changed(), if !self.is_alone => if changed.is_err() {
                    self.is_alone = true;
                    continue;
                },
            }
            // Before it was looked there, a list would lack what the client may have seen already.
            let Some(others) = self.elsewhere.borrow_and_update().clone() else { continue };
            let approvals = self.server.questions.with(&others);
            return sse::event("approvals", None, &approvals).map(Some);
        }
    }
}

/// Answers a question. The first answer counts.
#[utoipa::path(post, path = "/approvals/{id}", tag = "approvals", request_body = AnswerBody,
    params(("id" = String, Path, description = "The question")),
    responses((status = 204, description = "It is answered")))]
pub(super) async fn answer(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<AnswerBody>,
) -> Result<StatusCode, Problem> {
    server.questions.answer(&id, body.decide()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl AnswerBody {
    fn decide(self) -> Result<ReviewDecision, Problem> {
        Ok(match self {
            Self::Approved {} => ReviewDecision::Approved,
            Self::ApprovedForSession {} => ReviewDecision::ApprovedForSession,
            Self::ApprovedWithRule {} => ReviewDecision::ApprovedWithRule,
            Self::ApprovedWithGrant { scope } => ReviewDecision::ApprovedWithGrant { scope },
            Self::Denied { feedback: Some(words) } if words.chars().count() > MOST_FEEDBACK => {
                return Err(Problem::bad("the feedback is too long"));
            }
            Self::Denied { feedback } => ReviewDecision::Denied { feedback },
            Self::Abort {} => ReviewDecision::Abort,
        })
    }
}
