//! Everything that a process has printed, for whoever wants to read what was left out.
//!
//! A little is in memory. What does not fit goes to a file, in blocks, by a thread for blocking work: a
//! slow disk slows the process down and never the runtime. The file is written in a circle, so that of a
//! server that runs for days the end is kept and not the beginning. When the process has ended all of it is in
//! the file, if there is one, and the file is closed; it is opened again for whoever reads.

use super::log_file::LogFile;
use crate::output::{RawStream, SpillPolicy};
use crate::place::{read_exact_at, write_all_at};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is gathered before it is written. Less than this never touches the disk.
const BLOCK_BYTES: usize = 64 * 1024;

/// A file, unless there is none yet, and where one would be made.
type Destination = (Option<Arc<LogFile>>, SpillPolicy);

/// The log of one process. Copies are the same log.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    policy: Option<SpillPolicy>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<LogFile>>,
    /// How many bytes have left memory, written or not.
    past: u64,
    /// From where on the file holds everything up to `past`.
    since: u64,
    /// What is being written at the moment, if something is.
    leaving: Arc<Vec<u8>>,
    block: Vec<u8>,
    /// Why nothing is written any more.
    trouble: Option<String>,
}

impl Log {
    /// A log that keeps what does not fit into memory where the policy says.
    pub(crate) fn new(policy: Option<SpillPolicy>) -> Self {
        Self { policy, state: Arc::default() }
    }

