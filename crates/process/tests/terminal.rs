//! Commands on a terminal of their own.

#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use sandgate_process::{ProcessHandle, Received, SpawnedProcess, Spawner, TerminalSize};
use std::time::Duration;
use support::{granted, program, script};

/// A process on a terminal, and what it has shown so far.
struct Session {
    process: SpawnedProcess,
    shown: String,
}

impl Session {
    async fn start(params: sandgate_protocol::ExecParams) -> Self {
        let spawner = Spawner::start().unwrap();
        let process = spawner.spawn_pty(&granted(params), TerminalSize::default()).await.unwrap();
        Self { process, shown: String::new() }
    }

    fn handle(&self) -> &ProcessHandle {
        &self.process.session
    }

    async fn types(&self, keys: &'static str) {
        self.handle().writer_sender().unwrap().send(Bytes::from(keys)).await.unwrap();
    }

    /// Reads on until `text` is on the screen; what was shown since the last time.
    async fn shows(&mut self, text: &str) -> String {
        while !self.shown.contains(text) {
            let next = self.process.output_rx.recv();
            match tokio::time::timeout(Duration::from_secs(20), next).await {
                Ok(Some(Received::Chunk(chunk))) => {
                    self.shown.push_str(&String::from_utf8_lossy(&chunk.bytes));
                }
                other => panic!("waited for {text:?}, got {other:?} after {:?}", self.shown),
            }
        }
        std::mem::take(&mut self.shown)
    }

    /// Reads to the end.
    async fn rest(&mut self) -> String {
        while let Some(Received::Chunk(chunk)) = self.process.output_rx.recv().await {
            self.shown.push_str(&String::from_utf8_lossy(&chunk.bytes));
        }
        std::mem::take(&mut self.shown)
    }
}

/// spec PROCESS.40: A command on a terminal controls it, and finds it 24 lines by 80 columns unless
/// told otherwise.
#[tokio::test]
async fn a_terminal_is_controlled_and_has_a_size() {
    let mut session = Session::start(script("tty; stty size; echo x > /dev/tty")).await;
    let shown = session.rest().await;
    assert!(shown.starts_with("/dev/pts/"), "{shown:?}");
    assert!(shown.ends_with("\r\n24 80\r\nx\r\n"), "{shown:?}");
    assert_eq!(session.process.exit_rx.await, Ok(0));
}

/// spec PROCESS.41: Resizing the terminal tells the command.
#[tokio::test]
async fn resizing_is_noticed() {
    let text = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done";
    let mut session = Session::start(script(text)).await;
    session.shows("ready").await;
    session.handle().resize(TerminalSize { rows: 50, columns: 132 }).unwrap();
    session.shows("50 132").await;
}

/// spec PROCESS.42: Control characters typed on the terminal do what they do on any terminal.
#[tokio::test]
async fn control_characters_work() {
    let mut params = program(&["/bin/bash", "--norc", "--noprofile", "-i"]);
    params.env.insert("HISTFILE".into(), "/dev/null".into());
    let mut session = Session::start(params).await;
    session.types("PS1=ready'> '\n").await;
    session.shows("\nready> ").await;
    // Ctrl-C ends the command, not the shell.
    session.types("sh -c 'echo go\"ing\"; exec sleep 300'\n").await;
    session.shows("going\r\n").await;
    session.types("\x03").await;
    session.shows("ready> ").await;
    session.types("echo status=$?\n").await;
    assert!(session.shows("\nready> ").await.contains("status=130"));
    // Ctrl-Z stops it, and the shell has job control.
    session.types("sh -c 'echo go\"ing\"; exec sleep 300'\n").await;
    session.shows("going\r\n").await;
    session.types("\x1a").await;
    assert!(session.shows("\nready> ").await.contains("Stopped"));
    session.types("disown -a; exit 9\n").await;
    assert_eq!((&mut session.process.exit_rx).await, Ok(9));
}

/// spec PROCESS.43: Closing the input of a command on a terminal is what Ctrl-D is, and leaves the
/// terminal open.
#[tokio::test]
async fn closing_the_input_ends_it() {
    let mut session =
        Session::start(script("stty -echo; echo on; cat; echo over; head -n 1")).await;
    session.shows("on\r\n").await;
    session.types("line\n").await;
    session.shows("line\r\n").await;
    session.handle().close_stdin().await;
    session.shows("over\r\n").await;
    // The terminal itself is still there to be typed on.
    session.types("more\n").await;
    assert_eq!(session.rest().await, "more\r\n");
}

/// spec PROCESS.6: A command sees the name it was given as its own, whatever its file is called.
#[tokio::test]
async fn arg0_is_honoured_on_a_terminal_too() {
    let mut params = script("echo $0");
    params.arg0 = Some("another-name".to_owned());
    let mut session = Session::start(params).await;
    assert_eq!(session.rest().await, "another-name\r\n");
}

/// spec PROCESS.44: Bytes pass through a terminal in raw mode as they are, both ways.
#[tokio::test]
async fn raw_bytes_pass_both_ways() {
    let mut session = Session::start(script("stty raw -echo; printf ready; head -c 256")).await;
    session.shows("ready").await;
    let all: Vec<u8> = (0..=255).collect();
    session.handle().writer_sender().unwrap().send(Bytes::from(all.clone())).await.unwrap();
    let mut echoed = Vec::new();
    while let Some(Received::Chunk(chunk)) = session.process.output_rx.recv().await {
        echoed.extend_from_slice(&chunk.bytes);
    }
    assert_eq!(echoed, all);
}
