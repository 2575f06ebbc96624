//! One live process: its output as it comes, its input, and when to answer.

use super::ScreenView;
use super::Seen;
use super::end::LiveEnd;
use super::keys::CursorKeys;
use super::log::Log;
use super::transcript::{Printed, ScreenWanted, Transcript};
use super::waiting::{Deed, Shown, Verdict, Waits, Watcher};
use crate::broadcast::{Broadcast, OutputReceiver};
use crate::drive::{Finished, OutputSink};
use crate::error::SpawnError;
use crate::handle::{ProcessHandle, start};
use crate::output::{RawStream, SpillPolicy, harmless};
use crate::spawner::{Spawner, Stdin, TerminalSize};
use crate::sys::{Sight, Stdio, pause};
use bytes::Bytes;
use regex::bytes::Regex;
use sandgate_protocol::{Denials, OutputStream, ReturnReason};
use sandgate_sandbox::ExecEnv;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// A process that lives across calls. Dropping it ends the process and everything that it started.
///
/// ```
/// use sandgate_process::{Deed, LiveOptions, OutputSink, Patience, Spawner, UnifiedExecProcess};
/// use sandgate_protocol::ReturnReason;
/// use std::time::Duration;
/// # use sandgate_protocol::OutputStream;
/// # struct Nobody;
/// # impl OutputSink for Nobody {
/// #     async fn write(&mut self, _: OutputStream, _: &[u8]) -> std::io::Result<()> { Ok(()) }
/// # }
/// # use sandgate_protocol::{ExecExpiration, ExecParams, SandboxPermissions};
/// # fn command(words: &[&str]) -> ExecParams {
/// #     ExecParams {
/// #         command: words.iter().map(ToString::to_string).collect(),
/// #         program: words[0].into(),
/// #         cwd: "/".into(),
/// #         env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
/// #         expiration: ExecExpiration::DefaultTimeout,
/// #         sandbox_permissions: SandboxPermissions::UseDefault,
/// #         justification: None,
/// #         arg0: None,
/// #     }
/// # }
/// # use sandgate_policy::Grant;
/// # use sandgate_sandbox::SandboxManager;
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spawner = Spawner::start()?;
/// let grant = Grant::unconfined_by_person(command(&["/bin/cat"]));
/// let env = SandboxManager::new().transform(grant)?;
/// let options = LiveOptions::default();
/// let cat = UnifiedExecProcess::start(&spawner, &env, options, Nobody, |_, _| async {}).await?;
///
/// // On a terminal of its own: what is typed shows, and then what the program makes of it.
/// let moment = cat.moment(Deed::Typing);
/// cat.type_in("meow\n".into(), Duration::from_secs(10)).await;
/// let wanted = regex::bytes::Regex::new("(?s)meow.*meow")?;
/// let limit = Duration::from_secs(10);
/// let cancel = tokio_util::sync::CancellationToken::new();
/// let patience = Patience { limit, pattern: Some(&wanted), cancel: &cancel };
/// let answered = cat.answer(moment, patience).await;
/// assert!(matches!(answered.reason, ReturnReason::Pattern | ReturnReason::WaitingForInput));
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
pub struct UnifiedExecProcess {
    handle: ProcessHandle,
    sight: Sight,
    shared: Arc<Shared>,
    /// The thread that was last known to wait for input, or 0.
    reader: AtomicI32,
    began: Instant,
}

/// How a live process is started.
#[derive(Debug, Clone, Default)]
pub struct LiveOptions {
    /// What it reads from and writes to.
    pub stdio: LiveStdio,
    /// Where what does not fit into memory is kept.
    pub spill: Option<SpillPolicy>,
    /// The nonce of the marks that it prints, if it is a shell that was made to.
    pub marks: Option<String>,
    /// Whether its screen is kept.
    pub screen: ScreenWanted,
}

/// What a live process reads from and writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveStdio {
    /// A terminal of its own.
    Terminal(TerminalSize),
    /// Pipes, with an input that can be written to.
    Pipes,
}

impl Default for LiveStdio {
    fn default() -> Self {
        Self::Terminal(TerminalSize::default())
    }
}

/// How long, and for what, an answer waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// The longest.
    pub limit: Duration,
    /// What is waited for in what is printed, besides all else.
    pub pattern: Option<&'a Regex>,
    /// Ends the waiting, not the process.
    pub cancel: &'a CancellationToken,
}

/// The moment before something is done to a process, to tell what came of it.
pub struct Moment {
    watcher: Watcher,
    /// How many prompts there had been.
    prompts: u64,
    began: Instant,
}

