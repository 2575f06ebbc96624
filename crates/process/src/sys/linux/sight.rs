//! What can be seen of a process from our end of its input.

use super::foreground::{Inlet, look};
use crate::live::Seen;
use crate::sys::{Terminal, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, kill_process_group};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use std::sync::{Arc, Weak};
use tokio::io::unix::AsyncFd;

/// Looks at a process through the terminal or the pipe that it reads from.
pub(crate) struct Sight {
    root: i32,
    through: Through,
}

enum Through {
    Terminal {
        ours: Arc<AsyncFd<OwnedFd>>,
        device: u64,
    },
    /// Not kept open for looking: when the pipe is closed the process must see that.
    Pipe {
        ours: Weak<AsyncFd<OwnedFd>>,
        device: u64,
        inode: u64,
    },
    Nothing,
}

impl Sight {
    /// Through the terminal if the process has one, otherwise through the pipe to it.
    pub(crate) fn new(root: u32, terminal: Option<&Terminal>, pipe: Option<&Writer>) -> Self {
        let through = match (terminal, pipe) {
            (Some(terminal), _) => {
                Through::Terminal { ours: terminal.shared(), device: terminal.device() }
            }
            (None, Some(pipe)) => match rustix::fs::fstat(pipe.shared().get_ref()) {
                Ok(stat) => Through::Pipe {
                    ours: Arc::downgrade(&pipe.shared()),
                    device: stat.st_dev,
                    inode: stat.st_ino,
                },
                Err(_) => Through::Nothing,
            },
            (None, None) => Through::Nothing,
        };
        Self { root: root.cast_signed(), through }
    }

    /// What the process and those that it started are doing.
    pub(crate) fn look(&self) -> Seen {
        match &self.through {
            Through::Terminal { ours, device } => {
                let group = tcgetpgrp(ours.get_ref()).ok();
                look(self.root, group, Inlet::Terminal(*device))
            }
            Through::Pipe { device, inode, .. } => {
                look(self.root, None, Inlet::Pipe(*device, *inode))
            }
            Through::Nothing => Seen::Working,
        }
    }

    /// Sends a signal to what runs in the foreground of the terminal. Whether there is something.
    pub(crate) fn signal_foreground(&self, signal: i32) -> bool {
        let Through::Terminal { ours, .. } = &self.through else { return false };
        let Some(signal) = Signal::from_named_raw(signal) else { return false };
        tcgetpgrp(ours.get_ref()).is_ok_and(|group| kill_process_group(group, signal).is_ok())
    }

    /// Whether something that was typed has not been read yet.
    pub(crate) fn has_unread_input(&self) -> bool {
        let unread = match &self.through {
            Through::Terminal { ours, .. } => unread_at_terminal(ours),
            Through::Pipe { ours, .. } => {
                ours.upgrade().and_then(|ours| rustix::io::ioctl_fionread(ours.get_ref()).ok())
            }
            Through::Nothing => None,
        };
        unread.is_some_and(|bytes| bytes > 0)
    }

    /// Whether the process has written something that we have not read yet.
    pub(crate) fn has_unread_output(&self) -> bool {
        let Through::Terminal { ours, .. } = &self.through else { return false };
        let mut fds = [PollFd::new(ours.get_ref(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
            && fds[0].revents().contains(PollFlags::IN)
    }

    /// Whether a line is read that is not shown: a password.
    pub(crate) fn hides_input(&self) -> bool {
        let Through::Terminal { ours, .. } = &self.through else { return false };
        tcgetattr(ours.get_ref()).is_ok_and(|modes| {
            modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }
}

/// Asked of the other side, which is opened for the moment: kept open it would hide that everybody else
/// has closed it.
fn unread_at_terminal(ours: &AsyncFd<OwnedFd>) -> Option<u64> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let theirs = rustix::pty::ioctl_tiocgptpeer(ours.get_ref(), flags).ok()?;
    rustix::io::ioctl_fionread(theirs).ok()
}
