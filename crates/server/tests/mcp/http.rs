//! `/mcp`, with the two kinds of callers that whoever mounts it tells apart.

use crate::suite::stand_in;
use crate::support::{
    Client, Connected, GENERATIONS, World, accept, eventually, facts, lifecycle, text,
};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sandgate_protocol::ReviewDecision;
use sandgate_server::Caller;
use sandgate_server::mcp::http_service;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// Serves a world, and stops when it is dropped.
pub(crate) struct Served {
    address: SocketAddr,
    stop: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Served {
    async fn new(world: &World) -> Self {
        Self::letting_in(world, None, |router| router).await
    }

    /// One that takes whoever comes for the person, and knows the conformance suite's names for things.
    pub(crate) async fn for_suite(world: &World) -> Self {
        let named = |router: Router| router.layer(from_fn(stand_in));
        Self::letting_in(world, Some(Caller::Approver), named).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    async fn letting_in(
        world: &World,
        others: Option<Caller>,
        around: impl FnOnce(Router) -> Router,
    ) -> Self {
        let stop = CancellationToken::new();
        let mount = http_service(&world.options, &[], &stop);
        let tell = from_fn(move |mut request: Request, next: Next| {
            let token = request.headers().get("authorization");
            let caller = match token.and_then(|value| value.to_str().ok()) {
                Some("Bearer requester") => Some(Caller::Requester),
                Some("Bearer approver") => Some(Caller::Approver),
                _ => others,
            };
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request)
        });
        let router = around(Router::new().route("/mcp", mount).layer(tell));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let over = stop.clone();
        tokio::spawn(async move {
            axum::serve(listener, router).with_graceful_shutdown(over.cancelled_owned()).await
        });
        Self { address, stop }
    }

    async fn connect(&self, client: Client, token: &str, version: &ProtocolVersion) -> Connected {
        self.try_connect(client, token, version).await.unwrap()
    }

    async fn try_connect(
        &self,
        client: Client,
        token: &str,
        version: &ProtocolVersion,
    ) -> Result<Connected, String> {
        let config =
            StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", self.address))
                .auth_header(token);
        // There is no TLS here, but a client is not made without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_config(config);
        let heard = Arc::clone(&client.heard);
        let service = client.serve_with_lifecycle(transport, lifecycle(version)).await;
        let service = service.map_err(|error| error.to_string())?;
        Ok(Connected { service, heard, serving: tokio::spawn(async { Ok(()) }) })
    }

    /// The status that a request of these headers is answered with.
    async fn status(&self, headers: &str, body: &str) -> u16 {
        let mut stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\n{headers}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        String::from_utf8_lossy(&head[9..]).parse().unwrap()
    }
}

fn make_file() -> serde_json::Value {
    json!({ "command": ["sh", "-c", "echo x > made"] })
}

/// spec MCPS.30: A request without a token, of a page of another origin, or for another host is refused, and no
/// session is opened.
#[tokio::test]
async fn who_brings_no_token_or_comes_from_a_page_is_refused() {
    let world = World::usual();
    let served = Served::new(&world).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    .to_string();
    let (host, token) =
        (format!("host: {}\r\n", served.address), "authorization: Bearer requester\r\n");
    assert_eq!(served.status(&format!("{host}{token}"), &hello).await, 200);
    let own_page = format!("{host}{token}origin: http://{}\r\n", served.address);
    assert_eq!(served.status(&own_page, &hello).await, 200);
    let foreign = "host: example.com\r\n";
    for headers in [
        host.clone(),
        format!("{host}authorization: Bearer other\r\n"),
        format!("{host}{token}origin: http://example.com\r\n"),
        format!("host: example.com\r\norigin: http://example.com\r\n{token}"),
        format!("{host}{token}origin: http://{}\r\norigin: http://example.com\r\n", served.address),
        format!("{host}{token}origin: null\r\n"),
        format!("{foreign}{token}"),
    ] {
        assert_eq!(served.status(&headers, &hello).await, 403, "{headers}");
    }
    assert!(world.opener.opened.lock().unwrap().is_empty());
}

/// spec MCPS.35: At most 64 clients of the older generation have sessions with one token at a time.
#[tokio::test]
async fn there_are_only_so_many_clients() {
    let world = World::usual();
    let served = Served::new(&world).await;
    let old = &GENERATIONS[0];
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(served.connect(Client::plain(), "requester", old).await);
    }
    assert!(served.try_connect(Client::plain(), "requester", old).await.is_err());
    served.connect(Client::plain(), "approver", old).await;
    let newer = served.connect(Client::plain(), "requester", &GENERATIONS[1]).await;
    assert_eq!(newer.script("true").await.is_error, Some(false));
    clients.pop().unwrap().service.cancel().await.unwrap();
    let next = async {
        while served.try_connect(Client::plain(), "requester", old).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::support::LIMIT, next).await.expect("there is a place again");
}