/// Why an answer came, and with what.
#[derive(Debug)]
pub struct Answered {
    /// Why it came just then.
    pub reason: ReturnReason,
    /// What was printed since the answer before.
    pub printed: Printed,
    /// How long it took.
    pub waited: Duration,
    /// What is typed next will not be shown: it asks for a password.
    pub hides_input: bool,
}

/// What a live process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveState {
    /// It works, or nobody knows what it does.
    Running,
    /// It waits for input.
    WaitingForInput,
    /// It has ended, with this code.
    Exited(i32),
}

impl std::fmt::Debug for UnifiedExecProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnifiedExecProcess").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// What the reading side shares with whoever asks.
#[derive(Debug)]
struct Shared {
    transcript: Mutex<Transcript>,
    /// Where the terminal's answers go, if it gives any.
    keyboard: OnceLock<mpsc::Sender<Bytes>>,
    log: Log,
    /// Changes with everything that is printed, and at the end.
    changed: watch::Sender<u64>,
    /// Without what it printed, which is in the log.
    ended: Mutex<Option<LiveEnd>>,
}

impl Shared {
    /// Keeps of a process that has ended what can be asked for, with as little as it takes: no descriptor, and no
    /// memory for what is on the disk.
    async fn put_away(&self) {
        self.log.finish().await;
        if self.log.is_on_disk() {
            self.transcript().set_aside(&self.log.kept());
        }
    }

    /// The text of what no answer has told yet, if it has to be read from the disk. What that fails to give back is
    /// left out, and counted as such.
    async fn unread_aside(self: &Arc<Self>) -> Option<RawStream> {
        let aside = self.transcript().aside()?;
        let (shared, [head, tail]) = (Arc::clone(self), aside.ends());
        let read = move || {
            let bytes = |range| shared.log.read(range).unwrap_or_default().1;
            (bytes(head), bytes(tail))
        };
        let (head, tail) = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        Some(aside.with(head, tail))
    }

    fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Option<LiveEnd>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnifiedExecProcess {
    /// Starts a process. Everything that it prints is also given to `also`, which holds it up while it
    /// takes its time, and which `on_end` gets back when the process has ended.
    ///
    /// # Errors
    /// When it cannot be started; see [`SpawnError`].
    pub async fn start<S: OutputSink + 'static, E: Future<Output = ()> + Send>(
        spawner: &Spawner,
        env: &ExecEnv,
        options: LiveOptions,
        also: S,
        on_end: impl FnOnce(S, LiveEnd) -> E + Send + 'static,
    ) -> Result<Self, SpawnError> {
        let (stdio, size) = match options.stdio {
            LiveStdio::Terminal(size) => (Stdio::Terminal(size), size),
            LiveStdio::Pipes => (Stdio::Pipes(Stdin::Piped), TerminalSize::default()),
        };
        let launched = spawner.launch(env, stdio).await?;
        let sight = Sight::new(&launched);
        let shared = Arc::new(Shared {
            transcript: Mutex::new(Transcript::new(options.marks.as_deref(), size, options.screen)),
            keyboard: OnceLock::new(),
            log: Log::new(options.spill),
            changed: watch::Sender::new(0),
            ended: Mutex::new(None),
        });
        let sink = Recorder { shared: Arc::clone(&shared), also };
        let on_end = async move |sink: Recorder<S>, finished: Finished| {
            let Recorder { shared, also } = sink;
            shared.transcript().finish();
            let end = LiveEnd::new(finished, shared.log.ends().await);
            *shared.ended() = Some(end.without_output());
            shared.changed.send_modify(|changes| *changes += 1);
            shared.put_away().await;
            on_end(also, end).await;
        };
        let handle = start(launched, Broadcast::new(), sink, |_| {}, on_end);
        if options.screen == ScreenWanted::Always
            && let Some(keyboard) = handle.writer_sender()
        {
            let _ = shared.keyboard.set(keyboard);
        }
        Ok(Self { handle, sight, shared, reader: AtomicI32::new(0), began: Instant::now() })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }

    /// How long it has been there.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// How it ended, once it has and all that it printed has been read, without what that was.
    pub fn end(&self) -> Option<LiveEnd> {
        self.shared.ended().clone()
    }

    /// How it ended, with the beginning and the end of what it printed.
    pub async fn end_with_output(&self) -> Option<LiveEnd> {
        let end = self.end()?;
        Some(end.with_output(self.shared.log.ends().await))
    }

