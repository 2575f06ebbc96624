//! Confined commands on a terminal of their own.

#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use sandgate_process::{Received, SpawnedProcess, TerminalSize};
use sandgate_protocol::ExecParams;
use std::time::Duration;
use support::caged::{Session, again_without_namespaces, runaways};
use support::{eventually_async, program};

/// A terminal and what it has shown so far.
struct Screen {
    process: SpawnedProcess,
    shown: String,
}

impl Screen {
    async fn of(session: &Session, params: ExecParams) -> Self {
        let env = session.confined(params);
        let process = session.spawner.spawn_pty(&env, TerminalSize::default()).await.unwrap();
        Self { process, shown: String::new() }
    }

    async fn types(&self, keys: &'static str) {
        let input = self.process.session.writer_sender().unwrap();
        input.send(Bytes::from(keys)).await.unwrap();
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
}

/// spec CAGED.70: A confined command on a terminal controls it, and opens it again as `/dev/tty`.
#[tokio::test]
async fn a_terminal_is_controlled() {
    again_without_namespaces("a_terminal_is_controlled");
    let session = Session::new();
    let text = "stty size; echo asked > /dev/tty; read x < /dev/tty; echo got $x; test -t 0 && \
                echo yes; ls /proc/self/fd | wc -l";
    let mut screen = Screen::of(&session, session.script(text)).await;
    let shown = screen.shows("asked\r\n").await;
    assert!(shown.starts_with("24 80\r\n"), "{shown:?}");
    screen.types("word\n").await;
    // The fourth is the directory that is listed.
    assert!(screen.shows("4\r\n").await.contains("got word\r\nyes\r\n"));
    assert_eq!(screen.process.exit_rx.await, Ok(0));
}

/// spec CAGED.71: Resizing the terminal of a confined command tells the command.
#[tokio::test]
async fn resizing_is_noticed() {
    again_without_namespaces("resizing_is_noticed");
    let session = Session::new();
    let text = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done";
    let mut screen = Screen::of(&session, session.script(text)).await;
    screen.shows("ready").await;
    screen.process.session.resize(TerminalSize { rows: 50, columns: 132 }).unwrap();
    screen.shows("50 132").await;
}

/// spec CAGED.72: A confined shell has job control: Ctrl-C ends and Ctrl-Z stops its foreground job, and
/// `fg` brings that back.
#[tokio::test]
async fn a_shell_has_job_control() {
    again_without_namespaces("a_shell_has_job_control");
    let session = Session::new();
    let mut params = program(&["/bin/bash", "--norc", "--noprofile", "-i"]);
    params.env.insert("HISTFILE".into(), "/dev/null".into());
    let mut screen = Screen::of(&session, params).await;
    screen.types("PS1=ready'> '\n").await;
    screen.shows("\nready> ").await;
    screen.types("sh -c 'echo go\"ing\"; exec sleep 300'\n").await;
    screen.shows("going\r\n").await;
    screen.types("\x03").await;
    screen.shows("ready> ").await;
    screen.types("echo status=$?\n").await;
    assert!(screen.shows("\nready> ").await.contains("status=130"));
    screen.types("sh -c 'echo go\"ing\"; read x; echo a\"ga\"in $x'\n").await;
    screen.shows("going\r\n").await;
    screen.types("\x1a").await;
    assert!(screen.shows("\nready> ").await.contains("Stopped"));
    screen.types("fg\n").await;
    screen.shows("echo a").await;
    screen.types("here\n").await;
    screen.shows("again here").await;
    screen.types("exit 9\n").await;
    assert_eq!((&mut screen.process.exit_rx).await, Ok(9));
}

/// spec CAGED.73: Dropping the handle of a confined command on a terminal ends all that it started.
#[tokio::test]
async fn dropping_ends_the_whole_tree() {
    again_without_namespaces("dropping_ends_the_whole_tree");
    let session = Session::new();
    let mut alive = session.pipe("alive");
    let screen = Screen::of(&session, session.script(&runaways("sleep 300"))).await;
    alive.written().await;
    drop(screen);
    eventually_async("the tree is gone", || alive.is_abandoned()).await;
}
