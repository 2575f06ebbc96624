//! The log as the rest of the runtime sees it.

use super::error::AuditError;
use super::record::Record;
use super::writer::{Appended, Writer};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the log of a configuration's home is.
pub fn audit_directory(config_home: &Path) -> PathBuf {
    config_home.join("audit")
}

/// How the log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AuditOptions {
    /// When what was written is forced to the disk.
    pub fsync: Fsync,
    /// What happens when nothing can be written.
    pub when_full: WhenFull,
}

/// When what was written is forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fsync {
    /// When the system sees fit. A process that is killed loses nothing; a power cut can lose the
    /// last seconds.
    #[default]
    Never,
    /// After each line, before anything else happens.
    Each,
}

/// What happens when nothing can be written: the disk is full, or it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenFull {
    /// What cannot be recorded does not run.
    #[default]
    StopCommands,
    /// It runs all the same. The log says how many records are missing once it can be written again.
    GoOn,
}

/// What came of recording something.
#[derive(Debug)]
#[must_use]
pub enum Written {
    /// It is in the log, as the line with this number.
    Line(u64),
    /// It is not, and the options say to go on.
    Nothing(AuditError),
}

/// The audit log of this process. Threads and processes may write to one log at the same time.
///
/// ```
/// use sandgate_runtime::audit::{AuditLog, AuditOptions, audit_directory, verify};
///
/// let home = tempfile::tempdir()?;
/// let log = AuditLog::open(home.path(), AuditOptions::default())?;
/// assert_eq!(log.directory(), audit_directory(home.path()));
/// assert!(verify(log.directory())?.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    options: AuditOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<Writer>,
    /// Whether there has been a writer.
    opened: bool,
    /// Records that could not be written, and are not mentioned in the log yet.
    unrecorded: u64,
    why: String,
}

/// What is kept of a session's id.
const MAX_SESSION_BYTES: usize = 256;

/// How often a log that was moved away is opened anew for one record.
const MOST_REOPENED: usize = 5;

impl AuditLog {
    /// Opens the log of a configuration's home, and makes it if there is none.
    ///
    /// # Errors
    /// When it cannot be written to and the options say to stop then.
    pub fn open(config_home: &Path, options: AuditOptions) -> Result<Self, AuditError> {
        let directory = audit_directory(config_home);
        let writer = match Writer::open(&directory, options.fsync) {
            Ok(writer) => Some(writer),
            Err(error) if options.when_full == WhenFull::StopCommands => return Err(error),
            // Each record tries again, and says why not.
            Err(_) => None,
        };
        let state = State { opened: writer.is_some(), writer, ..State::default() };
        Ok(Self { directory, options, state: Mutex::new(state) })
    }

    /// The directory that the log is in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Records something. When this returns, a kill of this process cannot lose it.
    ///
    /// # Errors
    /// It was not recorded, and the options say that it must not happen then.
    pub fn record(&self, session: &str, record: &Record) -> Result<Written, AuditError> {
        self.record_at(Timestamp::now(), session, record)
    }

    /// Records something that happened at a time that the caller has read.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_at(
        &self,
        time: Timestamp,
        session: &str,
        record: &Record,
    ) -> Result<Written, AuditError> {
        let session = &session[..session.floor_char_boundary(MAX_SESSION_BYTES)];
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.write(&mut state, time, session, record) {
            Ok(seq) => Ok(Written::Line(seq)),
            Err(error) => {
                state.unrecorded += 1;
                state.why = error.to_string();
                match self.options.when_full {
                    WhenFull::StopCommands => Err(error),
                    WhenFull::GoOn => Ok(Written::Nothing(error)),
                }
            }
        }
    }

    fn write(
        &self,
        state: &mut State,
        time: Timestamp,
        session: &str,
        record: &Record,
    ) -> Result<u64, AuditError> {
        let seq = self.append(state, time, session, record)?;
        if state.unrecorded > 0 {
            // Behind the record and not before it: as long as there is no room for records, what
            // room there is would fill with these.
            let lost = Record::Unrecorded { count: state.unrecorded, why: state.why.clone() };
            if self.append(state, time, session, &lost).is_ok() {
                state.unrecorded = 0;
            }
        }
        Ok(seq)
    }

    fn append(
        &self,
        state: &mut State,
        time: Timestamp,
        session: &str,
        record: &Record,
    ) -> Result<u64, AuditError> {
        for _ in 0..MOST_REOPENED {
            let writer = match &mut state.writer {
                Some(writer) => writer,
                none => {
                    let open = if state.opened { Writer::open_again } else { Writer::open };
                    none.insert(open(&self.directory, self.options.fsync)?)
                }
            };
            state.opened = true;
            match writer.append(session, record, time)? {
                Appended::Line(seq) => return Ok(seq),
                Appended::Moved => state.writer = None,
            }
        }
        let cause = std::io::Error::other("it is moved away again and again");
        Err(AuditError::Open { path: self.directory.clone(), cause })
    }
}
