//! Appends lines to the chain, whoever else does.
//!
//! Under the lock: see that nothing changed since our last line, or catch up; begin the day's file if
//! there is none; write the line by one write(2); write the head. A writer can be killed between any
//! two of these steps and the next one finds its way: see `end.rs`. A line that cannot be written
//! whole is taken back.

use super::end::{self, End, Mend, ends_line};
use super::error::AuditError;
use super::folder::{Folder, HEAD, Lock, day_of, write_at_beginning};
use super::head::{Found, Head, HeadBytes};
use super::line::{self, Envelope, Follows};
use super::log::Fsync;
use super::record::Record;
use crate::private::is_in_place;
use jiff::Timestamp;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Appends to a log that has been opened.
#[derive(Debug)]
pub(super) struct Writer {
    lock: Lock,
    chain: Chain,
}

/// What came of an attempt to append.
pub(super) enum Appended {
    /// The line has this number.
    Line(u64),
    /// The log was moved away under us; what was opened is not the log any more.
    Moved,
}

impl Writer {
    /// Opens the log for the first time, and makes it and the settings that it lies in.
    pub(super) fn open(directory: &Path, fsync: Fsync) -> Result<Self, AuditError> {
        Self::of(Folder::make(directory)?, fsync)
    }

    /// Opens a log that was moved away, or removed, under us.
    pub(super) fn open_again(directory: &Path, fsync: Fsync) -> Result<Self, AuditError> {
        Self::of(Folder::make_again(directory)?, fsync)
    }

    fn of(folder: Folder, fsync: Fsync) -> Result<Self, AuditError> {
        let lock = folder.open_lock()?;
        let file = folder.open_head()?;
        Ok(Self { lock, chain: Chain { folder, fsync, head_file: file, known: None } })
    }

    pub(super) fn append(
        &mut self,
        session: &str,
        record: &Record,
        time: Timestamp,
    ) -> Result<Appended, AuditError> {
        let Self { lock, chain } = self;
        lock.hold(|| {
            if !lock.is_in_place() || !chain.is_in_place() {
                return Ok(Appended::Moved);
            }
            let appended = chain.append(session, record, time);
            if appended.is_err() {
                // Whatever is on disk now, it is looked at anew.
                chain.known = None;
            }
            appended.map(Appended::Line)
        })
    }
}

/// The chain, for somebody who holds the lock.
#[derive(Debug)]
struct Chain {
    folder: Folder,
    fsync: Fsync,
    head_file: File,
    known: Option<Known>,
}

/// What this process knows of the chain since it last wrote.
#[derive(Debug)]
struct Known {
    head: Head,
    head_bytes: HeadBytes,
    day: File,
}

impl Chain {
    fn is_in_place(&self) -> bool {
        is_in_place(&self.folder.file(HEAD), &self.head_file)
    }

    fn append(
        &mut self,
        session: &str,
        record: &Record,
        time: Timestamp,
    ) -> Result<u64, AuditError> {
        let mut known = match self.unchanged()? {
            Some(known) => known,
            None => self.catch_up(session, time)?,
        };
        if day_of(time) > known.head.file {
            known = self.begin_day(known, session, time)?;
        }
        self.put(&mut known, session, record, time, "")?;
        let seq = known.head.seq;
        self.known = Some(known);
        Ok(seq)
    }

    /// What we know, if it is still so: the head is the one that we wrote, and the file ends there.
    fn unchanged(&mut self) -> Result<Option<Known>, AuditError> {
        let Some(known) = self.known.take() else { return Ok(None) };
        let (_, bytes) = Found::read(&self.head_file).map_err(|cause| self.unread(HEAD, cause))?;
        let path = self.folder.file(&known.head.file);
        let same = bytes == known.head_bytes
            && is_in_place(&path, &known.day)
            && known.day.metadata().is_ok_and(|found| found.len() == known.head.length);
        Ok(same.then_some(known))
    }