    /// Whether it has ended, and all that it printed has been read.
    pub fn has_ended(&self) -> bool {
        self.shared.ended().is_some()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> LiveEnd {
        let mut changed = self.shared.changed.subscribe();
        loop {
            if let Some(end) = self.end() {
                return end;
            }
            // The sender is in `shared`, which this holds.
            let _ = changed.changed().await;
        }
    }

    /// Tells whoever does not want to keep the process when something was printed, or it has ended.
    pub fn changes(&self) -> LiveChanges {
        LiveChanges(self.shared.changed.subscribe())
    }

    /// What was refused to it until now.
    pub fn denials(&self) -> Denials {
        self.handle.denials()
    }

    /// A listener who hears what it prints from now on.
    pub fn output_receiver(&self) -> OutputReceiver {
        self.handle.output_receiver()
    }

    /// Ends it and everything that it started.
    pub fn terminate(&self) {
        self.handle.terminate();
    }

    /// Sends a signal to what runs in the foreground of its terminal, or to its process group.
    pub fn signal(&self, signal: i32) {
        if !self.sight.signal_foreground(signal) {
            self.handle.signal(signal);
        }
    }

    /// What it does at this moment.
    pub fn state(&self) -> LiveState {
        if let Some(end) = &*self.shared.ended() {
            return LiveState::Exited(end.output.exit_code);
        }
        match self.sight.look() {
            Seen::Waiting(_) => LiveState::WaitingForInput,
            Seen::Working | Seen::Hidden => LiveState::Running,
        }
    }

    /// The last line that it printed that is not empty, as a person would have read it.
    pub fn last_line(&self) -> String {
        const LOOKED_AT: u64 = 4096;
        let end = self.kept().end;
        let read = self.read(end.saturating_sub(LOOKED_AT)..end);
        let text = read.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned());
        let text = harmless(&text.unwrap_or_default()).into_owned();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }

    /// What is on the screen that it has borrowed to draw on, if it has.
    pub fn borrowed_screen(&self) -> Option<ScreenView> {
        self.shared.transcript().borrowed_screen()
    }

    /// Changes the size of its terminal.
    ///
    /// # Errors
    /// When it has no terminal, or the system refuses.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        self.handle.resize(size)?;
        self.shared.transcript().resize(size);
        Ok(())
    }

    /// Whether it is a shell that shows its prompt and reads it: then the number of that prompt. The shell
    /// says so by its marks, which programs could print too, and the kernel must say the same: the shell
    /// itself reads the terminal, and nothing that was typed before is left for it.
    pub fn at_prompt(&self) -> Option<u64> {
        let number = {
            let transcript = self.shared.transcript();
            transcript.at_prompt().then(|| transcript.prompts())
        };
        let reads = self.sight.look_at_root().is_some() && !self.sight.has_unread_input();
        number.filter(|_| reads)
    }

    /// Whether it is a shell that shows its prompt and does not read it yet.
    pub fn is_about_to_read(&self) -> bool {
        let at_prompt = self.shared.transcript().at_prompt();
        at_prompt && self.sight.look_at_root().is_none()
    }

    /// How many prompts it has shown, if it is a shell that tells.
    pub fn prompts(&self) -> u64 {
        self.shared.transcript().prompts()
    }

    /// Where it is, if the system tells.
    pub fn current_dir(&self) -> Option<PathBuf> {
        self.sight.current_dir()
    }

    /// Whether it reads a line at its terminal that is not shown, such as a password.
    pub fn hides_input(&self) -> bool {
        self.sight.hides_input()
    }

    /// What arrow keys send to it.
    pub fn cursor_keys(&self) -> CursorKeys {
        match self.shared.transcript().wants_application_cursor_keys() {
            true => CursorKeys::Application,
            false => CursorKeys::Normal,
        }
    }

    /// Ends its input.
    pub async fn close_stdin(&self) {
        self.handle.close_stdin().await;
    }

    /// The place of what can still be read of all that it printed.
    pub fn kept(&self) -> Range<u64> {
        self.shared.log.kept()
    }

    /// Reads what it printed, as it was printed. Blocks while it reads the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read(&self, range: Range<u64>) -> io::Result<(u64, Vec<u8>)> {
        self.shared.log.read(range)
    }

    /// Remembers how things are, before something is done to it.
    pub fn moment(&self, deed: Deed) -> Moment {
        let began = Instant::now();
        let (prompts, printed) = {
            let transcript = self.shared.transcript();
            (transcript.prompts(), transcript.printed())
        };
        let watcher = Watcher::before(deed, &self.sight, printed, self.reader(), began);
        Moment { watcher, prompts, began }
    }

    /// The thread that was last known to wait for input.
    fn reader(&self) -> Option<i32> {
        Some(self.reader.load(Ordering::Relaxed)).filter(|&thread| thread != 0)
    }

    /// Remembers nothing: for a process that nothing is done to.
    pub fn now(&self) -> Moment {
        let began = Instant::now();
        Moment { watcher: Watcher::new(self.reader(), began), prompts: 0, began }
    }

    /// Types something, and waits until the process's terminal or pipe has taken it, for at most `limit`.
    /// Whether it has.
    pub async fn type_in(&self, input: Bytes, limit: Duration) -> bool {
        self.handle.write(input, limit).await
    }

    /// Waits until there is something to answer with.
    pub async fn answer(&self, moment: Moment, patience: Patience<'_>) -> Answered {
        let began = moment.began;
        let (reason, hides_input) = match self.wait(moment, patience).await {
            Ok(waits) => (ReturnReason::WaitingForInput, waits.hidden),
            Err(reason) => (reason, false),
        };
        let aside = self.shared.unread_aside().await;
        let mut printed = self.shared.transcript().take();
        printed.text = aside.unwrap_or(printed.text);
        let waited = began.elapsed();
        Answered { reason, printed, waited, hides_input }
    }

    /// Waits until what was done to it has had its effect, and takes nothing of what it printed.
    pub async fn settle(&self, moment: Moment, patience: Patience<'_>) {
        let _ = self.wait(moment, patience).await;
    }

    async fn wait(&self, moment: Moment, patience: Patience<'_>) -> Result<Waits, ReturnReason> {
        let Moment { mut watcher, prompts, began } = moment;
        let deadline = tokio::time::Instant::from_std(began + patience.limit);
        let mut changed = self.shared.changed.subscribe();
        let mut next_look = Duration::ZERO;
        let mut search = Search::default();
        loop {
            // First the end: what comes after it is nothing.
            if self.shared.ended().is_some() {
                return Err(ReturnReason::Exited);
            }
            if let Some(pattern) = patience.pattern
                && search.finds(pattern, self)
            {
                return Err(ReturnReason::Pattern);
            }
            tokio::select! {
                biased;
                () = patience.cancel.cancelled() => return Err(ReturnReason::Cancelled),
                // Before the output: a process that prints without end must not hold up the answer.
                () = tokio::time::sleep_until(deadline) => return Err(ReturnReason::YieldElapsed),
                _ = changed.changed() => next_look = watcher.printed(Instant::now()),
                () = pause(next_look) => {
                    let shown = {
                        let transcript = self.shared.transcript();
                        let is_new = transcript.prompts() > prompts;
                        Shown {
                            printed: transcript.printed(),
                            prompted: is_new && transcript.at_prompt(),
                            is_within_a_line: transcript.is_within_a_line(),
                        }
                    };
                    match watcher.look(&self.sight, shown, Instant::now()) {
                        Verdict::Waits(waits) => {
                            self.reader.store(waits.thread.unwrap_or(0), Ordering::Relaxed);
                            return Ok(waits);
                        }
                        Verdict::Quiet => return Err(ReturnReason::Quiet),
                        Verdict::LookAgain(after) => next_look = after,
                    }
                }
            }
        }
    }
}

