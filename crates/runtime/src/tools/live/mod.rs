//! The tools for processes that live across calls.

mod exec_command;
#[cfg(unix)]
mod kept;
mod launch;
mod processes;
mod read_output;
mod typed;
mod write_stdin;

pub(super) use exec_command::ExecCommandHandler;
#[cfg(unix)]
pub(crate) use launch::{Launch, Launched, Manner};
pub(crate) use processes::process_infos;
pub(super) use processes::{KillProcessHandler, ListProcessesHandler};
pub(super) use read_output::ReadOutputHandler;
pub(super) use write_stdin::WriteStdinHandler;
#[cfg(unix)]
pub(crate) use write_stdin::type_unjudged;

use crate::audit::{DecidedBy, Decision, DecisionKind, Record};
use crate::orchestrator::ToolCtx;
use crate::unified_exec::Wanted;
use regex::bytes::{Regex, RegexBuilder};
use sandgate_process::{ModelFormat, TerminalSize};
use sandgate_protocol::{CodexErr, TerminalSizeParams, ToolOutput, UnifiedExecReply};
use std::time::Duration;

/// How long a call waits for an answer unless it says otherwise, and within which limits it may.
const YIELD: Duration = Duration::from_millis(10_000);
const SHORTEST_YIELD: Duration = Duration::from_millis(250);
const LONGEST_YIELD: Duration = Duration::from_millis(30_000);

/// The longest pattern, and the largest that it may become.
const MAX_PATTERN_BYTES: usize = 4096;
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// The longest side of a terminal.
const MAX_SIDE: u16 = 500;

/// Records a call that nobody has to be asked about: what it is for, and that it may be made.
fn allow(ctx: &ToolCtx<'_>, words: &[String]) -> Result<(), CodexErr> {
    ctx.record(&ctx.asked(named(ctx, words)))?;
    let (call_id, decision, by) = (ctx.call_id.clone(), DecisionKind::Allowed, DecidedBy::Policy);
    ctx.record(&Record::Decided(Decision { call_id, decision, by, attempt: 1, feedback: None }))
}

/// The words of a call behind the name of its tool: they are no command.
fn named(ctx: &ToolCtx<'_>, words: &[String]) -> Vec<String> {
    std::iter::once(ctx.tool_name.to_owned()).chain(words.iter().cloned()).collect()
}

fn invalid(tool: &str, reason: impl Into<String>) -> CodexErr {
    CodexErr::InvalidArguments { tool: tool.to_owned(), reason: reason.into() }
}

/// The time that was asked for, within its limits.
fn yield_time(asked_ms: Option<u64>) -> Duration {
    asked_ms.map_or(YIELD, Duration::from_millis).clamp(SHORTEST_YIELD, LONGEST_YIELD)
}

/// A pattern of a call.
fn pattern(tool: &str, name: &str, text: Option<&str>) -> Result<Option<Regex>, CodexErr> {
    let Some(text) = text else { return Ok(None) };
    if text.len() > MAX_PATTERN_BYTES {
        return Err(invalid(tool, format!("{name} is longer than {MAX_PATTERN_BYTES} bytes")));
    }
    let built = RegexBuilder::new(text).multi_line(true).size_limit(MAX_COMPILED_BYTES).build();
    built.map(Some).map_err(|error| invalid(tool, format!("{name} is no pattern: {error}")))
}

/// A size of a call.
fn size(tool: &str, asked: TerminalSizeParams) -> Result<TerminalSize, CodexErr> {
    let TerminalSizeParams { rows, columns } = asked;
    match [rows, columns].iter().all(|side| (1..=MAX_SIDE).contains(side)) {
        true => Ok(TerminalSize { rows, columns }),
        false => Err(invalid(tool, format!("a terminal has 1 to {MAX_SIDE} rows and columns"))),
    }
}

/// The form of output that was asked for.
fn wanted(raw: Option<bool>, tokens: Option<usize>) -> Wanted {
    let format = ModelFormat::new(tokens.unwrap_or(ModelFormat::MAX_TOKENS).min(MAX_TOKENS));
    Wanted { raw: raw.unwrap_or(false), format }
}

/// More than this no model reads at once.
const MAX_TOKENS: usize = 100_000;

/// An answer, as a model reads it.
fn output(reply: &UnifiedExecReply) -> ToolOutput {
    let success = reply.exit_code.is_none_or(|code| code == 0);
    match serde_json::to_string(reply) {
        Ok(text) => ToolOutput::text(text, success),
        // Text, numbers and lists of them can always be written.
        Err(error) => ToolOutput::text(error.to_string(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_within_its_limits() {
        let ms = Duration::from_millis;
        assert_eq!(yield_time(None), ms(10_000));
        for (asked, waits) in [(0, 250), (249, 250), (2500, 2500), (u64::MAX, 30_000)] {
            assert_eq!(yield_time(Some(asked)), ms(waits));
        }
    }
}
