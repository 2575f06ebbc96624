//! Ends what a command leaves where there is no PID namespace to do it.
//!
//! The keeper stands between this program and the command. It is the subreaper of whatever the
//! command starts, and ends all of it when the command has ended or this program was killed.

use super::children::{self, Reaped};
use super::in_place::{Image, become_command, hear, report_pipe, tell, wait_for};
use super::raw::{self, Forked, NeverReturn};
use crate::handle::Exit;
use crate::sys::{LaunchError, Stage};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, getpid, getppid, setpgid};
use rustix::thread::Timespec;
use sandgate_sandbox::linux::{Cage, Mode};

/// Starts a command without namespaces and waits for all that comes of it.
pub(super) fn run_kept(image: &Image, cage: &Cage, signals: &OwnedFd) -> Result<Exit, LaunchError> {
    let (ready, report) = report_pipe()?;
    let (ended, end) = report_pipe()?;
    let parent = getpid();
    // SAFETY: one thread, and so has the child; it makes only kernel calls and never returns.
    match unsafe { raw::fork_host() }.map_err(|e| LaunchError::new(Stage::Fork, e))? {
        Forked::Child => {
            let _never = NeverReturn;
            let exit = keep(image, cage, parent, signals, report);
            let (signalled, number) = match exit {
                Exit::Code(code) => (0, code),
                Exit::Signal(signal) => (1, signal),
            };
            let [n0, n1, n2, n3] = number.to_ne_bytes();
            let _ = rustix::io::write(&end, &[signalled, n0, n1, n2, n3]);
            raw::exit_now(0);
        }
        Forked::Parent(pid) => {
            drop((report, end));
            let heard = hear(&ready);
            let Some(keeper) = Pid::from_raw(pid) else { return Ok(Exit::KILLED) };
            wait_for(keeper, signals, || false);
            heard?;
            let mut message = [0u8; 5];
            let n = rustix::io::retry_on_intr(|| rustix::io::read(&ended, &mut message));
            let [signalled, number @ ..] = message;
            let number = i32::from_ne_bytes(number);
            Ok(match (n, signalled) {
                (Ok(5), 0) => Exit::Code(number),
                (Ok(5), _) => Exit::Signal(number),
                // The keeper was killed, and the command with it.
                _ => Exit::KILLED,
            })
        }
    }
}

/// The keeper's life: starts the command, waits for it, and ends what it leaves.
fn keep(image: &Image, cage: &Cage, parent: Pid, signals: &OwnedFd, report: OwnedFd) -> Exit {
    let _ = rustix::thread::set_name(c"sg-keeper");
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
    // Any signal will do: it makes us look whether our parent is still there.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    let orphaned = || getppid() != Some(parent);
    // Whoever kills our group must not kill the keeper; the command stays in it. Inside another PID
    // namespace the group may have no number here, and cannot be come back to.
    // SAFETY: only returns a number.
    let group = Pid::from_raw(unsafe { libc::getpgrp() });
    if group.is_some() {
        let _ = setpgid(None, None);
    }
    if orphaned() {
        return Exit::KILLED;
    }
    // SAFETY: as above.
    let command = match unsafe { raw::fork_host() } {
        Ok(Forked::Child) => {
            let _never = NeverReturn;
            if group.is_some() {
                let _ = setpgid(None, group);
            }
            let Err(failed) = become_command(image, cage, Mode::LandlockOnly, &report);
            tell(&report, &failed);
            raw::exit_now(127);
        }
        Ok(Forked::Parent(pid)) => Pid::from_raw(pid),
        Err(_) => None,
    };
    drop(report);
    let exit = command.map(|command| wait_for(command, signals, orphaned));
    end_all();
    exit.unwrap_or(Exit::KILLED)
}

/// Ends every process that is left, and those that become ours by that.
fn end_all() {
    loop {
        let found = children::kill_all(|_| false);
        loop {
            match children::reap() {
                Reaped::One(..) | Reaped::Stopped(_) => {}
                Reaped::NoneYet => break,
                Reaped::NoChildren => return,
            }
        }
        if found.all == found.refused {
            // Programs of another user, whom we may not signal; waiting for them could take for ever.
            return;
        }
        // Ending takes the system a moment.
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 2_000_000 });
    }
}
