//! The desk's socket: through it the questions of a program are answered from any terminal of its user.

use super::wire::{LONGEST_LIST, LONGEST_REPLY, LONGEST_REQUEST, PROTOCOL, Reply, Request};
use super::{Desk, Desks, OpenQuestion};
use crate::own_socket::{Line, Lines, OwnSocket, OwnSocketError, Taken, Writer, split};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The directory of the settings in which the sockets of all programs lie.
pub(super) const DIRECTORY: &str = "desk";

/// In whose name answers are given that come through the socket.
const ANSWERING: &str = "approvals";

/// How many connections there may be.
const MAX_CONNECTIONS: usize = 32;

/// How often, and how far apart, it is tried to take a lock that is held. Together they are shorter than
/// anybody notices, because nothing else goes on meanwhile.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// What is left of a line for a list of questions, in bytes.
const MOST_BYTES: usize = LONGEST_LIST - 1024;

/// As long as it is there, a desk's questions can be answered through a socket.
#[derive(Debug)]
pub struct DeskSocket {
    serving: tokio::task::JoinHandle<()>,
}

/// The socket of the desk of this name.
pub(super) fn place(settings: &Path, name: &str) -> OwnSocket {
    OwnSocket::new(settings, DIRECTORY, &format!("{name}.sock"), &format!("{name}.lock"))
}

impl Desk {
    /// Lets whoever is this user, and in no cage, see the questions and answer them. Also removes the sockets of
    /// programs that were killed.
    ///
    /// # Errors
    /// When there can be no socket in these settings.
    pub fn listen(self: &Arc<Self>, settings: &Path) -> Result<DeskSocket, OwnSocketError> {
        // Not everybody ever looks at desks, which would have it done as well.
        Desks::in_settings(settings).remove_left();
        let place = place(settings, &self.name);
        // Somebody who looks for what was left behind may hold the lock for a moment.
        let taken = (0..TRIES).find_map(|tried| {
            if tried > 0 {
                std::thread::sleep(BETWEEN_TRIES);
            }
            place.take().transpose()
        });
        let taken = taken.unwrap_or_else(|| Err(place.held()))?;
        Ok(DeskSocket { serving: tokio::spawn(serve(taken, Arc::clone(self))) })
    }
}

impl Drop for DeskSocket {
    fn drop(&mut self) {
        // Takes its connections and the socket along.
        self.serving.abort();
    }
}

async fn serve(taken: Taken, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            stream = taken.accept(), if connections.len() < MAX_CONNECTIONS => match stream {
                Ok(stream) => {
                    connections.spawn(Connection::new(stream, Arc::clone(&desk)).serve());
                }
                // Too many open files, most likely. Others will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            // A connection that fails is over. There is nobody to tell.
            Some(_) = connections.join_next() => {}
        }
    }
}

struct Connection {
    lines: Lines,
    writer: Writer,
    desk: Arc<Desk>,
}

impl Connection {
    fn new(stream: UnixStream, desk: Arc<Desk>) -> Self {
        let (lines, writer) = split(stream, LONGEST_REQUEST);
        Self { lines, writer, desk }
    }

    /// Serves it until it is closed, or says what is no request.
    async fn serve(mut self) -> io::Result<()> {
        let (version, pid) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
        self.writer.write(&Reply::Hello { protocol: PROTOCOL, version, pid }).await?;
        let mut changes: Option<watch::Receiver<u64>> = None;
        loop {
            let request = tokio::select! {
                line = self.lines.next() => match line {
                    Ok(Some(Line::Read(request))) => request,
                    Ok(Some(Line::Wrong(reason))) => {
                        return self.error(format!("this is no request: {reason}")).await;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => return self.error(error.to_string()).await,
                },
                () = changed(&mut changes) => {
                    self.writer.write(&shown(&self.desk.open())).await?;
                    continue;
                }
            };
            let reply = match request {
                Request::List {} => shown(&self.desk.open()),
                Request::Watch {} => {
                    let mut watched = self.desk.changes();
                    watched.mark_unchanged();
                    changes = Some(watched);
                    shown(&self.desk.open())
                }
                Request::Question { id } => whole(self.desk.question(&id)),
                Request::Answer { id, decision } => {
                    match self.desk.answer(&id, decision, ANSWERING) {
                        Ok(()) => Reply::Answered {},
                        Err(error) => Reply::Error { message: error.to_string() },
                    }
                }
                Request::Outcome { id } => Reply::Outcome { outcome: self.desk.outcome(&id) },
                Request::Link {} => Reply::Link { address: self.desk.console() },
            };
            self.writer.write(&reply).await?;
        }
    }

    async fn error(&mut self, message: String) -> io::Result<()> {
        self.writer.write(&Reply::Error { message }).await
    }
}

/// Comes back when something has changed; never, if nobody wants to know.
async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    let told = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending::<()>().await;
    }
}

/// The questions, as many as a line has room for.
fn shown(open: &[OpenQuestion]) -> Reply {
    let (mut questions, mut bytes) = (Vec::new(), 0);
    for question in open {
        bytes += serde_json::to_vec(question).map_or(usize::MAX / 2, |text| text.len() + 1);
        if bytes > MOST_BYTES {
            break;
        }
        questions.push(question.clone());
    }
    let left_out = (open.len() - questions.len()) as u64;
    Reply::Questions { questions, left_out }
}

/// The whole of a question, if it is open. What no line has room for is an error.
fn whole(question: Option<OpenQuestion>) -> Reply {
    let reply = Reply::Question { question: question.map(Box::new) };
    match serde_json::to_vec(&reply) {
        Ok(line) if line.len() < LONGEST_REPLY => reply,
        _ => Reply::Error { message: "the question is too long to be sent".to_owned() },
    }
}

#[cfg(test)]
mod tests;
