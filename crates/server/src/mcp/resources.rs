//! What live processes printed, as resources: `sandgate://process/ID/output`.
//!
//! They are read through the same tools that a model has, so they show no more and are recorded alike.

use super::connection::Connection;
use super::place::Place;
use rmcp::model::{
    ErrorCode, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, SubscriptionFilter,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer};
use sandgate_protocol::{ProcessInfo, ToolCall, ToolOutput, ToolPayload, visible_line};
use sandgate_runtime::new_call_id;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::JoinHandle;

const BEFORE_ID: &str = "sandgate://process/";
const AFTER_ID: &str = "/output";

/// How much of the end of an output is read.
const MOST_BYTES: u64 = 256 * 1024;

/// The time between two notices that outputs have changed.
const PAUSE: Duration = Duration::from_millis(200);

/// How many outputs a client can follow at once.
const MOST_FOLLOWED: usize = 256;

fn uri_of(process: &str) -> String {
    format!("{BEFORE_ID}{process}{AFTER_ID}")
}

fn process_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(BEFORE_ID)?.strip_suffix(AFTER_ID)
}

/// The kind of address that there is.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let output = ResourceTemplate::new(uri_of("{process_id}"), "process-output")
        .with_title("Output of a process")
        .with_description("The end of what a process printed that exec_command started")
        .with_mime_type("text/plain");
    ListResourceTemplatesResult::with_all_items(vec![output])
}

/// The outputs of the processes that there are.
pub(super) async fn list(
    connection: &Connection,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let Some(place) = place(connection, context).await? else {
        return Ok(ListResourcesResult::default());
    };
    let resource = |process: ProcessInfo| {
        Resource::new(uri_of(&process.process_id), process.process_id)
            .with_title(visible_line(&process.command.join(" ")))
            .with_mime_type("text/plain")
            .with_size(process.printed_bytes)
    };
    let processes = processes(&place).await?;
    Ok(ListResourcesResult::with_all_items(processes.into_iter().map(resource).collect()))
}

/// The end of an output.
pub(super) async fn read(
    connection: &Connection,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let unknown = || {
        let message =
            format!("there is no resource {:?}", uri.chars().take(200).collect::<String>());
        ErrorData::new(ErrorCode::RESOURCE_NOT_FOUND, message, Some(json!({ "uri": uri })))
    };
    let id = process_of(uri).ok_or_else(unknown)?;
    let place = place(connection, context).await?.ok_or_else(unknown)?;
    let all = processes(&place).await?;
    let process = all.into_iter().find(|process| process.process_id == id).ok_or_else(unknown)?;
    let offset = process.printed_bytes.saturating_sub(MOST_BYTES);
    let asked =
        json!({ "id": id, "offset": offset, "bytes": MOST_BYTES, "max_output_tokens": 100_000 });
    let text = make(&place, "read_output", &asked).await?;
    // The first line says which bytes these are.
    let text = text.split_once('\n').map_or("", |(_, text)| text);
    let contents = vec![ResourceContents::text(text, uri)];
    Ok(ReadResourceResult::new(contents).into())
}

/// Tells the client from now on when an output changes.
pub(super) async fn subscribe(
    connection: &Arc<Connection>,
    uri: String,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    if process_of(&uri).is_none() {
        return Err(ErrorData::invalid_params("only outputs of processes can be followed", None));
    }
    if !connection.followed.add(uri) {
        return Err(ErrorData::invalid_params("too many resources are followed", None));
    }
    if let Some(place) = place(connection, context).await? {
        connection.followed.tell_of(&place, &context.peer).await;
    }
    Ok(())
}

/// The outputs that a client follows, and the task that tells it of them: one, for the session that it has.
#[derive(Default)]
pub(super) struct Followed {
    outputs: Arc<Mutex<BTreeSet<String>>>,
    telling: tokio::sync::Mutex<Option<Telling>>,
}

