//! `sandgate acp`: an agent for editors, on standard input and output.
//!
//! Standard output is the wire, and nothing else is written there.

use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::open::CliOpener;
use crate::say::{self, say};
use crate::session::CliSession;
use crate::settings::config_home;
use crate::signals::Signals;
use crate::trust::Asked;
use crate::{exit, notes, telemetry};
use clap::error::ErrorKind;
use sandgate_protocol::visible_line;
use sandgate_runtime::{Desk, Runtime, Stop};
use sandgate_server::{AcpDoor, ClientApprover, serve_acp};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Editors that speak the Agent Client Protocol start this: Zed, Neovim, Emacs and others. See docs/acp.md
for what to write into their settings.

You are asked in the editor, and can answer with sandgate approvals as well. A directory that you were
never asked about is not trusted; say sandgate trust in it first.

Exit codes: 0 when the editor has gone; 125 if sandgate itself failed; 2 if this command line or your
settings make no sense.";

/// What may follow `sandgate acp`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliAcp {
    #[command(flatten)]
    session: CliSession,

    #[command(flatten)]
    model: CliModel,
}

/// What `sandgate acp` is to do.
#[derive(Debug)]
pub(crate) struct AcpArguments {
    cli: CliAcp,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliAcp) -> Result<AcpArguments, clap::Error> {
    let conflict = |message| usage_error("acp", ErrorKind::ArgumentConflict, message);
    cli.session.check().map_err(conflict)?;
    match cli.session.decide {
        None => Ok(AcpArguments { cli }),
        Some(_) => {
            let message = "--decide does not go with acp: questions are asked in the editor";
            Err(conflict(message.to_owned()))
        }
    }
}

/// Serves an editor and says how this program is to end.
pub(crate) fn acp(arguments: AcpArguments) -> ExitCode {
    // What is wrong with the settings is said at once, and not when the first session is opened.
    let prepared = match arguments.cli.session.prepare_for(Asked::Nobody) {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = start(arguments.cli, prepared.collector.as_deref());
    let code = code.unwrap_or_else(|error| {
        let error = visible_line(&error.to_string());
        say(&notes::error(&error, None));
        exit::FAILED
    });
    say::finish();
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(cli: CliAcp, collector: Option<&str>) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    say::beside()?;
    let _telemetry = telemetry::start(collector);
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = asynchronous.block_on(serve(runtime, cli));
    // A read of standard input cannot be called off.
    asynchronous.shutdown_background();
    code
}

async fn serve(runtime: Arc<Runtime>, cli: CliAcp) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let desk = Arc::new(Desk::default());
    let _socket = listen(&desk);
    let CliAcp { session, model } = cli;
    let door = AcpDoor {
        opener: Arc::new(CliOpener { runtime, session, model }),
        desk: desk.place(),
        // The editor is the person's own, and so is its terminal.
        person: Arc::new(|session| ClientApprover::new(session.approver("acp"))),
    };
    tokio::select! {
        served = serve_acp(door, tokio::io::stdin(), tokio::io::stdout()) => served.map(|()| 0),
        () = stop.cancel.cancelled() => Ok(exit::of_signal(signals.received().unwrap_or_default())),
        () = stop.interrupt.cancelled() => Ok(exit::of_signal(signals.received().unwrap_or_default())),
    }
}

/// Lets questions be answered elsewhere too. Where there is no place for that, the editor is enough.
#[cfg(unix)]
fn listen(desk: &Arc<Desk>) -> Option<sandgate_runtime::DeskSocket> {
    let settings = std::path::absolute(config_home()?).ok()?;
    match desk.listen(&settings) {
        Ok(socket) => Some(socket),
        Err(error) => {
            let what = format!("sandgate approvals cannot answer here: {error}");
            say(&notes::warning(&visible_line(&what)));
            None
        }
    }
}

#[cfg(not(unix))]
fn listen(_: &Arc<Desk>) {}
