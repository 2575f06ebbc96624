//! The server as a program.

#![expect(clippy::disallowed_methods, reason = "starts the real program")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// spec SCRIPTED.41: `sandgate-model-server FILE` prints where it is, serves until its input ends, and
/// fails with the violations on standard error when there were any.
#[test]
fn the_program_serves_a_file_until_its_input_ends() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.jsonl");
    std::fs::write(&file, "{\"type\": \"message\", \"text\": \"hello from a file\"}\n").unwrap();
    for (path, good) in [("/v1/chat/completions", true), ("/v1/elsewhere", false)] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_sandgate-model-server"))
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(program.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let mut stream = TcpStream::connect(url.trim().strip_prefix("http://").unwrap()).unwrap();
        let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.contains("hello from a file"), good, "{answer}");
        drop(program.stdin.take());
        let output = program.wait_with_output().unwrap();
        assert_eq!(output.status.success(), good);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.contains("POST /v1/elsewhere: there is no such place"), !good);
    }
}
