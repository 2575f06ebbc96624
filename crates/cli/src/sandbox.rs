//! `sandgate sandbox`: one command in the cage, in the person's own terminal.
//!
//! Nothing asynchronous is started and no thread: the command's guard is forked from this process. The
//! namespaces of the cage are made while the command line and the settings are read.

use crate::arguments::{as_text, usage_error};
use crate::evidence::{ReportFile, UnknownLine, say_last};
use crate::session::with_options;
use crate::settings::{self, CliSettings, SettingsError};
use crate::trust::Asked;
use crate::{exit, linux_sandbox, notes};
use clap::error::ErrorKind;
use sandgate_config::Origin;
use sandgate_protocol::{DenialEvidence, DenialRule, Denials, Enforcement};
use sandgate_protocol::{SandboxPolicy, SandboxType};
use sandgate_runtime::{HeadStart, RuntimeError, TerminalOutcome, TerminalRequest};
use sandgate_runtime::{enforcement, run_in_terminal_as_person, unfinished_roots};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  sandgate sandbox -- make -n                               reads anything, writes nothing
  sandgate sandbox --full-auto -- cargo test                writes here and in /tmp
  sandgate sandbox --full-auto --writable ../out -- make    and there
  sandgate sandbox --full-auto --log-denials -- ./install   says what was blocked
  sandgate sandbox --report ../end.json -- ./install        so that a program can rely on it
  sandgate sandbox --status                                 what this machine can enforce
  sandgate sandbox --status --full-auto                     and what of the roots was not searched

A report that the command had no part in is that of --report. On standard error, which it holds, the
report is the last line all the same: it begins a line of its own, after an empty one where it is not
known whether the command's last line has ended.

Exit codes: the command's own; 128+N if signal N ended it; 125 if the sandbox could not be set up, or
the report that was asked for could not be written; 126 if the program cannot be executed; 127 if
there is none; 2 if this command line makes no sense.";

/// What may follow `sandgate sandbox`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, override_usage = "sandgate sandbox [OPTIONS] -- COMMAND...")]
pub(crate) struct CliSandbox {
    /// Insist on this system's sandbox; the one of the system at hand is used anyway
    #[arg(value_enum, value_name = "SYSTEM")]
    system: Option<System>,

    /// The program and its arguments, without a shell
    #[arg(last = true, required_unless_present = "status", value_name = "COMMAND")]
    command: Vec<OsString>,

    /// What the command may touch [default: read-only, unless -c or the profile says otherwise]
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

    /// Say on standard error what the sandbox blocked, once the command has ended
    #[arg(long)]
    log_denials: bool,

    /// Say what this machine can enforce, and run nothing; with --sandbox workspace-write also which
    /// roots are too large to be searched for repositories to the end
    #[arg(long, conflicts_with_all = ["command", "network", "log_denials"])]
    status: bool,

    /// Report as JSON: the status, or how the command ended, as the last line of standard error,
    /// with --log-denials after the lines
    #[arg(long)]
    json: bool,

    /// Report how the command ended, as JSON, to this file, which the command can neither write to
    /// nor hold
    #[arg(long, value_name = "FILE", conflicts_with = "status")]
    report: Option<PathBuf>,

    #[command(flatten)]
    settings: CliSettings,
}

/// The systems that have a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum System {
    /// Namespaces, Landlock and seccomp
    Linux,
    /// Seatbelt
    Macos,
    /// A restricted token
    Windows,
}

impl System {
    fn is_here(self) -> bool {
        let name = match self {
            Self::Linux => "linux",
            Self::Macos => "macos",
            Self::Windows => "windows",
        };
        std::env::consts::OS == name
    }
}

/// What is said about a command once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// What was blocked, if it failed and a person sits there.
    IfItFailed,
    /// What was blocked.
    Denials,
    /// All of it, for a program.
    Json,
    /// What was blocked, and then all of it for a program.
    DenialsAndJson,
}

/// What is said about a command once it has ended, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// On standard error.
    pub(crate) report: Report,
    /// The file that all of it is written to for a program.
    pub(crate) file: Option<PathBuf>,
}

