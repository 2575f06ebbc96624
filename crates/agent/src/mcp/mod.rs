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

use connect::{Connection, connect};
use list::tools_of;
use sandgate_config::{McpServer, McpTransport};
use sandgate_protocol::visible_line;
use sandgate_runtime::{Requester, ServerProgram};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
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
    /// Each is done when its server has started or failed.
    starting: Vec<oneshot::Receiver<()>>,
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
        let mut all = Self::default();
        let own_env = Arc::new(own_env.clone());
        for server in servers {
            let (started, starting) = oneshot::channel();
            all.starting.push(starting);
            all.tasks.spawn(serve(server, requester.clone(), Arc::clone(&own_env), started));
        }
        all
    }

    /// Waits until each has started or failed.
    pub async fn settled(&mut self) {
        while let Some(starting) = self.starting.last_mut() {
            // A sender that was dropped says the same as one that sent.
            let _ = starting.await;
            self.starting.pop();
        }
    }
}

/// Talks with one server until it goes.
async fn serve(
    server: McpServer,
    requester: Requester,
    own_env: Arc<Environment>,
    started: oneshot::Sender<()>,
) {
    let why = match connect(&server, &requester, &own_env).await {
        Err(why) => why,
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
