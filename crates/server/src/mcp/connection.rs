//! One client: its session, opened when it is needed, and its calls that wait for an answer.

use super::answer::not_made;
use super::attend::{Attended, Attending};
use super::call::{Call, Output};
use super::handler::Generation;
use super::level::Level;
use super::place::Place;
use super::resources::Followed;
use super::state::{Fingerprint, GoOn, States};
use super::{McpOptions, Workspace, roots};
use crate::asking::ClientApprover;
use crate::{OpenError, WantedSession, WorkspaceFrom};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use sandgate_protocol::{ApprovalId, CallId};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many calls of a client are made at once.
const MOST_CALLS: usize = 256;

/// How long what a call left waits for a client that answers a question, after the question has lapsed or was
/// answered elsewhere: as long as a client may take to show a form, and more.
const GRACE: Duration = Duration::from_secs(60);

/// How long what a client carries back counts. A call that it goes on with is mostly gone long before.
const CARRIED: Duration = Duration::from_hours(24);

/// How long the end of calls is waited for whose client is gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The names of what a client is asked for with a call that it makes again.
const APPROVAL: &str = "approval";
const ROOTS: &str = "roots";

/// A client.
pub(super) struct Connection {
    pub(super) options: McpOptions,
    /// What its signed states are bound to.
    id: String,
    states: States,
    place: tokio::sync::Mutex<Option<Arc<Place>>>,
    seen: Mutex<Seen>,
    /// The outputs that it follows.
    pub(super) followed: Followed,
    /// Calls that wait for the client to come again.
    parked: Arc<Mutex<HashMap<Waiting, Arc<Call>>>>,
    places: Arc<Semaphore>,
    over: CancellationToken,
    _ends: DropGuard,
}

/// A call, and the question that it waits for the answer to.
type Waiting = (CallId, ApprovalId);

/// What the client said without being asked by a call.
struct Seen {
    /// The least that it wants to hear of.
    level: Level,
    /// Its first root, once that is known.
    root: Root,
}

/// Where a client works.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    /// It was not asked yet, or has other roots now.
    Unknown,
    /// Here, if it says.
    Known(Option<PathBuf>),
}

impl Connection {
    /// A client that is there until this is dropped, or `over` ends everything.
    pub(super) fn new(options: McpOptions, over: &CancellationToken) -> Self {
        let over = over.child_token();
        let root = match options.workspace {
            Workspace::Given => Root::Known(None),
            Workspace::ByRoots => Root::Unknown,
        };
        Self {
            options,
            id: uuid::Uuid::new_v4().to_string(),
            states: States::default(),
            place: tokio::sync::Mutex::default(),
            seen: Mutex::new(Seen { level: Level::default(), root }),
            followed: Followed::default(),
            parked: Arc::default(),
            places: Arc::new(Semaphore::new(MOST_CALLS)),
            _ends: over.clone().drop_guard(),
            over,
        }
    }

