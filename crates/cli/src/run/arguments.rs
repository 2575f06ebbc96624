//! What may follow `sandgate run`: first parsed, then made sense of.

use crate::arguments::{as_text, usage_error};
use crate::decide::Decide;
use crate::session::CliSession;
use clap::error::ErrorKind;
use sandgate_protocol::ExecExpiration;
use sandgate_runtime::{CommandInput, CommandLine, Login};
use std::ffi::OsString;
use std::time::Duration;

const HELP: &str = "\
Examples:
  sandgate run -- 'grep -r hello . | wc -l'     a script, for your own shell
  sandgate run -- git log --oneline             a program and its arguments, without a shell
  sandgate run --network -- npm install         with the network
  sandgate run --sandbox read-only -- make -n   reads anything, writes nothing
  sandgate run --decide deny -- ./build.sh      asks nobody: what would need a yes is refused
  sandgate run --json -- 'ls -la'               for programs: one event a line

The command is judged, confined and recorded. When the sandbox blocked something and the command
failed, you are asked at your terminal whether it may have that and run again. Inside there is no
terminal: for an editor or a shell use sandgate sandbox.

A script is read by a login shell, whose profile may set PATH anew; --no-login keeps yours.
Variables whose names look like secrets (*KEY*, *SECRET*, *TOKEN*) are kept from the command.

Exit codes: the command's own; 128+N if signal N ended it; 124 if its time was over;
77 if a decision was needed, before the command or after it was blocked, and nobody could give it;
78 if you, a rule or the policy said no before it ran; 130 if you called it off at a question;
125 if sandgate itself failed; 126 if the program cannot be executed; 127 if there is none;
2 if this command line makes no sense.";

/// What may follow `sandgate run`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, override_usage = "sandgate run [OPTIONS] -- COMMAND...")]
pub(crate) struct CliRun {
    /// One word is a script for your shell, several are a program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    session: CliSession,

    /// End the command after N milliseconds, 0 for never [default: timeouts.command_ms of your
    /// settings, 0 without it]
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u64>,

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

/// What `sandgate run` is to do.
#[derive(Debug)]
pub(crate) struct RunArguments {
    pub(super) command: CommandLine,
    pub(super) session: CliSession,
    timeout_ms: Option<u64>,
    pub(super) input: CommandInput,
    pub(super) format: Format,
}

impl RunArguments {
    /// When the command is ended. `usual` is the limit that the settings name, if they do.
    pub(super) fn expiration(&self, usual: Option<Duration>) -> ExecExpiration {
        match (self.timeout_ms, usual) {
            (Some(0), _) | (None, None) => ExecExpiration::Cancellation,
            (Some(limit), _) => ExecExpiration::Timeout(Duration::from_millis(limit)),
            (None, Some(limit)) => ExecExpiration::Timeout(limit),
        }
    }
}

/// What is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// What the command writes, byte for byte.
    Passthrough,
    /// Events, one JSON object a line.
    JsonLines,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(run: CliRun) -> Result<RunArguments, clap::Error> {
    let CliRun { command, session, timeout_ms, shell, no_login, stdin, json } = run;
    let conflict = |message| usage_error("run", ErrorKind::ArgumentConflict, message);
    session.check().map_err(conflict)?;
    if session.decide() == Decide::ByLines {
        let message = "--decide stdin is for sandgate call; write ./stdin for a file of that name";
        return Err(conflict(message.to_owned()));
    }
    let mut words = as_text("run", command)?;
    let command = if words.len() == 1 {
        let login = if no_login { Login::No } else { Login::Yes };
        CommandLine::Script { text: words.remove(0), shell, login }
    } else if shell.is_some() || no_login {
        return Err(conflict(no_script(shell.as_deref(), no_login, words.len())));
    } else {
        CommandLine::Argv(words)
    };
    Ok(RunArguments {
        command,
        session,
        timeout_ms,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Verb;
    use crate::arguments::tests::understood as verb;

    fn understood(words: &[&str]) -> Result<RunArguments, clap::Error> {
        match verb(&[&["run"], words].concat())? {
            Verb::Run(arguments) => Ok(arguments),
            other => panic!("not a run: {other:?}"),
        }
    }

    /// spec RUN.30: A command may run as long as it takes, unless `--timeout-ms` names a limit; 0 is
    /// none.
    #[test]
    fn there_is_no_time_limit_unless_one_is_named() {
        let limit = |words: &[&str]| understood(words).unwrap().expiration(None).timeout();
        assert_eq!(limit(&["--", "true"]), None);
        assert_eq!(limit(&["--timeout-ms", "250", "--", "true"]), Some(Duration::from_millis(250)));
        assert_eq!(limit(&["--timeout-ms", "0", "--", "true"]), None);
        // The settings may name another, and the option wins.
        let usual = Some(Duration::from_millis(7));
        let limit = |words: &[&str]| understood(words).unwrap().expiration(usual).timeout();
        assert_eq!(limit(&["--", "true"]), usual);
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
    fn what_contradicts_itself_is_refused() {
        for (words, said) in [
            (&["--decide", "stdin", "--", "true"][..], "--decide stdin is for sandgate call"),
            (&["--sandbox", "read-only", "--network", "--", "true"], "workspace-write only"),
        ] {
            let error = understood(words).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
