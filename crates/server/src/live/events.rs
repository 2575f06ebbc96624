//! A conversation's events, in files without names.
//!
//! One task appends them, each as the server-sent event that subscribers are given. A subscriber is a
//! position in the file: it misses nothing and hears nothing twice however often it comes back, and one that
//! does not read holds nobody up. What is kept in memory does not grow with what was said.

use sandgate_protocol::{
    AgentEvent, Event, ExecCommandOutputDelta, ExecCommandOutputOmitted, PatchApplyBegin,
    SessionEvent, SubAgentEvent, TurnDiff, beginning_of_diff, beginnings_of_diffs,
};
use sandgate_runtime::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How much a subscriber reads at once.
const PIECE_BYTES: u64 = 32 * 1024;

/// The size of a line of the index: an event's number, and where it begins.
const ENTRY_BYTES: u64 = 16;

/// How much of its diffs an event has that comes when there is no more room for output, in bytes.
const LATE_DIFF_BYTES: usize = 1024;

/// How much of what a call is asked to do, in the same way: most scripts, and no long patch.
const LATE_INPUT_BYTES: usize = 16 * 1024;

/// The events of one conversation.
#[derive(Debug)]
pub(crate) struct EventFile {
    events: File,
    /// Where each event begins, in the order of their numbers.
    index: File,
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
    /// Beyond so many output is left out, and of diffs and inputs all but their beginnings.
    most_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    entries: u64,
    /// Where the last event of each turn ends.
    turn_ends: Vec<u64>,
    /// Whether output is left out, and that was told.
    omitting: bool,
    /// Whether nothing can be written any more.
    failed: bool,
}

/// How far it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many bytes.
    pub(crate) end: u64,
    /// The number of the last event.
    pub(crate) last: u64,
    /// How many turns have ended.
    pub(crate) turns: usize,
    /// Whether nothing more will come.
    pub(crate) closed: bool,
}

impl EventFile {
    /// An empty one, which takes up room in this directory and has no name there.
    pub(crate) fn in_directory(directory: &Path, most_bytes: u64) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            events: tempfile::tempfile_in(directory)?,
            index: tempfile::tempfile_in(directory)?,
            state: Mutex::default(),
            progress: watch::Sender::new(Progress::default()),
            most_bytes,
        }))
    }

    /// How far it is written, now and later.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        self.progress.receiver_count()
    }

    /// Adds an event. Only one task may do so.
    pub(crate) fn append(&self, event: &SessionEvent) -> io::Result<()> {
        let now = *self.progress.borrow();
        let mut state = self.state();
        if state.failed {
            return Ok(());
        }
        let less;
        let event = match now.end >= self.most_bytes {
            true if state.omitting && is_output(&event.event) => return Ok(()),
            true => match less_of(&event.event) {
                Some(said) => {
                    state.omitting |= matches!(said, Event::ExecCommandOutputOmitted(_));
                    less = SessionEvent { seq: event.seq, event: said };
                    &less
                }
                None => event,
            },
            false => event,
        };
        let frame = frame(event)?;
        let end = now.end + frame.len() as u64;
        let mut entry = [0; ENTRY_BYTES as usize];
        entry[..8].copy_from_slice(&event.seq.to_le_bytes());
        entry[8..].copy_from_slice(&now.end.to_le_bytes());
        let written = write_all_at(&self.events, &frame, now.end)
            .and_then(|()| write_all_at(&self.index, &entry, state.entries * ENTRY_BYTES));
        if let Err(error) = written {
            // A line with a hole in it would be worse than one that ends.
            state.failed = true;
            self.close();
            return Err(error);
        }
        state.entries += 1;
        if ends_turn(&event.event) {
            state.turn_ends.push(end);
        }
        let turns = state.turn_ends.len();
        drop(state);
        self.progress.send_modify(|progress| {
            *progress = Progress { end, last: event.seq, turns, closed: progress.closed };
        });
        Ok(())
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.progress.send_modify(|progress| progress.closed = true);
    }

    /// Everything after the event of this number.
    pub(crate) fn after(self: &Arc<Self>, seq: u64) -> io::Result<Reading> {
        let progress = self.progress();
        // A number that there has not been is of a server, or an opening, before this one: nothing of this was heard.
        let is_of_another = seq > progress.borrow().last;
        let position = self.position_after(if is_of_another { 0 } else { seq })?;
        Ok(Reading { file: Arc::clone(self), progress, position, turn: None })
    }

    /// The events of the turn of this number, the first being 0, which is about to begin.
    pub(crate) fn turn(self: &Arc<Self>, turn: usize) -> Reading {
        let progress = self.progress();
        let position = progress.borrow().end;
        Reading { file: Arc::clone(self), progress, position, turn: Some(turn) }
    }

    /// Where the first event with a greater number begins, or will.
    fn position_after(&self, seq: u64) -> io::Result<u64> {
        let (entries, end) = {
            let state = self.state();
            (state.entries, self.progress.borrow().end)
        };
        let (mut low, mut high) = (0, entries);
        let mut found = end;
        while low < high {
            let middle = low + (high - low) / 2;
            let (number, begins) = self.entry(middle)?;
            if number > seq {
                (high, found) = (middle, begins);
            } else {
                low = middle + 1;
            }
        }
        Ok(found)
    }

    fn entry(&self, at: u64) -> io::Result<(u64, u64)> {
        let (mut number, mut begins) = ([0; 8], [0; 8]);
        read_exact_at(&self.index, &mut number, at * ENTRY_BYTES)?;
        read_exact_at(&self.index, &mut begins, at * ENTRY_BYTES + 8)?;
        Ok((u64::from_le_bytes(number), u64::from_le_bytes(begins)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who reads, and where.
#[derive(Debug)]
pub(crate) struct Reading {
    file: Arc<EventFile>,
    progress: watch::Receiver<Progress>,
    position: u64,
    /// The turn that it ends with, if it does.
    turn: Option<usize>,
}

impl Reading {
    /// The next bytes, which may begin or end within an event; none when there will be no more. Where it
    /// has to wait, all until there were whole events. Can be dropped and called again.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let written = *self.progress.borrow_and_update();
            let turn_end =
                self.turn.and_then(|turn| self.file.state().turn_ends.get(turn).copied());
            let end = turn_end.unwrap_or(written.end);
            if self.position < end {
                let length = (end - self.position).min(PIECE_BYTES);
                let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
                // From memory, as a rule: it was written a moment ago.
                read_exact_at(&self.file.events, &mut bytes, self.position)?;
                self.position += length;
                return Ok(Some(bytes));
            }
            if turn_end.is_some() || written.closed || self.progress.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}

/// An event as subscribers are given it.
fn frame(event: &SessionEvent) -> io::Result<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(rename = "type")]
        name: &'a str,
    }
    // It has no line ends of its own.
    let data = serde_json::to_string(event)?;
    let Named { name } = serde_json::from_str(&data)?;
    Ok(format!("id: {}\nevent: {name}\ndata: {data}\n\n", event.seq).into_bytes())
}

