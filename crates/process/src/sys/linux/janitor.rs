//! Keeps a cage's absent names free while it is in use, and gives them back whatever happens.
//!
//! The directories that stand for them lie on the host's disk. If this program is killed somebody
//! else has to remove them: a process that is made before they are, waits for the end of a socket,
//! then for the end of everything in the cage, and removes them.

use super::raw::{self, Forked, NeverReturn};
use crate::sys::{LaunchError, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use sandgate_sandbox::linux::{Cage, Reservations};
use std::io;
use std::mem::MaybeUninit;

/// The names of one cage, taken, and who gives them back if we cannot.
#[derive(Default)]
pub(super) struct Names {
    pub(super) reservations: Reservations,
    janitor: Option<Janitor>,
}

struct Janitor {
    /// Its end tells the janitor of ours.
    socket: OwnedFd,
    pid: Pid,
}

impl Names {
    /// Takes the names of a cage. All signals must be blocked.
    pub(super) fn take(cage: &Cage) -> Result<Self, LaunchError> {
        let cannot = |e: io::Error| LaunchError::new(Stage::Cage, e);
        let mut reservations = cage.reservations().map_err(cannot)?;
        if reservations.is_empty() {
            return Ok(Self::default());
        }
        let janitor = Some(Janitor::start(&reservations)?);
        let taken = reservations.take();
        let names = Self { reservations, janitor };
        match taken {
            Ok(()) => Ok(names),
            Err(error) => {
                names.give_back();
                Err(cannot(error))
            }
        }
    }

    /// Has them kept until the cage whose first process this is has ended, even if we end before.
    pub(super) fn until_the_end_of(&self, init: Pid) {
        let Some(janitor) = &self.janitor else { return };
        // Without it they are given back a moment early when we are killed, and only then.
        if let Ok(init) = pidfd_open(init, PidfdFlags::empty()) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let init = [init.as_fd()];
            ancillary.push(SendAncillaryMessage::ScmRights(&init));
            let byte = [IoSlice::new(b"i")];
            let _ = sendmsg(&janitor.socket, &byte, &mut ancillary, SendFlags::NOSIGNAL);
        }
    }

    /// Gives them back. Nothing may run in the cage any more.
    pub(super) fn give_back(self) {
        self.reservations.give_back();
        if let Some(Janitor { socket, pid }) = self.janitor {
            drop(socket);
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}

impl Janitor {
    fn start(reservations: &Reservations) -> Result<Self, LaunchError> {
        let (ours, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|e| LaunchError::new(Stage::SetUp, e))?;
        let parents = reservations.descriptors().map(|fd| fd.as_raw_fd());
        let mut keep: Vec<RawFd> = parents.chain([its.as_raw_fd()]).collect();
        keep.sort_unstable();
        // SAFETY: one thread; the child makes only kernel calls and never returns.
        match unsafe { raw::fork_host() }.map_err(|e| LaunchError::new(Stage::Fork, e))? {
            Forked::Child => {
                let _never = NeverReturn;
                let _ = rustix::thread::set_name(c"sg-janitor");
                // Whoever ends our group or our terminal's session must not end it too.
                let _ = rustix::process::setsid();
                let _ = rustix::process::chdir(c"/");
                // SAFETY: nothing below uses a descriptor that is not kept.
                unsafe { raw::close_all_but(&keep) };
                wait_for_the_end(&its);
                reservations.remove();
                raw::exit_now(0);
            }
            Forked::Parent(pid) => {
                let pid = Pid::from_raw(pid)
                    .ok_or_else(|| LaunchError::new(Stage::Fork, rustix::io::Errno::CHILD))?;
                Ok(Self { socket: ours, pid })
            }
        }
    }
}

/// Waits until the other end of the socket is closed and the process that came over it has ended. A
/// namespace's first process ends as the last one in it.
fn wait_for_the_end(socket: &OwnedFd) {
    let mut cage = None;
    loop {
        let mut byte = [0u8; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            let mut into = [IoSliceMut::new(&mut byte)];
            recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        });
        if !received.is_ok_and(|message| message.bytes > 0) {
            break;
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                cage = descriptors.last().or(cage);
            }
        }
    }
    if let Some(cage) = cage {
        let mut ended = [PollFd::new(&cage, PollFlags::IN)];
        let _ = rustix::io::retry_on_intr(|| poll(&mut ended, None));
    }
}
