//! A client of `sandgate serve`.

use super::gate::{Answer, Call, Gate};
use super::program::LIMIT;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is looked whether a question is there.
const PAUSE: Duration = Duration::from_millis(20);

/// Where a server is, and by which words it knows who asks.
#[derive(Debug, Clone)]
pub(super) struct Http {
    pub(super) address: String,
    pub(super) requester: String,
    pub(super) approver: String,
    /// The conversation that calls are made in.
    pub(super) conversation: Option<String>,
}

impl Http {
    /// A connection over which a request went, and nothing was read yet.
    pub(super) fn open(
        &self,
        token: &str,
        request: (&str, &str),
        body: &str,
    ) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).context("the server takes nobody")?;
        stream.set_read_timeout(Some(LIMIT))?;
        let ((method, path), host, length) = (request, &self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )?;
        Ok(stream)
    }

    /// Sends a request, and reads the answer to its end.
    pub(super) fn exchange(
        &self,
        token: &str,
        request: (&str, &str),
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let mut answer = Vec::new();
        let mut stream = self.open(token, request, body)?;
        stream.read_to_end(&mut answer).with_context(|| format!("{request:?} is not answered"))?;
        parsed(&String::from_utf8(answer)?).with_context(|| format!("{request:?}"))
    }

    pub(super) fn json(
        &self,
        token: &str,
        request: (&str, &str),
        body: &str,
    ) -> anyhow::Result<Value> {
        let (status, body) = self.exchange(token, request, body)?;
        anyhow::ensure!((200..300).contains(&status), "{request:?} was answered {status}: {body}");
        if body.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&body)?) }
    }

    /// Answers the questions about a call until it is over. How many that were.
    fn answer_questions(&self, call: &Call<'_>, over: &AtomicBool) -> anyhow::Result<usize> {
        let Some(decision) = call.decision else { return Ok(0) };
        let mut answered = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let open = self.json(&self.approver, ("GET", "/approvals"), "")?;
            for question in open["approvals"].as_array().into_iter().flatten() {
                let Some(id) = question["id"].as_str() else { continue };
                if question.to_string().contains(call.mark) && !answered.iter().any(|one| one == id)
                {
                    let body = decision.in_json().to_string();
                    let place = format!("/approvals/{id}");
                    let (status, said) = self.exchange(&self.approver, ("POST", &place), &body)?;
                    anyhow::ensure!(status == 204, "{decision:?} was answered {status}: {said}");
                    answered.push(id.to_owned());
                }
            }
            std::thread::sleep(PAUSE);
        }
        Ok(answered.len())
    }
}

impl Gate for Http {
    fn call(&mut self, call: &Call<'_>) -> anyhow::Result<Answer> {
        let mut body = json!({ "arguments": call.arguments });
        if let Some(conversation) = &self.conversation {
            body["conversation"] = json!(conversation);
        }
        let place = format!("/tools/{}", call.tool);
        let over = AtomicBool::new(false);
        let (said, asked) = std::thread::scope(|scope| {
            let desk = scope.spawn(|| self.answer_questions(call, &over));
            let said = self.json(&self.requester, ("POST", &place), &body.to_string());
            over.store(true, Ordering::Relaxed);
            (said, desk.join())
        });
        let Ok(asked) = asked else { anyhow::bail!("whoever answers questions panicked") };
        let (said, asked) = (said?, asked?);
        let ran = &said["ran"];
        Ok(Answer {
            success: said["success"] == true,
            output: said["output"].as_str().unwrap_or_default().to_owned(),
            exit_code: ran["exit_code"].as_i64(),
            timed_out: ran["timed_out"] == true,
            error: said["error"].as_str().map(str::to_owned),
            asked,
        })
    }
}

/// The status and the body of an answer.
fn parsed(answer: &str) -> anyhow::Result<(u16, String)> {
    let (head, body) =
        answer.split_once("\r\n\r\n").with_context(|| format!("no answer: {answer:?}"))?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status")?;
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    Ok((status, if chunked { joined(body) } else { body.to_owned() }))
}

/// A body that came in pieces, each with its length before it.
fn joined(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or(0);
        let Some(piece) = after.get(..length) else { break };
        body += piece;
        rest = after[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    body
}

/// The data of the events in a stream, each with its name.
pub(super) fn events(stream: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim_start);
        lines.collect::<Vec<_>>().join("\n")
    };
    let event = |event: &str| {
        let data = serde_json::from_str(&field(event, "data:")).ok()?;
        Some((field(event, "event:"), data))
    };
    stream.split("\n\n").filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_pieces_is_put_together() {
        let answer =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(parsed(answer).expect("an answer"), (200, "abcde".to_owned()));
        let whole = "HTTP/1.1 404 Not Found\r\n\r\nnothing";
        assert_eq!(parsed(whole).expect("an answer"), (404, "nothing".to_owned()));
        assert!(parsed("").is_err());
    }

    #[test]
    fn events_have_names_and_data() {
        let stream = ": hello\n\nevent: output\nid: 3\ndata: {\"chunk\":\"abc\"}\n\nevent: exit\ndata: {}\n\n";
        let heard = events(stream);
        assert_eq!(heard.len(), 2);
        assert_eq!((heard[0].0.as_str(), &heard[0].1["chunk"]), ("output", &json!("abc")));
        assert_eq!(heard[1].0, "exit");
    }
}
