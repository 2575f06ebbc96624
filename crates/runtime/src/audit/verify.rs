//! Reads the whole log and says what is wrong with it.
//!
//! Streaming, in bounded memory. The log may be written to meanwhile: what counts is how far it
//! reached, and what its head said, at one moment at which nobody wrote.

use super::error::AuditError;
use super::findings::{Notice, Place, Problem, Verification};
use super::folder::{Folder, HEAD, day_of};
use super::head::{Found, Head};
use super::line::{self, BEGINNING, Hash, sha256};
use super::read::{AuditEntry, Line, Lines};
use super::record::Record;
use jiff::Timestamp;
use std::fs::File;
use std::path::Path;

/// Verifies the log in a directory. One that does not exist, or has no lines, is intact.
///
/// # Errors
/// When it cannot be read.
pub fn verify(directory: &Path) -> Result<Verification, AuditError> {
    Checker::check(&Folder::at(directory), None)
}

/// Verifies the log from the day of a time on, and does not ask for the files before.
///
/// # Errors
/// When it cannot be read.
pub fn verify_since(directory: &Path, since: Timestamp) -> Result<Verification, AuditError> {
    Checker::check(&Folder::at(directory), Some(day_of(since)))
}

/// The log at one moment.
struct Snapshot {
    head: Found,
    days: Vec<Day>,
}

/// A day's file, and how far it reached.
struct Day {
    name: String,
    file: File,
    length: u64,
}

fn snapshot(folder: &Folder) -> Result<Snapshot, AuditError> {
    let look = || {
        let head = match folder.open_to_read(HEAD)? {
            Some(file) => {
                let path = folder.file(HEAD);
                Found::read(&file).map_err(|cause| AuditError::Read { path, cause })?.0
            }
            None => Found::Nothing,
        };
        let mut days = Vec::new();
        for name in folder.days()? {
            let Some(file) = folder.open_to_read(&name)? else { continue };
            let path = folder.file(&name);
            let length = file.metadata().map_err(|cause| AuditError::Read { path, cause })?.len();
            days.push(Day { name, file, length });
        }
        Ok(Snapshot { head, days })
    };
    match folder.find_lock() {
        Some(lock) => lock.hold_shared(look),
        None => look(),
    }
}

struct Checker {
    found: Verification,
    head: Found,
    days: Vec<String>,
    /// The number that the next line must have, and the hashes that it may follow: the one that the
    /// last line states, and the one that its text has. Nothing is known before the first line.
    chain: Option<Link>,
    /// The last line in the order of the file, whether it was in its place or not.
    last: Option<Hash>,
    /// Lines since the last readable one that could not be read.
    unreadable: u64,
    /// An unreadable line that the next line may explain.
    unexplained: Option<Unreadable>,
    /// The line that the head names, once it came by.
    sealed: Option<Sealed>,
}

/// Where the chain goes on.
#[derive(Clone, Copy)]
struct Link {
    next: u64,
    stated: Hash,
    computed: Hash,
}

struct Unreadable {
    line: u64,
    length: u64,
    sha256: Option<String>,
}

/// The line with the number that the head names.
struct Sealed {
    file: String,
    end: u64,
    hashes: [Hash; 2],
}

impl Checker {
    fn check(folder: &Folder, from: Option<String>) -> Result<Verification, AuditError> {
        let Snapshot { head, mut days } = snapshot(folder)?;
        let names = days.iter().map(|day| day.name.clone()).collect();
        let mut chain = Some(Link { next: 1, stated: BEGINNING, computed: BEGINNING });
        if let Some(from) = from {
            // The line that the head names is looked at whatever is asked for.
            let head_day = match &head {
                Found::Head(head) => head.after.as_ref().unwrap_or(&head.file),
                _ => &from,
            };
            days.retain(|day| day.name >= from || day.name >= *head_day);
            if days.first().is_some_and(|day| !begins_with_first(day)) {
                chain = None;
            }
        }
        let mut checker = Self {
            found: Verification::default(),
            head,
            days: names,
            chain,
            last: None,
            unreadable: 0,
            unexplained: None,
            sealed: None,
        };
        for day in days {
            checker.read_day(folder, day)?;
        }
        checker.compare_with_head();
        Ok(checker.found)
    }

    fn read_day(&mut self, folder: &Folder, day: Day) -> Result<(), AuditError> {
        let Day { name, file, length } = day;
        let path = folder.file(&name);
        let mut lines = Lines::read(file, &path, 0, length)
            .map_err(|cause| AuditError::Read { path: path.clone(), cause })?;
        self.found.files += 1;
        let (mut number, mut end) = (0, 0);
        while let Some(line) = lines.next()? {
            number += 1;
            let begin = end;
            end += line.size();
            let place = Place { file: &name, line: Some(number) };
            if !line.complete {
                self.unfinished(place, &line, begin);
            } else if let Some((entry, text, hash)) = line.text().and_then(line::parse) {
                self.found.lines += 1;
                self.readable(place, &entry, text, hash, end);
            } else {
                self.explain_nothing(&name);
                self.unreadable += 1;
                let sha256 = line.text().map(sha256);
                self.unexplained = Some(Unreadable { line: number, length: line.length, sha256 });
            }
        }
        self.explain_nothing(&name);
        Ok(())
    }