    /// Appends, and waits for the disk if there is enough to write.
    pub(crate) async fn push(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let full = {
                let mut state = self.state();
                let room = BLOCK_BYTES - state.block.len();
                let (now, later) = bytes.split_at(bytes.len().min(room));
                state.block.extend_from_slice(now);
                bytes = later;
                state.block.len() == BLOCK_BYTES
            };
            if full {
                self.write_block().await;
            }
        }
    }

    /// Nothing more will come: keeps what is kept without a descriptor, and without memory if there is a file.
    pub(crate) async fn finish(&self) {
        let has_file = self.state().file.is_some();
        if has_file {
            self.write_block().await;
        }
        let mut state = self.state();
        state.block.shrink_to_fit();
        if let Some(file) = &state.file {
            file.close();
        }
    }

    /// Whether what is kept is in a file.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.state().file.is_some()
    }

    /// What can still be read, by its places in all that was printed.
    pub(crate) fn kept(&self) -> Range<u64> {
        let state = self.state();
        state.since..state.past + (state.leaving.len() + state.block.len()) as u64
    }

    /// Reads what is kept of a range, with the place of its first byte. Blocks while it reads the disk.
    pub(crate) fn read(&self, range: Range<u64>) -> io::Result<(u64, Vec<u8>)> {
        let (file, past, since, leaving, block) = {
            let state = self.state();
            let leaving = Arc::clone(&state.leaving);
            (state.file.clone(), state.past, state.since, leaving, state.block.clone())
        };
        let end = range.end.min(past + (leaving.len() + block.len()) as u64);
        let start = range.start.max(since).min(end);
        let mut bytes = Vec::new();
        if start < past
            && let Some(file) = file
        {
            let file = file.open()?;
            let stored = start..end.min(past);
            bytes.resize(length(&stored), 0);
            self.circle(&stored, |place, from, to| {
                read_exact_at(&file, &mut bytes[from..to], place)
            })?;
        }
        let mut at = past;
        for piece in [leaving.as_slice(), block.as_slice()] {
            let from = length(&(at..start.max(at))).min(piece.len());
            let to = length(&(at..end.max(at))).min(piece.len());
            bytes.extend_from_slice(piece.get(from..to).unwrap_or_default());
            at += piece.len() as u64;
        }
        // What was written over while it was read is not what it was.
        let lost = length(&(start..self.state().since)).min(bytes.len());
        bytes.drain(..lost);
        Ok((start + lost as u64, bytes))
    }

    /// The beginning and the end of all that was printed; only the end if the beginning is not kept.
    pub(crate) async fn ends(&self) -> RawStream {
        const EACH: u64 = 64 * 1024;
        let log = self.clone();
        let read = move || {
            let kept = log.kept();
            let middle = if kept.start == 0 { EACH.min(kept.end) } else { kept.start };
            // What a disk fails to give back is left out, and counted as such.
            let head = log.read(kept.start..middle).unwrap_or_default().1;
            let tail = log.read(kept.end.saturating_sub(EACH).max(middle)..kept.end);
            (head, tail.unwrap_or_default().1, kept.end)
        };
        match tokio::task::spawn_blocking(read).await {
            Ok((head, tail, total)) => RawStream::of_ends(head, tail, total),
            Err(_) => RawStream::from(Vec::new()),
        }
    }

    /// Calls `each` for the parts of a range as they lie in the file: their place there, and where they
    /// begin and end in the range.
    fn circle(
        &self,
        range: &Range<u64>,
        mut each: impl FnMut(u64, usize, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let limit = self.limit();
        let mut at = range.start;
        while at < range.end {
            let place = at % limit;
            let step = (range.end - at).min(limit - place);
            each(place, length(&(range.start..at)), length(&(range.start..at + step)))?;
            at += step;
        }
        Ok(())
    }

    /// Takes the block to be written: where it belongs, and where to if it can be written at all.
    fn leave(&self) -> (Arc<Vec<u8>>, u64, Option<Destination>) {
        let limit = self.limit();
        let mut state = self.state();
        // Who has filled one block will fill another.
        let next = if state.block.len() == BLOCK_BYTES { BLOCK_BYTES } else { 0 };
        let block = std::mem::replace(&mut state.block, Vec::with_capacity(next));
        state.leaving = Arc::new(block);
        let file = match (&state.trouble, &self.policy) {
            (None, Some(policy)) => Some((state.file.clone(), policy.clone())),
            _ => None,
        };
        if file.is_some() {
            // What it is written over is gone from now on: nobody may take the one for the other.
            let end = state.past + state.leaving.len() as u64;
            state.since = state.since.max(end.saturating_sub(limit));
        }
        (Arc::clone(&state.leaving), state.past, file)
    }

    async fn write_block(&self) {
        let (leaving, at, file) = self.leave();
        let written = match file {
            None => Err(None),
            Some((file, policy)) => {
                let log = self.clone();
                let block = Arc::clone(&leaving);
                let write = move || -> io::Result<Arc<LogFile>> {
                    let file = match file {
                        Some(file) => file,
                        None => Arc::new(LogFile::create(&policy)?),
                    };
                    let open = file.open()?;
                    let range = at..at + block.len() as u64;
                    log.circle(&range, |place, from, to| {
                        write_all_at(&open, &block[from..to], place)
                    })?;
                    Ok(file)
                };
                match tokio::task::spawn_blocking(write).await {
                    Ok(Ok(file)) => Ok(file),
                    Ok(Err(error)) => Err(Some(error.to_string())),
                    Err(error) => Err(Some(error.to_string())),
                }
            }
        };
        let mut state = self.state();
        state.past += leaving.len() as u64;
        state.leaving = Arc::default();
        match written {
            Ok(file) => state.file = Some(file),
            Err(trouble) => {
                state.trouble = state.trouble.take().or(trouble);
                (state.since, state.file) = (state.past, None);
            }
        }
    }

    fn limit(&self) -> u64 {
        self.policy.as_ref().map_or(1, |policy| policy.limit_bytes.max(BLOCK_BYTES as u64))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A length that was in memory once, or is about to be.
fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(from: u64, to: u64) -> Vec<u8> {
        (from..to).map(|n| u8::try_from(n % 251).unwrap()).collect()
    }

    async fn filled(policy: Option<SpillPolicy>, bytes: u64) -> Log {
        let log = Log::new(policy);
        let mut at = 0;
        while at < bytes {
            let step = (bytes - at).min(70_001);
            log.push(&numbered(at, at + step)).await;
            at += step;
        }
        log
    }

    #[tokio::test]
    async fn any_range_reads_back_from_memory_and_disk() {
        let dir = tempfile::tempdir().unwrap();
        let log = filled(Some(SpillPolicy::new(dir.path())), 300_000).await;
        assert_eq!(log.kept(), 0..300_000);
        for range in [0..10, 65_530..65_540, 100_000..300_000, 262_143..262_145, 299_999..400_000] {
            let expected = numbered(range.start, range.end.min(300_000));
            assert_eq!(log.read(range.clone()).unwrap(), (range.start, expected), "{range:?}");
        }
        assert!(log.read(500_000..600_000).unwrap().1.is_empty());
    }

    #[tokio::test]
    async fn of_a_long_log_the_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut policy = SpillPolicy::new(dir.path());
        policy.limit_bytes = 200_000;
        let log = filled(Some(policy), 1_000_000).await;
        let kept = log.kept();
        assert!(kept.end == 1_000_000 && kept.end - kept.start >= 200_000, "{kept:?}");
        let (start, bytes) = log.read(0..2_000_000).unwrap();
        assert_eq!((start, bytes), (kept.start, numbered(kept.start, 1_000_000)));
        let ends = log.ends().await;
        assert_eq!((ends.head().len(), ends.total_bytes()), (0, 1_000_000));
        let shown = ends.to_stream_output(None);
        assert_eq!(shown.total_bytes, 1_000_000);
    }

    #[tokio::test]
    async fn what_is_being_written_over_is_not_read_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut policy = SpillPolicy::new(dir.path());
        policy.limit_bytes = 200_000;
        let log = filled(Some(policy), 500_000).await;
        let before = log.kept();
        let (block, at, file) = log.leave();
        let (Some(file), _) = file.unwrap() else { panic!("nothing was written before") };
        let file = file.open().unwrap();
        let range = at..at + block.len() as u64;
        log.circle(&range, |place, from, to| write_all_at(&file, &block[from..to], place)).unwrap();
        let kept = log.kept();
        assert!(kept.start > before.start && kept.end == before.end, "{before:?}, {kept:?}");
        assert_eq!(log.read(before).unwrap(), (kept.start, numbered(kept.start, kept.end)));
    }

    #[tokio::test]
    async fn of_who_has_ended_all_is_read_from_a_file_that_nobody_has_open() {
        let dir = tempfile::tempdir().unwrap();
        let log = filled(Some(SpillPolicy::new(dir.path())), 300_000).await;
        log.finish().await;
        assert_eq!(log.kept(), 0..300_000);
        let is_open = || log.state().file.as_ref().unwrap().is_open();
        let held = {
            let state = log.state();
            state.block.capacity() + state.leaving.capacity()
        };
        assert_eq!((held, is_open()), (0, false), "all of it is in the file");
        for range in [0..10, 65_530..65_540, 262_143..300_000] {
            let expected = numbered(range.start, range.end);
            assert_eq!(log.read(range.clone()).unwrap(), (range.start, expected), "{range:?}");
        }
        assert!(!is_open());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(log);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn what_little_was_printed_stays_in_memory_and_takes_no_more_than_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let log = filled(Some(SpillPolicy::new(dir.path())), 1_000).await;
        log.push(&numbered(1_000, 1_003)).await;
        log.finish().await;
        assert_eq!(log.read(0..2_000).unwrap(), (0, numbered(0, 1_003)));
        assert!(log.state().block.capacity() < 1_100);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn without_a_disk_the_last_block_is_all_there_is() {
        let log = filled(Some(SpillPolicy::new("/nowhere/at/all")), 150_000).await;
        let (start, bytes) = log.read(0..150_000).unwrap();
        assert_eq!((start, bytes), (131_072, numbered(131_072, 150_000)));
        assert!(log.state().trouble.is_some());
    }
}
