//! Where the end of a command is told, so that the command has no part in what is read there.
//!
//! It had standard error for as long as it lived. It can have left its place in the middle of a file, half of a line
//! behind it, or a socket shut. What it never has is a file that was opened before it started, where it cannot
//! write.

use sandgate_protocol::SandboxPolicy;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// What a report on standard error does where nobody knows whether a line has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownLine {
    /// It begins another one, which leaves an empty one behind if there was none.
    IsEnded,
    /// It goes on in it: people read it.
    GoesOn,
}

/// Says something on standard error, after all that the command has said there.
///
/// # Errors
/// When not all of it could be said.
pub(crate) fn say_last(text: &[u8], line: UnknownLine) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let ends_line = match at_end() {
        Some(has_begun) => has_begun,
        None => line == UnknownLine::IsEnded,
    };
    let begin: &[u8] = if ends_line { b"\n" } else { b"" };
    let mut left = &[begin, text].concat()[..];
    let mut stderr = io::stderr().lock();
    while !left.is_empty() {
        match stderr.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Goes to the end of standard error, if it is a file, and says whether a line has begun there.
#[cfg(unix)]
fn at_end() -> Option<bool> {
    use rustix::fs::{FileType, Mode, OFlags, SeekFrom, fstat, open, seek};
    let stderr = io::stderr();
    let found = fstat(&stderr).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    // Whether it appends is the command's to say as well.
    let length = seek(&stderr, SeekFrom::End(0)).ok()?;
    let Some(last) = length.checked_sub(1) else { return Some(false) };
    let ends_with_line = || {
        // It need not be open for reading.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let again = open("/proc/self/fd/2", flags, Mode::empty()).ok()?;
        let mut byte = [0];
        (rustix::io::pread(&again, &mut byte, last).ok()? == 1).then_some(byte == *b"\n")
    };
    Some(!ends_with_line().unwrap_or(false))
}

#[cfg(not(unix))]
fn at_end() -> Option<bool> {
    None
}

/// Somebody has said that standard error does not wait; what is said last does.
#[cfg(unix)]
fn wait_for_room() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let stderr = io::stderr();
    poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None)?;
    Ok(())
}

#[cfg(not(unix))]
fn wait_for_room() -> io::Result<()> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// A file for a report that the command never holds and cannot write to.
#[derive(Debug)]
pub(crate) struct ReportFile(File);

impl ReportFile {
    /// Opens it, for a command with this policy. What was in it goes.
    ///
    /// # Errors
    /// Says why not: it cannot be opened, is no file of its own, or the command could write there.
    pub(crate) fn open(
        path: &Path,
        policy: &SandboxPolicy,
        workspace: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, String> {
        let refused = |why: String| format!("cannot write the report to {}: {why}", path.display());
        let opened = || {
            let directory = match path.parent() {
                Some(above) if above != Path::new("") => above,
                _ => Path::new("."),
            };
            let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
            let path = directory.canonicalize()?.join(name);
            if sandgate_runtime::could_write(policy, workspace, env, &path) {
                return Err(io::Error::other("the command could write there; name another place"));
            }
            let file = open_own(&path)?;
            file.set_len(0)?;
            Ok(file)
        };
        opened().map(Self).map_err(|error| refused(error.to_string()))
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(mut self, report: &[u8]) -> io::Result<()> {
        self.0.write_all(report)
    }
}

/// Opens or makes a file that nobody knows by another name, nor by a stream that the command is given.
#[cfg(unix)]
fn open_own(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o666);
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if found.nlink() != 1 {
        return Err(io::Error::other(
            "it has another name, by which the command could write to it",
        ));
    }
    let is_this = |stream: std::os::fd::BorrowedFd<'_>| {
        let stream = stream.try_clone_to_owned().and_then(|stream| File::from(stream).metadata());
        stream.is_ok_and(|stream| (stream.dev(), stream.ino()) == (found.dev(), found.ino()))
    };
    use std::os::fd::AsFd as _;
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    if [input.as_fd(), output.as_fd(), error.as_fd()].into_iter().any(is_this) {
        return Err(io::Error::other("it is one of the command's standard streams"));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_own(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(path)
}
