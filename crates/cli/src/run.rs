//! `sandgate run`: one command, from the command line to the exit code.

use crate::arguments::{Format, RunArguments};
use crate::show::Show;
use crate::signals::Signals;
use crate::writer::Writer;
use crate::{exit, notes};
use sandgate_protocol::ExecToolCallOutput;
use sandgate_runtime::{CommandRequest, FailureKind, KeepOutput, Runtime, RuntimeError};
use sandgate_runtime::{Stop, new_call_id};
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Runs the command and says how this program is to end.
pub(crate) fn run(arguments: RunArguments) -> ExitCode {
    let code = start(arguments).unwrap_or_else(|error| {
        complain(&error.to_string(), None);
        exit::FAILED
    });
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(arguments: RunArguments) -> io::Result<u8> {
    let runtime = Runtime::start().map_err(io::Error::other)?;
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    asynchronous.block_on(run_command(&runtime, arguments))
}

async fn run_command(runtime: &Runtime, arguments: RunArguments) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let writer = Writer::start(&stop)?;
    let format = arguments.format;
    let mut show = Show { writer: writer.clone(), format };
    let outcome = runtime.run_as_person(request(arguments), &stop, &mut show).await;
    if let (Ok(output), Format::Passthrough) = (&outcome, format) {
        writer.note(notes::of_end(output)).await;
    }
    writer.finish().await;
    Ok(conclude(&outcome, writer.failure(), signals.received()))
}

fn request(arguments: RunArguments) -> CommandRequest {
    let RunArguments { command, cwd, expiration, input, format } = arguments;
    CommandRequest {
        call_id: new_call_id(),
        command,
        cwd,
        expiration,
        env: std::env::vars_os().collect(),
        input,
        keep: match format {
            // The person has seen all of it.
            Format::Passthrough => KeepOutput::HeadAndTail,
            Format::JsonLines => KeepOutput::Everything,
        },
    }
}

/// Tells what went wrong, if something did, and finds the exit code.
fn conclude(
    outcome: &Result<ExecToolCallOutput, RuntimeError>,
    unwritten: Option<&io::Error>,
    received: Option<i32>,
) -> u8 {
    match (unwritten, outcome, received) {
        // Like any other filter whose reader has seen enough: no word about it.
        (Some(error), _, _) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        (Some(error), _, _) => {
            complain(&format!("cannot write the command's output: {error}"), None);
            exit::FAILED
        }
        (None, Ok(output), _) => exit::of_command(output, received),
        // The reader was too slow for somebody who wanted us to end.
        (None, Err(RuntimeError::NobodyListens(_)), Some(signal)) => exit::of_signal(signal),
        (None, Err(error), _) => {
            complain(&error.to_string(), advice(error.kind()));
            exit::of_failure(error.kind())
        }
    }
}

/// What the person can do about it, where the error itself does not say.
fn advice(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::NotFound => Some("Check the spelling, or name it by its whole path."),
        FailureKind::Directory => Some("Name another directory with --cd."),
        FailureKind::Request
        | FailureKind::NotExecutable
        | FailureKind::System
        | FailureKind::NobodyListens => None,
    }
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str, advice: Option<&str>) {
    let _ = io::stderr().write_all(&notes::error(what, advice));
}
