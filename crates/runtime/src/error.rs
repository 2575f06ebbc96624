//! Why a command did not run, in the words of the person who wanted it.

use sandgate_process::{ShellError, SpawnError};
use std::io;
use std::path::PathBuf;

/// A command that did not run, or whose end nobody waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// There is nothing to run.
    #[error("the command is empty: name a program to run")]
    EmptyCommand,
    /// A name that no file can have.
    #[error("{what} contains a NUL byte, which no name can have: {shown}")]
    NulByte {
        /// Which name it is.
        what: &'static str,
        /// The name, with the byte made visible.
        shown: String,
    },
    /// The directory to run in cannot be used.
    #[error("cannot work in {}: {reason}", directory.display())]
    BadDirectory {
        /// The directory, as it was named.
        directory: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No directory of `PATH` has the program.
    #[error("there is no program called {name} in PATH ({searched})")]
    NotInPath {
        /// What was looked for.
        name: String,
        /// The directories that were searched.
        searched: String,
    },
    /// The path of the program leads nowhere.
    #[error("there is no program at {}", program.display())]
    NotFound {
        /// Where it should be.
        program: PathBuf,
    },
    /// The program is there but cannot be executed.
    #[error("{} cannot be executed: {reason}", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is in the way.
        reason: String,
    },
    /// The shell that was asked for cannot be used.
    #[error(transparent)]
    BadShell(#[from] ShellError),
    /// The system did not start it.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The observer failed, so the command was ended.
    #[error("cannot pass the command's output on: {0}")]
    NobodyListens(io::Error),
}

/// What kind of thing went wrong, for a caller that answers each kind in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The request makes no sense as it is, whatever the machine has installed.
    Request,
    /// The program, or the shell, is not there.
    NotFound,
    /// The program, or the shell, is there but cannot be executed.
    NotExecutable,
    /// The working directory cannot be used.
    Directory,
    /// The system did not start it for another reason.
    System,
    /// Nobody took the output.
    NobodyListens,
}

impl FailureKind {
    /// The exit code that shells and `env` give to a command that failed to start like this.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable => 126,
            Self::Request | Self::Directory | Self::System | Self::NobodyListens => 125,
        }
    }
}

impl RuntimeError {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::EmptyCommand | Self::NulByte { .. } => FailureKind::Request,
            Self::BadDirectory { .. } => FailureKind::Directory,
            Self::NotInPath { .. } | Self::NotFound { .. } => FailureKind::NotFound,
            Self::NotExecutable { .. } => FailureKind::NotExecutable,
            Self::BadShell(error) => match error {
                ShellError::NotInstalled { .. } | ShellError::Missing { .. } => {
                    FailureKind::NotFound
                }
                ShellError::NotExecutable { .. } => FailureKind::NotExecutable,
                ShellError::Unknown { .. } | ShellError::RelativePath { .. } => {
                    FailureKind::Request
                }
            },
            Self::Spawn(error) => match error {
                SpawnError::EmptyCommand | SpawnError::NulByte { .. } => FailureKind::Request,
                SpawnError::ProgramNotFound { .. } => FailureKind::NotFound,
                SpawnError::InterpreterNotFound { .. } | SpawnError::NotExecutable { .. } => {
                    FailureKind::NotExecutable
                }
                SpawnError::Directory { .. } => FailureKind::Directory,
                _ => FailureKind::System,
            },
            Self::NobodyListens(_) => FailureKind::NobodyListens,
        }
    }
}