    /// Makes a call, or goes on with one.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let print = Fingerprint::of(&request.name, request.arguments.as_ref());
        let said = |name: &str| request.input_responses.as_ref()?.get(name);
        let call = match &request.request_state {
            None if self.must_ask_for_roots(context).await => {
                return self.come_again(&print, &GoOn::Roots, ROOTS, roots::request());
            }
            None => self.start(&request, context).await,
            Some(sealed) => match self.states.open(&self.id, &print, sealed) {
                Ok(GoOn::Roots) => {
                    let root = roots::read(said(ROOTS)).await;
                    self.seen().root = Root::Known(root);
                    self.start(&request, context).await
                }
                Ok(GoOn::Approval { call, question }) => match self.unpark(call, &question) {
                    Some(call) => {
                        self.pass_on(&call, &question, said(APPROVAL), context);
                        Ok(call)
                    }
                    None => {
                        let message = "this call waits for nothing any more: its question was answered \
                                       before, or lapsed";
                        Err(Box::new(not_made("approval_timeout", message)))
                    }
                },
                Err(error) => return Err(ErrorData::invalid_params(error.to_string(), None)),
            },
        };
        let call = match call {
            Ok(call) => call,
            Err(not_made) => return Ok((*not_made).into()),
        };
        match Attending::new(&call, self, context).attend(context).await {
            Attended::Ended(result) => Ok(result.into()),
            Attended::Asks(question) => {
                let form = InputRequest::Elicitation(question.form());
                let go_on = GoOn::Approval { call: call.id.clone(), question: question.id.clone() };
                self.park(call, question.id);
                self.come_again(&print, &go_on, APPROVAL, form)
            }
        }
    }

    async fn start(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Call>, Box<CallToolResult>> {
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else {
            let message =
                format!("there are {MOST_CALLS} calls already; try again when one has ended");
            return Err(Box::new(not_made("busy", &message)));
        };
        let place = self.place(context).await;
        let place = place.map_err(|error| Box::new(not_made("no_session", &error.to_string())))?;
        let output = match context.meta.get_progress_token() {
            Some(_) => Output::Shown,
            None => Output::InResult,
        };
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let tool = request.name.clone().into_owned();
        Ok(Call::start(place, permit, tool, &arguments, output, self.over.clone()))
    }

    /// Has the client make the call again, with an answer.
    fn come_again(
        &self,
        print: &Fingerprint,
        go_on: &GoOn,
        name: &str,
        asked: InputRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = self.states.seal(&self.id, print, go_on, CARRIED);
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let asked = InputRequests::from([(name.to_owned(), asked)]);
        Ok(InputRequiredResult::new(Some(asked), Some(state)).into())
    }

    /// Keeps a call until the client comes again: as long as its question waits, however long the session
    /// lets it, and a while after.
    fn park(&self, call: Arc<Call>, question: ApprovalId) {
        let name = (call.id.clone(), question.clone());
        lock(&self.parked).insert(name.clone(), Arc::clone(&call));
        let after = self.options.approval_timeout + GRACE;
        let (over, parked) = (self.over.clone(), Arc::clone(&self.parked));
        tokio::spawn(async move {
            let settled = async {
                call.settled(&question).await;
                drop(call);
                tokio::time::sleep(after).await;
            };
            tokio::select! {
                () = settled => {}
                () = over.cancelled() => {}
            }
            if let Some(call) = lock(&parked).remove(&name) {
                call.cancel.cancel();
            }
        });
    }

    /// The call that waits for an answer. It goes on for one who comes again, and for nobody else.
    fn unpark(&self, call: CallId, question: &ApprovalId) -> Option<Arc<Call>> {
        lock(&self.parked).remove(&(call, question.clone()))
    }

    /// Passes on what the client brought with the call that it makes again. It was said to the question that
    /// the client was shown: if that was answered elsewhere and the call asks another, it is no answer.
    fn pass_on(
        &self,
        call: &Call,
        asked: &ApprovalId,
        said: Option<&Value>,
        context: &RequestContext<RoleServer>,
    ) {
        let question = call.state().question.clone().filter(|open| open.id == *asked);
        if let (Some(question), Some(approver)) = (question, self.answerer(&call.place, context)) {
            call.answer(&question, approver, question.decision_in(said));
        }
    }

    /// Who passes on what the client's person answers, if the client can show questions and may.
    pub(super) fn answerer<'a>(
        &self,
        place: &'a Place,
        context: &RequestContext<RoleServer>,
    ) -> Option<&'a ClientApprover> {
        let person = self.options.person.as_ref()?;
        let can = context.client_capabilities()?.elicitation?;
        let can_forms = can.form.is_some() || can.url.is_none();
        can_forms.then(|| place.answerer(person))
    }

    /// Whether the client must be asked for its roots by having it come again.
    async fn must_ask_for_roots(&self, context: &RequestContext<RoleServer>) -> bool {
        Generation::of(context) == Generation::Stateless
            && self.seen().root == Root::Unknown
            && has_roots(context.client_capabilities().as_ref())
            && self.place.lock().await.is_none()
    }

    /// The session, if it is clear where it is to work.
    pub(super) async fn place_if_clear(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<Place>>, OpenError> {
        match self.must_ask_for_roots(context).await {
            true => Ok(None),
            false => self.place(context).await.map(Some),
        }
    }

    /// The session, opened if there is none, or none where the client works now.
    async fn place(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Place>, OpenError> {
        let mut open = self.place.lock().await;
        let known = self.seen().root.clone();
        let wanted = match (known, &*open) {
            (Root::Known(root), _) => root,
            (Root::Unknown, place) => {
                let can_ask = Generation::of(context) == Generation::Handshake;
                let root = match can_ask && has_roots(context.client_capabilities().as_ref()) {
                    true => roots::ask(&context.peer).await,
                    false => place.as_ref().and_then(|place| place.wanted.clone()),
                };
                self.seen().root = Root::Known(root.clone());
                root
            }
        };
        if let Some(place) = open.as_ref().filter(|place| place.wanted == wanted) {
            return Ok(Arc::clone(place));
        }
        let place = Arc::new(self.open(wanted).await?);
        let level = self.level(context);
        place.warn(context.peer.clone(), level).await;
        self.followed.tell_of(&place, &context.peer).await;
        if let Some(before) = open.replace(Arc::clone(&place)) {
            before.session.end_processes().await;
            let workspace = place.requester.workspace().display().to_string();
            let message = format!(
                "The workspace is {workspace} now. Processes of the one before were ended."
            );
            level.tell(&context.peer, &message).await;
        }
        Ok(place)
    }

    async fn open(&self, wanted: Option<PathBuf>) -> Result<Place, OpenError> {
        let opener = Arc::clone(&self.options.opener);
        let session = WantedSession {
            front_end: "mcp",
            workspace: wanted.clone(),
            workspace_from: WorkspaceFrom::Client,
            approval_timeout: Some(self.options.approval_timeout),
            ..WantedSession::default()
        };
        let opened = tokio::task::spawn_blocking(move || opener.session(session)).await;
        let session = opened.map_err(|error| OpenError::Failed(error.to_string()))??;
        Ok(Place::new(session, wanted, &self.options.desk).await)
    }

    /// The client has other roots now.
    pub(super) fn roots_changed(&self) {
        if self.options.workspace == Workspace::ByRoots {
            self.seen().root = Root::Unknown;
        }
    }

    /// The client wants to hear of this and what is worse.
    pub(super) fn set_level(&self, level: Level) {
        self.seen().level = level;
    }

    /// What a request wants to hear of.
    pub(super) fn level(&self, context: &RequestContext<RoleServer>) -> Level {
        let own = self.seen().level;
        Level::of(context, own)
    }

    /// Waits until the calls of a client that is gone have ended, with all that they started.
    pub(super) async fn ended(&self) {
        let all = u32::try_from(MOST_CALLS).unwrap_or(u32::MAX);
        // What has not ended by then ends with the program.
        let _ = tokio::time::timeout(LAST_WAIT, self.places.acquire_many(all)).await;
        if let Some(place) = self.place.lock().await.take() {
            let _ = tokio::time::timeout(LAST_WAIT, place.session.end_processes()).await;
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn has_roots(capabilities: Option<&ClientCapabilities>) -> bool {
    capabilities.is_some_and(|capabilities| capabilities.roots.is_some())
}
