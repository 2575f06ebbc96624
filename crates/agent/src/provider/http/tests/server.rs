//! A server that says what it is told to, and tells what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// What it answers to one request.
pub(super) enum Answer {
    /// All of it at once.
    Bytes(Vec<u8>),
    /// This, and then the connection is closed.
    Cut(Vec<u8>),
    /// This, and then nothing until the other side closes the connection.
    Hang(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(super) struct Received {
    /// The connection that it came by, from 0.
    pub(super) connection: usize,
    /// Its first line and its headers, in small letters.
    pub(super) head: String,
    pub(super) body: String,
}

pub(super) struct Server {
    pub(super) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    closed: UnboundedReceiver<()>,
}

impl Server {
    /// Answers requests in their order with these, and closes on whatever comes then.
    pub(super) async fn start(answers: Vec<Answer>) -> Self {
        Self::start_with(answers, None).await
    }

    /// The same, behind TLS.
    pub(super) async fn start_tls(answers: Vec<Answer>, tls: TlsAcceptor) -> Self {
        Self::start_with(answers, Some(tls)).await
    }

    async fn start_with(answers: Vec<Answer>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}/v1", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (closes, closed) = unbounded_channel();
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let seen = Arc::clone(&received);
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
                let closes = closes.clone();
                let Some(tls) = tls.clone() else {
                    tokio::spawn(serve(stream, connection, seen, answers, closes));
                    continue;
                };
                tokio::spawn(async move {
                    // Whoever does not believe us hangs up.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    serve(stream, connection, seen, answers, closes).await;
                });
            }
        });
        Self { url, received, closed }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until the other side has closed a connection on which the server hung.
    pub(super) async fn closed(&mut self) {
        self.closed.recv().await.unwrap();
    }
}

async fn serve(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    connection: usize,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    closes: UnboundedSender<()>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        received.lock().unwrap().push(Received { connection, head, body });
        let Some(answer) = answers.lock().unwrap().pop_front() else { return };
        let (Answer::Bytes(bytes) | Answer::Cut(bytes) | Answer::Hang(bytes)) = &answer;
        // Whoever hangs up does so at any time.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        match answer {
            Answer::Bytes(_) => {}
            Answer::Cut(_) => return,
            Answer::Hang(_) => {
                let _ = stream.read(&mut [0]).await;
                let _ = closes.send(());
                return;
            }
        }
    }
}

/// The head of a stream of events whose end is the end of the connection.
pub(super) const OPEN_STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A whole stream of events.
pub(super) fn stream(events: &str) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
    Answer::Bytes(format!("{head}\r\n\r\n{:x}\r\n{events}\r\n0\r\n\r\n", events.len()).into_bytes())
}

/// The beginning of a stream of events, which is cut then.
pub(super) fn cut(events: &str) -> Answer {
    Answer::Cut(format!("{OPEN_STREAM}{events}").into_bytes())
}

/// An answer with a status.
pub(super) fn status(status: u16, headers: &str, body: &str) -> Answer {
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Answer::Bytes(format!("{head}{body}").into_bytes())
}
