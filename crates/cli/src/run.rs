//! `sandgate run`: one command, from the command line to the exit code.

use crate::arguments::{Format, RunArguments};
use crate::show::Show;
use crate::signals::Signals;
use crate::writer::Writer;
use crate::{exit, notes};
use sandgate_runtime::{CommandOutcome, CommandRequest, KeepOutput, Runtime};
use sandgate_runtime::{RuntimeError, Stop, new_call_id};
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
    let (format, expiration) = (arguments.format, arguments.expiration);
    let mut show = Show { writer: writer.clone(), format };
    let outcome = runtime.run_as_person(request(arguments), &stop, &mut show).await;
    if let (Ok(CommandOutcome { output, .. }), Format::Passthrough) = (&outcome, format) {
        writer.note(notes::of_end(output, expiration)).await;
    }
    writer.finish().await;
    Ok(conclude(&outcome, writer.failure(), signals.received()))
}

fn request(arguments: RunArguments) -> CommandRequest {
    let RunArguments { command, cwd, expiration, input, format: _ } = arguments;
    CommandRequest {
        call_id: new_call_id(),
        command,
        cwd,
        expiration,
        env: std::env::vars_os().collect(),
        input,
        // All of it is shown as it comes, and a file of ours would be gone before anybody read it.
        keep: KeepOutput::HeadAndTail,
    }
}

/// Tells what went wrong, if something did, and finds the exit code.
fn conclude(
    outcome: &Result<CommandOutcome, RuntimeError>,
    unwritten: Option<&io::Error>,
    received: Option<i32>,
) -> u8 {
    let unheard = outcome.as_ref().ok().and_then(|outcome| outcome.unheard.as_ref());
    match (unwritten.or(unheard), outcome, received) {
        // The reader was too slow for somebody who wanted us to end.
        (Some(error), _, Some(signal)) if error.kind() == io::ErrorKind::TimedOut => {
            exit::of_signal(signal)
        }
        // Like any other filter whose reader has seen enough: no word about it.
        (Some(error), _, _) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        (Some(error), _, _) => {
            complain(&format!("cannot write the command's output: {error}"), None);
            exit::FAILED
        }
        (None, Ok(outcome), _) => exit::of_command(&outcome.output, received),
        (None, Err(RuntimeError::NobodyListens(_)), Some(signal)) => exit::of_signal(signal),
        (None, Err(error), _) => {
            complain(&error.to_string(), notes::advice(error.kind()));
            exit::of_failure(error.kind())
        }
    }
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str, advice: Option<&str>) {
    let _ = io::stderr().write_all(&notes::error(what, advice));
}
