//! Commands with pipes: what they are given, what comes back, and how starting one can fail.

#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use sandgate_process::{ExecuteOptions, OutputSink, Received, Spawner, Stdin, Stop, execute};
use sandgate_protocol::{ExecError, OutputStream, SIGNAL_INTERRUPT};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use support::{Nowhere, granted, program, run, run_out_of_time, run_with, script};

/// spec PROCESS.1: A command's standard output, standard error and exit code come back as it gave
/// them, and both streams once more in the order of their arrival.
#[tokio::test]
async fn output_and_exit_code_come_back() {
    let done = run(script("echo out; echo err >&2; exit 3")).await.unwrap().output;
    assert_eq!(done.exit_code, 3);
    assert_eq!(done.stdout.text, "out\n");
    assert_eq!(done.stderr.text, "err\n");
    let mut lines: Vec<_> = done.aggregated_output.text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    assert!(!done.timed_out && !done.cancelled && !done.pipes_still_open);
}

/// spec PROCESS.1: A command's standard output, standard error and exit code come back as it gave
/// them, and both streams once more in the order of their arrival.
#[tokio::test]
async fn arrival_order_is_kept_where_one_write_follows_the_other() {
    /// Lets the command go on when its last word has arrived.
    struct Handshake(std::fs::File);
    impl OutputSink for Handshake {
        async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> std::io::Result<()> {
            self.0.write_all(b"\n")
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    // Open both ways, so that neither side waits for the other to open it.
    let gate = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let text =
        "exec 9<\"$1\"; for i in 1 2 3; do echo o$i; read x <&9; echo e$i >&2; read x <&9; done";
    let params = program(&["/bin/sh", "-c", text, "sh", fifo.to_str().unwrap()]);
    let (spawner, stop) = (Spawner::start().unwrap(), Stop::default());
    let options = ExecuteOptions::default();
    let done = execute(&spawner, &granted(params), options, &stop, &mut Handshake(gate)).await;
    assert_eq!(done.unwrap().output.aggregated_output.text, "o1\ne1\no2\ne2\no3\ne3\n");
}

/// spec PROCESS.2: A command that was promised no input finds the end of it at its first read.
#[tokio::test]
async fn stdin_is_empty_unless_asked_for() {
    let done = run(script("cat; echo end")).await.unwrap().output;
    assert_eq!(done.stdout.text, "end\n");
}

/// spec PROCESS.3: A command's environment is what it was given and nothing else.
#[tokio::test]
async fn nothing_of_the_environment_is_inherited() {
    let mut params = program(&["/usr/bin/env"]);
    params.env = [("ONLY".into(), "this".into())].into();
    assert_eq!(run(params).await.unwrap().output.stdout.text, "ONLY=this\n");
}

/// spec PROCESS.4: A command leads a session and a process group of its own.
#[tokio::test]
async fn a_command_leads_its_own_session() {
    let done = run(script("cut -d' ' -f1,5,6 /proc/self/stat; echo $$")).await.unwrap().output;
    let numbers: Vec<_> = done.stdout.text.split_whitespace().collect();
    let [_cut, group, session, shell] = numbers[..] else { panic!("{numbers:?}") };
    assert_eq!((group, session), (shell, shell));
}

/// spec PROCESS.5: A command has no descriptor open but its three standard streams.
#[tokio::test]
async fn no_descriptor_leaks_into_a_command() {
    let file = tempfile::tempfile().unwrap();
    // A descriptor that any ordinary exec would pass on.
    let _leak = rustix::io::fcntl_dupfd_cloexec(&file, 50).unwrap();
    rustix::io::fcntl_setfd(&_leak, rustix::io::FdFlags::empty()).unwrap();
    // `ls` opens one more for the directory that it lists.
    let done = run(script("ls /proc/self/fd | wc -l")).await.unwrap().output;
    assert_eq!(done.stdout.text.trim(), "4");
}

/// spec PROCESS.6: A command sees the name it was given as its own, whatever its file is called.
#[tokio::test]
async fn arg0_is_honoured() {
    let mut params = program(&["/bin/sh", "-c", "echo $0"]);
    params.arg0 = Some("another-name".to_owned());
    assert_eq!(run(params).await.unwrap().output.stdout.text, "another-name\n");
}

/// spec PROCESS.7: A command starts with every signal at its default and none blocked.
#[tokio::test]
async fn signals_are_as_a_new_program_expects() {
    let done = run(script("grep -E 'Sig(Blk|Ign)' /proc/self/status")).await.unwrap().output;
    let masks: Vec<_> = done.stdout.text.split_whitespace().skip(1).step_by(2).collect();
    assert_eq!(masks, ["0000000000000000"; 2], "{}", done.stdout.text);
}

/// spec PROCESS.8: A command that outlives its time limit is ended with exit code 124, and what it
/// printed until then is kept.
#[tokio::test]
async fn a_timeout_keeps_what_was_printed() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("printed");
    let text = format!("echo before; touch '{}'; exec sleep 300", mark.display());
    let done = run_out_of_time(script(&text), "it was printed", || mark.exists()).await.output;
    assert_eq!((done.exit_code, done.timed_out), (124, true));
    assert_eq!(done.stdout.text, "before\n");
    let Err(ExecError::Timeout { output }) = done.into_result() else { panic!("not a timeout") };
    assert_eq!(output.stdout.text, "before\n");
}

/// spec PROCESS.9: A command ended by signal n has the exit code 128 + n.
#[tokio::test]
async fn a_signal_shows_in_the_exit_code() {
    let done = run(script("kill -TERM $$")).await.unwrap().output;
    assert_eq!((done.exit_code, done.signal), (143, Some(15)));
    assert_eq!(done.into_result(), Err(ExecError::Signal { signal: 15 }));
}

/// spec PROCESS.10: Interrupting a call sends its command what Ctrl-C sends, and the command may
/// answer it.
#[tokio::test]
async fn an_interrupt_reaches_the_command() {
    let ready = tempfile::NamedTempFile::new().unwrap();
    let path = ready.path().to_owned();
    let text = format!(
        "trap 'echo caught; exit 42' INT; echo r > {}; while :; do sleep 0.01; done",
        path.display()
    );
    let stop = Stop::default();
    let interrupt = stop.interrupt.clone();
    let watcher = tokio::spawn(async move {
        support::eventually_async("the trap is set", || {
            std::fs::read(&path).is_ok_and(|text| !text.is_empty())
        })
        .await;
        interrupt.cancel();
    });
    let done = run_with(script(&text), ExecuteOptions::default(), &stop).await.unwrap().output;
    watcher.await.unwrap();
    assert_eq!((done.exit_code, done.stdout.text.as_str()), (42, "caught\n"));
    assert!(done.cancelled);
}

/// spec PROCESS.10: Interrupting a call sends its command what Ctrl-C sends, and the command may
/// answer it.
#[tokio::test]
async fn an_interrupt_while_it_starts_reaches_the_command() {
    let stop = Stop::default();
    let params = program(&["/bin/sleep", "60"]);
    let running = run_with(params, ExecuteOptions::default(), &stop);
    // The other one is looked at when the first one waits, which it does for its process.
    let (done, ()) = tokio::join!(running, async { stop.interrupt.cancel() });
    let done = done.unwrap().output;
    assert_eq!((done.signal, done.cancelled), (Some(SIGNAL_INTERRUPT), true));
}

/// spec PROCESS.16: A call that was cancelled before it began starts nothing.
#[tokio::test]
async fn a_cancelled_call_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop::default();
    stop.cancel.cancel();
    let spawner = Spawner::start().unwrap();
    for number in 0..200 {
        let text = format!("touch '{}/{number}'", directory.path().display());
        let env = granted(script(&text));
        let options = ExecuteOptions::default();
        let done = execute(&spawner, &env, options, &stop, &mut Nowhere).await.unwrap().output;
        assert!(done.cancelled);
    }
    // A command that runs after them would see what they did.
    let listing = format!("ls '{}' | wc -l", directory.path().display());
    assert_eq!(run(script(&listing)).await.unwrap().output.stdout.text.trim(), "0");
}

