//! One live process, with what the session knows about it.

use crate::audit::{Ended, Record};
use crate::report::Report;
use crate::session::{Services, Working};
use sandgate_process::{LiveEnd, OutputSink, UnifiedExecProcess};
use sandgate_protocol::{CallId, Event, OutputStream, ProcessWoke, ReturnReason};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// A live process of a session.
#[derive(Debug)]
pub(crate) struct LiveEntry {
    /// The process.
    pub(crate) process: UnifiedExecProcess,
    /// Its number among all that this program has started. No other ever has the same.
    pub(crate) instance: u64,
    /// The call that started it, which its events are known by.
    pub(crate) call_id: CallId,
    /// Its command.
    pub(crate) command: Vec<String>,
    /// Where it was started.
    pub(crate) cwd: PathBuf,
    /// Whether what is typed to it is confined.
    pub(crate) whereabouts: Whereabouts,
    /// Why it was to run without the sandbox.
    pub(crate) justification: Option<String>,
    /// Whether it was asked to stay.
    pub(crate) kept: Kept,
    /// Whether it may change the workspace.
    pub(crate) writes: Writes,
    /// One call at a time talks to it.
    pub(crate) calls: tokio::sync::Mutex<()>,
    /// What was typed of a line that is not complete.
    typed: Mutex<String>,
    /// How many prompts there were when something was last typed.
    typed_at: AtomicU64,
    /// How much of what was refused to it has been told.
    told_denials: AtomicUsize,
    told_more: AtomicU64,
    /// Counts the calls, so that one can tell that another came after it.
    call: AtomicU64,
}

/// Whether a process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// It is in a cage, ours or another's: what is typed to it can do no more than it can.
    Confined,
    /// It is not, so everything that is typed to it is judged.
    Outside,
}

/// Whether a process may change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    /// For all that is known.
    Maybe,
    /// Its sandbox keeps it from that, or it is known to do no such thing.
    Never,
}

/// Whether a process was asked to live on when everything else has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It was.
    Yes,
    /// It goes with its session.
    No,
}

/// The longest beginning of a line that is remembered.
const MAX_TYPED_BYTES: usize = 64 * 1024;

impl LiveEntry {
    pub(crate) fn new(
        process: UnifiedExecProcess,
        call_id: CallId,
        command: Vec<String>,
        cwd: PathBuf,
        whereabouts: Whereabouts,
        justification: Option<String>,
        kept: Kept,
    ) -> Self {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        Self {
            process,
            instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
            call_id,
            command,
            cwd,
            whereabouts,
            justification,
            kept,
            writes: Writes::Maybe,
            calls: tokio::sync::Mutex::default(),
            typed: Mutex::default(),
            typed_at: AtomicU64::new(0),
            told_denials: AtomicUsize::new(0),
            told_more: AtomicU64::new(0),
            call: AtomicU64::new(0),
        }
    }

    /// The same, of which this is known.
    pub(crate) fn that(self, writes: Writes) -> Self {
        Self { writes, ..self }
    }

    /// A call begins; its number.
    pub(crate) fn begin_call(&self) -> u64 {
        self.call.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether no call has begun since the one of this number.
    pub(crate) fn is_last_call(&self, number: u64) -> bool {
        self.call.load(Ordering::SeqCst) == number
    }

    /// Whether it is a shell that reads at a prompt at which nothing has been typed yet.
    pub(crate) fn is_at_fresh_prompt(&self) -> bool {
        let typed_at = self.typed_at.load(Ordering::SeqCst);
        self.typed().is_empty() && self.process.at_prompt().is_some_and(|prompt| prompt > typed_at)
    }

    /// What the process will have read of its line when this has been typed too.
    pub(crate) fn line_with(&self, input: &str) -> String {
        format!("{}{input}", self.typed())
    }

    /// This was typed.
    pub(crate) fn was_typed(&self, input: &str) {
        self.typed_at.store(self.process.prompts(), Ordering::SeqCst);
        let mut typed = self.typed();
        match input.rsplit_once(['\n', '\r']) {
            Some((_, rest)) => rest.clone_into(&mut typed),
            None => typed.push_str(input),
        }
        // Nobody types such a line by hand; what is judged then is what is known of it.
        let excess = typed.len().saturating_sub(MAX_TYPED_BYTES);
        let from = typed.ceil_char_boundary(excess);
        typed.drain(..from);
    }

    /// What was refused to it since this was last asked, in words.
    pub(crate) fn new_denials(&self) -> Vec<String> {
        let denials = self.process.denials();
        let told = self.told_denials.swap(denials.evidence.len(), Ordering::SeqCst);
        let told_more = self.told_more.swap(denials.more, Ordering::SeqCst);
        let new = denials.evidence.iter().skip(told);
        let mut words: Vec<String> =
            new.map(|denial| sandgate_protocol::visible_line(&denial.to_string())).collect();
        match denials.more.saturating_sub(told_more) {
            0 => {}
            more => words.push(format!("{more} more")),
        }
        words
    }

    /// What was typed of a line that is not complete.
    #[cfg(unix)]
    pub(crate) fn half_typed(&self) -> String {
        self.typed().clone()
    }

    fn typed(&self) -> MutexGuard<'_, String> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells everybody who listens to the session what a live process does, as long as there is a session.
pub(crate) struct LiveObserver {
    pub(crate) report: Report,
    pub(crate) services: Weak<Services>,
    pub(crate) call_id: CallId,
    pub(crate) process_id: String,
    pub(crate) attempt: u32,
    /// Its call is at work until the end has been recorded.
    pub(crate) working: Working,
}

impl OutputSink for LiveObserver {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.report.write(stream, bytes).await
    }
}

impl LiveObserver {
    /// Tells of the end, and records it.
    pub(crate) async fn ended(self, end: LiveEnd) {
        let Self { report, services, call_id, process_id, attempt, working } = self;
        let exit_code = end.output.exit_code;
        let record = Record::Ended(Ended::of(call_id.clone(), attempt, &end.output));
        report.end(end.output, &end.printed).await;
        let Some(services) = services.upgrade() else { return };
        if let Err(error) = services.record(&record) {
            services.warn(Some(call_id.clone()), error.to_string()).await;
        }
        drop(working);
        let (reason, exit_code) = (ReturnReason::Exited, Some(exit_code));
        let woke = ProcessWoke { call_id, process_id, reason, exit_code };
        services.events.tell(&Event::ProcessWoke(woke)).await;
    }
}
