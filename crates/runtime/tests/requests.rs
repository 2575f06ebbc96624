//! What a request may ask for, and how it is answered when it cannot be had.

#![cfg(unix)]

mod support;

use sandgate_protocol::ExecToolCallOutput;
use sandgate_runtime::{
    CommandLine, CommandRequest, FailureKind, Login, Runtime, RuntimeError, Stop,
};
use std::path::PathBuf;
use support::{argv, request, script};

async fn run(request: CommandRequest) -> Result<ExecToolCallOutput, RuntimeError> {
    let runtime = Runtime::start()?;
    let outcome = runtime.run_as_person(request, &Stop::default(), &mut ()).await?;
    assert!(outcome.unheard.is_none() && outcome.spill.is_none());
    Ok(outcome.output)
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

/// spec RUN.18: A session can name the shell that reads its scripts, and a request may name another.
#[tokio::test]
async fn a_session_can_name_its_shell_and_a_request_another() {
    let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
    for (shell, expected) in [(None, "/bash\n"), (Some("sh"), "/sh\n")] {
        let text = "echo \"$0\"".to_owned();
        let shell = shell.map(str::to_owned);
        let request = request(CommandLine::Script { text, shell, login: Login::No });
        let outcome = runtime.run_as_person(request, &Stop::default(), &mut ()).await.unwrap();
        let seen = outcome.output.stdout.text;
        assert!(seen.ends_with(expected), "{seen}");
    }
    let error = Runtime::start().unwrap().with_shell("no-such-shell").err().unwrap();
    assert_eq!(error.kind(), FailureKind::Request);
    assert!(error.to_string().contains("no-such-shell"), "{error}");
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
            r"the program's name contains a NUL byte, which no program can be given: ec\0ho",
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
    let outcome = runtime.run_as_person(request, &stop, &mut ()).await.unwrap();
    assert!(outcome.output.cancelled);
    assert_eq!(std::fs::read_dir(witness.path()).unwrap().count(), 0);
}
