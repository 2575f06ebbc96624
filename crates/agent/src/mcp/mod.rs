//! Tools of MCP servers, as tools of the session.
//!
//! A server that is a program is started through the gate: the session was told of it by the person, and
//! judges, confines and ends it. What a server says is data: names, descriptions and results are bounded,
//! and what does not show itself is spelled out before a person sees it. A server that fails is told of
//! once and its tools are missing; it stops nothing else.

mod connect;
mod http;
mod list;
mod name;
mod result;
mod tool;

use connect::{Connection, NoConnection, connect};
use list::tools_of;
use sandgate_config::{McpServer, McpTransport};
use sandgate_protocol::visible_line;
use sandgate_runtime::{Requester, ServerProgram, Stop, Turn};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// The variables of the person's environment.
type Environment = BTreeMap<OsString, OsString>;

/// The largest message that is read from a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How long a changed list of tools is left alone before it is asked for, so that a server that changes it
/// all the time is not asked all the time.
const BEFORE_REFRESH: Duration = Duration::from_millis(200);

/// The servers that a conversation talks with. When it is dropped nobody follows what they do any more; they
/// end with the session.
#[derive(Debug, Default)]
pub struct McpServers {
    tasks: JoinSet<()>,
    starting: Vec<Starting>,
    /// Tells whoever waits for them that the person wants the work to stop.
    aborted: Arc<Notify>,
    /// What they are started by; nothing if there are none.
    means: Option<Means>,
}

/// How it came that servers are waited for no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Each has started or failed.
    All,
    /// The person was asked about one and wants the work to stop.
    Aborted,
}

/// A server that has neither started nor failed.
#[derive(Debug)]
struct Starting {
    /// Is done when it has. If it was called off before a person had answered, it comes back.
    settled: oneshot::Receiver<McpServer>,
    /// Takes back the question about it.
    question: Stop,
}

/// What servers are started by.
#[derive(Clone)]
struct Means {
    requester: Requester,
    own_env: Arc<Environment>,
}

impl std::fmt::Debug for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means").finish_non_exhaustive()
    }
}

/// The servers that are programs, as the session is told of them when it begins. `whose` says in whose words they
/// stand: `your settings`.
pub fn server_programs(
    servers: &[McpServer],
    whose: &str,
    own_env: &Environment,
) -> BTreeMap<String, ServerProgram> {
    servers.iter().filter_map(|server| program(server, whose, own_env)).collect()
}

fn program(
    server: &McpServer,
    whose: &str,
    own_env: &Environment,
) -> Option<(String, ServerProgram)> {
    let McpTransport::Stdio { command, args, env, env_vars, cwd, sandbox } = &server.transport
    else {
        return None;
    };
    let own = env_vars.iter().filter_map(|name| {
        let name = OsStr::new(name.as_str());
        own_env.get(name).map(|value| (name.to_owned(), value.clone()))
    });
    let given = env.iter().map(|(name, value)| (name.as_str().into(), value.into()));
    let program = ServerProgram {
        title: format!("MCP server {} of {whose}", server.name),
        command: std::iter::once(command).chain(args).cloned().collect(),
        env: own.chain(given).collect(),
        cwd: cwd.clone(),
        sandbox_policy: sandbox.clone(),
    };
    Some((server.name.to_string(), program))
}

impl McpServers {
    /// Starts or reaches the servers in the background. Those that are programs are those that the session
    /// was told of.
    pub fn start(requester: &Requester, servers: Vec<McpServer>, own_env: &Environment) -> Self {
        let own_env = Arc::new(own_env.clone());
        let means = Means { requester: requester.clone(), own_env };
        let mut all = Self { means: Some(means), ..Self::default() };
        for server in servers {
            all.open(server);
        }
        all
    }

    fn open(&mut self, server: McpServer) {
        let Some(means) = self.means.clone() else { return };
        let (started, settled) = oneshot::channel();
        let question = Stop::default();
        let turn = means.requester.begin_turn().stopped_by(&question);
        self.starting.push(Starting { settled, question });
        let aborted = Arc::clone(&self.aborted);
        self.tasks.spawn(serve(server, means, turn, started, aborted));
    }

    /// Waits until each has started or failed, or the person wants the work to stop. Those that were called off before
    /// are started anew.
    pub async fn settled(&mut self) -> Settled {
        let aborted = Arc::clone(&self.aborted);
        tokio::select! {
            biased;
            () = aborted.notified() => Settled::Aborted,
            () = self.all_settled() => Settled::All,
        }
    }

    async fn all_settled(&mut self) {
        while let Some(starting) = self.starting.last_mut() {
            // A sender that was dropped says that it is settled.
            let called_off = (&mut starting.settled).await.ok();
            self.starting.pop();
            if let Some(server) = called_off {
                self.open(server);
            }
        }
    }

    /// Takes back what is asked about those that have not started yet, until they are waited for again. What was
    /// answered goes on.
    pub fn call_off(&self) {
        self.starting.iter().for_each(|starting| starting.question.cancel.cancel());
    }
}

/// Talks with one server until it goes.
async fn serve(
    server: McpServer,
    means: Means,
    turn: Turn,
    started: oneshot::Sender<McpServer>,
    aborted: Arc<Notify>,
) {
    let Means { requester, own_env } = means;
    let why = match connect(&server, &requester, &turn, &own_env).await {
        Err(NoConnection::Because(why)) if !turn.is_cancelled() => why,
        Err(_) => {
            if !turn.is_cancelled() {
                // Who waits stops; who comes later has nothing to stop.
                aborted.notify_waiters();
            }
            // If nobody waits for it any more, it is not wanted.
            let _ = started.send(server);
            return;
        }
        Ok(connection) => {
            let connection = Arc::new(connection);
            let listed = offer(&server, &requester, &connection).await;
            drop(started);
            match listed {
                Err(why) => why,
                Ok(()) => follow(&server, &requester, &connection).await,
            }
        }
    };
    requester.set_tools(server.name.as_str(), Vec::new());
    let why = visible_line(&shortened(&why, 1000));
    requester.warn(format!("MCP server {}: {why}; its tools are missing", server.name)).await;
}

/// Keeps the tools of a server as it has them, until there is no way to it any more. Why there is not.
async fn follow(server: &McpServer, requester: &Requester, connection: &Arc<Connection>) -> String {
    loop {
        tokio::select! {
            why = connection.lost() => return why,
            () = connection.list_changed() => {
                tokio::time::sleep(BEFORE_REFRESH).await;
                if let Err(why) = offer(server, requester, connection).await {
                    return why;
                }
            }
        }
    }
}

/// Makes the tools that a server has now the session's.
async fn offer(
    server: &McpServer,
    requester: &Requester,
    connection: &Arc<Connection>,
) -> Result<(), String> {
    let listed = tokio::time::timeout(server.startup_timeout, connection.list()).await;
    let listed = match listed {
        Ok(listed) => listed?,
        Err(_) => {
            let limit = server.startup_timeout.as_secs_f64();
            return Err(format!("it did not list its tools within {limit} seconds"));
        }
    };
    if listed.more {
        let (name, most) = (&server.name, list::MOST_TOOLS);
        let message =
            format!("MCP server {name}: it has more than {most} tools; the rest is left out");
        requester.warn(message).await;
    }
    requester.set_tools(server.name.as_str(), tools_of(server, connection, listed.tools));
    Ok(())
}

/// The beginning of a text.
fn shortened(text: &str, most: usize) -> String {
    match text.len() <= most {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(most)]),
    }
}