/// spec MCPS.31: Who has the requester's token is shown no form; who has the approver's is.
#[tokio::test]
async fn an_agent_cannot_answer_for_the_person() {
    for version in GENERATIONS {
        let world = World::asking();
        let served = Served::new(&world).await;
        let agent = served.connect(Client::that_says("approve"), "requester", &version).await;
        let calling = agent.call("shell", make_file());
        let person = async {
            eventually("it is asked", || !world.desk.open().is_empty()).await;
            let open = world.desk.open();
            world.desk.answer(&open[0].id, ReviewDecision::DENIED, "console").unwrap();
        };
        let (done, ()) = tokio::join!(calling, person);
        assert_eq!(facts(&done)["error"]["code"], "approval_denied", "{done:?}");
        assert!(agent.heard.forms.lock().unwrap().is_empty());
        assert!(!world.path("made").exists());

        let person = served.connect(Client::that_says("approve"), "approver", &version).await;
        let done = person.call("shell", make_file()).await;
        assert_eq!(done.is_error, Some(false), "{done:?}");
        assert_eq!(person.heard.forms.lock().unwrap().len(), 1);
        assert!(world.path("made").exists());
    }
}

/// spec MCPS.32: What belongs to the holder of one token is out of reach with the other.
#[tokio::test]
async fn an_agent_cannot_reach_the_persons_session() {
    let world = World::asking();
    let served = Served::new(&world).await;
    let (client, tell) = Client::that_waits();
    let person = served.connect(client, "approver", &GENERATIONS[1]).await;
    let process =
        |done: &rmcp::model::CallToolResult| facts(done)["processes"].as_array().unwrap().len();
    tell.send(accept(json!({ "decision": "approve" }))).unwrap();
    let started = person
        .call(
            "exec_command",
            json!({ "command": ["cat"], "yield_time_ms": 250, "process_id": "own" }),
        )
        .await;
    assert_eq!(started.is_error, Some(false), "{started:?}");
    assert_eq!(process(&person.call("list_processes", json!({})).await), 1);
    let agent = served.connect(Client::plain(), "requester", &GENERATIONS[1]).await;
    assert_eq!(process(&agent.call("list_processes", json!({})).await), 0);
    let read = agent.call("read_output", json!({ "id": "own" })).await;
    assert_eq!(read.is_error, Some(true), "{read:?}");
    assert!(!text(&read).is_empty());
}

/// spec MCPS.32: What belongs to the holder of one token is out of reach with the other.
#[tokio::test]
async fn the_id_of_the_persons_session_is_no_use_to_an_agent() {
    let world = World::usual();
    let served = Served::new(&world).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    .to_string();
    let mut stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer approver\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{hello}",
        served.address,
        hello.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).to_lowercase();
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .expect("an id")
        .to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let headers = |token: &str| {
        format!(
            "host: {}\r\nmcp-session-id: {id}\r\nauthorization: Bearer {token}\r\n",
            served.address
        )
    };
    assert_eq!(served.status(&headers("approver"), &ping).await, 200);
    assert_eq!(served.status(&headers("requester"), &ping).await, 404);
}

/// spec MCPS.33: Clients of the newer generation that have the same token share one session; each
/// of the older has its own.
#[tokio::test]
async fn requests_that_stand_alone_share_a_session() {
    let world = World::usual();
    let served = Served::new(&world).await;
    let one = served.connect(Client::plain(), "requester", &GENERATIONS[1]).await;
    let started = one
        .call(
            "exec_command",
            json!({ "command": ["cat"], "yield_time_ms": 250, "process_id": "kept" }),
        )
        .await;
    assert_eq!(started.is_error, Some(false), "{started:?}");
    let other = served.connect(Client::plain(), "requester", &GENERATIONS[1]).await;
    let listed = other.call("list_processes", json!({})).await;
    assert_eq!(facts(&listed)["processes"][0]["process_id"], "kept");
    assert_eq!(world.opener.opened.lock().unwrap().len(), 1);
    // Each client of the older generation has its own.
    let apart = served.connect(Client::plain(), "requester", &GENERATIONS[0]).await;
    let listed = apart.call("list_processes", json!({})).await;
    assert_eq!(facts(&listed)["processes"], json!([]));
}