impl Told {
    /// The option that asks for something which only a sandbox can tell.
    fn option(&self) -> Option<&'static str> {
        match self.report {
            _ if self.file.is_some() => Some("--report"),
            Report::IfItFailed => None,
            Report::Denials => Some("--log-denials"),
            Report::Json | Report::DenialsAndJson => Some("--json"),
        }
    }
}

/// What a command may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
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
    Run { command: Vec<String>, confined: Confined, workspace: PathBuf, told: Told },
    /// Say what can be enforced, and what of the roots of a policy in a workspace is not searched.
    Status { confined: Confined, workspace: PathBuf, json: bool },
}

/// Where the policy of a command comes from.
#[derive(Debug)]
pub(crate) enum Confined {
    /// It is this one, whatever the settings say.
    Exactly(SandboxPolicy),
    /// The options name the mode; what it means in detail is in the settings.
    InMode { mode: Mode, writable: Vec<PathBuf>, network: bool, settings: CliSettings },
    /// Nothing is said: it may only read, unless `-c` or a profile says otherwise.
    Unsaid(CliSettings),
}

impl Confined {
    /// The policy for work in a directory.
    fn policy(&self, workspace: &Path) -> Result<SandboxPolicy, SettingsError> {
        let settings = match self {
            Self::Exactly(policy) => return Ok(policy.clone()),
            Self::InMode { settings, .. } | Self::Unsaid(settings) => settings,
        };
        let sources = settings::sources(settings, workspace, Vec::new());
        let config = settings::effective(&sources, Asked::Nobody)?.config;
        match self {
            Self::InMode { mode: Mode::WorkspaceWrite, writable, network, .. } => {
                with_options(config.workspace_write(), writable, *network)
            }
            Self::InMode { mode: Mode::DangerFullAccess, .. } => {
                Ok(SandboxPolicy::DangerFullAccess)
            }
            Self::InMode { mode: Mode::ReadOnly, .. } => Ok(SandboxPolicy::ReadOnly),
            _ => match config.origin("sandbox_mode") {
                Some(Origin::Override | Origin::Profile { .. }) => Ok(config.sandbox_policy()),
                _ => Ok(SandboxPolicy::ReadOnly),
            },
        }
    }
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliSandbox) -> Result<SandboxArguments, clap::Error> {
    let CliSandbox { system, command, sandbox, full_auto, cd, writable, network, .. } = cli;
    if let Some(system) = system.filter(|system| !system.is_here()) {
        let message = format!("the sandbox for {system:?} works on {system:?} only");
        return Err(usage_error("sandbox", ErrorKind::InvalidValue, message));
    }
    let report = match (cli.json && !cli.status, cli.log_denials) {
        (true, true) => Report::DenialsAndJson,
        (true, false) => Report::Json,
        (false, true) => Report::Denials,
        (false, false) => Report::IfItFailed,
    };
    let told = Told { report, file: cli.report };
    if cfg!(not(target_os = "linux"))
        && let Some(option) = told.option()
    {
        let message = format!("{option} works on Linux only: nobody here tells what was blocked");
        return Err(usage_error("sandbox", ErrorKind::InvalidValue, message));
    }
    let chosen = if full_auto { Some(Mode::WorkspaceWrite) } else { sandbox };
    match chosen.unwrap_or(Mode::ReadOnly) {
        Mode::WorkspaceWrite => {}
        _ if network || !writable.is_empty() => {
            let option = if network { "--network" } else { "--writable" };
            let message = format!("{option} needs --sandbox workspace-write");
            return Err(usage_error("sandbox", ErrorKind::ArgumentConflict, message));
        }
        Mode::DangerFullAccess if told.option().is_some() => {
            let message = nothing_to_tell(told.option().unwrap_or_default());
            return Err(usage_error("sandbox", ErrorKind::ArgumentConflict, message));
        }
        Mode::ReadOnly | Mode::DangerFullAccess => {}
    }
    let settings = cli.settings;
    let confined = match chosen {
        Some(mode) => Confined::InMode { mode, writable, network, settings },
        None => Confined::Unsaid(settings),
    };
    let workspace = cd.unwrap_or_else(|| PathBuf::from("."));
    if cli.status {
        return Ok(SandboxArguments::Status { confined, workspace, json: cli.json });
    }
    let command = as_text("sandbox", command)?;
    Ok(SandboxArguments::Run { command, confined, workspace, told })
}

