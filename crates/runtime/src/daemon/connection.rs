//! One connection: what a client asks for, one thing after the other.

use super::pool::Pool;
use super::wire::{CallResult, LONGEST_LINE, PROTOCOL, Reply, Request, WireCall};
use super::{DaemonError, KeptReply, attach, keep};
use crate::approval::Approver;
use crate::own_socket::{Line, Lines, Writer, split};
use crate::request::new_call_id;
use crate::{Delivery, Session, ToolResult};
use sandgate_protocol::{CallId, CodexErr, Event, ExecCommandToolCallParams, ToolCall, ToolOutput};
use std::io;
use std::rc::Rc;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

/// One connection.
pub(super) struct Connection {
    lines: Lines,
    writer: Writer,
    pool: Rc<Pool>,
    /// Ends the daemon.
    stop: CancellationToken,
    /// The session that calls are made in.
    session: Option<Rc<Session>>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, pool: &Rc<Pool>, stop: CancellationToken) -> Self {
        let (lines, writer) = split(stream, LONGEST_LINE);
        Self { lines, writer, pool: Rc::clone(pool), stop, session: None }
    }

    /// Says why it is not served.
    pub(super) async fn refuse(mut self, message: &str) -> io::Result<()> {
        self.error(message).await
    }

    /// Serves it until it is closed.
    pub(super) async fn serve(mut self) -> io::Result<()> {
        let (version, pid) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
        self.writer.write(&Reply::Hello { protocol: PROTOCOL, version, pid }).await?;
        loop {
            let next = self.lines.next().await;
            match next {
                Ok(Some(Line::Read(Request::Stop {}))) => {
                    self.writer.write(&Reply::Stopping {}).await?;
                    self.stop.cancel();
                    self.pool.farewell.borrow_mut().0.push((self.lines, self.writer));
                    return Ok(());
                }
                Ok(Some(Line::Read(request))) => self.answer(request).await?,
                Ok(Some(Line::Wrong(reason))) => {
                    self.error(&format!("this is no request: {reason}")).await?;
                }
                Ok(None) => return Ok(()),
                Err(error) => return self.error(&error.to_string()).await,
            }
        }
    }

    async fn error(&mut self, message: &str) -> io::Result<()> {
        self.writer.write(&Reply::Error { message: message.to_owned() }).await
    }

    async fn answer(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Open { terms } => match self.pool.open(terms) {
                Ok((session, broken)) => {
                    self.session = Some(session);
                    for message in broken {
                        self.writer.write(&Reply::Warning { message }).await?;
                    }
                    self.writer.write(&Reply::Opened {}).await
                }
                Err(error) => self.error(&error.to_string()).await,
            },
            Request::Use { process_id } => match self.pool.find(&process_id) {
                Ok((session, _)) => {
                    self.session = Some(session);
                    self.writer.write(&Reply::Opened {}).await
                }
                Err(error) => self.error(&error.to_string()).await,
            },
            Request::Call { calls } => match self.session.clone() {
                Some(session) => self.call(&session, calls).await,
                None => self.error("there is no session yet; open one").await,
            },
            Request::List {} => match self.pool.list().await {
                Ok(processes) => self.writer.write(&Reply::Processes { processes }).await,
                Err(error) => self.error(&error.to_string()).await,
            },
            Request::Attach { process_id, size } => match self.pool.find(&process_id) {
                Ok((_, entry)) => {
                    attach::serve(&entry, size, &mut self.lines, &mut self.writer).await
                }
                Err(error) => self.error(&error.to_string()).await,
            },
            Request::Keep { request } => {
                let (pool, cancel) = (Rc::clone(&self.pool), CancellationToken::new());
                let kept = keep::keep(&pool, &request, &cancel);
                self.while_here(&cancel, kept).await
            }
            Request::Describe { process_id } => match keep::describe(&self.pool, &process_id) {
                Ok(described) => self.writer.write(&Reply::Described(Box::new(described))).await,
                Err(error) => self.error(&error.to_string()).await,
            },
            Request::Type { params, typed } => {
                let (pool, cancel) = (Rc::clone(&self.pool), CancellationToken::new());
                let answered = keep::type_to(&pool, params, &typed, &cancel);
                self.while_here(&cancel, answered).await
            }
            // What came too late: what it was about is over.
            Request::Answer { .. } | Request::Cancel {} => Ok(()),
            Request::Detach {} | Request::Input { .. } | Request::Resize { .. } => Ok(()),
            Request::Stop {} => Ok(()),
        }
    }

    /// Waits for the answer of a kept process, as long as the client does.
    async fn while_here(
        &mut self,
        cancel: &CancellationToken,
        work: impl Future<Output = Result<KeptReply, DaemonError>>,
    ) -> io::Result<()> {
        tokio::pin!(work);
        let mut here = Here::Yes;
        let answered = loop {
            tokio::select! {
                answered = &mut work => break answered,
                line = self.lines.next::<Request>(), if here == Here::Yes => {
                    here = match line {
                        Ok(Some(Line::Read(Request::Cancel {}))) => Here::Cancelled,
                        _ => Here::Gone,
                    };
                    cancel.cancel();
                }
            }
        };
        match (here, answered) {
            (Here::Gone, _) => Err(io::ErrorKind::BrokenPipe.into()),
            (_, Ok(kept)) => self.writer.write(&Reply::Kept(Box::new(kept))).await,
            (_, Err(error)) => self.error(&error.to_string()).await,
        }
    }

    /// Makes calls. When the client goes while they are made, they are cancelled; what they have
    /// started lives on.
    async fn call(&mut self, session: &Rc<Session>, calls: Vec<WireCall>) -> io::Result<()> {
        let ids = Ids::of(&calls);
        calls.iter().filter_map(wanted_id).for_each(|id| self.pool.forget_ended(&id));
        let calls = ids.ours(calls);
        let (requester, approver) = (session.requester(), session.approver("session"));
        let mut events = session.events(Delivery::WithoutOutput).await;
        self.pool.attend(session).await;
        let turn = requester.begin_turn();
        let (results, mut ended) = tokio::sync::mpsc::unbounded_channel();
        let calling = requester.call_each(calls, &turn, |result| {
            // The receiver lives as long as this call does.
            let _ = results.send(result);
        });
        tokio::pin!(calling);
        let mut here = Here::Yes;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => {
                    if let Some(reply) = told(&event.event, &ids) {
                        here.try_write(&mut self.writer, &reply).await;
                    }
                }
                Some(result) = ended.recv() => {
                    here.try_write(&mut self.writer, &Reply::Result(of_result(result, &ids))).await;
                }
                line = self.lines.next(), if here == Here::Yes => {
                    here = heard(line, &approver);
                }
                () = &mut calling => break,
            }
            if here != Here::Yes {
                turn.cancel();
            }
        }
        while let Ok(result) = ended.try_recv() {
            here.try_write(&mut self.writer, &Reply::Result(of_result(result, &ids))).await;
        }
        match here {
            Here::Gone => Err(io::ErrorKind::BrokenPipe.into()),
            Here::Yes | Here::Cancelled => self.writer.write(&Reply::Done {}).await,
        }
    }
}

