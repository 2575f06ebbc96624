//! `read_file`: some lines of one file, each with its number.

use super::{MOST_SAID, failed, look_at, off_the_loop, open_regular, resolve, shown};
use crate::tools::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use sandgate_protocol::{CodexErr, ReadFileToolCallParams, ToolOutput};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::Path;

/// `read_file`.
pub(crate) struct ReadFileHandler;

/// How many lines are read unless the call says otherwise.
const DEFAULT_LINES: u64 = 2000;

/// The longest line that is looked at.
const LONGEST: u64 = 1 << 20;

impl ToolHandler for ReadFileHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<ReadFileToolCallParams>(
            "read_file",
            "Reads lines of a file, each with its number.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let params: ReadFileToolCallParams = invocation.arguments()?;
            let path = resolve(&params.path, &invocation)?;
            look_at(&path, "", &invocation)?;
            let (offset, limit) = (params.offset.unwrap_or(1), params.limit);
            if offset == 0 {
                return Err(failed("lines are counted from 1".to_owned()));
            }
            let wanted = limit.unwrap_or(DEFAULT_LINES);
            let text = off_the_loop(invocation.turn.cancellation(), move |limit| {
                read(&path, offset, wanted, || limit.is_over())
            });
            Ok(ToolOutput::text(text.await?, true))
        })
    }
}

fn read(
    path: &Path,
    offset: u64,
    wanted: u64,
    is_over: impl Fn() -> bool,
) -> Result<String, CodexErr> {
    let name = path.display();
    let cannot = |error: std::io::Error| match error.kind() {
        // Some files of the kernel's are read like a pipe.
        ErrorKind::WouldBlock => failed(format!("{name} has nothing to read for now")),
        _ => failed(format!("{name}: {error}")),
    };
    // What is no file could keep a reader waiting for ever, and some devices do something when they are
    // opened.
    let kind = path.metadata().map_err(cannot)?;
    if kind.is_dir() {
        return Err(failed(format!("{name} is a directory; list_dir lists it")));
    }
    if !kind.is_file() {
        return Err(failed(format!("{name} is not a regular file")));
    }
    let mut reader = BufReader::new(open_regular(path).map_err(cannot)?);
    let mut text = String::new();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let length = match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            // What was there until now is an answer.
            Err(error) if error.kind() == ErrorKind::WouldBlock && number > 0 => 0,
            read => read.map_err(cannot)?,
        };
        if length == 0 {
            break;
        }
        number += 1;
        if length as u64 == LONGEST && !line.ends_with(b"\n") {
            skip_line(&mut reader, &is_over).map_err(cannot)?;
        }
        if number < offset {
            if number % 1024 == 0 && is_over() {
                return Err(failed(format!("{name}: it takes too long to get to line {offset}")));
            }
            continue;
        }
        if line.contains(&0) {
            return Err(failed(format!("{name} is not text: there is a NUL in line {number}")));
        }
        if number - offset >= wanted {
            let _ = writeln!(text, "[more lines follow; the next is {number}]");
            return Ok(text);
        }
        let shown = shown(&String::from_utf8_lossy(&line));
        if text.len() + shown.len() > MOST_SAID {
            let _ = writeln!(text, "[too long for one answer; the next line is {number}]");
            return Ok(text);
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "L{number}: {shown}");
    }
    match number {
        0 => Ok(format!("[{name} is empty]\n")),
        last if last < offset => Err(failed(format!("{name} has only {last} lines"))),
        _ => Ok(text),
    }
}

/// Reads on to the next line without keeping this one.
fn skip_line(reader: &mut BufReader<File>, is_over: impl Fn() -> bool) -> std::io::Result<()> {
    loop {
        let part = reader.fill_buf()?;
        let (used, found) = match part.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (part.len(), false),
        };
        reader.consume(used);
        if found || used == 0 || is_over() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read_of(text: impl AsRef<[u8]>, offset: u64, wanted: u64) -> Result<String, CodexErr> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, text).unwrap();
        read(&path, offset, wanted, || false)
    }

    #[test]
    fn lines_have_their_numbers() {
        assert_eq!(read_of("a\nb\r\nc", 1, 10).unwrap(), "L1: a\nL2: b\nL3: c\n");
        let two = "L2: b\n[more lines follow; the next is 3]\n";
        assert_eq!(read_of("a\nb\nc\n", 2, 1).unwrap(), two);
    }

    #[test]
    fn what_cannot_be_shown_is_said() {
        assert!(read_of("a\n", 5, 1).unwrap_err().to_string().ends_with("has only 1 lines"));
        assert!(read_of("a\0b", 1, 1).unwrap_err().to_string().contains("is not text"));
        assert!(read_of("", 1, 1).unwrap().contains("is empty"));
        let directory = tempfile::tempdir().unwrap();
        let error = read(directory.path(), 1, 1, || false).unwrap_err();
        assert!(error.to_string().contains("list_dir"), "{error}");
    }

    /// Who may read the kernel's messages gets those that there are, and does not wait for the next.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_read_like_a_pipe_is_not_waited_for() {
        match read(Path::new("/proc/kmsg"), 1, u64::MAX, || false) {
            Ok(text) => assert!(text.starts_with("L1: "), "{text}"),
            Err(error) => assert!(error.to_string().starts_with("/proc/kmsg"), "{error}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_opened_is_a_file_whatever_the_name_stood_for_before() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let directory = tempfile::tempdir().unwrap();
        let (pipe, link) = (directory.path().join("pipe"), directory.path().join("link"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        fs::write(directory.path().join("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!(open_regular(&pipe).unwrap_err().to_string(), "it is not a regular file");
        assert!(open_regular(&link).is_err());
        assert!(open_regular(&directory.path().join("file")).is_ok());
    }

    #[test]
    fn much_is_cut_and_says_where_to_go_on() {
        let long = "x".repeat(3 << 20) + "\nend\n";
        let text = read_of(&long, 1, 10).unwrap();
        assert!(text.contains(" […]\nL2: end\n"), "{}", &text[text.len() - 40..]);
        let many = "0123456789\n".repeat(10_000);
        let text = read_of(many, 1, 100_000).unwrap();
        assert!(text.len() < MOST_SAID + 10_000 * 8 && text.contains("[too long for one answer"));
    }
}