fn nothing_to_tell(option: &str) -> String {
    format!("{option} needs a sandbox that could block something")
}

/// Begins with what every confined command needs, if this program's own command line looks as if there
/// were one.
pub(crate) fn head_start() -> HeadStart {
    let mut words = std::env::args_os().skip(1);
    let is_meant = linux_sandbox::is_meant() || words.next().is_some_and(|word| word == "sandbox");
    match is_meant && words.any(|word| word == "--") {
        true => HeadStart::begin(),
        false => HeadStart::default(),
    }
}

/// Does it and says how this program is to end.
pub(crate) fn sandbox(arguments: SandboxArguments, head_start: HeadStart) -> ExitCode {
    let (SandboxArguments::Status { confined, workspace, .. }
    | SandboxArguments::Run { confined, workspace, .. }) = &arguments;
    let policy = match confined.policy(workspace) {
        Ok(policy) => policy,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = match arguments {
        SandboxArguments::Status { workspace, json, .. } => {
            let env = std::env::vars_os().collect();
            match unfinished_roots(&policy, &workspace, &env) {
                Ok(unfinished) => show_status(&Status::new(unfinished), json),
                Err(error) => say_error(&error),
            }
        }
        SandboxArguments::Run { command, workspace, told, .. } => {
            run(command, policy, workspace, &told, head_start)
        }
    };
    ExitCode::from(code)
}

fn run(
    command: Vec<String>,
    policy: SandboxPolicy,
    workspace: PathBuf,
    told: &Told,
    head_start: HeadStart,
) -> u8 {
    let env = std::env::vars_os().collect();
    if policy == SandboxPolicy::DangerFullAccess {
        if let Some(option) = told.option() {
            return SettingsError::usage(nothing_to_tell(option)).tell();
        }
        let _ = io::stderr().write_all(&notes::unconfined());
    }
    let open = |path: &PathBuf| ReportFile::open(path, &policy, &workspace, &env);
    let file = match told.file.as_ref().map(open).transpose() {
        Ok(file) => file,
        Err(why) => return SettingsError::failed(why).tell(),
    };
    let is_read_only = policy == SandboxPolicy::ReadOnly;
    let config_home = settings::config_home();
    let request = TerminalRequest { command, policy, workspace, env, config_home };
    match run_in_terminal_as_person(request, head_start) {
        Ok(outcome) => tell(&outcome, told.report, file, is_read_only),
        Err(error) => say_error(&error),
    }
}

/// Says how the command ended, and gives the exit code for it: its own, if all was told that was asked for.
fn tell(
    outcome: &TerminalOutcome,
    report: Report,
    file: Option<ReportFile>,
    is_read_only: bool,
) -> u8 {
    let filed = file.map_or(Ok(()), |file| file.write(as_json(&Ended::from(outcome)).as_bytes()));
    let mut said = Vec::new();
    if cfg!(target_os = "linux") && report.names_the_cage() && !outcome.had_namespaces() {
        said.extend(notes::warning(WEAKER));
    }
    // What is for programs is the last line.
    said.extend(said_of(outcome, report));
    if is_read_only && report.is_for_person(outcome) && would_write(&outcome.denials) {
        said.extend(notes::hint("to let it write here: --full-auto, and --writable DIR elsewhere"));
    }
    let line = match report {
        Report::Json | Report::DenialsAndJson => UnknownLine::IsEnded,
        Report::Denials | Report::IfItFailed => UnknownLine::GoesOn,
    };
    // Who has closed standard error and asked for nothing does not want to know.
    let said = say_last(&said, line).or_else(|error| match report {
        Report::IfItFailed => Ok(()),
        _ => Err(error),
    });
    match filed.and(said) {
        Err(error) => {
            let why = format!("the command has ended, and its report cannot be written: {error}");
            SettingsError::failed(why).tell()
        }
        Ok(()) => exit::of_code(outcome.exit_code),
    }
}

/// Says what went wrong, and gives the exit code for it.
fn say_error(error: &RuntimeError) -> u8 {
    let advice = notes::advice(error.kind());
    let _ = io::stderr().write_all(&notes::error(&error.to_string(), advice));
    exit::of_failure(error.kind())
}

/// What a person should know whose command had no namespaces.
const WEAKER: &str = "namespaces are refused here: protected names, such as .git, and other terminals are \
                      not held; see sandgate sandbox --status";

/// How many denials a person is shown who did not ask for them.
const SHOWN_UNASKED: usize = 3;

/// Whether a command was refused because it may write nowhere.
fn would_write(denials: &Denials) -> bool {
    denials.evidence.iter().any(|denial| denial.rule == DenialRule::OutsideWritableRoots)
}

impl Report {
    /// Whether somebody is told in words what did not hold the command.
    fn names_the_cage(self) -> bool {
        match self {
            Self::IfItFailed => io::stderr().is_terminal(),
            Self::Denials | Self::DenialsAndJson => true,
            Self::Json => false,
        }
    }

    /// Whether a person who did not ask is told what was blocked.
    fn is_for_person(self, outcome: &TerminalOutcome) -> bool {
        self == Self::IfItFailed && outcome.exit_code != 0 && io::stderr().is_terminal()
    }
}

fn said_of(outcome: &TerminalOutcome, report: Report) -> Vec<u8> {
    let denials = &outcome.denials;
    match report {
        Report::Json => as_json(&Ended::from(outcome)).into_bytes(),
        Report::Denials => notes::blocked(denials, Denials::MOST),
        Report::DenialsAndJson => {
            let mut said = notes::blocked(denials, Denials::MOST);
            said.extend(as_json(&Ended::from(outcome)).into_bytes());
            said
        }
        Report::IfItFailed if report.is_for_person(outcome) => {
            notes::blocked(denials, SHOWN_UNASKED)
        }
        Report::IfItFailed => Vec::new(),
    }
}

/// The end of a command, for a program.
#[derive(serde::Serialize)]
struct Ended<'a> {
    exit_code: i32,
    sandbox: SandboxType,
    enforcement: Enforcement,
    denials: &'a [DenialEvidence],
    more_denials: u64,
}

