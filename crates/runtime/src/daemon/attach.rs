//! A person's own terminal on a live process, both directions.
//!
//! What the process prints goes there as it is: it is the person's terminal, and their process. What the
//! person types is judged by nobody, because it is a person who types it.

use super::wire::{Base64, Reply, Request};
use crate::own_socket::{Line, Lines, Writer};
use crate::unified_exec::LiveEntry;
use bytes::Bytes;
use sandgate_process::{OutputReceiver, Received, ScreenView, TerminalSize};
use sandgate_protocol::TerminalSizeParams;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How much of what was printed is looked at for the last screenful.
const MOST_HISTORY: u64 = 64 * 1024;

/// How long a process may take to read what was typed before more is listened to.
const TYPING: Duration = Duration::from_secs(2);

/// How long the record may be behind what listeners hear.
const RECORDED: Duration = Duration::from_secs(2);

/// Serves a terminal until the process ends, or the person goes.
pub(super) async fn serve(
    entry: &Arc<LiveEntry>,
    size: TerminalSizeParams,
    lines: &mut Lines,
    writer: &mut Writer,
) -> io::Result<()> {
    let mut printed = entry.process.output_receiver();
    writer.write_at_leisure(&Reply::Attached {}).await?;
    let history = last_screen(entry, &printed, size.rows).await;
    writer.write_at_leisure(&Reply::Output { bytes: Base64(history) }).await?;
    resize(entry, size, Redraw::Wanted);
    loop {
        tokio::select! {
            received = printed.recv() => match received {
                Some(Received::Chunk(chunk)) => {
                    let bytes = Base64(chunk.bytes.to_vec());
                    writer.write_at_leisure(&Reply::Output { bytes }).await?;
                }
                Some(Received::Missed { bytes }) => writer.write_at_leisure(&Reply::Missed { bytes }).await?,
                None => {
                    let exit_code = entry.process.ended().await.output.exit_code;
                    return writer.write_at_leisure(&Reply::Ended { exit_code }).await;
                }
            },
            line = lines.next() => match line? {
                Some(Line::Read(Request::Input { bytes: Base64(bytes) })) => {
                    entry.was_typed(&String::from_utf8_lossy(&bytes));
                    entry.process.type_in(Bytes::from(bytes), TYPING).await;
                }
                Some(Line::Read(Request::Resize { size })) => resize(entry, size, Redraw::AsItLikes),
                Some(Line::Read(Request::Detach {})) => {
                    return writer.write_at_leisure(&Reply::Detached {}).await;
                }
                None => return Ok(()),
                Some(_) => {
                    let message = "only input, resize and detach make sense here".to_owned();
                    writer.write_at_leisure(&Reply::Error { message }).await?;
                }
            },
        }
    }
}

/// Whether a program that has the whole screen is made to draw it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redraw {
    Wanted,
    AsItLikes,
}

/// Gives the process the size of the person's terminal. One that has no terminal needs none.
fn resize(entry: &LiveEntry, size: TerminalSizeParams, redraw: Redraw) {
    let TerminalSizeParams { rows, columns } = size;
    let within = |side: u16| side.clamp(1, 500);
    let size = TerminalSize { rows: within(rows), columns: within(columns) };
    if redraw == Redraw::Wanted && entry.process.borrowed_screen().is_some() {
        // The same size again would be no news to it.
        let other = TerminalSize { rows: size.rows.max(2) - 1, ..size };
        let _ = entry.process.resize(other);
    }
    let _ = entry.process.resize(size);
}

/// What was on the terminal before the first that the listener will hear: the screen of a program that
/// has all of it, or else the last lines.
async fn last_screen(entry: &Arc<LiveEntry>, printed: &OutputReceiver, rows: u16) -> Vec<u8> {
    let until = printed.position();
    let recorded = async {
        let mut changes = entry.process.changes();
        while entry.process.kept().end < until && entry.process.end().is_none() {
            changes.next().await;
        }
    };
    // Without the last piece it is a screen all the same.
    let _ = tokio::time::timeout(RECORDED, recorded).await;
    if let Some(screen) = entry.process.borrowed_screen() {
        return drawn(&screen);
    }
    let entry = Arc::clone(entry);
    let from = until.saturating_sub(MOST_HISTORY);
    let read = tokio::task::spawn_blocking(move || entry.process.read(from..until)).await;
    let Ok(Ok((_, bytes))) = read else { return Vec::new() };
    last_lines(&bytes, rows).to_vec()
}

/// As many of the last lines as fit on a screen, the last of which may not be complete.
fn last_lines(bytes: &[u8], rows: u16) -> &[u8] {
    let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match ends.map(|(at, _)| at + 1).nth(usize::from(rows.max(1)) - 1) {
        Some(start) => &bytes[start..],
        None => bytes,
    }
}

/// What draws a screen.
fn drawn(screen: &ScreenView) -> Vec<u8> {
    let mut text = String::from("\x1b[?1049h\x1b[2J\x1b[H");
    text.push_str(&screen.lines.join("\r\n"));
    let (row, column) = screen.cursor;
    // Writing to a string does not fail.
    let _ = write!(text, "\x1b[{};{}H", row + 1, column + 1);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_fill_a_screen() {
        assert_eq!(last_lines(b"a\nb\nc\n$ ", 3), b"b\nc\n$ ");
        assert_eq!(last_lines(b"a\nb\n", 24), b"a\nb\n");
        assert_eq!(last_lines(b"", 24), b"");
        assert_eq!(last_lines(b"a\nb", 0), b"b");
    }
}
