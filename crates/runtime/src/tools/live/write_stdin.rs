//! `write_stdin`: types something to a live process, and returns what it printed.

use super::typed::{TypedInput, TypingTool};
use super::{allow, invalid, named, output, pattern, size, wanted, yield_time};
use crate::orchestrator::ToolOrchestrator;
use crate::tools::registry::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use crate::unified_exec::{LiveEntry, Wanted, Whereabouts, Writes, reply, wake_when_printed};
use bytes::Bytes;
use regex::bytes::Regex;
use sandgate_process::{Deed, Patience, SIGNAL_NAMES, TerminalSize, keys, signal_number};
use sandgate_protocol::{
    CodexErr, ReturnReason, ToolOutput, UnifiedExecReply, WriteStdinToolCallParams,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// `write_stdin`.
pub(crate) struct WriteStdinHandler;

/// The most that is typed at once.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// How long a process is given to draw itself anew, or to begin to read, before it is typed to.
const READY: Duration = Duration::from_millis(100);

/// Ctrl-C: at a terminal it is no input but a signal, at once.
const INTERRUPT: char = '\x03';

impl ToolHandler for WriteStdinHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<WriteStdinToolCallParams>(
            "write_stdin",
            "Types something to a process that exec_command started, and returns what it \
                          printed when it has ended, waits for input again, or the time is over.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { write(&invocation).await })
    }
}

async fn write(invocation: &ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
    let ctx = &invocation.ctx();
    let params: WriteStdinToolCallParams = invocation.arguments()?;
    let entry = match ctx.services.live.get(&params.process_id) {
        Ok(entry) => entry,
        #[cfg(unix)]
        Err(unknown) => return super::kept::write(params, unknown, ctx).await,
        #[cfg(not(unix))]
        Err(unknown) => return Err(unknown),
    };
    let deeds = Deeds::of(&params);
    let typing = match Typing::new(params, &entry, ctx.tool_name) {
        // The log would have the call in the model's own words otherwise.
        Err(error) if entry.process.hides_input() => {
            ctx.record(&ctx.asked(named(ctx, &deeds.words(Shown::No))))?;
            return Err(error);
        }
        typing => typing?,
    };
    let may_change = typing.does_something() && entry.writes == Writes::Maybe;
    if may_change {
        ctx.turn.changes.look();
    }
    let _alone = entry.calls.lock().await;
    entry.begin_call();
    let shown = if entry.process.hides_input() { Shown::No } else { Shown::Yes };
    let words = deeds.words(shown);
    let reply = if entry.whereabouts == Whereabouts::Confined || typing.input.is_empty() {
        allow(ctx, &words)?;
        if may_change {
            ctx.turn.changes.before_command().await;
        }
        typing.carry_out(&entry, ctx.turn.cancellation()).await?
    } else {
        let request = TypedInput::new(&typing.id, &typing.input, &entry, ctx)?;
        let tool = TypingTool { typing: &typing, entry: &entry, words: named(ctx, &words), shown };
        ToolOrchestrator.run(&tool, &request, ctx).await?.output
    };
    if let (Some(pattern), ReturnReason::YieldElapsed) = (typing.pattern, reply.returned) {
        wake_when_printed(pattern, &typing.id, &entry, ctx.services.me());
    }
    Ok(output(&reply))
}

/// Types what was judged elsewhere, after this beginning of a line, and waits for the answer.
#[cfg(unix)]
pub(crate) async fn type_unjudged(
    entry: &Arc<LiveEntry>,
    params: WriteStdinToolCallParams,
    typed: &str,
    cancel: &CancellationToken,
) -> Result<UnifiedExecReply, CodexErr> {
    let typing = Typing::new(params, entry, "write_stdin")?;
    let _alone = entry.calls.lock().await;
    entry.begin_call();
    if !typing.input.is_empty() && entry.half_typed() != typed {
        let text = "somebody else has typed to it meanwhile, so nothing was typed: try again";
        return Err(CodexErr::ToolExecutionFailed(text.to_owned()));
    }
    typing.carry_out(entry, cancel).await
}

/// What a call does to a process, as it is recorded.
struct Deeds {
    id: String,
    typed: Vec<String>,
    /// How much is typed; a key counts for one.
    bytes: usize,
    others: Vec<String>,
}

/// Whether the terminal shows what is typed. What it does not show is in no record either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Yes,
    No,
}

