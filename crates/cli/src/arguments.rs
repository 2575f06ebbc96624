//! The command line: first parsed, then made sense of.

use crate::audit::{self, AuditArguments, CliAudit};
use crate::call::{self, CallArguments, CliCall};
use crate::policy::{self, CliPolicy, PolicyArguments};
use crate::sandbox::{self, CliSandbox, SandboxArguments};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use sandgate_protocol::ExecExpiration;
use sandgate_runtime::{CommandInput, CommandLine, Login};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the person asked for.
#[derive(Debug)]
pub(crate) enum Verb {
    /// `sandgate run`.
    Run(RunArguments),
    /// `sandgate call`.
    Call(CallArguments),
    /// `sandgate sandbox`.
    Sandbox(SandboxArguments),
    /// `sandgate policy`.
    Policy(PolicyArguments),
    /// `sandgate audit`.
    Audit(AuditArguments),
}

/// What `sandgate run` is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunArguments {
    pub(crate) command: CommandLine,
    pub(crate) cwd: PathBuf,
    pub(crate) expiration: ExecExpiration,
    pub(crate) input: CommandInput,
    pub(crate) format: Format,
}

/// What is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// What the command writes, byte for byte.
    Passthrough,
    /// Events, one JSON object a line.
    JsonLines,
}

/// Reads this program's own command line.
///
/// # Errors
/// When it makes no sense, or asks for help or the version; the error is what is to be printed.
pub(crate) fn read() -> Result<Verb, clap::Error> {
    understand(Cli::try_parse().map_err(explain)?)
}

/// The gate between an AI agent and your machine.
#[derive(Debug, Parser)]
#[command(name = "sandgate", version, max_term_width = 100, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Run one command and end with its exit code
    Run(CliRun),
    /// Make the tool calls of a model, as JSON lines
    Call(CliCall),
    /// Run one command confined, in this terminal
    Sandbox(CliSandbox),
    /// Say what becomes of a command and why, and run nothing
    Policy(CliPolicy),
    /// Show what was recorded, and check that it is as it was written
    Audit(CliAudit),
}

const RUN_HELP: &str = "\
Examples:
  sandgate run -- 'grep -r hello . | wc -l'     a script, for your own shell
  sandgate run -- git log --oneline             a program and its arguments, without a shell
  sandgate run --timeout-ms 0 -- make           as long as it takes
  sandgate run --json -- 'ls -la'               for programs: one event a line

A script is read by a login shell, whose profile may set PATH anew; --no-login keeps yours.

Exit codes: the command's own; 128+N if signal N ended it; 124 if its time was over;
125 if sandgate itself failed; 126 if the program cannot be executed; 127 if there is none;
2 if this command line makes no sense.";

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_HELP, override_usage = "sandgate run [OPTIONS] -- COMMAND...")]
struct CliRun {
    /// One word is a script for your shell, several are a program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// End the command after N milliseconds, 0 for never [default: 10000]
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u64>,

    /// Run it in this directory
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// Have this shell read the script instead of your own: bash, zsh, fish, sh, or a path
    #[arg(long, value_name = "NAME")]
    shell: Option<String>,

    /// Do not let the shell read your profile first
    #[arg(long)]
    no_login: bool,

    /// Let the command read what sandgate could read, otherwise it reads nothing
    #[arg(long)]
    stdin: bool,

    /// Print what happens as JSON lines, and nothing else, to standard output
    #[arg(long)]
    json: bool,
}

/// Turns what was written into what is meant.
fn understand(cli: Cli) -> Result<Verb, clap::Error> {
    match cli.verb {
        CliVerb::Run(run) => understand_run(run).map(Verb::Run),
        CliVerb::Call(call) => call::understand(call).map(Verb::Call),
        CliVerb::Sandbox(sandbox) => sandbox::understand(sandbox).map(Verb::Sandbox),
        CliVerb::Policy(policy) => policy::understand(policy).map(Verb::Policy),
        CliVerb::Audit(audit) => audit::understand(audit).map(Verb::Audit),
    }
}

fn understand_run(run: CliRun) -> Result<RunArguments, clap::Error> {
    let CliRun { command, timeout_ms, cd, shell, no_login, stdin, json } = run;
    let mut words = as_text("run", command)?;
    let command = if words.len() == 1 {
        let login = if no_login { Login::No } else { Login::Yes };
        CommandLine::Script { text: words.remove(0), shell, login }
    } else if shell.is_some() || no_login {
        let message = no_script(shell.as_deref(), no_login, words.len());
        return Err(usage_error("run", ErrorKind::ArgumentConflict, message));
    } else {
        CommandLine::Argv(words)
    };
    Ok(RunArguments {
        command,
        cwd: cd.unwrap_or_else(|| PathBuf::from(".")),
        expiration: match timeout_ms {
            None => ExecExpiration::DefaultTimeout,
            Some(0) => ExecExpiration::Cancellation,
            Some(limit) => ExecExpiration::Timeout(Duration::from_millis(limit)),
        },
        input: if stdin { CommandInput::Inherited } else { CommandInput::Nothing },
        format: if json { Format::JsonLines } else { Format::Passthrough },
    })
}

