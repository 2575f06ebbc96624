//! Why a command did not run, in the words of the person who wanted it.

use crate::audit::AuditError;
use sandgate_process::{ShellError, SpawnError};
use sandgate_protocol::{CodexErr, FailureKind};
use sandgate_sandbox::SandboxTransformError;
use std::io;
use std::path::PathBuf;

/// A command that did not run. One that ran has a result, however it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No directory of `PATH` has the program.
    #[error("there is no program called {name:?} in PATH ({searched})")]
    NotInPath {
        /// What was looked for.
        name: String,
        /// The directories that were searched.
        searched: String,
    },
    /// The shell that was asked for cannot be used.
    #[error(transparent)]
    BadShell(#[from] ShellError),
    /// It cannot be started, or the system did not start it.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It could not be confined as its grant says.
    #[error(transparent)]
    Confine(#[from] SandboxTransformError),
    /// It would work in the person's settings, or write there.
    #[error(
        "{} lies in your settings, where nothing may work or write: it could change what it may do",
        path.display()
    )]
    InSettings {
        /// The workspace, or what was to be writable.
        path: PathBuf,
    },
    /// It would work where this program keeps its own files, or write there.
    #[error(
        "{} lies where sandgate keeps what it goes by later, where nothing may work or write",
        path.display()
    )]
    InOwnDirectory {
        /// The workspace, or what was to be writable.
        path: PathBuf,
    },
    /// What happens cannot be recorded.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Whoever takes its output failed before there was any.
    #[error("the command was not started, because nobody could be told of it: {0}")]
    NobodyListens(io::Error),
}

impl RuntimeError {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::NotInPath { .. } => FailureKind::NotFound,
            Self::BadShell(error) => match error {
                ShellError::NotInstalled { .. } | ShellError::Missing { .. } => {
                    FailureKind::NotFound
                }
                ShellError::NotExecutable { .. } => FailureKind::NotExecutable,
                ShellError::Unknown { .. } | ShellError::RelativePath { .. } => {
                    FailureKind::Request
                }
            },
            Self::Confine(_) | Self::Audit(_) => FailureKind::System,
            Self::Spawn(error) => match error {
                SpawnError::EmptyCommand | SpawnError::NulByte { .. } => FailureKind::Request,
                SpawnError::ProgramNotFound { .. } => FailureKind::NotFound,
                SpawnError::InterpreterNotFound { .. } | SpawnError::NotExecutable { .. } => {
                    FailureKind::NotExecutable
                }
                SpawnError::Directory { .. } => FailureKind::Directory,
                _ => FailureKind::System,
            },
            Self::InSettings { .. } | Self::InOwnDirectory { .. } => FailureKind::Directory,
            Self::NobodyListens(_) => FailureKind::NobodyListens,
        }
    }
}

/// What a call is told of a command that could not be looked up or started.
impl From<RuntimeError> for CodexErr {
    fn from(error: RuntimeError) -> Self {
        Self::NotStarted { kind: error.kind(), reason: error.to_string() }
    }
}
