//! A session's live processes, for the front end that holds the session.
//!
//! Whoever has a [`Requester`](super::Requester) talks to them by calls, which are judged. What is here is
//! the person's: to see what they print, to type, to give their terminals a size.

use super::Session;
use crate::tools::process_infos;
use crate::unified_exec::LiveEntry;
use bytes::Bytes;
use sandgate_process::{LiveChanges, TerminalSize};
use sandgate_protocol::{CodexErr, ProcessInfo, TerminalSizeParams};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a process may take to read what was typed.
const TYPING: Duration = Duration::from_secs(2);

/// How long the end of processes is waited for.
const GONE: Duration = Duration::from_secs(5);

/// The largest piece of output that is read at once.
const PIECE_BYTES: u64 = 32 * 1024;

/// One of a session's processes, as long as somebody looks at it.
#[derive(Debug, Clone)]
pub struct LiveProcess(Arc<LiveEntry>);

/// What a process prints, from a place on.
#[derive(Debug)]
pub struct ProcessOutput {
    process: LiveProcess,
    changes: LiveChanges,
    position: u64,
}

impl Session {
    /// Its processes.
    ///
    /// # Errors
    /// When they cannot be looked at.
    pub async fn processes(&self) -> Result<Vec<ProcessInfo>, CodexErr> {
        process_infos(self.services.live.all()).await
    }

    /// Ends all of them, and waits for that a little. When the session goes they go anyway, unless somebody
    /// still looks at one.
    pub async fn end_processes(&self) {
        let all = self.services.live.all();
        all.iter().for_each(|(_, entry)| entry.process.terminate());
        let ended = async {
            for (_, entry) in &all {
                entry.process.ended().await;
            }
        };
        // What the system does not let go of ends when it does.
        let _ = tokio::time::timeout(GONE, ended).await;
    }

    /// One of them.
    pub fn process(&self, id: &str) -> Option<LiveProcess> {
        self.services.live.find(id).map(LiveProcess)
    }
}

impl LiveProcess {
    /// What it prints from this byte on, or from the first that is still kept. A byte that it has not printed was
    /// printed by another process of that name, so that all of this one is new.
    pub fn output(&self, from: u64) -> ProcessOutput {
        let changes = self.0.process.changes();
        let position = if from > self.0.process.kept().end { 0 } else { from };
        ProcessOutput { process: self.clone(), changes, position }
    }

    /// The person types this; nobody judges it. Whether the process has taken it.
    pub async fn type_in(&self, input: Vec<u8>) -> bool {
        self.0.was_typed(&String::from_utf8_lossy(&input));
        self.0.process.type_in(Bytes::from(input), TYPING).await
    }

    /// Gives its terminal another size. One that has no terminal needs none.
    pub fn resize(&self, size: TerminalSizeParams) {
        let within = |side: u16| side.clamp(1, 500);
        let size = TerminalSize { rows: within(size.rows), columns: within(size.columns) };
        let _ = self.0.process.resize(size);
    }

    /// Its exit code, once it has ended.
    pub fn exit_code(&self) -> Option<i32> {
        self.0.process.end().map(|end| end.output.exit_code)
    }
}

impl ProcessOutput {
    /// The next piece and where it begins, which is later than asked for if the rest is no longer kept;
    /// none when the process has ended and all was read. Can be dropped and called again.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            // Asked first: what is kept when it has ended is all there will be.
            let has_ended = self.process.0.process.end().is_some();
            let kept = self.process.0.process.kept();
            let from = self.position.max(kept.start);
            if from < kept.end {
                let (process, to) = (self.process.clone(), kept.end.min(from + PIECE_BYTES));
                let read = move || process.0.process.read(from..to);
                let read = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?;
                let (start, bytes) = read?;
                self.position = start + bytes.len() as u64;
                if !bytes.is_empty() {
                    return Ok(Some((start, bytes)));
                }
            } else if has_ended {
                return Ok(None);
            }
            if !self.changes.next().await && !has_ended {
                return Ok(None);
            }
        }
    }
}