impl<'a> From<&'a TerminalOutcome> for Ended<'a> {
    fn from(outcome: &'a TerminalOutcome) -> Self {
        let enforcement = outcome.enforcement();
        Self {
            exit_code: outcome.exit_code,
            sandbox: enforcement.sandbox,
            enforcement,
            denials: &outcome.denials.evidence,
            more_denials: outcome.denials.more,
        }
    }
}

/// What holds here, and where not all was looked at.
#[derive(serde::Serialize)]
struct Status {
    #[serde(flatten)]
    enforcement: Enforcement,
    unfinished_roots: Vec<String>,
}

impl Status {
    fn new(unfinished_roots: Vec<PathBuf>) -> Self {
        // A line for each, whatever its name.
        let shown = |root: PathBuf| match root.display().to_string() {
            text if text.contains(char::is_control) => format!("{root:?}"),
            text => text,
        };
        let unfinished_roots = unfinished_roots.into_iter().map(shown).collect();
        Self { enforcement: enforcement(), unfinished_roots }
    }
}

fn show_status(status: &Status, json: bool) -> u8 {
    let text = if json { as_json(status) } else { as_lines(status) };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(_) => exit::FAILED,
    }
}

fn as_json(report: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(report).expect("words and numbers are valid JSON");
    json + "\n"
}

fn as_lines(Status { enforcement: status, unfinished_roots }: &Status) -> String {
    let yes_or_no = |yes| if yes { "yes" } else { "no" };
    let landlock = match status.landlock_abi {
        0 => "no".to_owned(),
        version => format!("version {version}"),
    };
    let mut lines = format!(
        "namespaces  {}\nLandlock    {landlock}\nseccomp     {}\nsupervisor  {}\n",
        yes_or_no(status.namespaces),
        yes_or_no(status.seccomp),
        yes_or_no(status.supervisor),
    );
    if status.missing.is_empty() {
        lines += "\nNothing is missing.\n";
    } else {
        lines += "\nMissing:\n";
        lines.extend(status.missing.iter().map(|what| format!("- {what}\n")));
    }
    if !unfinished_roots.is_empty() {
        lines += "\nToo large to be searched to the end; what was not looked into is read-only:\n";
        lines.extend(unfinished_roots.iter().map(|root| format!("- {root}\n")));
    }
    lines
}