struct Telling {
    place: Weak<Place>,
    task: JoinHandle<()>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Followed {
    /// Follows one more, unless there are too many.
    fn add(&self, uri: String) -> bool {
        let mut outputs = lock(&self.outputs);
        let fits = outputs.len() < MOST_FOLLOWED || outputs.contains(&uri);
        if fits {
            outputs.insert(uri);
        }
        fits
    }

    /// Follows one no more.
    pub(super) fn remove(&self, uri: &str) {
        lock(&self.outputs).remove(uri);
    }

    /// Tells the client from now on of what it follows in this session, and of no other.
    pub(super) async fn tell_of(&self, place: &Arc<Place>, peer: &Peer<RoleServer>) {
        let mut telling = self.telling.lock().await;
        let is_told = telling.as_ref().is_some_and(|it| it.place.as_ptr() == Arc::as_ptr(place));
        if is_told || lock(&self.outputs).is_empty() {
            return;
        }
        let (outputs, peer) = (Arc::clone(&self.outputs), peer.clone());
        let task = tokio::spawn(follow(place.printed().await, move |uri| {
            let (is_wanted, peer) = (lock(&outputs).contains(&uri), peer.clone());
            let updated = ResourceUpdatedNotificationParam::new(uri);
            async move { !is_wanted || peer.notify_resource_updated(updated).await.is_ok() }
        }));
        *telling = Some(Telling { place: Arc::downgrade(place), task });
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What of a wanted subscription there is.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::default();
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        uris.iter().filter(|uri| process_of(uri).is_some()).take(MOST_FOLLOWED).cloned().collect()
    });
    accepted
}

/// Tells of the outputs that a subscription names, until it ends.
pub(super) async fn listen(
    connection: &Arc<Connection>,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let Some(place) = place(connection, context.request_context()).await? else {
        context.cancelled().await;
        return Ok(());
    };
    let sink = context.sink().clone();
    let wanted = context.accepted().resource_subscriptions.clone().unwrap_or_default();
    let printed = place.printed().await;
    // Only who calls keeps a session open.
    drop(place);
    let telling = follow(printed, move |uri| {
        let (sink, is_wanted) = (sink.clone(), wanted.contains(&uri));
        async move { !is_wanted || sink.notify_resource_updated(uri).await.is_ok() }
    });
    tokio::select! {
        () = telling => {}
        () = context.cancelled() => {}
    }
    Ok(())
}

/// Tells of each output that changes, not too often, as long as somebody wants to hear of it.
async fn follow<F: Future<Output = bool>>(
    mut printed: broadcast::Receiver<String>,
    mut tell: impl FnMut(String) -> F,
) {
    loop {
        let mut changed = BTreeSet::new();
        match printed.recv().await {
            Ok(process) => changed.insert(process),
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        tokio::time::sleep(PAUSE).await;
        while let Ok(process) = printed.try_recv() {
            changed.insert(process);
        }
        for process in changed {
            if !tell(uri_of(&process)).await {
                return;
            }
        }
    }
}

async fn place(
    connection: &Connection,
    context: &RequestContext<RoleServer>,
) -> Result<Option<Arc<Place>>, ErrorData> {
    let place = connection.place_if_clear(context).await;
    place.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn processes(place: &Place) -> Result<Vec<ProcessInfo>, ErrorData> {
    let listed = make(place, "list_processes", &json!({})).await?;
    serde_json::from_str(&listed)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Makes a call that nobody has to be asked about, and gives its text.
async fn make(place: &Place, tool: &str, arguments: &Value) -> Result<String, ErrorData> {
    let payload = ToolPayload::Function { arguments: arguments.to_string() };
    let call = ToolCall { call_id: new_call_id(), name: tool.to_owned(), payload };
    let turn = place.requester.begin_turn();
    let made = place.requester.call(vec![call], &turn).await;
    match made.into_iter().next().map(|result| (result.error, result.output)) {
        Some((None, ToolOutput::Function { content, .. })) => Ok(content),
        Some((Some(error), _)) => Err(ErrorData::internal_error(error.to_string(), None)),
        _ => Err(ErrorData::internal_error("the call has no result", None)),
    }
}
