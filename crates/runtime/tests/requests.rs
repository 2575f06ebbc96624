//! What a request may ask for, and how it is answered when it cannot be had.

#![cfg(unix)]

use sandgate_protocol::{Event, ExecExpiration, ExecToolCallOutput, OutputStream};
use sandgate_runtime::{
    CommandInput, CommandLine, CommandRequest, FailureKind, KeepOutput, Login,
    MAX_EXEC_OUTPUT_DELTAS_PER_CALL, Observer, Runtime, RuntimeError, Stop, new_call_id,
};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

fn script(text: &str) -> CommandRequest {
    let shell = Some("sh".to_owned());
    request(CommandLine::Script { text: text.to_owned(), shell, login: Login::No })
}

fn argv(words: &[&str]) -> CommandRequest {
    request(CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn request(command: CommandLine) -> CommandRequest {
    CommandRequest {
        call_id: new_call_id(),
        command,
        cwd: PathBuf::from("/"),
        expiration: ExecExpiration::Cancellation,
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        input: CommandInput::Nothing,
        keep: KeepOutput::HeadAndTail,
    }
}

async fn run(request: CommandRequest) -> Result<ExecToolCallOutput, RuntimeError> {
    Runtime::start().unwrap().run_as_person(request, &Stop::default(), &mut ()).await
}

/// The refusal of a request whose command would leave a trace if it ran all the same.
async fn refusal(request: CommandRequest) -> (FailureKind, String) {
    let error = run(request).await.expect_err("it is refused");
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn the_result_is_what_the_command_left() {
    let output = run(script("echo out; echo err >&2; exit 7")).await.unwrap();
    assert_eq!((output.exit_code, output.stdout.text.as_str()), (7, "out\n"));
    assert_eq!(output.stderr.text, "err\n");
}

/// spec RUN.16: A NUL byte, in whichever part of a request, is an error that names the part.
#[tokio::test]
async fn a_nul_byte_is_named_with_its_place() {
    let mut in_directory = argv(&["true"]);
    in_directory.cwd = PathBuf::from("/tm\0p");
    let mut in_variable = argv(&["true"]);
    in_variable.env.insert("WORD".into(), "a\0b".into());
    for (request, named) in [
        (script("echo a\0b"), r"argument 2 contains a NUL byte"),
        (argv(&["echo", "a\0b"]), r"argument 1 contains a NUL byte"),
        (
            argv(&["ec\0ho"]),
            r"the program's name contains a NUL byte, which no name can have: ec\0ho",
        ),
        (in_directory, r"the working directory contains a NUL byte"),
        (in_variable, r"the environment variable WORD contains a NUL byte"),
    ] {
        let (kind, said) = refusal(request).await;
        assert_eq!(kind, FailureKind::Request, "{said}");
        assert!(said.starts_with(named), "{said}");
    }
}

/// spec RUN.17: An argument or an environment variable that is too large for the system is an error
/// that names it and its size.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_too_large_is_named_with_its_size() {
    let megabyte = "x".repeat(1024 * 1024);
    let mut large_variable = argv(&["true"]);
    large_variable.env.insert("LARGE".into(), megabyte.clone().into());
    for (request, named, size) in [
        (large_variable, "the environment variable LARGE", "1048582 bytes"),
        (argv(&["true", &megabyte]), "argument 1", "1048576 bytes"),
    ] {
        let (kind, said) = refusal(request).await;
        assert_eq!(kind, FailureKind::System, "{said}");
        assert!(said.starts_with(named) && said.contains(size), "{said}");
    }
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    for empty in [script(""), script(" \t\n"), argv(&[]), argv(&[""]), argv(&["", "x"])] {
        let (kind, said) = refusal(empty).await;
        assert_eq!(
            (kind, said.as_str()),
            (FailureKind::Request, "the command is empty: name a program to run")
        );
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_does_not_run() {
    let stop = Stop::default();
    stop.cancel.cancel();
    let witness = tempfile::tempdir().unwrap();
    let mut request = script("touch ran");
    request.cwd = witness.path().to_owned();
    let runtime = Runtime::start().unwrap();
    let output = runtime.run_as_person(request, &stop, &mut ()).await.unwrap();
    assert!(output.cancelled);
    assert_eq!(std::fs::read_dir(witness.path()).unwrap().count(), 0);
}

/// Counts what it is told.
#[derive(Default)]
struct Counter {
    bytes: u64,
    deltas: u32,
    notices: u32,
    ends: u32,
}

impl Observer for Counter {
    async fn event(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::ExecCommandBegin(_) => assert_eq!(self.bytes, 0),
            Event::ExecCommandOutputDelta(_) => self.deltas += 1,
            Event::ExecCommandOutputOmitted(_) => self.notices += 1,
            Event::ExecCommandEnd(_) => self.ends += 1,
        }
        Ok(())
    }

    async fn output(&mut self, _stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// spec RUN.65: An observer is given every byte of the output, also past the last output event.
#[tokio::test]
async fn an_observer_is_given_every_byte() {
    let mut seen = Counter::default();
    let runtime = Runtime::start().unwrap();
    let request = argv(&["head", "-c", "90000000", "/dev/zero"]);
    let output = runtime.run_as_person(request, &Stop::default(), &mut seen).await.unwrap();
    assert_eq!((seen.bytes, output.stdout.total_bytes), (90_000_000, 90_000_000));
    assert_eq!((seen.deltas, seen.notices), (MAX_EXEC_OUTPUT_DELTAS_PER_CALL, 1));
    assert_eq!(seen.ends, 1);
}

/// Fails at its first byte.
struct Deaf;

impl Observer for Deaf {
    async fn output(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::other("no more"))
    }
}

/// spec RUN.66: A command whose observer fails is ended.
#[tokio::test]
async fn a_command_that_nobody_listens_to_is_ended() {
    let runtime = Runtime::start().unwrap();
    let request = argv(&["yes"]);
    let error = runtime.run_as_person(request, &Stop::default(), &mut Deaf).await.unwrap_err();
    assert_eq!(error.kind(), FailureKind::NobodyListens);
    assert_eq!(error.to_string(), "cannot pass the command's output on: no more");
}