    /// A line without an end: the beginning of one that nobody finished, if it lies behind all that
    /// is sealed.
    fn unfinished(&mut self, place: Place<'_>, line: &Line<'_>, begin: u64) {
        self.explain_nothing(place.file);
        match &self.head {
            Found::Head(head) if head.file == place.file && begin >= head.length => {
                self.found.notice(place, Notice::TornEnd { bytes: line.length });
            }
            _ => self.found.find(place, Problem::EndsInALine),
        }
    }

    /// An unreadable line that no marker explained.
    fn explain_nothing(&mut self, file: &str) {
        if let Some(Unreadable { line, .. }) = self.unexplained.take() {
            self.found.find(Place { file, line: Some(line) }, Problem::NotALine);
        }
    }

    fn readable(
        &mut self,
        place: Place<'_>,
        entry: &AuditEntry,
        text: &[u8],
        hash: Hash,
        end: u64,
    ) {
        self.read_marker(place, entry);
        let gone = entry.follows.as_ref().filter(|follows| !self.days.contains(&follows.file));
        let seq = entry.seq;
        let Some(link) = self.chain else {
            // Where the beginning is not asked for, the first line is taken at its word.
            self.go_on(place, seq, hash, hash, end);
            return;
        };
        let follows = |before: Hash| Hash::of(before, text) == hash;
        let in_chain = follows(link.stated) || follows(link.computed);
        let next_to_last = self.last.is_some_and(follows);
        // A line that follows the one before it is in its place, even if that one was not.
        if !(seq == link.next && in_chain || next_to_last && seq != link.next) {
            let covered = self.unreadable > 0 && seq <= link.next.saturating_add(self.unreadable);
            let problem = match gone {
                Some(gone) => Some(Problem::LostFile { name: gone.file.clone() }),
                None if seq == link.next => Some(Problem::Changed),
                None if seq > link.next && covered => None,
                None if seq > link.next => Some(Problem::Lost { first: link.next, last: seq - 1 }),
                None if self.last == Some(hash) => Some(Problem::Twice),
                None => Some(Problem::OutOfPlace { seq, expected: link.next }),
            };
            if let Some(problem) = problem {
                self.found.find(place, problem);
            }
            if seq < link.next {
                self.last = Some(hash);
                return;
            }
        }
        self.go_on(place, seq, hash, Hash::of(link.stated, text), end);
    }

    /// Takes a line as the last of the chain.
    fn go_on(&mut self, place: Place<'_>, seq: u64, stated: Hash, computed: Hash, end: u64) {
        self.chain = Some(Link { next: seq.saturating_add(1), stated, computed });
        self.last = Some(stated);
        self.unreadable = 0;
        if matches!(&self.head, Found::Head(head) if head.seq == seq) {
            let hashes = [stated, computed];
            self.sealed = Some(Sealed { file: place.file.to_owned(), end, hashes });
        }
    }

    /// What the log itself says of what it met.
    fn read_marker(&mut self, place: Place<'_>, entry: &AuditEntry) {
        if let Record::Torn { bytes, sha256 } = &entry.record {
            let told =
                |torn: &Unreadable| torn.length == *bytes && torn.sha256.as_ref() == Some(sha256);
            match self.unexplained.take_if(|torn| told(torn)) {
                Some(torn) => {
                    self.unreadable -= 1;
                    let place = Place { line: Some(torn.line), ..place };
                    self.found.notice(place, Notice::Torn { bytes: *bytes });
                }
                None => self.found.find(place, Problem::TornChanged),
            }
        }
        self.explain_nothing(place.file);
        match &entry.record {
            Record::Damaged { what } => {
                self.found.find(place, Problem::Damaged { what: what.clone() });
            }
            Record::Unrecorded { count, why } => {
                let (count, why) = (*count, why.clone());
                self.found.notice(place, Notice::Unrecorded { count, why });
            }
            _ => {}
        }
    }

    fn compare_with_head(&mut self) {
        let last = self.chain.map_or(0, |link| link.next - 1);
        let problem = match &self.head {
            Found::Nothing if self.found.lines == 0 && self.found.is_intact() => None,
            Found::Nothing => Some(Problem::HeadGone),
            Found::Unreadable => Some(Problem::HeadUnreadable),
            Found::Head(head) if head.seq > last => {
                Some(Problem::CutOff { last, sealed: head.seq })
            }
            Found::Head(head) if !self.fits(head) => Some(Problem::HeadChanged { seq: head.seq }),
            Found::Head(head) => match last - head.seq {
                0 => None,
                1 => {
                    self.found.notice(Place::HEAD, Notice::Unsealed);
                    None
                }
                lines => Some(Problem::HeadBehind { seq: head.seq, lines }),
            },
        };
        if let Some(problem) = problem {
            self.found.find(Place::HEAD, problem);
        }
    }

    /// Whether the head tells the truth of the line that it names.
    fn fits(&self, head: &Head) -> bool {
        let Some(sealed) = &self.sealed else {
            return head.seq == 0 && head.length == 0 && head.hash == BEGINNING;
        };
        // Where lines are missing or changed, lengths differ, and that has been said.
        let place_counts = self.found.is_intact();
        let in_place = match head.length {
            0 => head.after.as_ref() == Some(&sealed.file),
            length => head.after.is_none() && (&head.file, length) == (&sealed.file, sealed.end),
        };
        sealed.hashes.contains(&head.hash) && (in_place || !place_counts)
    }
}

/// Whether a day's file begins with the first line of all.
fn begins_with_first(day: &Day) -> bool {
    let mut begin = [0; 9];
    super::folder::read_at(&day.file, &mut begin, 0).is_ok() && begin == *br#"{"seq":1,"#
}
