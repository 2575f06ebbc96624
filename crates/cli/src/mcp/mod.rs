//! `sandgate mcp`: the gate as an MCP server for the program that started it.

mod install;

use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::open::CliOpener;
use crate::say::{self, say};
use crate::session::CliSession;
use crate::settings::config_home;
use crate::signals::Signals;
use crate::trust::Asked;
use crate::{exit, notes, telemetry};
use clap::Subcommand;
use clap::error::ErrorKind;
use install::{CliInstall, install};
use sandgate_protocol::visible_line;
use sandgate_runtime::{Desk, Runtime, Session, Stop};
use sandgate_server::mcp::{APPROVAL_TIMEOUT, McpOptions, Workspace, serve_stdio};
use sandgate_server::{ClientApprover, ClientPerson};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
The program that starts this talks MCP with it over standard input and output. It works in the directory of
--cd, or in the first root that the client names, or in the current directory.

Questions go to the client if it can show them (elicitation), and to `sandgate approvals` in any terminal; the
first answer counts. A question that nobody answers within --approval-timeout (120 seconds unless you say
otherwise) is a no.

Exit codes: 0 when the client has closed its end; 125 if sandgate itself failed; 2 if this command line makes
no sense.";

/// What may follow `sandgate mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct CliMcp {
    #[command(subcommand)]
    verb: Option<CliVerb>,

    #[command(flatten)]
    session: CliSession,

    /// Offer only these tools, such as shell,apply_patch [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Print what a client must be told to have this server, or tell it
    Install(CliInstall),
}

/// What `sandgate mcp` is to do.
#[derive(Debug)]
pub(crate) struct McpArguments {
    cli: CliMcp,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliMcp) -> Result<McpArguments, clap::Error> {
    let usage = |message| usage_error("mcp", ErrorKind::ArgumentConflict, message);
    cli.session.check().map_err(usage)?;
    if cli.session.decide.is_some() {
        let message = "--decide is not for mcp: questions go to the client's person and to sandgate \
                       approvals; --ask-for-approval says when there are any";
        return Err(usage(message.to_owned()));
    }
    Ok(McpArguments { cli })
}

/// Serves the client and says how this program is to end.
pub(crate) fn mcp(arguments: McpArguments) -> ExitCode {
    if let Some(CliVerb::Install(cli)) = &arguments.cli.verb {
        return install(cli);
    }
    // Nobody could see later why there is no session.
    let collector = match arguments.cli.session.prepare_for(Asked::Nobody) {
        Ok(prepared) => prepared.collector,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = start(arguments.cli, collector.as_deref()).unwrap_or_else(|error| {
        say(&notes::error(&error.to_string(), None));
        exit::FAILED
    });
    say::finish();
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(cli: CliMcp, collector: Option<&str>) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    say::beside()?;
    let _telemetry = telemetry::start(collector);
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = asynchronous.block_on(serve(runtime, cli));
    // Standard input may still be read, and that read cannot be called off.
    asynchronous.shutdown_background();
    served
}

async fn serve(runtime: Arc<Runtime>, cli: CliMcp) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let over = stop.cancel.clone();
    let interrupt = stop.interrupt.clone();
    tokio::spawn(async move {
        // There is no command that Ctrl-C could be meant for.
        interrupt.cancelled().await;
        stop.cancel.cancel();
    });
    let workspace = match &cli.session.cd {
        Some(_) => Workspace::Given,
        None => Workspace::ByRoots,
    };
    let desk = Arc::new(Desk::default());
    #[cfg(unix)]
    let _socket = config_home().and_then(|home| match desk.listen(&home) {
        Ok(socket) => Some(socket),
        Err(error) => {
            let warning = format!("sandgate approvals cannot answer here: {error}");
            say(&notes::warning(&visible_line(&warning)));
            None
        }
    });
    let options = McpOptions {
        opener: Arc::new(CliOpener { runtime, session: cli.session, model: CliModel::default() }),
        desk: desk.place(),
        person: Some(client_person()),
        tools: cli.tools.map(|tools| tools.into_iter().collect()),
        workspace,
        approval_timeout: APPROVAL_TIMEOUT,
    };
    serve_stdio(options, over).await?;
    Ok(signals.received().map_or(0, exit::of_signal))
}

/// Whoever started this program for their client, or gave their client the approver's token, sits at that
/// client.
pub(crate) fn client_person() -> ClientPerson {
    Arc::new(|session: &Session| ClientApprover::new(session.approver("mcp client")))
}
