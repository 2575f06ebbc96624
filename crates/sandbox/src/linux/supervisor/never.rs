//! Calls that nothing in the cage may make, in words.

use super::listeners::is_descendant;
use super::text::PathText;
use super::{Answer, Scope, syscall_name};
use crate::linux::requests;
use crate::linux::seccomp::rescheduled;
use crate::sys::notify::Asked;
use rustix::io::Errno;
use sandgate_protocol::{DenialRule, DeniedOperation as Operation};
use std::fmt::Write as _;

/// The families of sockets that somebody may have heard of.
const FAMILIES: &[(i32, &str)] = &[
    (libc::AF_UNIX, "AF_UNIX"),
    (libc::AF_INET, "AF_INET"),
    (libc::AF_INET6, "AF_INET6"),
    (libc::AF_NETLINK, "AF_NETLINK"),
    (libc::AF_PACKET, "AF_PACKET"),
    (libc::AF_ALG, "AF_ALG"),
    (libc::AF_VSOCK, "AF_VSOCK"),
    (libc::AF_BLUETOOTH, "AF_BLUETOOTH"),
    (libc::AF_CAN, "AF_CAN"),
    (libc::AF_XDP, "AF_XDP"),
    (libc::AF_TIPC, "AF_TIPC"),
    (libc::AF_RDS, "AF_RDS"),
    (libc::AF_KEY, "AF_KEY"),
];

/// Whether a call changes how a process or thread of the command's own is scheduled. That is continued
/// although nobody beneath would refuse it for another: the number is in a register, where no thread
/// changes it, and means another process only when the one that was seen is gone and all numbers have been
/// given to others once.
pub(super) fn is_about_its_own(asked: &Asked) -> bool {
    rescheduled(asked.call, &asked.arguments)
        .and_then(|process| u64::try_from(process).ok())
        .is_some_and(is_descendant)
}

/// Refuses a call and writes down what it was about.
pub(super) fn refuse(scope: &Scope<'_>, asked: &Asked, target: &mut PathText) -> Answer {
    target.clear();
    let mut operation = Operation::Use;
    let mut rule = DenialRule::NeverAllowed;
    let [first, second, ..] = asked.arguments;
    // All of it fits by far.
    let _ = match libc::c_long::from(asked.call) {
        libc::SYS_socket => {
            operation = Operation::Socket;
            let internet = [libc::AF_INET, libc::AF_INET6].map(|family| family as u64);
            if internet.contains(&(first & u64::from(u32::MAX))) && !scope.has_internet() {
                rule = DenialRule::NetworkOff;
            }
            write_family(first, target).and_then(|()| target.write_str(" socket"))
        }
        libc::SYS_socketpair => {
            operation = Operation::Socket;
            write_family(first, target).and_then(|()| target.write_str(" pair"))
        }
        libc::SYS_ioctl => {
            let request = second & u64::from(u32::MAX);
            target.write_str(requests::name(request).unwrap_or("ioctl"))
        }
        libc::SYS_fcntl if second & u64::from(u32::MAX) == libc::F_SETFL as u64 => {
            target.write_str("signals about a descriptor")
        }
        libc::SYS_fcntl => target.write_str("a lease, hint or notice of changes"),
        libc::SYS_clone => target.write_str("clone with a new namespace"),
        libc::SYS_setpriority if first & u64::from(u32::MAX) != 0 => {
            target.write_str("setpriority of a group or user")
        }
        libc::SYS_ioprio_set if first & u64::from(u32::MAX) != 1 => {
            target.write_str("ioprio_set of a group or user")
        }
        libc::SYS_prlimit64 => target.write_str("prlimit64 of another process"),
        _ => target.write_str(syscall_name(asked.call)),
    };
    Answer::Refuse { errno: Errno::PERM, operation, rule }
}

fn write_family(family: u64, target: &mut PathText) -> std::fmt::Result {
    let family = ((family & u64::from(u32::MAX)) as u32).cast_signed();
    match FAMILIES.iter().find(|(known, _)| *known == family) {
        Some((_, name)) => target.write_str(name),
        None => write!(target, "family {family}"),
    }
}
