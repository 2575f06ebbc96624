//! A client of `sandgate serve` that has no opinion on what is a good request.

use super::support::{Running, World, eventually};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

/// A server, and what is known about it.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) token_file: PathBuf,
    /// The host and the port.
    pub(crate) address: String,
    pub(crate) requester: String,
    pub(crate) approver: String,
    _ends: Ends,
}

/// Ends a server that a test which failed did not.
struct Ends(OwnedFd);

impl Drop for Ends {
    fn drop(&mut self) {
        // Most have ended by then.
        let _ = pidfd_send_signal(&self.0, Signal::TERM);
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Served {
    /// Starts `sandgate serve` on a free port, with these words more.
    pub(crate) fn start(world: &World, words: &[&str]) -> Self {
        let words = [&["serve", "--listen", "127.0.0.1:0"], words].concat();
        Self::of(world, &mut world.program(words))
    }

    /// Waits until a server can be talked with.
    pub(crate) fn of(world: &World, command: &mut Command) -> Self {
        let mut running = Running::start(command);
        let pid = Pid::from_child(&running.child);
        let ends = Ends(pidfd_open(pid, PidfdFlags::empty()).unwrap());
        let directory = world.path(".codex/serve");
        let token_file = eventually("there is a token file", || {
            if let Some(status) = running.child.try_wait().unwrap() {
                let mut said = String::new();
                let _ = running.child.stderr.as_mut().unwrap().read_to_string(&mut said);
                panic!("it ended with {status}: {said}");
            }
            let files = fs::read_dir(&directory).ok()?.flatten().map(|entry| entry.path());
            let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
            files.find(|path| fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')))
        });
        let told: Value = serde_json::from_str(&fs::read_to_string(&token_file).unwrap()).unwrap();
        assert_eq!(told.as_object().unwrap().len(), 3);
        let url = told["url"].as_str().unwrap();
        let console = eventually("the console is known", || {
            let outcome = world.sandgate(&["console"]);
            (outcome.code == Some(0)).then(|| outcome.stdout().trim().to_owned())
        });
        let (place, code) = console.split_once("/#code=").unwrap();
        assert_eq!(place, url);
        let address = url.split("//").last().unwrap().to_owned();
        Self {
            approver: sign_in(&address, code),
            address,
            requester: told["requester_token"].as_str().unwrap().to_owned(),
            running,
            token_file,
            _ends: ends,
        }
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, "GET", path, "")
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(token, "POST", path, &body.to_string())
    }

    fn send(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let stream = TcpStream::connect(&self.address).unwrap();
        exchange(stream, &self.address, token, method, path, body)
    }

    /// Listens to the questions: the connection, and the first event.
    pub(crate) fn first_list(&self, token: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, path) = (&self.address, "/approvals/events");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let (mut heard, mut bytes) = (String::new(), [0; 4096]);
        loop {
            let event = heard.find("event: approvals\n").map(|at| &heard[at..]);
            if let Some((event, _)) = event.and_then(|event| event.split_once("\n\n")) {
                return (stream, event.to_owned());
            }
            let n = stream.read(&mut bytes).unwrap();
            assert_ne!(n, 0, "it ended: {heard}");
            heard += &String::from_utf8_lossy(&bytes[..n]);
        }
    }

    /// The question that is open, once there is one.
    pub(crate) fn question(&self) -> Value {
        eventually("a question is open", || {
            let open = self.get(&self.requester, "/approvals").json();
            open["approvals"].get(0).cloned()
        })
    }
}

/// Sends one request and reads the answer to its end.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Answer {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
        true => joined(body),
        false => body.to_owned(),
    };
    Answer { status, body }
}

/// A body that came in pieces, each with its length before it.
fn joined(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body += &after[..length];
        rest = after[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    body
}

/// Spends the code of the console's address for an approver's token, as the console does.
pub(crate) fn sign_in(address: &str, code: &str) -> String {
    let body = serde_json::json!({ "code": code }).to_string();
    let (method, path) = ("POST", "/console/sign-in");
    let answer = match address.strip_prefix("unix:") {
        Some(socket) => {
            let stream = UnixStream::connect(socket).unwrap();
            exchange(stream, "localhost", "", method, path, &body)
        }
        None => {
            let stream = TcpStream::connect(address).unwrap();
            exchange(stream, address, "", method, path, &body)
        }
    };
    answer.json()["token"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}