/// spec PROCESS.17: A sink that takes nothing does not keep a cancelled call from ending, even if the
/// command itself has ended before.
#[tokio::test]
async fn a_stuck_sink_does_not_hold_up_who_cancels() {
    /// Says that it was given something and never comes back.
    struct Stuck(tokio_util::sync::CancellationToken);
    impl OutputSink for Stuck {
        async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> std::io::Result<()> {
            self.0.cancel();
            std::future::pending().await
        }
    }
    for text in ["echo word", "(while :; do echo more; done) & echo word", "yes"] {
        let stop = Stop::default();
        let env = granted(script(text));
        let spawner = Spawner::start().unwrap();
        let options = ExecuteOptions::default();
        let mut sink = Stuck(stop.cancel.clone());
        let done = execute(&spawner, &env, options, &stop, &mut sink).await.unwrap().output;
        assert!(done.cancelled || done.exit_code == 0, "{done:?}");
    }
}

/// spec PROCESS.11: A command that cannot be started is refused with an error that names what is
/// missing or wrong.
#[tokio::test]
async fn what_cannot_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let message = async |params| run(params).await.expect_err("must not start").to_string();

    assert_eq!(message(program(&[])).await, "the command is empty: name a program to run");
    assert_eq!(
        message(program(&["/no/such/program"])).await,
        "there is no program at /no/such/program"
    );
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    assert!(message(program(&[&orphan])).await.contains("interpreter"));
    let noise = file("noise", "neither\n", 0o755);
    assert!(message(program(&[&noise])).await.contains("neither a program for this machine"));
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    assert!(message(program(&[&plain])).await.contains("not marked executable"));
    assert!(message(program(&["/tmp"])).await.contains("it is a directory"));

    let mut lost = script("true");
    lost.cwd = "/no/such/directory".into();
    assert!(message(lost).await.starts_with("cannot work in /no/such/directory: No such file"));

    assert!(message(script("echo \0")).await.starts_with("argument 2 contains a NUL byte"));
    let mut params = script("true");
    params.env.insert("BAD".into(), "a\0b".into());
    assert!(message(params).await.contains("environment variable BAD contains a NUL byte"));

    let mut params = script("true");
    params.env.insert("HUGE".into(), "x".repeat(1 << 20).into());
    assert!(message(params).await.starts_with("the environment variable HUGE is too large"));
    let mut params = script("true");
    params.env.extend((0..100).map(|i| (format!("V{i}").into(), "x".repeat(100_000).into())));
    assert!(message(params).await.contains("the environment (100"), "names the environment");
}

