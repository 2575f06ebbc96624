//! What a call on a live process is answered with.

use super::LiveEntry;
use sandgate_process::{Answered, ModelFormat, RawStream};
use sandgate_protocol::{CodexErr, ScreenReply, UnifiedExecReply};
use std::sync::Arc;

/// In what form, and how much of it, output is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// As it was printed.
    pub(crate) raw: bool,
    /// How much.
    pub(crate) format: ModelFormat,
}

/// Makes the answer.
pub(crate) async fn reply(
    id: &str,
    entry: &Arc<LiveEntry>,
    answered: Answered,
    wanted: Wanted,
) -> Result<UnifiedExecReply, CodexErr> {
    let end = entry.process.end();
    let text = match wanted.raw {
        false => wanted.format.excerpt(&answered.printed.text, id),
        true => {
            let range = answered.printed.range.clone();
            let most = wanted.format.max_bytes() as u64;
            let range = range.start..range.end.min(range.start.saturating_add(most));
            // It may be on a disk, which may be slow.
            let process = Arc::clone(entry);
            let read = tokio::task::spawn_blocking(move || process.process.read(range)).await;
            let (_, bytes) = read
                .map_err(std::io::Error::other)
                .flatten()
                .map_err(|error| CodexErr::ToolExecutionFailed(error.to_string()))?;
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
        screen: answered.printed.screen.map(|view| ScreenReply {
            lines: view.lines,
            cursor_row: view.cursor.0,
            cursor_column: view.cursor.1,
        }),
        blocked: entry.new_denials(),
        not_again: None,
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