/// Tells when something was printed. Keeps nothing alive.
#[derive(Debug)]
pub struct LiveChanges(watch::Receiver<u64>);

impl LiveChanges {
    /// Waits for the next change; false when there will be none.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Looks for a pattern in what no answer has told yet: what is new of it, and a little of what was there
/// before.
#[derive(Debug, Default)]
pub struct Search {
    printed: u64,
}

impl Search {
    /// A match that is longer than this, and comes in pieces, may not be found.
    const OVERLAP: u64 = 4096;

    /// Whether the process has printed it since the last answer, in what was not looked at before.
    pub fn finds(&mut self, pattern: &Regex, process: &UnifiedExecProcess) -> bool {
        let transcript = process.shared.transcript();
        let printed = transcript.printed();
        if printed == self.printed {
            return false;
        }
        let new = printed - self.printed + Self::OVERLAP;
        self.printed = printed;
        if let Some(aside) = transcript.aside() {
            drop(transcript);
            // It was written a moment ago, and is looked at once more because the process has ended.
            let ends = aside.ends().map(|end| end.start.max(printed.saturating_sub(new))..end.end);
            return ends
                .into_iter()
                .any(|end| process.read(end).is_ok_and(|(_, bytes)| pattern.is_match(&bytes)));
        }
        // All that is held would be copied again and again for a process that prints much.
        let last = transcript.unread().last(usize::try_from(new).unwrap_or(usize::MAX));
        pattern.is_match(&last)
    }
}

/// Takes what the process prints.
struct Recorder<S> {
    shared: Arc<Shared>,
    also: S,
}

impl<S: OutputSink> OutputSink for Recorder<S> {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        let answers = self.shared.transcript().push(bytes);
        if let (false, Some(keyboard)) = (answers.is_empty(), self.shared.keyboard.get()) {
            // A program that asks and does not read has no use for the answer.
            let _ = keyboard.try_send(answers.into());
        }
        self.shared.changed.send_modify(|changes| *changes += 1);
        self.shared.log.push(bytes).await;
        self.also.write(stream, bytes).await
    }
}
