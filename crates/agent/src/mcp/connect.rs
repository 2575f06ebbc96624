//! The way to one server: opened, watched, and what is said when it is lost.

use super::http::HttpClient;
use super::list::{Listed, MOST_TOOLS};
use super::{Environment, MAX_MESSAGE_BYTES, shortened};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams};
use rmcp::service::{ClientCacheConfig, NotificationContext, Peer, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use sandgate_config::{McpServer, McpTransport};
use sandgate_protocol::{CodexErr, SandboxPolicy};
use sandgate_runtime::{Requester, ServerWatch, Turn};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a program that closed its output may take to say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often it is looked whether an address is still talked with.
const LOOK: Duration = Duration::from_millis(500);

/// A way to a server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    changed: Arc<Notify>,
    /// The program, if it is one.
    program: Option<ServerWatch>,
    /// Whether it could change files that the session works on.
    pub(super) may_write: bool,
}

/// Why there is no way to a server.
pub(super) enum NoConnection {
    /// The person was asked about it and wants the work to stop, or the question was taken back.
    Aborted,
    /// In words that may be the server's.
    Because(String),
}

impl From<String> for NoConnection {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

/// What a server is told about us, and what we hear of it without asking. It is offered nothing: it can ask
/// neither the model nor the person.
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("sandgate", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Opens the way to a server. The time that a person takes to answer is not the server's. The question goes with the
/// turn.
///
/// # Errors
/// When there is none.
pub(super) async fn connect(
    server: &McpServer,
    requester: &Requester,
    turn: &Turn,
    own_env: &Environment,
) -> Result<Connection, NoConnection> {
    let changed = Arc::new(Notify::new());
    let client = Client { changed: Arc::clone(&changed) };
    let limit = server.startup_timeout;
    let (greeted, program, may_write) = match &server.transport {
        McpTransport::Stdio { sandbox, .. } => {
            let pipe = requester.open_server(server.name.as_str(), turn).await;
            let pipe = pipe.map_err(|error| match error {
                CodexErr::UserAborted => NoConnection::Aborted,
                error => NoConnection::Because(error.to_string()),
            })?;
            let (read, write) = tokio::io::split(pipe.stream);
            let transport =
                AsyncRwTransport::new_client(read, write).with_max_line_length(MAX_MESSAGE_BYTES);
            let greeted = timeout(limit, client.serve(transport)).await;
            (greeted, Some(pipe.watch), *sandbox != SandboxPolicy::ReadOnly)
        }
        McpTransport::Http { .. } => {
            let (http, config) = address(&server.transport, own_env)?;
            let transport = StreamableHttpClientTransport::with_client(http, config);
            (timeout(limit, client.serve(transport)).await, None, false)
        }
    };
    let service = match greeted {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => {
            let why = with_last_words(&error.to_string(), program.as_ref()).await;
            return Err(NoConnection::Because(why));
        }
        Err(_) => {
            let why = format!("it did not answer within {} seconds", limit.as_secs_f64());
            return Err(NoConnection::Because(with_complaints(&why, program.as_ref())));
        }
    };
    // Its lists are few, and are to be what they are now.
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    Ok(Connection { service, changed, program, may_write })
}

impl Connection {
    /// Where requests are sent.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Waits until the server says that its tools have changed.
    pub(super) async fn list_changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until nothing can be asked of the server any more. Why.
    pub(super) async fn lost(&self) -> String {
        match &self.program {
            Some(program) => {
                let code = program.ended().await;
                with_complaints(&format!("it has ended with code {code}"), Some(program))
            }
            None => {
                while !self.peer().is_transport_closed() {
                    tokio::time::sleep(LOOK).await;
                }
                "it cannot be reached any more".to_owned()
            }
        }
    }

    /// What is said of a request that came to nothing.
    pub(super) async fn failure(&self, error: &rmcp::ServiceError) -> String {
        with_last_words(&error.to_string(), self.program.as_ref()).await
    }

    /// Asks for the tools, page by page.
    pub(super) async fn list(&self) -> Result<Listed, String> {
        let mut listed = Listed::default();
        let mut cursor = None;
        loop {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = match self.peer().list_tools(Some(page)).await {
                Ok(page) => page,
                Err(error) => return Err(self.failure(&error).await),
            };
            let got_any = !page.tools.is_empty();
            listed.tools.extend(page.tools);
            if listed.tools.len() > MOST_TOOLS {
                listed.tools.truncate(MOST_TOOLS);
                listed.more = true;
                return Ok(listed);
            }
            cursor = page.next_cursor;
            // Empty pages without end are no list.
            if cursor.is_none() || !got_any {
                return Ok(listed);
            }
        }
    }
}

/// How an address is talked with.
fn address(
    transport: &McpTransport,
    own_env: &Environment,
) -> Result<(HttpClient, StreamableHttpClientTransportConfig), String> {
    let McpTransport::Http { url, bearer_token_env_var, http_headers, env_http_headers } =
        transport
    else {
        return Err("it has no address".to_owned());
    };
    let variable = |name: &str| {
        let value = own_env.get(OsStr::new(name)).and_then(|value| value.to_str());
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| format!("the variable {name} is not set"))
    };
    let mut headers = HashMap::new();
    for (name, value) in http_headers {
        headers.extend([header(name.as_str(), value.as_str())?]);
    }
    for (name, from) in env_http_headers {
        headers.extend([header(name.as_str(), variable(from.as_str())?)?]);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    if let Some(name) = bearer_token_env_var {
        config = config.auth_header(variable(name.as_str())?);
    }
    Ok((HttpClient::new(url.as_str())?, config))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let key = HeaderName::from_bytes(name.as_bytes()).ok();
    let (Some(key), Ok(mut value)) = (key, HeaderValue::from_str(value)) else {
        return Err(format!("the header {name} cannot be sent"));
    };
    value.set_sensitive(true);
    Ok((key, value))
}

/// What went wrong, with what a program said before it ended.
async fn with_last_words(why: &str, program: Option<&ServerWatch>) -> String {
    let Some(program) = program else { return why.to_owned() };
    match timeout(LAST_WORDS, program.ended()).await {
        Ok(code) => with_complaints(&format!("it has ended with code {code}"), Some(program)),
        Err(_) => with_complaints(why, Some(program)),
    }
}

fn with_complaints(why: &str, program: Option<&ServerWatch>) -> String {
    let complaints = program.map(ServerWatch::complaints).unwrap_or_default();
    let why = shortened(why, 500);
    match complaints.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{why}, and its last words were: {}", shortened(last.trim(), 300)),
        None => why,
    }
}