/// Why options for a shell cannot be obeyed when the command is a program and its arguments.
fn no_script(shell: Option<&str>, no_login: bool, words: usize) -> String {
    let shell = shell.map(|name| format!("--shell {name}"));
    let no_login = no_login.then(|| "--no-login".to_owned());
    let options = shell.into_iter().chain(no_login).collect::<Vec<_>>().join(" ");
    format!(
        "{options} is for a script, which is one word, but the command has {words}\n\n  \
         Put the script in quotes: sandgate run {options} -- 'ls -la'\n  \
         Or leave {options} out: a program with its arguments runs without a shell"
    )
}

/// Adds what the parser cannot know: that the command stands after `--`.
fn explain(error: clap::Error) -> clap::Error {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word))
            if error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-') =>
        {
            let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
            let verbs = ["sandbox", "policy explain", "policy check"];
            let verb = verbs.into_iter().find(|verb| usage.contains(&format!("sandgate {verb}")));
            let verb = verb.unwrap_or("run");
            let message = format!("write -- before the command: sandgate {verb} -- {word} …");
            usage_error(verb, ErrorKind::UnknownArgument, message)
        }
        _ => error,
    }
}

/// Commands are text in events and for models, so they must be text here.
pub(crate) fn as_text(verb: &str, words: Vec<OsString>) -> Result<Vec<String>, clap::Error> {
    let check = |(index, word): (usize, OsString)| {
        word.into_string().map_err(|word| {
            let message = format!(
                "word {} of the command is not valid UTF-8: {}\n\n  \
                 Name the file in another way, such as with a pattern in a script: 'cat caf*'",
                index + 1,
                shown(&word)
            );
            usage_error(verb, ErrorKind::InvalidUtf8, message)
        })
    };
    words.into_iter().enumerate().map(check).collect()
}

/// A word with every byte that is not text made visible.
fn shown(word: &OsString) -> String {
    let mut shown = String::new();
    for chunk in word.as_encoded_bytes().utf8_chunks() {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

/// An error in the form of the parser's own, with the usage of the verb below it.
pub(crate) fn usage_error(verb: &str, kind: ErrorKind, message: String) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for name in verb.split(' ') {
        command = match command.find_subcommand(name) {
            Some(_) => command.find_subcommand_mut(name).expect("it was found"),
            None => return command.error(kind, message),
        };
    }
    command.error(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(words: &[&str]) -> Result<RunArguments, clap::Error> {
        let cli = Cli::try_parse_from(["sandgate", "run"].iter().chain(words)).map_err(explain)?;
        match understand(cli)? {
            Verb::Run(arguments) => Ok(arguments),
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn the_parser_is_consistent() {
        Cli::command().debug_assert();
    }

    /// spec RUN.30: Without `--timeout-ms` a command may run for 10,000 ms; `--timeout-ms 0` lets it
    /// run as long as it takes.
    #[test]
    fn the_time_limit_is_ten_seconds_unless_it_is_named() {
        let limit = |words: &[&str]| understood(words).unwrap().expiration.timeout();
        assert_eq!(limit(&["--", "true"]), Some(Duration::from_millis(10_000)));
        assert_eq!(limit(&["--timeout-ms", "250", "--", "true"]), Some(Duration::from_millis(250)));
        assert_eq!(limit(&["--timeout-ms", "0", "--", "true"]), None);
    }

    #[test]
    fn one_word_is_a_script_and_several_are_a_program() {
        let script = CommandLine::Script { text: "ls -la".into(), shell: None, login: Login::Yes };
        assert_eq!(understood(&["--", "ls -la"]).unwrap().command, script);
        let program = CommandLine::Argv(vec!["ls".into(), "-la".into()]);
        assert_eq!(understood(&["--", "ls", "-la"]).unwrap().command, program);
    }

    #[test]
    fn options_after_the_dashes_belong_to_the_command() {
        let program = CommandLine::Argv(vec!["tool".into(), "--json".into()]);
        let arguments = understood(&["--", "tool", "--json"]).unwrap();
        assert_eq!((arguments.command, arguments.format), (program, Format::Passthrough));
    }

    #[test]
    fn a_command_without_dashes_before_it_is_told_to_have_them() {
        let error = understood(&["echo", "hi"]).unwrap_err();
        assert!(error.to_string().contains("sandgate run -- echo"), "{error}");
        assert_eq!(error.exit_code(), i32::from(crate::exit::USAGE));
    }
}
