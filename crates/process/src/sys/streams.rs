//! Our ends of a job's pipes and terminal, read and written without holding up a thread.

use crate::spawner::{Stdin, TerminalSize};
use crate::sys::Stdio;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The ends of a new job's streams: ours, and those that go to it.
pub(super) struct Ends {
    pub(super) stdin: Option<Writer>,
    pub(super) stdout: Reader,
    pub(super) stderr: Option<Reader>,
    pub(super) terminal: Option<Terminal>,
    pub(super) theirs: [End; 3],
}

/// What a job gets as one of its standard streams.
pub(super) enum End {
    /// Nothing to read.
    Null,
    /// What this program itself reads from.
    HostStdin,
    /// An end of a pipe, or a terminal.
    Owned(OwnedFd),
}

impl Ends {
    pub(super) fn connect(stdio: Stdio) -> io::Result<Self> {
        match stdio {
            Stdio::Pipes(stdin) => {
                let (stdin, their_stdin) = match stdin {
                    Stdin::Null => (None, End::Null),
                    Stdin::Inherit => (None, End::HostStdin),
                    Stdin::Piped => {
                        let (ours, theirs) = Writer::pipe()?;
                        (Some(ours), End::Owned(theirs))
                    }
                };
                let (stdout, their_stdout) = Reader::pipe()?;
                let (stderr, their_stderr) = Reader::pipe()?;
                let theirs = [their_stdin, End::Owned(their_stdout), End::Owned(their_stderr)];
                Ok(Self { stdin, stdout, stderr: Some(stderr), terminal: None, theirs })
            }
            Stdio::Terminal(size) => {
                let (terminal, theirs) = Terminal::open(size)?;
                let (second, third) = (theirs.try_clone()?, theirs.try_clone()?);
                Ok(Self {
                    stdin: Some(terminal.writer()),
                    stdout: terminal.reader(),
                    stderr: None,
                    terminal: Some(terminal),
                    theirs: [End::Owned(theirs), End::Owned(second), End::Owned(third)],
                })
            }
        }
    }
}

/// The reading end of a pipe or terminal.
pub(crate) struct Reader {
    fd: Arc<AsyncFd<OwnedFd>>,
}

impl Reader {
    /// Makes a pipe: our reading end, and the end that the job writes to.
    pub(crate) fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe()?;
        Ok((Self { fd: watch(read)? }, write))
    }

    /// Our end, for others to ask about.
    #[cfg(target_os = "linux")]
    #[cfg(target_os = "linux")]
    pub(super) fn shared(&self) -> Arc<AsyncFd<OwnedFd>> {
        Arc::clone(&self.fd)
    }

    /// Reads what there is, waiting until there is something; 0 at the end.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fd.async_io(Interest::READABLE, |fd| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut *buffer))?)
        });
        match read.await {
            // A terminal says this when its last user has closed it.
            Err(e) if Errno::from_io_error(&e) == Some(Errno::IO) => Ok(0),
            other => other,
        }
    }
}

/// The writing end of a pipe or terminal.
pub(crate) struct Writer {
    fd: Arc<AsyncFd<OwnedFd>>,
}

impl Writer {
    /// Makes a pipe: our writing end, and the end that the job reads from.
    fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe()?;
        Ok((Self { fd: watch(write)? }, read))
    }

    /// Our end, for others to ask about.
    #[cfg(target_os = "linux")]
    pub(super) fn shared(&self) -> Arc<AsyncFd<OwnedFd>> {
        Arc::clone(&self.fd)
    }

    /// Writes all of it, waiting for the job to take it.
    pub(crate) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let write = self.fd.async_io(Interest::WRITABLE, |fd| {
                Ok(rustix::io::retry_on_intr(|| rustix::io::write(fd, bytes))?)
            });
            bytes = &bytes[write.await?..];
        }
        Ok(())
    }
}

/// A job's terminal, seen from outside.
pub(crate) struct Terminal {
    fd: Arc<AsyncFd<OwnedFd>>,
    /// The file of the side that the job has: its device and inode.
    #[cfg(target_os = "linux")]
    file: (u64, u64),
}

impl Terminal {
    /// Opens a terminal: our side, and the side that the job controls.
    fn open(size: TerminalSize) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = terminal_pair()?;
        tcsetwinsize(&ours, winsize(size))?;
        #[cfg(target_os = "linux")]
        let file = rustix::fs::fstat(&theirs).map(|file| (file.st_dev, file.st_ino))?;
        let terminal = Self {
            fd: watch(ours)?,
            #[cfg(target_os = "linux")]
            file,
        };
        Ok((terminal, theirs))
    }

    /// What the job's terminal shows.
    fn reader(&self) -> Reader {
        Reader { fd: Arc::clone(&self.fd) }
    }

    /// The keyboard of the job's terminal.
    fn writer(&self) -> Writer {
        Writer { fd: Arc::clone(&self.fd) }
    }

    /// Our side, for others to ask about.
    #[cfg(target_os = "linux")]
    pub(super) fn shared(&self) -> Arc<AsyncFd<OwnedFd>> {
        Arc::clone(&self.fd)
    }

    /// The file of the side that the job has: its device and inode.
    #[cfg(target_os = "linux")]
    pub(super) fn file(&self) -> (u64, u64) {
        self.file
    }

    /// Changes its size; the foreground job is told by SIGWINCH.
    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        Ok(tcsetwinsize(self.fd.get_ref(), winsize(size))?)
    }
}

#[cfg(target_os = "linux")]
fn terminal_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    // Asked of the descriptor, not by name: a name could be shadowed by another mount.
    let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
    Ok((ours, theirs))
}

#[cfg(not(target_os = "linux"))]
fn terminal_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::fs::{Mode, OFlags};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    Ok((ours, theirs))
}

#[cfg(target_os = "linux")]
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Systems without pipe2 mark the ends afterwards; the standard library does what can be done.
#[cfg(not(target_os = "linux"))]
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Hands our end of something to the runtime. It is a file description of its own, so the other
/// side does not see that it does not block.
pub(super) fn watch(fd: OwnedFd) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    watch_for(fd, Interest::READABLE | Interest::WRITABLE)
}

pub(super) fn watch_for(fd: OwnedFd, interest: Interest) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    rustix::io::ioctl_fionbio(fd.as_fd(), true)?;
    // SAFETY: an owned descriptor stays open, and stays the same one, until it is dropped.
    Ok(Arc::new(unsafe { AsyncFd::register_with_interest(fd, interest) }?))
}
