//! What can be seen of a process from our end of its input.

use super::foreground::{Inlet, group_of, look, look_at};
use super::group::signal_group;
use crate::live::{Seen, Waiter};
use crate::sys::Launched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetsid};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use tokio::io::unix::AsyncFd;

/// Looks at a process through the terminal or the pipe that it reads from. Neither is kept open for looking:
/// when a pipe is closed the process must see that, and who has ended needs nothing open.
pub(crate) struct Sight {
    root: i32,
    through: Through,
}

enum Through {
    Terminal {
        ours: Weak<AsyncFd<OwnedFd>>,
        file: (u64, u64),
    },
    Pipe {
        ours: Weak<AsyncFd<OwnedFd>>,
        device: u64,
        inode: u64,
        output: Vec<Weak<AsyncFd<OwnedFd>>>,
    },
    Nothing,
}

impl Sight {
    /// Through the terminal if the process has one, otherwise through the pipe to it.
    pub(crate) fn new(launched: &Launched) -> Self {
        let through = match (&launched.terminal, &launched.stdin) {
            (Some(terminal), _) => Through::Terminal {
                ours: Arc::downgrade(&terminal.shared()),
                file: terminal.file(),
            },
            (None, Some(pipe)) => match rustix::fs::fstat(pipe.shared().get_ref()) {
                Ok(stat) => {
                    let output = [&launched.stdout, &launched.stderr].into_iter().flatten();
                    Through::Pipe {
                        ours: Arc::downgrade(&pipe.shared()),
                        device: stat.st_dev,
                        inode: stat.st_ino,
                        output: output.map(|reader| Arc::downgrade(&reader.shared())).collect(),
                    }
                }
                Err(_) => Through::Nothing,
            },
            (None, None) => Through::Nothing,
        };
        Self { root: launched.job.pid().cast_signed(), through }
    }

    /// What the process and those that it started are doing.
    pub(crate) fn look(&self) -> Seen {
        match &self.through {
            Through::Terminal { ours, file } => match ours.upgrade() {
                Some(ours) => {
                    look(self.root, tcgetpgrp(ours.get_ref()).ok(), terminal(&ours, *file))
                }
                None => Seen::Working,
            },
            Through::Pipe { device, inode, .. } => {
                look(self.root, None, Inlet::Pipe(*device, *inode))
            }
            Through::Nothing => Seen::Working,
        }
    }

    /// Whether the process itself is in the foreground of its terminal and waits for input there, whatever
    /// others do: a shell at its prompt may have helpers that work.
    pub(crate) fn look_at_root(&self) -> Option<Waiter> {
        let Through::Terminal { ours, file } = &self.through else { return None };
        let ours = ours.upgrade()?;
        let group = tcgetpgrp(ours.get_ref()).ok()?.as_raw_nonzero().get();
        (group_of(self.root)? == group).then(|| look_at(self.root, terminal(&ours, *file)))?
    }

    /// Where the process is.
    pub(crate) fn current_dir(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.root)).ok()
    }

    /// Sends a signal to what runs in the foreground of the terminal. Whether there is something.
    pub(crate) fn signal_foreground(&self, signal: i32) -> bool {
        let Through::Terminal { ours, .. } = &self.through else { return false };
        let (Some(ours), Some(signal)) = (ours.upgrade(), Signal::from_named_raw(signal)) else {
            return false;
        };
        let Ok(group) = tcgetpgrp(ours.get_ref()) else { return false };
        // The command is the leader of the terminal's session: as long as the terminal says so it has not been
        // waited for, and its number is its own.
        let lives = || tcgetsid(ours.get_ref()).is_ok_and(|session| is(session, self.root));
        signal_group(self.root, group, signal, lives)
    }

    /// Whether something that was typed has not been read yet.
    pub(crate) fn has_unread_input(&self) -> bool {
        let unread = match &self.through {
            Through::Terminal { ours, .. } => {
                ours.upgrade().and_then(|ours| unread_at_terminal(&ours))
            }
            Through::Pipe { ours, .. } => {
                ours.upgrade().and_then(|ours| rustix::io::ioctl_fionread(ours.get_ref()).ok())
            }
            Through::Nothing => None,
        };
        unread.is_some_and(|bytes| bytes > 0)
    }

    /// Whether the process has written something that we have not read yet.
    pub(crate) fn has_unread_output(&self) -> bool {
        match &self.through {
            Through::Terminal { ours, .. } => {
                ours.upgrade().is_some_and(|ours| has_something(&ours))
            }
            Through::Pipe { output, .. } => {
                output.iter().filter_map(Weak::upgrade).any(|ours| has_something(&ours))
            }
            Through::Nothing => false,
        }
    }

    /// Whether a line is read that is not shown: a password.
    pub(crate) fn hides_input(&self) -> bool {
        let Through::Terminal { ours, .. } = &self.through else { return false };
        let Some(ours) = ours.upgrade() else { return false };
        tcgetattr(ours.get_ref()).is_ok_and(|modes| {
            modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }
}

fn is(pid: Pid, number: i32) -> bool {
    pid.as_raw_nonzero().get() == number
}

/// A terminal as processes see it.
fn terminal(ours: &AsyncFd<OwnedFd>, file: (u64, u64)) -> Inlet {
    let session = tcgetsid(ours.get_ref()).ok().map(|session| session.as_raw_nonzero().get());
    Inlet::Terminal { file, session }
}

/// Whether there is something to read. The end of a pipe is nothing.
fn has_something(ours: &AsyncFd<OwnedFd>) -> bool {
    let mut fds = [PollFd::new(ours.get_ref(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        && fds[0].revents().contains(PollFlags::IN)
}

/// Asked of the other side, which is opened for the moment: kept open it would hide that everybody else
/// has closed it.
fn unread_at_terminal(ours: &AsyncFd<OwnedFd>) -> Option<u64> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let theirs = rustix::pty::ioctl_tiocgptpeer(ours.get_ref(), flags).ok()?;
    rustix::io::ioctl_fionread(theirs).ok()
}