    /// Finds the end of the log, and mends it where it has to be.
    fn catch_up(&self, session: &str, time: Timestamp) -> Result<Known, AuditError> {
        let (found, head_bytes) =
            Found::read(&self.head_file).map_err(|cause| self.unread(HEAD, cause))?;
        let old = found.clone();
        let End { head, mend } = end::find(&self.folder, found, day_of(time))?;
        let day = self.open_day(&head.file)?;
        let mut known = Known { head, head_bytes, day };
        if old != Found::Head(known.head.clone()) && mend.is_none() {
            self.seal(&mut known)?;
        }
        if let Some(Mend { marker, close_line }) = mend {
            let line_end = if close_line { "\n" } else { "" };
            self.put(&mut known, session, &marker, time, line_end)?;
        }
        Ok(known)
    }

    /// Begins a day's file. The head names it before it has a line, so that whoever comes next looks
    /// for that line there and nowhere else.
    fn begin_day(&self, old: Known, session: &str, time: Timestamp) -> Result<Known, AuditError> {
        let name = day_of(time);
        let day = self.open_day(&name)?;
        let unread = |cause| self.unread(&name, cause);
        let length = day.metadata().map_err(unread)?.len();
        let after = match old.head.length {
            0 => old.head.after,
            _ => Some(old.head.file),
        };
        let head = Head { file: name.clone(), length, after, ..old.head };
        let mut known = Known { head, head_bytes: old.head_bytes, day };
        if length > 0 {
            let line_end = if ends_line(&known.day, length).map_err(unread)? { "" } else { "\n" };
            let what = format!("{name} had something in it before its first line");
            self.put(&mut known, session, &Record::Damaged { what }, time, line_end)?;
        } else {
            self.seal(&mut known)?;
        }
        Ok(known)
    }

    /// Writes one line and then the head. `line_end` closes a line that somebody left unfinished.
    fn put(
        &self,
        known: &mut Known,
        session: &str,
        record: &Record,
        time: Timestamp,
        line_end: &str,
    ) -> Result<(), AuditError> {
        let (before, sealed_before) = (known.head.clone(), known.head_bytes);
        let hash = before.hash.to_string();
        let follows = before.after.clone().map(|file| Follows { file, hash });
        let seq = before.seq + 1;
        let envelope = Envelope { seq, time, session, follows: follows.as_ref() };
        let (mut bytes, hash) =
            line::make(envelope, record, before.hash).map_err(AuditError::NotText)?;
        bytes.splice(..0, line_end.bytes());
        let length = before.length + bytes.len() as u64;
        known.head = Head { file: before.file.clone(), length, seq, hash, after: None };
        let written = self.write_line(known, &bytes).and_then(|()| self.seal(known));
        if written.is_err() {
            // If that fails as well, the next writer finds a line that is not sealed, or is torn.
            let _ = known.day.set_len(before.length);
            let _ = write_at_beginning(&self.head_file, &sealed_before);
        }
        written
    }

    fn write_line(&self, known: &Known, bytes: &[u8]) -> Result<(), AuditError> {
        let written = loop {
            match (&known.day).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        let done = match written {
            Ok(length) if length == bytes.len() => match self.fsync {
                Fsync::Each => known.day.sync_data(),
                Fsync::Never => Ok(()),
            },
            // Part of it found room; there was none for the rest.
            Ok(_) => Err(io::ErrorKind::StorageFull.into()),
            Err(error) => Err(error),
        };
        done.map_err(|cause| self.unwritten(&known.head.file, cause))
    }

    /// Writes the head.
    fn seal(&self, known: &mut Known) -> Result<(), AuditError> {
        known.head_bytes = known.head.to_bytes();
        let mut written = known.head.write(&self.head_file);
        if self.fsync == Fsync::Each {
            written = written.and_then(|()| self.head_file.sync_data());
        }
        written.map_err(|cause| self.unwritten(HEAD, cause))
    }

    fn open_day(&self, name: &str) -> Result<File, AuditError> {
        let day = self.folder.open_day(name)?;
        if self.fsync == Fsync::Each {
            self.folder.sync().map_err(|cause| self.unwritten(name, cause))?;
        }
        Ok(day)
    }

    fn unread(&self, name: &str, cause: io::Error) -> AuditError {
        AuditError::Read { path: self.folder.file(name), cause }
    }

    fn unwritten(&self, name: &str, cause: io::Error) -> AuditError {
        AuditError::Write { path: self.folder.file(name), cause }
    }
}