/// spec PROCESS.12: An environment of a MiB that the system allows reaches the command whole.
#[tokio::test]
async fn a_large_environment_arrives_whole() {
    let mut params = program(&["/usr/bin/env"]);
    params.env = (0..16).map(|i| (format!("V{i:02}").into(), "y".repeat(65_536).into())).collect();
    let done = run(params).await.unwrap().output;
    assert_eq!(done.stdout.total_bytes, 16 * (4 + 65_536 + 1));
}

/// spec PROCESS.13: Input sent to a command arrives in order, and closing it is the end of it.
#[tokio::test]
async fn input_arrives_and_ends() {
    let spawner = Spawner::start().unwrap();
    let env = granted(program(&["/usr/bin/wc", "-c"]));
    let mut process = spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    let writer = process.session.writer_sender().expect("a pipe to write to");
    for _ in 0..300 {
        writer.send(Bytes::from(vec![b'x'; 10_000])).await.unwrap();
    }
    process.session.close_stdin().await;
    assert!(process.session.writer_sender().is_none());
    let Some(Received::Chunk(chunk)) = process.output_rx.recv().await else { panic!("no output") };
    assert_eq!(chunk.bytes, "3000000\n");
    assert_eq!(process.exit_rx.await, Ok(0));
    assert_eq!(process.session.exit_code(), Some(0));
    assert!(process.session.has_exited());
    // Whoever kept a sender holds nothing open with it.
    assert!(writer.send(Bytes::from_static(b"late")).await.is_err());
}

/// spec PROCESS.14: A listener that is too slow is told how many bytes it missed, and no output is
/// lost without a word.
#[tokio::test]
async fn a_slow_listener_is_told_what_it_missed() {
    let spawner = Spawner::start().unwrap();
    let env = granted(script("head -c 10000000 /dev/zero; echo end >&2"));
    let mut process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    assert_eq!((&mut process.exit_rx).await, Ok(0));
    let (mut heard, mut missed) = (0, 0);
    while let Some(received) = process.output_rx.recv().await {
        match received {
            Received::Chunk(chunk) => heard += chunk.bytes.len() as u64,
            Received::Missed { bytes } => missed += bytes,
        }
    }
    assert_eq!(heard + missed, 10_000_004);
    assert!(missed > 0, "ten megabytes do not wait for anybody");
}

/// spec PROCESS.15: Two hundred commands at once each give back all that they wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once_are_all_exact() {
    let spawner = Spawner::start().unwrap();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..200u64 {
        let spawner = spawner.clone();
        running.spawn(async move {
            let text = format!("yes {number:015} | head -c 1048576");
            let options = ExecuteOptions { stream_bytes: 4 << 20, ..Default::default() };
            let env = granted(script(&text));
            let stop = Stop::default();
            let done = execute(&spawner, &env, options, &stop, &mut Nowhere).await.unwrap();
            let expected = format!("{number:015}\n").repeat(1 << 16);
            assert_eq!(done.output.exit_code, 0);
            assert!(done.output.stdout.text == expected, "command {number}");
        });
    }
    while let Some(joined) = running.join_next().await {
        joined.unwrap();
    }
}
