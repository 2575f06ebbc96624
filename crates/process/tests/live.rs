//! Processes that live across calls.

#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use sandgate_process::{
    Answered, Deed, LiveOptions, LiveStdio, OutputSink, Patience, Spawner, UnifiedExecProcess,
};
use sandgate_protocol::{ExecParams, OutputStream, ReturnReason};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{granted, program};
use tokio_util::sync::CancellationToken;

struct Nowhere;

impl OutputSink for Nowhere {
    async fn write(&mut self, _: OutputStream, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

struct Live(UnifiedExecProcess);

impl Live {
    async fn start(params: ExecParams, options: LiveOptions) -> Self {
        let spawner = Spawner::start().unwrap();
        let env = granted(params);
        let on_end = |_, _| async {};
        Self(UnifiedExecProcess::start(&spawner, &env, options, Nowhere, on_end).await.unwrap())
    }

    async fn answer(&self, input: &'static str, limit: Duration) -> Answered {
        let moment = if input.is_empty() { self.0.now() } else { self.0.moment(Deed::Typing) };
        if !input.is_empty() {
            assert!(self.0.type_in(Bytes::from(input), limit).await);
        }
        let cancel = CancellationToken::new();
        self.0.answer(moment, Patience { limit, pattern: None, cancel: &cancel }).await
    }
}

fn text(answered: &Answered) -> String {
    answered.printed.text.to_stream_output(None).text
}

const LONG: Duration = Duration::from_secs(60);

/// Starts a program and types lines to it; each must be answered because it waits for input again.
async fn waits_after_each(command: &[&str], lines: &[(&'static str, &str)]) {
    let mut params = program(command);
    let Some(found) = which(command[0]) else {
        println!("SKIPPED: there is no {} here", command[0]);
        return;
    };
    params.program = found;
    params.env.insert("TERM".into(), "dumb".into());
    let live = Live::start(params, LiveOptions::default()).await;
    let first = live.answer("", LONG).await;
    assert_eq!(first.reason, ReturnReason::WaitingForInput, "{command:?}: {first:?}");
    for (line, expected) in lines {
        let answered = live.answer(line, LONG).await;
        let shown = text(&answered);
        assert_eq!(answered.reason, ReturnReason::WaitingForInput, "{line:?}: {shown:?}");
        assert!(shown.contains(expected), "{line:?}: {shown:?}");
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"].map(|place| Path::new(place).join(name));
    places.into_iter().find(|path| path.exists())
}

#[tokio::test]
async fn a_shell_is_answered_when_it_waits_for_the_next_command() {
    let lines = [("echo hi\n", "\nhi\r\n"), ("A=1\n", ""), ("sleep 0.2; echo $A\n", "\n1\r\n")];
    waits_after_each(&["bash", "--norc", "-i"], &lines).await;
    waits_after_each(&["dash", "-i"], &lines).await;
}

#[tokio::test]
async fn a_program_is_answered_when_it_reads_its_terminal() {
    waits_after_each(&["cat"], &[("hello\n", "hello\r\nhello\r\n"), ("x", "x")]).await;
    waits_after_each(&["sh", "-c", "read a; sleep 0.2; read b"], &[("1\n", "1")]).await;
}

#[tokio::test]
async fn a_program_that_works_in_silence_is_not_taken_for_one_that_waits() {
    let live = Live::start(program(&["/bin/sleep", "30"]), LiveOptions::default()).await;
    let answered = live.answer("", Duration::from_millis(600)).await;
    assert_eq!(answered.reason, ReturnReason::YieldElapsed);
}

#[tokio::test]
async fn the_end_is_answered_at_once_with_everything_that_was_printed() {
    let live = Live::start(program(&["/bin/echo", "done"]), LiveOptions::default()).await;
    let answered = live.answer("", LONG).await;
    assert_eq!((answered.reason, text(&answered).as_str()), (ReturnReason::Exited, "done\r\n"));
    assert_eq!(live.0.end().unwrap().output.exit_code, 0);
}

#[tokio::test]
async fn a_pipe_that_is_read_is_waited_at_too() {
    let options = LiveOptions { stdio: LiveStdio::Pipes, ..LiveOptions::default() };
    let live = Live::start(program(&["/bin/cat"]), options).await;
    assert_eq!(live.answer("", LONG).await.reason, ReturnReason::WaitingForInput);
    let answered = live.answer("hello\n", LONG).await;
    assert_eq!(
        (answered.reason, text(&answered).as_str()),
        (ReturnReason::WaitingForInput, "hello\n")
    );
    live.0.close_stdin().await;
    assert_eq!(live.answer("", LONG).await.reason, ReturnReason::Exited);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_prints_without_end_is_answered_when_the_time_is_over() {
    let live = Live::start(program(&["/usr/bin/yes"]), LiveOptions::default()).await;
    let (cancel, pattern) = (CancellationToken::new(), regex::bytes::Regex::new("never").unwrap());
    let limit = Duration::from_millis(300);
    let patience = Patience { limit, pattern: Some(&pattern), cancel: &cancel };
    let answered = tokio::time::timeout(LONG, live.0.answer(live.0.now(), patience)).await;
    assert_eq!(answered.unwrap().reason, ReturnReason::YieldElapsed);
}

#[tokio::test]
async fn input_that_found_no_room_is_not_waited_for_afterwards() {
    let scratch = tempfile::tempdir().unwrap();
    let go = scratch.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; cat > /dev/null", go.display());
    let options = LiveOptions { stdio: LiveStdio::Pipes, ..LiveOptions::default() };
    let live = Live::start(program(&["/bin/sh", "-c", &script]), options).await;
    // More than a pipe holds, and then more pieces than may wait behind it.
    let brief = Duration::from_millis(5);
    assert!(!live.0.type_in(Bytes::from(vec![b'x'; 1 << 20]), brief).await);
    for _ in 0..200 {
        assert!(!live.0.type_in(Bytes::from_static(b"x"), brief).await);
    }
    std::fs::write(go, "").unwrap();
    assert!(live.0.type_in(Bytes::from_static(b"x"), LONG).await);
}
