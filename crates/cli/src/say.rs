//! Says notes on standard error, in a way that holds nobody up.
//!
//! A terminal that is held, or a pipe that nobody reads, blocks whoever writes to it. A program that works for one
//! person in front of it may wait for them; one that serves others may not. From [`beside`] on a thread does the
//! writing, fed by a short queue. What does not fit in there is not said, and how much that was is.

use crate::notes;
use crate::writer::Stream;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How much may wait, in bytes: a burst of what `SANDGATE_LOG` asks for fits.
const QUEUED_BYTES: usize = 1 << 20;

/// How long a reader is waited for at the end.
const PATIENCE: Duration = Duration::from_millis(250);

static BOARD: OnceLock<Arc<Board>> = OnceLock::new();

/// Says a note. Nothing depends on it.
pub(crate) fn say(note: &[u8]) {
    match BOARD.get() {
        Some(board) => board.put(note),
        None => {
            let _ = io::stderr().write_all(note);
        }
    }
}

/// What says whatever is written to it, a note at a time.
pub(crate) struct Said;

impl io::Write for Said {
    fn write(&mut self, note: &[u8]) -> io::Result<usize> {
        say(note);
        Ok(note.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets a thread say everything from now on.
///
/// # Errors
/// When the system makes no thread.
pub(crate) fn beside() -> io::Result<()> {
    let stderr = Stream::stderr()?;
    let board = BOARD.get_or_init(Arc::default);
    let board = Arc::clone(board);
    let work = move || {
        board.work(|note| {
            // Nobody can be told that nobody can be told anything.
            let _ = stderr.write_all(note);
        });
    };
    std::thread::Builder::new().name("notes".to_owned()).spawn(work).map(drop)
}

/// Waits until everything was said, or for as long as the end of a program may take for it.
pub(crate) fn finish() {
    if let Some(board) = BOARD.get() {
        board.finish(PATIENCE);
    }
}

/// What is to be said.
#[derive(Default)]
struct Board {
    notes: Mutex<Notes>,
    changed: Condvar,
}

#[derive(Default)]
struct Notes {
    waiting: VecDeque<Vec<u8>>,
    /// How long they are together.
    bytes: usize,
    /// How many there was no room for since somebody was told so.
    lost: u64,
    /// Whether one is being written.
    writing: bool,
}

impl Board {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, note: &[u8]) {
        let mut notes = self.notes();
        if notes.lost > 0 || notes.bytes + note.len() > QUEUED_BYTES {
            notes.lost += 1;
        } else {
            notes.bytes += note.len();
            notes.waiting.push_back(note.to_owned());
        }
        self.changed.notify_all();
    }

    /// Writes what comes, for good.
    fn work(&self, write: impl Fn(&[u8])) {
        loop {
            let mut notes = self.notes();
            let note = loop {
                if let Some(note) = notes.next() {
                    break note;
                }
                notes = self.changed.wait(notes).unwrap_or_else(PoisonError::into_inner);
            };
            notes.writing = true;
            drop(notes);
            write(&note);
            self.notes().writing = false;
            self.changed.notify_all();
        }
    }

    fn finish(&self, patience: Duration) {
        let is_busy =
            |notes: &mut Notes| notes.writing || notes.lost > 0 || !notes.waiting.is_empty();
        // Whether all was said or the time is over, this was all that could be done.
        drop(self.changed.wait_timeout_while(self.notes(), patience, is_busy));
    }
}

impl Notes {
    /// What is to be written next. What was lost came after all that waits.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(note) = self.waiting.pop_front() {
            self.bytes -= note.len();
            return Some(note);
        }
        match std::mem::take(&mut self.lost) {
            0 => None,
            lost => {
                let many = format!("not said, because nobody read what came before: {lost} lines");
                Some(notes::warning(&many))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// spec ERRORS.8: What a program that serves others has to say never holds it up: where nobody reads it, it is
    /// left out, and how much that was is said when somebody reads again.
    #[test]
    fn what_nobody_reads_is_counted() {
        let board = Arc::new(Board::default());
        // Each note is written when it is asked for.
        let (written, reader) = mpsc::sync_channel(0);
        let working = Arc::clone(&board);
        std::thread::spawn(move || working.work(|note| written.send(note.to_owned()).unwrap()));
        let read = || String::from_utf8(reader.recv().unwrap()).unwrap();
        let note = |n: usize| n.to_string().repeat(QUEUED_BYTES / 4);
        (0..9).for_each(|n| board.put(note(n).as_bytes()));
        // One more fits if the thread has taken the first out of the queue by then.
        let mut kept = 0;
        let told = loop {
            let next = read();
            if next != note(kept) {
                break next;
            }
            kept += 1;
        };
        assert!([4, 5].contains(&kept), "{kept}");
        let lost = format!("what came before: {} lines", 9 - kept);
        assert!(told.contains(&lost), "{told}");
        board.put(b"more");
        assert_eq!(read(), "more", "after that all is as it was");
    }
}
