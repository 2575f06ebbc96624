//! From a command vector to the simple commands that it may run.
//!
//! A vector that calls a shell with a script is read as that script; any other is one command. What
//! cannot be understood to the last letter is *opaque*: it is never safe and no rule allows it, but
//! the commands that could be made out in it are still searched for danger.

use crate::command::SimpleCommand;

/// What a command vector may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Who reads it.
    pub reader: Reader,
    /// Every simple command that may run; if it is opaque, those that could be made out.
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
pub fn read(argv: &[String]) -> Reading {
    let commands = vec![SimpleCommand::from_argv(argv)];
    Reading { reader: Reader::Kernel, commands, opaque: None }
}
