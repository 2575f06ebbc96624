//! Processes that live across calls.

#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use sandgate_process::{
    Answered, Deed, LiveEnd, LiveOptions, LiveStdio, OutputSink, Patience, Spawner, SpillPolicy,
    UnifiedExecProcess,
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

/// spec SESSION.52: A process that has ended holds no descriptor, and no memory for what it printed that is on the
/// disk; all of it can be read, and what no answer had told is told, as before.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_has_ended_is_kept_without_descriptors() {
    let directory = tempfile::tempdir().unwrap();
    let spawner = Spawner::start().unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let numbers: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    let mut kept = Vec::new();
    let mut usual = None;
    for round in 0..6 {
        let stdio = if round % 2 == 0 { LiveStdio::Pipes } else { LiveStdio::default() };
        let spill = Some(SpillPolicy::new(directory.path()));
        let options = LiveOptions { stdio, spill, ..LiveOptions::default() };
        let (over, ended) = tokio::sync::oneshot::channel();
        let on_end = async move |_: Nowhere, _: LiveEnd| {
            let _ = over.send(());
        };
        let env = granted(program(&["/usr/bin/seq", "60000"]));
        let process = UnifiedExecProcess::start(&spawner, &env, options, Nowhere, on_end).await;
        ended.await.unwrap();
        kept.push((stdio, process.unwrap()));
        // The first has made the guards, and the descriptors to them stay.
        let usual = *usual.get_or_insert_with(descriptors);
        assert_eq!(descriptors(), usual, "{} have ended", kept.len());
    }
    for (stdio, process) in kept {
        let expected = match stdio {
            LiveStdio::Pipes => numbers.clone(),
            LiveStdio::Terminal(_) => numbers.replace('\n', "\r\n"),
        };
        let length = expected.len() as u64;
        let (from, bytes) = process.read(0..length * 2).unwrap();
        assert!((from, bytes.as_slice()) == (0, expected.as_bytes()), "{stdio:?}");
        let cancel = CancellationToken::new();
        let patience = Patience { limit: LONG, pattern: None, cancel: &cancel };
        let answered = process.answer(process.now(), patience).await;
        assert!(text(&answered) == expected, "{stdio:?} is told as it was printed");
        assert_eq!((answered.reason, answered.printed.range), (ReturnReason::Exited, 0..length));
        assert_eq!(process.end().unwrap().output.exit_code, 0);
        let end = process.end_with_output().await.unwrap();
        assert_eq!(end.printed.total_bytes(), length);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "files go with them");
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
