//! The log as its readers see it: line after line, in bounded memory.

use super::cut::Cut;
use super::error::AuditError;
use super::folder::{Folder, day_of};
use super::line::{self, Follows};
use super::record::Record;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Take};
use std::path::Path;

/// A line that is longer is none of ours, and is not kept in memory.
pub const MAX_READ_LINE_BYTES: usize = 1 << 20;

/// One record, with when and where it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number in the log; the first is 1.
    pub seq: u64,
    /// When it was written.
    pub time: Timestamp,
    /// The session that it belongs to.
    pub session: String,
    /// The file before, on the first line of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// What happened.
    pub record: Record,
    /// What of the record was too long to be kept whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
}

/// The records of a log, the oldest first. Nothing is verified here; lines that cannot be read are
/// counted and left out.
#[derive(Debug)]
pub struct AuditEntries {
    folder: Folder,
    days: VecDeque<String>,
    since: Option<Timestamp>,
    reading: Option<Lines>,
    unreadable: u64,
}

/// Reads the log in a directory, from a time on if one is given. A directory that does not exist is
/// an empty log.
///
/// # Errors
/// When the directory cannot be read.
pub fn entries(directory: &Path, since: Option<Timestamp>) -> Result<AuditEntries, AuditError> {
    let folder = Folder::at(directory);
    let mut days = VecDeque::from(folder.days()?);
    if let Some(since) = since {
        // No line is in the file of a day before its own.
        let first = day_of(since);
        days.retain(|day| *day >= first);
    }
    Ok(AuditEntries { folder, days, since, reading: None, unreadable: 0 })
}

impl AuditEntries {
    /// How many lines could not be read so far.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn next_entry(&mut self) -> Result<Option<AuditEntry>, AuditError> {
        loop {
            let Some(lines) = &mut self.reading else {
                let Some(day) = self.days.pop_front() else { return Ok(None) };
                self.reading = match self.folder.open_to_read(&day)? {
                    Some(file) => Some(self.read_from(file, &day)?),
                    None => None,
                };
                continue;
            };
            match lines.next()? {
                None => self.reading = None,
                // Somebody may be writing it right now.
                Some(Line { complete: false, .. }) => {}
                Some(line) => match line.text().and_then(line::parse) {
                    None => self.unreadable += 1,
                    Some((entry, ..)) if self.since.is_some_and(|since| entry.time < since) => {}
                    Some((entry, ..)) => return Ok(Some(entry)),
                },
            }
        }
    }

    fn read_from(&self, file: File, day: &str) -> Result<Lines, AuditError> {
        let path = self.folder.file(day);
        Lines::read(file, &path, 0, u64::MAX).map_err(|cause| AuditError::Read { path, cause })
    }
}

impl Iterator for AuditEntries {
    type Item = Result<AuditEntry, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_entry();
        if next.is_err() {
            // What cannot be read now is not tried for ever.
            self.reading = None;
        }
        next.transpose()
    }
}

/// Reads the lines of a part of a file.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<Take<File>>,
    path: std::path::PathBuf,
    buffer: Vec<u8>,
}

/// A line as it was found, without its line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// As much of it as may be kept.
    kept: &'a [u8],
    /// How long it is.
    pub(super) length: u64,
    /// Whether it has a line end.
    pub(super) complete: bool,
}

impl<'a> Line<'a> {
    /// All of it, unless it is too long to be one of ours.
    pub(super) fn text(&self) -> Option<&'a [u8]> {
        (self.kept.len() as u64 == self.length).then_some(self.kept)
    }

    /// How many bytes of the file it takes.
    pub(super) fn size(&self) -> u64 {
        self.length + u64::from(self.complete)
    }
}

impl Lines {
    /// Reads from one place of a file up to another, or its end.
    pub(super) fn read(mut file: File, path: &Path, from: u64, to: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let reader = BufReader::with_capacity(64 << 10, file.take(to.saturating_sub(from)));
        Ok(Self { reader, path: path.to_owned(), buffer: Vec::new() })
    }

    /// The next line, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, AuditError> {
        self.buffer.clear();
        let (mut length, mut complete) = (0, false);
        while !complete {
            let available = match self.reader.fill_buf() {
                Ok([]) => break,
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(AuditError::Read { path: self.path.clone(), cause }),
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let room = MAX_READ_LINE_BYTES - self.buffer.len();
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            length += part.len() as u64;
            complete = end.is_some();
            let used = part.len() + usize::from(complete);
            self.reader.consume(used);
        }
        let line = Line { kept: &self.buffer, length, complete };
        Ok((line.size() > 0).then_some(line))
    }
}
