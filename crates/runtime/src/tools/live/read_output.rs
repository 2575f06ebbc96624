//! `read_output`: pages through what a process or a command printed, also what an answer left out.

use super::{allow, invalid, pattern, wanted};
use crate::tools::registry::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use crate::tools::{parse, wrong_kind};
use crate::unified_exec::{Wanted, shown};
use regex::bytes::Regex;
use sandgate_protocol::{CodexErr, ReadOutputToolCallParams, ToolOutput, ToolPayload};
use std::fmt::Write as _;
use std::io;
use std::ops::Range;

/// `read_output`.
pub(crate) struct ReadOutputHandler;

/// How many lines, or bytes, are returned unless more are asked for.
const LINES: u64 = 200;
const BYTES: u64 = 8192;

/// How much is read at once.
const CHUNK_BYTES: u64 = 256 * 1024;

/// The longest part of a line that is looked at and returned.
const MAX_LINE_BYTES: usize = 64 * 1024;

impl ToolHandler for ReadOutputHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<ReadOutputToolCallParams>(
            "read_output",
            "Reads what a process printed, or the full output of an earlier command: by \
                          lines, by bytes, or the lines that match a pattern.",
        )
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { read(&invocation).await })
    }
}

async fn read(invocation: &ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
    let tool = invocation.tool_name;
    let ToolPayload::Function { arguments } = invocation.payload else {
        return Err(wrong_kind(tool));
    };
    let params: ReadOutputToolCallParams = parse(tool, arguments)?;
    let pattern = pattern(tool, "pattern", params.pattern.as_deref())?;
    let by_bytes = params.offset.is_some() || params.bytes.is_some();
    let by_lines = params.first_line.is_some() || params.lines.is_some();
    if by_bytes && (by_lines || pattern.is_some()) {
        return Err(invalid(tool, "offset and bytes go neither with lines nor with a pattern"));
    }
    if params.first_line == Some(0) {
        return Err(invalid(tool, "first_line counts from 1, or from the end if it is negative"));
    }
    let words = [Some(params.id.clone()), params.pattern.clone()];
    allow(&invocation.ctx(), &words.into_iter().flatten().collect::<Vec<_>>())?;
    let source = match source(invocation, &params.id) {
        Ok(source) => source,
        #[cfg(unix)]
        Err(unknown) => {
            return super::kept::call(&params.id, arguments, unknown, invocation).await;
        }
        #[cfg(not(unix))]
        Err(unknown) => return Err(unknown),
    };
    let wanted = wanted(params.raw, params.max_output_tokens);
    let id = params.id.clone();
    let work = move || -> io::Result<String> {
        if by_bytes {
            return bytes(&source, &params, wanted);
        }
        lines(&source, &params, pattern.as_ref(), wanted)
    };
    let read = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    match read {
        Ok(text) => Ok(ToolOutput::text(text, true)),
        Err(error) => {
            let text = format!("cannot read the output of {id:?}: {error}");
            Err(CodexErr::ToolExecutionFailed(text))
        }
    }
}

/// Reads a range; gives what is there of it, and where that begins.
type ReadRange = dyn Fn(Range<u64>) -> io::Result<(u64, Vec<u8>)> + Send;

/// Something that was printed.
struct Source {
    kept: Range<u64>,
    read: Box<ReadRange>,
}

/// A process by its id, or a full output by its name.
fn source(invocation: &ToolInvocation<'_>, id: &str) -> Result<Source, CodexErr> {
    let services = invocation.services;
    match services.live.get(id) {
        Ok(entry) => {
            let kept = entry.process.kept();
            Ok(Source { kept, read: Box::new(move |range| entry.process.read(range)) })
        }
        Err(unknown) => {
            let Some(file) = services.runtime.spilled(id) else {
                let gone = services.runtime.spills.why_gone(id);
                return Err(gone.map_or(unknown, CodexErr::ToolExecutionFailed));
            };
            let length = file.metadata().map(|metadata| metadata.len());
            let length =
                length.map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))?;
            let read = move |range: Range<u64>| read_file(&file, range);
            Ok(Source { kept: 0..length, read: Box::new(read) })
        }
    }
}

fn read_file(mut file: &std::fs::File, range: Range<u64>) -> io::Result<(u64, Vec<u8>)> {
    use io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
    Ok((range.start, bytes))
}

fn bytes(source: &Source, params: &ReadOutputToolCallParams, wanted: Wanted) -> io::Result<String> {
    let most = wanted.format.max_bytes() as u64;
    let count = params.bytes.unwrap_or(BYTES).min(most);
    let start = params.offset.unwrap_or(source.kept.start);
    let (start, bytes) = (source.read)(start..start.saturating_add(count))?;
    let end = start + bytes.len() as u64;
    let head = format!("[bytes {start} to {end} of {}]\n", source.kept.end);
    Ok(head + &text(bytes, wanted, &params.id))
}

fn text(bytes: Vec<u8>, wanted: Wanted, id: &str) -> String {
    match wanted.raw {
        true => String::from_utf8_lossy(&bytes).into_owned(),
        false => shown(bytes, wanted.format, id),
    }
}

fn lines(
    source: &Source,
    params: &ReadOutputToolCallParams,
    pattern: Option<&Regex>,
    wanted: Wanted,
) -> io::Result<String> {
    let most = params.lines.unwrap_or(LINES);
    let first = match params.first_line {
        Some(from_end) if from_end < 0 => {
            let mut all = 0u64;
            each_line(source, |_, _| {
                all += 1;
                true
            })?;
            all.saturating_sub(from_end.unsigned_abs()) + 1
        }
        Some(first) => first.unsigned_abs(),
        None => 1,
    };
    let mut text = String::new();
    let (mut taken, mut last, mut full) = (0, 0, false);
    each_line(source, |number, line| {
        if number < first || pattern.is_some_and(|pattern| !pattern.is_match(line)) {
            return true;
        }
        let shown = self::text(line.to_vec(), wanted, &params.id);
        if taken == most || text.len() + shown.len() + 24 > wanted.format.max_bytes() {
            full = true;
            return false;
        }
        let _ = match pattern {
            Some(_) => writeln!(text, "{number}: {}", shown.trim_end_matches('\n')),
            None => write!(text, "{shown}"),
        };
        (taken, last) = (taken + 1, number);
        true
    })?;
    if source.kept.start > 0 {
        let lost = source.kept.start;
        text.insert_str(0, &format!("[the first {lost} bytes are no longer kept]\n"));
    }
    match (taken, full) {
        (0, _) => text.push_str("[nothing there]\n"),
        (_, true) => {
            let _ = writeln!(text, "[more after line {last}]");
        }
        _ => {}
    }
    Ok(text)
}

/// Goes through all lines, with their numbers from 1, until `each` has seen enough. Of a line that is too
/// long only the beginning is shown.
fn each_line(source: &Source, mut each: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
    let mut at = source.kept.start;
    let mut number = 1;
    let mut rest: Vec<u8> = Vec::new();
    while at < source.kept.end {
        // A process that prints meanwhile may have made the log forget what comes next.
        let (start, chunk) = (source.read)(at..(at + CHUNK_BYTES).min(source.kept.end))?;
        at = start + chunk.len() as u64;
        if chunk.is_empty() {
            break;
        }
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(rest.len());
            rest.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                if !rest.ends_with(b"\n") {
                    rest.push(b'\n');
                }
                if !each(number, &rest) {
                    return Ok(());
                }
                number += 1;
                rest.clear();
            }
        }
    }
    if !rest.is_empty() {
        each(number, &rest);
    }
    Ok(())
}
