//! A small MCP server over HTTP whose answers a test chooses, down to their bytes.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The server. It ends with the test.
pub(crate) struct HttpServer {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// One request.
#[derive(Clone)]
pub(crate) struct Request {
    verb: String,
    headers: Vec<(String, String)>,
    body: Value,
}

/// What it is answered with.
pub(crate) struct Reply {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

impl HttpServer {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&answer)));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// What was asked until now.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    seen: Arc<Mutex<Vec<Request>>>,
    answer: Arc<impl Fn(&Request) -> Reply>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let reply = match request.verb.as_str() {
            "POST" => answer(&request),
            _ => Reply { status: "405 No", headers: String::new(), body: Vec::new() },
        };
        seen.lock().unwrap().push(request);
        let length = reply.body.len();
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-length: {length}\r\n{}\r\n",
            reply.status, reply.headers
        );
        // A client that has read enough hangs up.
        if stream.write_all(head.as_bytes()).await.is_err()
            || stream.write_all(&reply.body).await.is_err()
        {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let verb = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request { verb, headers, body: Value::Null };
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(request)
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The arguments of a call.
    pub(crate) fn arguments(&self) -> &Value {
        &self.body["params"]["arguments"]
    }

    /// The message that answers it.
    pub(crate) fn answer(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    /// What a server answers that has one tool.
    pub(crate) fn usual(&self) -> Reply {
        match self.method() {
            "initialize" => Reply::json(&self.answer(&json!({
                "protocolVersion": self.body["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            }))),
            "tools/list" => Reply::json(&self.answer(&json!({"tools": [{
                "name": "echo", "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true},
            }]}))),
            _ => Reply { status: "202 Accepted", headers: String::new(), body: Vec::new() },
        }
    }
}

impl Reply {
    pub(crate) fn json(message: &Value) -> Self {
        let headers = "content-type: application/json\r\n".to_owned();
        Self { status: "200 OK", headers, body: message.to_string().into_bytes() }
    }

    pub(crate) fn events(message: &Value) -> Self {
        let headers = "content-type: text/event-stream\r\n".to_owned();
        let body = format!(": a comment\n\ndata: {message}\n\n").into_bytes();
        Self { status: "200 OK", headers, body }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        let headers = format!("location: {to}\r\n");
        Self { status: "307 Elsewhere", headers, body: Vec::new() }
    }
}
