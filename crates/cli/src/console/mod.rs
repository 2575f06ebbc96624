//! `sandgate console`: where the console of a running `sandgate serve` is, with what lets a page answer there.

use crate::approvals::{conclude, print, run};
use crate::{exit, notes};
use sandgate_protocol::{SandboxPolicy, visible, visible_line};
use sandgate_runtime::{HeadStart, TerminalRequest, run_in_terminal_as_person};
use std::io::{self, Write as _};
use std::process::ExitCode;

const HELP: &str = "\
The address has a code in it that counts once, for ten minutes. The page that opens it can answer
questions until it is closed or loaded again; then print another.

Exit codes: 0; 125 when no sandgate serve of yours runs; 2 if this command line makes no sense.";

/// The program that opens an address.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// What may follow `sandgate console`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliConsole {
    /// Open it in your browser too
    #[arg(long)]
    open: bool,
}

/// Finds the console and says how this program is to end.
pub(crate) fn console(cli: &CliConsole) -> ExitCode {
    let mut first = None;
    let ended = run(async |desks| {
        let consoles = desks.consoles().await.map_err(|error| error.to_string())?;
        first = consoles.first().map(|console| console.address.clone());
        if consoles.is_empty() {
            return Err(
                "no sandgate serve of yours runs; start one with: sandgate serve".to_owned()
            );
        }
        let lines = consoles.iter().map(|console| visible_line(&console.address) + "\n");
        print(&lines.collect::<String>())
    });
    match (first, &ended) {
        (Some(address), Ok(0)) if cli.open => open(address),
        _ => conclude(ended),
    }
}

/// Becomes the program that opens it.
fn open(address: String) -> ExitCode {
    let request = TerminalRequest {
        command: vec![OPENER.to_owned(), address],
        policy: SandboxPolicy::DangerFullAccess,
        workspace: "/".into(),
        env: std::env::vars_os().collect(),
        config_home: None,
    };
    let error = match run_in_terminal_as_person(request, HeadStart::default()) {
        Ok(ended) => return ExitCode::from(exit::of_code(ended.exit_code)),
        Err(error) => format!("it could not be opened: {error}"),
    };
    let _ = io::stderr().write_all(&notes::error(&visible(&error), None));
    ExitCode::from(exit::FAILED)
}
