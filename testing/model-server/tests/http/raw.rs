//! A client that sees every byte, and believes nothing.

use sandgate_model_server::{ModelServer, Wire};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The chunks of the body, each as it was sent; one if it has no chunks.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the body came to its proper end.
    pub(crate) complete: bool,
}

impl Raw {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    /// The data of the events, where each line ends in `\n` and each event has one line of data.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// What an answer that refuses says.
    pub(crate) fn refusal(&self) -> String {
        assert_eq!(self.status, 400, "{self:?}");
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// Sends a request and leaves the answer to come.
pub(crate) fn send(server: &ModelServer, path: &str, body: &str) -> TcpStream {
    let address = server.url();
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nX-Test: yes\r\n\
         Content-Type: application/json\r\nAnthropic-Version: 2023-06-01\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Asks and reads the answer to its end. Nothing when the connection was closed without one.
pub(crate) fn ask(server: &ModelServer, wire: Wire, body: &Value) -> Option<Raw> {
    let mut all = Vec::new();
    send(server, wire.path(), &body.to_string()).read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(all[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = &all[end + 4..];
    let (chunks, complete) = if head.contains("transfer-encoding: chunked") {
        unchunk(body)
    } else {
        (vec![body.to_vec()], true)
    };
    Some(Raw { status, head, chunks, complete })
}

fn unchunk(mut body: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|two| two == b"\r\n") else {
            return (chunks, false);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (chunks, true);
        }
        chunks.push(body[end + 2..end + 2 + size].to_vec());
        body = &body[end + 2 + size + 2..];
    }
}

/// The least that can be asked, as a stream.
pub(crate) fn hello(wire: Wire) -> Value {
    match wire {
        Wire::Responses => json!({"model": "m", "input": "hello", "stream": true}),
        Wire::Chat => json!({"model": "m", "stream": true,
            "messages": [{"role": "user", "content": "hello"}]}),
        Wire::Messages => json!({"model": "m", "stream": true, "max_tokens": 2048,
            "messages": [{"role": "user", "content": "hello"}]}),
    }
}