/// Whether it is a piece of output, whoever made the call.
fn is_output(event: &Event) -> bool {
    match event {
        Event::ExecCommandOutputDelta(_) => true,
        Event::SubAgent(below) => is_output(&below.event),
        _ => false,
    }
}

/// What is told of an event where there is no room for the whole of it, if that is less.
fn less_of(event: &Event) -> Option<Event> {
    Some(match event {
        Event::ExecCommandOutputDelta(ExecCommandOutputDelta { call_id, .. }) => {
            let call_id = call_id.clone();
            Event::ExecCommandOutputOmitted(ExecCommandOutputOmitted { call_id, after_deltas: 0 })
        }
        Event::ApplyPatchApprovalRequest(request) => {
            let changes = beginnings_of_diffs(&request.changes, LATE_DIFF_BYTES)?;
            Event::ApplyPatchApprovalRequest(Box::new(request.with_changes(changes)))
        }
        Event::PatchApplyBegin(PatchApplyBegin { call_id, auto_approved, changes }) => {
            let changes = beginnings_of_diffs(changes, LATE_DIFF_BYTES)?;
            let call_id = call_id.clone();
            Event::PatchApplyBegin(PatchApplyBegin {
                call_id,
                auto_approved: *auto_approved,
                changes,
            })
        }
        Event::TurnDiff(TurnDiff { unified_diff, not_shown }) => {
            let unified_diff = beginning_of_diff(unified_diff, LATE_DIFF_BYTES)?;
            Event::TurnDiff(TurnDiff { unified_diff, not_shown: not_shown.clone() })
        }
        Event::Agent(AgentEvent::ToolCallBegin { call_id, tool, input }) => {
            let input = beginning_of_diff(input, LATE_INPUT_BYTES)?;
            let (call_id, tool) = (call_id.clone(), tool.clone());
            Event::Agent(AgentEvent::ToolCallBegin { call_id, tool, input })
        }
        Event::SubAgent(SubAgentEvent { agent, event }) => {
            match less_of(event)? {
                // It is told once, whoever made the call.
                said @ Event::ExecCommandOutputOmitted(_) => said,
                said => {
                    let (agent, event) = (agent.clone(), Box::new(said));
                    Event::SubAgent(SubAgentEvent { agent, event })
                }
            }
        }
        _ => return None,
    })
}

fn ends_turn(event: &Event) -> bool {
    let Event::Agent(event) = event else { return false };
    matches!(event, AgentEvent::TaskComplete { .. } | AgentEvent::TurnAborted { .. })
}
