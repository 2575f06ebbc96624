//! From a command vector to the simple commands that it may run.
//!
//! A vector that calls a shell with a script is read as that script; any other is one command. What
//! cannot be understood to the last letter is *opaque*: it is never safe and no rule allows it, but
//! the commands that could be made out in it are still searched for danger.

mod builtins;
mod cmd;
mod first;
mod guard;
mod here_document;
mod powershell;
mod redirection;
mod second;
mod shell_call;
mod word;

use crate::command::SimpleCommand;
use first::First;
use shell_call::Call;

/// What a command vector may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Who reads it.
    pub reader: Reader,
    /// Every simple command that may run; if it is opaque, those that could be made out, with those
    /// in substitutions after all others.
    pub commands: Vec<SimpleCommand>,
    /// Why it was not understood, if it was not.
    pub opaque: Option<Opacity>,
}

/// Who reads a command vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The kernel: the words are a program and its arguments.
    Kernel,
    /// A shell, which reads a script.
    Shell(ShellKind),
}

/// The shells whose scripts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellKind {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// sh, dash
    Posix,
    /// powershell, pwsh
    PowerShell,
    /// cmd.exe
    Cmd,
}

/// Why a script was not understood, in a person's words: "it uses command substitution".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Opacity(pub String);

/// Reads a command vector.
///
/// ```
/// use sandgate_policy::script::read;
///
/// let argv = ["bash", "-c", "cd src && cargo test 2>&1 | tee log"].map(str::to_owned);
/// let reading = read(&argv);
/// let programs: Vec<_> = reading.commands.iter().filter_map(|command| command.program()).collect();
/// assert_eq!(programs, ["cd", "cargo", "tee"]);
/// assert!(reading.opaque.is_none());
///
/// let argv = ["bash", "-c", "echo $(date)"].map(str::to_owned);
/// println!("{}", read(&argv).opaque.expect("what it prints is not known before it runs"));
/// ```
pub fn read(argv: &[String]) -> Reading {
    match shell_call::recognise(argv) {
        Call::Program => {
            let commands = vec![SimpleCommand::from_argv(argv)];
            Reading { reader: Reader::Kernel, commands, opaque: None }
        }
        Call::OtherShell { name, script } => {
            let mut commands = vec![SimpleCommand::from_argv(argv)];
            if let Some(script) = script {
                commands.extend(first::read(searched(script), ShellKind::Bash).commands);
                if searched(script).len() < script.len() {
                    commands.push(SimpleCommand::not_searched());
                }
            }
            let opaque = Some(Opacity(format!("the language of {name} is not read")));
            Reading { reader: Reader::Kernel, commands, opaque }
        }
        Call::Script { shell, script, strange } => {
            let (commands, trouble) = match shell {
                ShellKind::Bash | ShellKind::Zsh | ShellKind::Posix => unix(script.as_str(), shell),
                ShellKind::PowerShell => powershell::read(script.as_str()),
                ShellKind::Cmd => cmd::read(script.as_str()),
            };
            let mut commands = commands;
            if searched(script.as_str()).len() < script.as_str().len()
                && !commands.last().is_some_and(SimpleCommand::is_not_searched)
            {
                commands.push(SimpleCommand::not_searched());
            }
            let opaque = strange.or(trouble).map(Opacity);
            Reading { reader: Reader::Shell(shell), commands, opaque }
        }
    }
}

/// The commands of a script for bash, zsh or sh, and why it is not understood, if it is not.
fn unix(script: &str, shell: ShellKind) -> (Vec<SimpleCommand>, Option<String>) {
    let refusal = guard::refusal(script);
    let First { commands, trouble } = first::read(searched(script), shell);
    let trouble = refusal
        .or(trouble)
        .or_else(|| commands.iter().find_map(|command| builtins::hides(command, shell)))
        .or_else(|| match second::read(script, shell) {
            Ok(others) if others == commands => None,
            Ok(_) => Some("two parsers do not read it in the same way".to_owned()),
            Err(trouble) => Some(trouble.to_owned()),
        });
    (commands, trouble)
}

/// As much of a script as is searched for commands.
fn searched(script: &str) -> &str {
    &script[..script.floor_char_boundary(guard::MAX_SEARCHED)]
}
