//! What a call on a live process is answered with.

use super::LiveEntry;
use sandgate_process::{Answered, ModelFormat, RawStream};
use sandgate_protocol::{CodexErr, ScreenReply, UnifiedExecReply};

/// In what form, and how much of it, output is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// As it was printed.
    pub(crate) raw: bool,
    /// How much.
    pub(crate) format: ModelFormat,
}

/// Makes the answer. Blocks for a moment where the raw output is on disk.
pub(crate) fn reply(
    id: &str,
    entry: &LiveEntry,
    answered: &Answered,
    wanted: Wanted,
) -> Result<UnifiedExecReply, CodexErr> {
    let end = entry.process.end();
    let text = match wanted.raw {
        false => wanted.format.excerpt(&answered.printed.text, id),
        true => {
            let range = answered.printed.range.clone();
            let most = wanted.format.max_bytes() as u64;
            let range = range.start..range.end.min(range.start.saturating_add(most));
            let read = entry.process.read(range);
            let (_, bytes) =
                read.map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    Ok(UnifiedExecReply {
        output: text,
        process_id: end.is_none().then(|| id.to_owned()),
        exit_code: end.map(|end| end.output.exit_code),
        returned: answered.reason,
        wall_time_seconds: seconds(answered.waited),
        original_bytes: match wanted.raw {
            true => answered.printed.range.end - answered.printed.range.start,
            false => answered.printed.text.total_bytes(),
        },
        exit_status: answered.printed.exit_status,
        hides_input: answered.hides_input,
        screen: answered.printed.screen.as_ref().map(|view| ScreenReply {
            lines: view.lines.clone(),
            cursor_row: view.cursor.0,
            cursor_column: view.cursor.1,
        }),
        blocked: entry.new_denials(),
    })
}

/// Nobody needs to know it better than to a tenth of a millisecond.
fn seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10_000.0
}

/// What a person would have read of some bytes.
pub(crate) fn shown(bytes: Vec<u8>, format: ModelFormat, id: &str) -> String {
    format.excerpt(&RawStream::from(bytes), id)
}