/// Whether the client still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Here {
    Yes,
    /// It is there, and does not want the calls any more.
    Cancelled,
    Gone,
}

impl Here {
    async fn try_write(&mut self, writer: &mut Writer, reply: &Reply) {
        if *self != Self::Gone && writer.write(reply).await.is_err() {
            *self = Self::Gone;
        }
    }
}

/// What a line means while calls are made.
fn heard(line: io::Result<Option<Line<Request>>>, approver: &Approver) -> Here {
    match line {
        Ok(Some(Line::Read(Request::Answer { approval_id, decision }))) => {
            // One that does not count leaves the question open.
            let _ = approver.answer(&approval_id, decision);
            Here::Yes
        }
        Ok(Some(Line::Read(Request::Cancel {}))) => Here::Cancelled,
        // Nothing else can be said now; who says it is not one that we know.
        Ok(Some(_) | None) | Err(_) => Here::Gone,
    }
}

/// What the calls of a client are known by in the session, and to the client: several clients share a session, and each
/// makes up ids as if it were alone.
struct Ids(Vec<(CallId, CallId)>);

impl Ids {
    fn of(calls: &[WireCall]) -> Self {
        Self(calls.iter().map(|call| (new_call_id(), call.call_id().clone())).collect())
    }

    /// The calls, by our ids.
    fn ours(&self, calls: Vec<WireCall>) -> Vec<ToolCall> {
        let named = |(call, (ours, _)): (WireCall, &(CallId, CallId))| ToolCall {
            call_id: ours.clone(),
            ..call.into()
        };
        calls.into_iter().zip(&self.0).map(named).collect()
    }

    /// The client's id of one of its calls.
    fn theirs(&self, ours: &CallId) -> Option<&CallId> {
        self.0.iter().find(|(id, _)| id == ours).map(|(_, theirs)| theirs)
    }
}

/// What a client is told of an event, if it is about its own calls.
fn told(event: &Event, ids: &Ids) -> Option<Reply> {
    if let Event::Warning(notice) = event {
        let is_theirs = notice.call_id.as_ref().is_none_or(|id| ids.theirs(id).is_some());
        return is_theirs.then(|| Reply::Warning { message: notice.message.clone() });
    }
    let mut event = event.clone();
    let call_id = match &mut event {
        Event::ExecApprovalRequest(request) => &mut request.call_id,
        Event::ApplyPatchApprovalRequest(request) => &mut request.call_id,
        Event::ApprovalResponse(response) => &mut response.call_id,
        _ => return None,
    };
    *call_id = ids.theirs(call_id)?.clone();
    Some(match event {
        Event::ApprovalResponse(_) => Reply::Answered { event },
        event => Reply::Question { event },
    })
}

/// The id that a call wants for the process that it starts.
fn wanted_id(call: &WireCall) -> Option<String> {
    let WireCall::Function { name, arguments, .. } = call;
    let starts = name == "exec_command";
    let params = starts.then(|| serde_json::from_str::<ExecCommandToolCallParams>(arguments))?;
    params.ok()?.process_id
}

fn of_result(result: ToolResult, ids: &Ids) -> CallResult {
    let (output, success) = match result.output {
        ToolOutput::Function { content, success, .. } => (content, success),
        ToolOutput::Mcp { result } => match result {
            Ok(value) => (value.to_string(), Some(true)),
            Err(error) => (error, Some(false)),
        },
    };
    let error = result.error.as_ref().map(CodexErr::name).map(str::to_owned);
    let call_id = ids.theirs(&result.call_id).unwrap_or(&result.call_id).clone();
    CallResult { call_id, output, success, error }
}

impl From<io::Error> for DaemonError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}
