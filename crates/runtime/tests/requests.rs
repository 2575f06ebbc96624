//! What a request may ask for, and how it is answered when it cannot be had.

#![cfg(unix)]

mod support;

use sandgate_protocol::{CodexErr, ExecToolCallOutput, FailureKind};
use sandgate_runtime::{CommandLine, Login, Runtime, Session};
use std::path::PathBuf;
use std::sync::Arc;
use support::{Asking, argv, asking, script};

async fn run(asking: Asking) -> Result<ExecToolCallOutput, CodexErr> {
    let outcome = asking.run().await?.output;
    assert!(outcome.unheard.is_none() && outcome.spill.is_none());
    Ok(outcome.output)
}

/// The refusal of a command that would leave a trace if it ran all the same.
async fn refusal(asking: Asking) -> (FailureKind, String) {
    match run(asking).await.expect_err("it is refused") {
        CodexErr::NotStarted { kind, reason } => (kind, reason),
        other => panic!("refused for another reason: {other}"),
    }
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
    let runtime = Arc::new(Runtime::start().unwrap().with_shell("bash").unwrap());
    for (shell, expected) in [(None, "/bash\n"), (Some("sh"), "/sh\n")] {
        let text = "echo \"$0\"".to_owned();
        let shell = shell.map(str::to_owned);
        let asking = asking(CommandLine::Script { text, shell, login: Login::No });
        let session = Session::start(Arc::clone(&runtime), asking.config.clone()).unwrap();
        let seen = asking.run_in(&session).await.unwrap().output.output.stdout.text;
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
    in_directory.command.workdir = Some(PathBuf::from("/tm\0p"));
    let mut in_variable = argv(&["true"]);
    in_variable.config.own_env.insert("WORD".into(), "a\0b".into());
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
    large_variable.config.own_env.insert("LARGE".into(), megabyte.clone().into());
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
    let witness = tempfile::tempdir().unwrap();
    let mut asking = script("touch ran");
    asking.command.workdir = Some(witness.path().to_owned());
    asking.stop.cancel.cancel();
    assert!(run(asking).await.unwrap().cancelled);
    assert_eq!(std::fs::read_dir(witness.path()).unwrap().count(), 0);
}
