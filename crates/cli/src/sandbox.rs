//! `sandgate sandbox`: one command in the cage, in the person's own terminal.
//!
//! Nothing asynchronous is started and no thread: this process itself becomes the cage's keeper.

use crate::arguments::{as_text, usage_error};
use crate::{exit, notes};
use clap::error::ErrorKind;
use sandgate_protocol::{Enforcement, NetworkAccess, SandboxPolicy};
use sandgate_runtime::{TerminalRequest, enforcement, run_in_terminal_as_person};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  sandgate sandbox -- make -n                               reads anything, writes nothing
  sandgate sandbox --full-auto -- cargo test                writes here and in /tmp
  sandgate sandbox --full-auto --writable ../out -- make    and there
  sandgate sandbox --status                                 what this machine can enforce

Exit codes: the command's own; 128+N if signal N ended it; 125 if the sandbox could not be set up;
126 if the program cannot be executed; 127 if there is none; 2 if this command line makes no sense.";

/// What may follow `sandgate sandbox`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, override_usage = "sandgate sandbox [OPTIONS] -- COMMAND...")]
pub(crate) struct CliSandbox {
    /// The program and its arguments, without a shell
    #[arg(last = true, required_unless_present = "status", value_name = "COMMAND")]
    command: Vec<OsString>,

    /// What the command may touch [default: read-only]
    #[arg(long, value_enum, value_name = "MODE")]
    sandbox: Option<Mode>,

    /// The same as --sandbox workspace-write
    #[arg(long, conflicts_with = "sandbox")]
    full_auto: bool,

    /// Run it in this directory, which is the workspace
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// Let it write to this directory too; with --sandbox workspace-write
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,

    /// Let it reach the network; with --sandbox workspace-write
    #[arg(long)]
    network: bool,

    /// Say what this machine can enforce, and run nothing
    #[arg(long, conflicts_with_all = ["command", "sandbox", "full_auto", "writable", "network", "cd"])]
    status: bool,

    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// Read anywhere, write nowhere, no network
    ReadOnly,
    /// Write in the workspace and in the directories for temporary files; no network
    WorkspaceWrite,
    /// No sandbox at all
    DangerFullAccess,
}

/// What `sandgate sandbox` is to do.
#[derive(Debug)]
pub(crate) enum SandboxArguments {
    /// Run a command.
    Run { command: Vec<String>, policy: SandboxPolicy, workspace: PathBuf },
    /// Say what can be enforced.
    Status { json: bool },
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliSandbox) -> Result<SandboxArguments, clap::Error> {
    let CliSandbox { command, sandbox, full_auto, cd, writable, network, status, json } = cli;
    if status {
        return Ok(SandboxArguments::Status { json });
    }
    if json {
        let message = "--json needs --status: a command's output is its own".to_owned();
        return Err(usage_error("sandbox", ErrorKind::ArgumentConflict, message));
    }
    let chosen = if full_auto { Some(Mode::WorkspaceWrite) } else { sandbox };
    let policy = match chosen.unwrap_or(Mode::ReadOnly) {
        Mode::WorkspaceWrite => SandboxPolicy::WorkspaceWrite {
            writable_roots: writable,
            network_access: match network {
                true => NetworkAccess::Enabled,
                false => NetworkAccess::Restricted,
            },
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        },
        _ if network || !writable.is_empty() => {
            let option = if network { "--network" } else { "--writable" };
            let message = format!("{option} needs --sandbox workspace-write");
            return Err(usage_error("sandbox", ErrorKind::ArgumentConflict, message));
        }
        Mode::ReadOnly => SandboxPolicy::ReadOnly,
        Mode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
    };
    let command = as_text("sandbox", command)?;
    let workspace = cd.unwrap_or_else(|| PathBuf::from("."));
    Ok(SandboxArguments::Run { command, policy, workspace })
}

/// Does it and says how this program is to end.
pub(crate) fn sandbox(arguments: SandboxArguments) -> ExitCode {
    let code = match arguments {
        SandboxArguments::Status { json } => show_status(&enforcement(), json),
        SandboxArguments::Run { command, policy, workspace } => run(command, policy, workspace),
    };
    ExitCode::from(code)
}

fn run(command: Vec<String>, policy: SandboxPolicy, workspace: PathBuf) -> u8 {
    let env = std::env::vars_os().collect();
    if policy == SandboxPolicy::DangerFullAccess {
        let _ = io::stderr().write_all(&notes::unconfined());
    }
    match run_in_terminal_as_person(TerminalRequest { command, policy, workspace, env }) {
        Ok(code) => exit::of_code(code),
        Err(error) => {
            let advice = notes::advice(error.kind());
            let _ = io::stderr().write_all(&notes::error(&error.to_string(), advice));
            exit::of_failure(error.kind())
        }
    }
}

fn show_status(status: &Enforcement, json: bool) -> u8 {
    let text = if json { as_json(status) } else { as_lines(status) };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(_) => exit::FAILED,
    }
}

fn as_json(status: &Enforcement) -> String {
    let json = serde_json::to_string(status).expect("words and numbers are valid JSON");
    json + "\n"
}

fn as_lines(status: &Enforcement) -> String {
    let yes_or_no = |yes| if yes { "yes" } else { "no" };
    let landlock = match status.landlock_abi {
        0 => "no".to_owned(),
        version => format!("version {version}"),
    };
    let mut lines = format!(
        "namespaces  {}\nLandlock    {landlock}\nseccomp     {}\n",
        yes_or_no(status.namespaces),
        yes_or_no(status.seccomp),
    );
    if status.missing.is_empty() {
        lines += "\nNothing is missing.\n";
    } else {
        lines += "\nMissing:\n";
        lines.extend(status.missing.iter().map(|what| format!("- {what}\n")));
    }
    lines
}
