//! Signals the foreground group of a terminal, and never a stranger.
//!
//! A terminal goes on naming its foreground group when that is gone, and by then the number can be anybody's: a
//! command could have whoever comes to have it killed by a signal that was meant for itself. So nobody is
//! signalled by number. Members are held by handles that cannot come to mean another process, and are looked at
//! while they are held.

use super::foreground::{group_of, members_of_job, session_of};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Signals the members of a group that are in the session of `leader`, whose number is its own for as long as
/// `leader_lives`. Whether there were any.
///
/// A number is read before and after a process is held. If the leader still lives after that, the number of the
/// session meant its session all the time, and whoever was seen in that session is of its job: nobody enters a
/// session but by being born in it.
pub(super) fn signal_group(
    leader: i32,
    group: Pid,
    signal: Signal,
    leader_lives: impl Fn() -> bool,
) -> bool {
    let number = group.as_raw_nonzero().get();
    let is_member = |pid: i32| group_of(pid) == Some(number) && session_of(pid) == Some(leader);
    let mut held = Vec::new();
    for pid in members_of_job(leader, number) {
        let Some(handle) = hold(pid) else { continue };
        // Looked at only now: if it is there to be signalled later, it is what was looked at.
        if is_member(pid) {
            held.push(handle);
        }
    }
    if !leader_lives() {
        return false;
    }
    // All at once where the kernel can, so that nobody is born meanwhile who does not hear of it.
    if held.iter().any(|member| signal_group_of(member, signal).is_ok()) {
        return true;
    }
    // Not `any`: everybody is to hear of it.
    let reached = held.iter().filter(|member| pidfd_send_signal(member, signal).is_ok());
    reached.count() > 0
}

fn hold(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Signals the group that a process is in, which kernels since 6.9 can.
fn signal_group_of(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    /// `PIDFD_SIGNAL_PROCESS_GROUP`.
    const GROUP: libc::c_uint = 1 << 2;
    let (fd, none) = (process.as_fd().as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: the descriptor is open, and no information goes with the signal.
    let sent =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal.as_raw(), none, GROUP) };
    match sent {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "needs processes that are nobody's job")]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    fn number(pid: u32) -> Pid {
        i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap()
    }

    /// A process that leads a group of its own, in the session of this one.
    fn leader_of_a_group() -> Child {
        Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    fn end(mut child: Child) -> std::process::ExitStatus {
        child.kill().unwrap();
        child.wait().unwrap()
    }

    fn own_session() -> i32 {
        session_of(std::process::id().cast_signed()).unwrap()
    }

    /// spec SESSION.53: A signal to the foreground of a terminal reaches nobody outside of its session, whoever has
    /// come to have the number of a group that is gone.
    #[test]
    fn a_group_of_another_session_is_not_signalled() {
        let stranger = leader_of_a_group();
        let group = number(stranger.id());
        // It leads a group, and no session: to the terminal of such a session it is a stranger.
        let leader = stranger.id().cast_signed();
        assert_ne!(leader, own_session());
        assert!(!signal_group(leader, group, Signal::TERM, || true));
        assert_eq!(end(stranger).signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn nobody_is_signalled_when_the_leader_is_gone() {
        let member = leader_of_a_group();
        let group = number(member.id());
        assert!(!signal_group(own_session(), group, Signal::TERM, || false));
        assert_eq!(end(member).signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_group_of_the_session_is_signalled() {
        let mut member = leader_of_a_group();
        let group = number(member.id());
        assert!(signal_group(own_session(), group, Signal::TERM, || true));
        assert_eq!(member.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    }
}