impl Deeds {
    fn of(params: &WriteStdinToolCallParams) -> Self {
        let input = params.input.iter().filter(|input| !input.is_empty());
        let mut typed: Vec<String> =
            input.flat_map(|text| ["input".into(), text.clone()]).collect();
        if let Some(keys) = params.keys.as_ref().filter(|keys| !keys.is_empty()) {
            typed.push("keys".to_owned());
            typed.extend(keys.iter().cloned());
        }
        let mut others = Vec::new();
        if let Some(signal) = &params.signal {
            others.extend(["signal".to_owned(), signal.clone()]);
        }
        if let Some(size) = &params.resize {
            others.extend(["resize".to_owned(), format!("{}x{}", size.columns, size.rows)]);
        }
        if params.close_stdin == Some(true) {
            others.push("close_stdin".to_owned());
        }
        let bytes = params.input.as_ref().map_or(0, String::len);
        let bytes = bytes + params.keys.as_ref().map_or(0, Vec::len);
        Self { id: params.process_id.clone(), typed, bytes, others }
    }

    fn words(&self, shown: Shown) -> Vec<String> {
        let typed = match shown {
            Shown::No if !self.typed.is_empty() => {
                vec![format!("hidden input, {} bytes", self.bytes)]
            }
            _ => self.typed.clone(),
        };
        [vec![self.id.clone()], typed, self.others.clone()].concat()
    }
}

/// What is to be done to a process.
pub(super) struct Typing {
    id: String,
    input: String,
    close: bool,
    signal: Option<i32>,
    size: Option<TerminalSize>,
    limit: Duration,
    pattern: Option<Regex>,
    wanted: Wanted,
}

impl Typing {
    fn new(
        params: WriteStdinToolCallParams,
        entry: &LiveEntry,
        tool: &str,
    ) -> Result<Self, CodexErr> {
        let mut input = params.input.unwrap_or_default();
        if let Some(names) = &params.keys {
            let pressed = keys(names, entry.process.cursor_keys());
            let pressed = pressed.map_err(|error| invalid(tool, error.to_string()))?;
            input.push_str(&String::from_utf8_lossy(&pressed));
        }
        if input.len() > MAX_INPUT_BYTES {
            return Err(invalid(tool, format!("input is longer than {MAX_INPUT_BYTES} bytes")));
        }
        Ok(Self {
            id: params.process_id,
            input,
            close: params.close_stdin.unwrap_or(false),
            signal: params.signal.map(|name| signal(tool, &name)).transpose()?,
            size: params.resize.map(|asked| size(tool, asked)).transpose()?,
            limit: yield_time(params.yield_time_ms),
            pattern: pattern(tool, "wait_for", params.wait_for.as_deref())?,
            wanted: wanted(params.raw, params.max_output_tokens),
        })
    }

    fn does_something(&self) -> bool {
        !self.input.is_empty() || self.close || self.signal.is_some() || self.size.is_some()
    }

    /// Does it, and waits for the answer.
    pub(super) async fn carry_out(
        &self,
        entry: &Arc<LiveEntry>,
        cancel: &CancellationToken,
    ) -> Result<UnifiedExecReply, CodexErr> {
        let process = &entry.process;
        if self.does_something() && process.end().is_some() {
            let answered = process.answer(process.now(), self.patience(cancel)).await;
            return reply(&self.id, entry, answered, self.wanted).await;
        }
        let ready = Patience { limit: READY, pattern: None, ..self.patience(cancel) };
        if self.input.contains(INTERRUPT) && process.is_about_to_read() {
            // Between its prompt and its reading a shell forgets a signal.
            process.settle(process.now(), ready).await;
        }
        // The end of input is typed too, at a terminal.
        let types = self.close || !self.input.is_empty();
        let mut moment = match (self.does_something(), types) {
            (false, _) => process.now(),
            (true, false) => process.moment(Deed::Telling),
            (true, true) => process.moment(Deed::of_typing(&self.input)),
        };
        if let Some(size) = self.size {
            let resized = process.resize(size);
            resized.map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))?;
            if !self.input.is_empty() {
                // A shell shows its prompt again, which must not pass for the answer to what follows.
                process.settle(moment, ready).await;
                moment = process.moment(Deed::of_typing(&self.input));
            }
        }
        if !self.input.is_empty() {
            // Before it is: a call that is given up half-way must not leave a line that nobody knows of.
            entry.was_typed(&self.input);
            process.type_in(Bytes::copy_from_slice(self.input.as_bytes()), self.limit).await;
        }
        if let Some(signal) = self.signal {
            process.signal(signal);
        }
        if self.close {
            process.close_stdin().await;
        }
        let answered = process.answer(moment, self.patience(cancel)).await;
        reply(&self.id, entry, answered, self.wanted).await
    }

    fn patience<'a>(&'a self, cancel: &'a CancellationToken) -> Patience<'a> {
        Patience { limit: self.limit, pattern: self.pattern.as_ref(), cancel }
    }
}

fn signal(tool: &str, name: &str) -> Result<i32, CodexErr> {
    signal_number(name).ok_or_else(|| invalid(tool, format!("signal is {SIGNAL_NAMES}")))
}
