//! Why something was not recorded.

use std::io;
use std::path::PathBuf;

/// The audit log cannot be written, or not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Its directory cannot be made or used.
    #[error(
        "the directory of the audit log cannot be used: {cause}; sandgate doctor says what to do"
    )]
    Directory {
        /// Why not; names the directory.
        cause: io::Error,
    },
    /// One of its files cannot be opened.
    #[error("{} of the audit log cannot be opened: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Something stands where one of its files belongs.
    #[error("{} of the audit log {what}; move it away", path.display())]
    InTheWay {
        /// Where the file belongs.
        path: PathBuf,
        /// What stands there.
        what: &'static str,
    },
    /// One of its files cannot be read.
    #[error("{} of the audit log cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// One of its files cannot be written.
    #[error("{} of the audit log cannot be written: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Somebody else has been writing to it for too long.
    #[error("the audit log is held by another process, which does not let go of {}", path.display())]
    Busy {
        /// The file by which it is held.
        path: PathBuf,
    },
    /// What is to be recorded cannot be written as text.
    #[error("this cannot be written to the audit log: {0}")]
    NotText(serde_json::Error),
}
