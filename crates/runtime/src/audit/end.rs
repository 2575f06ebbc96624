//! Where the log ends, and what has to be mended there before the next line.
//!
//! A writer that was killed leaves one of few things behind: a whole line that the head does not know
//! of yet, which is taken over, or a part of a line, which is closed and marked. Everything else is
//! damage. It is marked too, and the log goes on: a chain that says where it was broken is worth more
//! than none.

use super::error::AuditError;
use super::folder::{Folder, HEAD, read_at};
use super::head::{Found, Head};
use super::line::{self, Hash, SEAL_BYTES, sha256};
use super::read::Lines;
use super::record::Record;
use std::fs::File;

/// The end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Where the next line goes, and what it follows.
    pub(super) head: Head,
    /// What has to be said before anything else.
    pub(super) mend: Option<Mend>,
}

/// What has to be said of the end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mend {
    pub(super) marker: Record,
    /// Whether the last line has no line end, so that one comes first.
    pub(super) close_line: bool,
}

/// Finds the end of a log. `today` is the file that a new log begins with.
pub(super) fn find(folder: &Folder, found: Found, today: String) -> Result<End, AuditError> {
    match found {
        Found::Head(head) => after_head(folder, head),
        Found::Nothing | Found::Unreadable => without_head(folder, &found, today),
    }
}

fn after_head(folder: &Folder, head: Head) -> Result<End, AuditError> {
    let Some(file) = folder.open_to_read(&head.file)? else {
        if head.length == 0 {
            return Ok(End { head, mend: None });
        }
        let what = format!("{} was gone, with everything up to line {}", head.file, head.seq);
        return Ok(damaged(Head { length: 0, after: None, ..head }, what, false));
    };
    let path = folder.file(&head.file);
    let unreadable = |cause| AuditError::Read { path: path.clone(), cause };
    let length = file.metadata().map_err(unreadable)?.len();
    let open_end = !ends_line(&file, length).map_err(unreadable)?;
    if length < head.length {
        let what = format!("{} had {length} bytes, and {} were sealed", head.file, head.length);
        return Ok(damaged(Head { length, ..head }, what, open_end));
    }
    if !is_sealed(&file, &head).map_err(unreadable)? {
        let what = format!("line {} of the log was not in {} as sealed", head.seq, head.file);
        return Ok(damaged(Head { length, ..head }, what, open_end));
    }
    let lines = Lines::read(file, &path, head.length, length).map_err(unreadable)?;
    take_over(lines, head, length, open_end)
}

/// Goes over what was written after the head was.
fn take_over(
    mut lines: Lines,
    mut head: Head,
    length: u64,
    open_end: bool,
) -> Result<End, AuditError> {
    loop {
        let Some(line) = lines.next()? else { return Ok(End { head, mend: None }) };
        let Some(text) = line.text() else { break };
        if !line.complete {
            let marker = Record::Torn { bytes: line.length, sha256: sha256(text) };
            let head = Head { length, ..head };
            return Ok(End { head, mend: Some(Mend { marker, close_line: true }) });
        }
        let Some(hash) = continues(text, head.hash, head.seq) else { break };
        let length = head.length + line.size();
        head = Head { length, seq: head.seq + 1, hash, after: None, ..head };
    }
    let what =
        format!("{} had something after line {} that does not follow it", head.file, head.seq);
    Ok(damaged(Head { length, ..head }, what, open_end))
}

/// The hash of a line that follows another, if it does.
fn continues(line: &[u8], before: Hash, seq: u64) -> Option<Hash> {
    let (entry, text, hash) = line::parse(line)?;
    (entry.seq == seq + 1 && Hash::of(before, text) == hash).then_some(hash)
}

/// Looks for the end where no head says where it is.
fn without_head(folder: &Folder, found: &Found, today: String) -> Result<End, AuditError> {
    let mut last = None;
    for day in folder.days()? {
        let Some(file) = folder.open_to_read(&day)? else { continue };
        let path = folder.file(&day);
        let unreadable = |cause| AuditError::Read { path: path.clone(), cause };
        let length = file.metadata().map_err(unreadable)?.len();
        if length > 0 {
            last = Some((day, file, length));
        }
    }
    let Some((day, file, length)) = last else {
        return Ok(End { head: Head::beginning(today), mend: None });
    };
    let path = folder.file(&day);
    let unreadable = |cause| AuditError::Read { path: path.clone(), cause };
    let open_end = !ends_line(&file, length).map_err(unreadable)?;
    let mut head = Head { length, ..Head::beginning(day) };
    let mut lines = Lines::read(file, &path, 0, length).map_err(unreadable)?;
    while let Some(line) = lines.next()? {
        if let Some((entry, _, hash)) = line.text().and_then(line::parse) {
            head = Head { seq: entry.seq, hash, ..head };
        }
    }
    let state = if *found == Found::Nothing { "gone" } else { "unreadable" };
    Ok(damaged(head, format!("{HEAD} was {state}, so lines may have been lost"), open_end))
}

fn damaged(head: Head, what: String, close_line: bool) -> End {
    End { head, mend: Some(Mend { marker: Record::Damaged { what }, close_line }) }
}

/// Whether a file is empty or its last line is a whole one.
pub(super) fn ends_line(file: &File, length: u64) -> std::io::Result<bool> {
    let mut last = [b'\n'];
    if length > 0 {
        read_at(file, &mut last, length - 1)?;
    }
    Ok(last == *b"\n")
}

/// Whether the line that ends where the head says has the hash that the head says.
fn is_sealed(file: &File, head: &Head) -> std::io::Result<bool> {
    // A file without a line of ours yet: nothing of it is sealed.
    if head.length == 0 {
        return Ok(true);
    }
    let mut end = [0; SEAL_BYTES + 1];
    let Some(from) = head.length.checked_sub(end.len() as u64) else { return Ok(false) };
    read_at(file, &mut end, from)?;
    let hash = end.strip_suffix(b"\n").and_then(line::split).map(|(_, hash)| hash);
    Ok(hash == Some(head.hash))
}
