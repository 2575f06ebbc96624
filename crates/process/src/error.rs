//! Why a command could not be started, in the words of the person who wanted it.

use crate::sys::{LaunchError, Stage};
use sandgate_protocol::ExecError;
use sandgate_sandbox::ExecEnv;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is nothing to run.
    #[error("the command is empty: name a program to run")]
    EmptyCommand,
    /// A string that the system cannot take.
    #[error("{what} contains a NUL byte, which no program can be given: {shown}")]
    NulByte {
        /// Which string it is.
        what: String,
        /// The string, with what cannot be shown made visible.
        shown: String,
    },
    /// The program is not there.
    #[error("there is no program at {}", program.display())]
    ProgramNotFound {
        /// Where it was looked for.
        program: PathBuf,
    },
    /// A script names an interpreter that is not there.
    #[error(
        "{} cannot run: the interpreter that its first line names, or the loader it needs, does not exist",
        program.display()
    )]
    InterpreterNotFound {
        /// The script.
        program: PathBuf,
    },
    /// The program may not be executed.
    #[error("{} may not be executed: {hint}", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is in the way.
        hint: &'static str,
    },
    /// The working directory is not there, or cannot be entered.
    #[error("cannot work in {}: {source}", cwd.display())]
    Directory {
        /// The directory.
        cwd: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Arguments and environment do not fit.
    #[error("{what} too large for the system: {bytes} bytes, and {limit}")]
    TooLarge {
        /// The part that is too large.
        what: String,
        /// Its size.
        bytes: usize,
        /// What the system allows.
        limit: &'static str,
    },
    /// The system makes no more processes for this user.
    #[error(
        "the system allows no further process ({source}): end some, or raise the limit (ulimit -u)"
    )]
    NoMoreProcesses {
        /// The system's answer.
        source: io::Error,
    },
    /// The sandbox could not be set up, so nothing was run.
    #[error("the sandbox could not be set up, so nothing was run: {source}")]
    Cage {
        /// The step that failed and the system's answer.
        source: io::Error,
    },
    /// More commands run at once than one spawner watches over.
    #[error("too many commands are running: end some first")]
    TooManyCommands,
    /// No more files can be opened.
    #[error("too many open files ({source}): end some commands, or raise the limit (ulimit -n)")]
    NoMoreFiles {
        /// The system's answer.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {step} to run {}: {source}", program.display())]
    Io {
        /// What was being done.
        step: &'static str,
        /// The program that was to run.
        program: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The processes that start commands could not be made.
    #[error("cannot prepare to start commands: {0}")]
    Prepare(io::Error),
}

impl From<SpawnError> for ExecError {
    fn from(error: SpawnError) -> Self {
        Self::IoError { message: error.to_string() }
    }
}

impl SpawnError {
    /// Refuses what no system call could be asked to do, and names it.
    pub(crate) fn check(env: &ExecEnv) -> Result<(), Self> {
        if env.command().is_empty() || env.program().as_os_str().is_empty() {
            return Err(Self::EmptyCommand);
        }
        no_nul(env.program().as_os_str(), || "the program's path".to_owned())?;
        no_nul(env.cwd().as_os_str(), || "the working directory".to_owned())?;
        for (index, arg) in env.argv().enumerate() {
            no_nul(arg, || format!("argument {index}"))?;
        }
        for (name, value) in env.env() {
            no_nul(name, || "the name of an environment variable".to_owned())?;
            no_nul(value, || format!("the environment variable {}", name.display()))?;
        }
        Ok(())
    }

    pub(crate) fn from_launch(env: &ExecEnv, error: LaunchError) -> Self {
        let LaunchError { stage, source, .. } = error;
        match (stage, source.kind()) {
            (Stage::Chdir, _) => Self::Directory { cwd: env.cwd().to_owned(), source },
            (_, io::ErrorKind::ArgumentListTooLong) => too_large(env),
            (Stage::Exec, _) => not_executed(env.program(), source),
            (Stage::Full, _) => Self::TooManyCommands,
            (Stage::Cage, _) => Self::Cage { source },
            (Stage::Fork, _) => Self::NoMoreProcesses { source },
            _ if too_many_files(&source) => Self::NoMoreFiles { source },
            (stage, _) => {
                let step = match stage {
                    Stage::Terminal => "give a terminal to the process",
                    _ => "prepare the process",
                };
                Self::Io { step, program: env.program().to_owned(), source }
            }
        }
    }
}

fn no_nul(text: &OsStr, what: impl FnOnce() -> String) -> Result<(), SpawnError> {
    if text.as_encoded_bytes().contains(&0) {
        let shown: String = text.to_string_lossy().escape_debug().take(80).collect();
        return Err(SpawnError::NulByte { what: what(), shown });
    }
    Ok(())
}

fn not_executed(program: &Path, source: io::Error) -> SpawnError {
    let program = program.to_owned();
    match source.kind() {
        // The file was there when it was looked up; if it still is, it needs one that is not.
        io::ErrorKind::NotFound if program.exists() => SpawnError::InterpreterNotFound { program },
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SpawnError::ProgramNotFound { program }
        }
        io::ErrorKind::PermissionDenied => {
            let hint = if program.is_dir() {
                "it is a directory"
            } else {
                "it is not marked executable, its file system forbids programs, or you may not read it"
            };
            SpawnError::NotExecutable { program, hint }
        }
        _ if wrong_format(&source) => SpawnError::NotExecutable {
            program,
            hint: "it is neither a program for this machine nor a script that begins with #!",
        },
        _ => SpawnError::Io { step: "execute the program", program, source },
    }
}

#[cfg(unix)]
fn wrong_format(source: &io::Error) -> bool {
    source.raw_os_error() == Some(libc::ENOEXEC)
}

#[cfg(windows)]
fn wrong_format(source: &io::Error) -> bool {
    // ERROR_BAD_EXE_FORMAT.
    source.raw_os_error() == Some(193)
}

#[cfg(unix)]
fn too_many_files(source: &io::Error) -> bool {
    matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ETOOMANYREFS))
}

#[cfg(windows)]
fn too_many_files(_source: &io::Error) -> bool {
    false
}

/// Linux bounds each string by 32 pages, whatever the total.
const MAX_STRING_BYTES: usize = 128 * 1024;

fn too_large(env: &ExecEnv) -> SpawnError {
    let each = "one string may have 131,072";
    for (index, arg) in env.argv().enumerate() {
        if arg.len() >= MAX_STRING_BYTES {
            let what = format!("argument {index} is");
            return SpawnError::TooLarge { what, bytes: arg.len(), limit: each };
        }
    }
    for (name, value) in env.env() {
        let bytes = name.len() + 1 + value.len();
        if bytes >= MAX_STRING_BYTES {
            let what = format!("the environment variable {} is", name.display());
            return SpawnError::TooLarge { what, bytes, limit: each };
        }
    }
    let arguments: usize = env.argv().map(|arg| arg.len() + 1).sum();
    let variables: usize = env.env().iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let what =
        format!("the arguments ({arguments} bytes) and the environment ({variables} bytes) are");
    let limit = "together they may have about a quarter of the stack limit (ulimit -s)";
    SpawnError::TooLarge { what, bytes: arguments + variables, limit }
}
