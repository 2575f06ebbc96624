//! Calls that nothing in the cage may make.

use super::{LANDLOCK, NAMESPACES, Setting, Supervision, World, is_possible, run};
use crate::linux::Mode;
use crate::linux::requests::{FILE_REQUESTS, HARMLESS_REQUESTS, Request};
use crate::linux::requests::{STRAY_REQUESTS, TERMINAL_REQUESTS};
use crate::linux::seccomp::told_calls;
use crate::linux::supervisor::syscall_name;
use crate::sys::probe::{Argument, call};
use rustix::io::Errno;

/// Makes calls with numbers only, and writes the error of each.
fn attempt_all(setting: Setting, calls: &[(libc::c_long, &[i64])]) -> super::Outcome {
    run(&World::new(), setting, |say| {
        for (number, arguments) in calls {
            let arguments: Vec<_> = arguments.iter().map(|n| Argument::Number(*n)).collect();
            let errno = call(*number, &arguments).err().map_or(0, Errno::raw_os_error);
            say(&format!("{errno} "));
        }
    })
}

#[test]
fn what_nobody_in_the_cage_may_use_is_refused_and_told_by_its_name() {
    for setting in [NAMESPACES, LANDLOCK] {
        if !is_possible(setting) {
            continue;
        }
        let names = told_calls(setting.mode);
        let calls: Vec<(libc::c_long, &[i64])> =
            names.iter().map(|number| (*number, &[][..])).collect();
        let outcome = attempt_all(setting, &calls);
        assert_eq!(outcome.said, "1 ".repeat(names.len()), "{names:?}");
        let expected: Vec<_> = names
            .iter()
            .map(|number| syscall_name(i32::try_from(*number).unwrap()))
            .map(|name| format!("use {name} NeverAllowed {name}"))
            .collect();
        assert_eq!(outcome.denials, expected);
        assert!(expected.contains(&"use mount NeverAllowed mount".to_owned()));
    }
}

#[test]
fn arguments_that_nobody_may_use_are_told_in_words() {
    let (stream, datagram, raw) =
        (libc::SOCK_STREAM.into(), libc::SOCK_DGRAM.into(), libc::SOCK_RAW.into());
    let unix = libc::AF_UNIX.into();
    let calls: &[(libc::c_long, &[i64])] = &[
        (libc::SYS_ioctl, &[0, 0x5412, 0]),
        (libc::SYS_ioctl, &[0, 0x7fff_0000_541c, 0]),
        (libc::SYS_socket, &[libc::AF_PACKET.into(), raw, 0]),
        (libc::SYS_socket, &[libc::AF_NETLINK.into(), raw, libc::NETLINK_AUDIT.into()]),
        (libc::SYS_socket, &[99, stream, 0]),
        (libc::SYS_socketpair, &[unix, datagram, 0, 0]),
        (libc::SYS_socketpair, &[unix, raw, 0, 0]),
    ];
    if !is_possible(NAMESPACES) {
        return;
    }
    let outcome = attempt_all(NAMESPACES, calls);
    assert_eq!(outcome.said, "1 ".repeat(calls.len()));
    let expected = [
        "use TIOCSTI NeverAllowed ioctl",
        "use TIOCLINUX NeverAllowed ioctl",
        "socket AF_PACKET socket NeverAllowed socket",
        "socket AF_NETLINK socket NeverAllowed socket",
        "socket family 99 socket NeverAllowed socket",
        "socket AF_UNIX pair NeverAllowed socketpair",
    ];
    assert_eq!(outcome.denials, expected);
}

/// spec SANDBOX.140: No request of a command changes the keys, the letters or the colours of a text
/// console, sounds its bell on and on, or puts another console in its place.
#[test]
fn every_request_that_changes_a_terminal_for_its_person_is_refused() {
    let requests: Vec<[i64; 3]> = TERMINAL_REQUESTS
        .iter()
        .map(|(request, _)| [0, i64::try_from(*request).unwrap() | 0x7fff_0000_0000, 0])
        .collect();
    let calls: Vec<(libc::c_long, &[i64])> =
        requests.iter().map(|arguments| (libc::SYS_ioctl, &arguments[..])).collect();
    let named = |name: &str| TERMINAL_REQUESTS.iter().any(|(_, known)| *known == name);
    assert!(
        ["KDFONTOP", "KDSETKEYCODE", "PIO_CMAP", "KIOCSOUND", "VT_ACTIVATE"].map(named)
            == [true; 5]
    );
    for supervision in [Supervision::Full, Supervision::None] {
        for setting in [NAMESPACES, LANDLOCK] {
            if is_possible(setting) {
                let outcome = attempt_all(Setting { supervision, ..setting }, &calls);
                assert_eq!(outcome.said, "1 ".repeat(calls.len()), "{setting:?}");
            }
        }
    }
}

/// spec SANDBOX.220: A request to a file system or driver that is not known to change nothing else is answered as by one that
/// has no such request.
/// spec SANDBOX.221: No request removes a subvolume: the kernel would not ask on which mount it is.
#[test]
fn a_request_is_made_only_if_it_is_known() {
    /// Of file systems that come: the next free number of btrfs, and kinds that nobody has.
    const UNKNOWN: &[Request] = &[(0x9450, "?"), (0xdf02, "?"), (0x4004_f5ff, "?"), (0x1272, "?")];
    const TERMINALS_AND_SOCKETS: &[Request] =
        &[(0x5401, "TCGETS"), (0x541b, "FIONREAD"), (0x5421, "FIONBIO"), (0x8912, "SIOCGIFCONF")];
    let [refused, no_such, no_descriptor] = ["1 ", "25 ", "9 "];
    for supervision in [Supervision::Full, Supervision::None] {
        for setting in [NAMESPACES, LANDLOCK] {
            if !is_possible(setting) {
                continue;
            }
            let of_files = match setting.mode {
                Mode::Namespaces => no_descriptor,
                Mode::LandlockOnly => refused,
            };
            for (requests, said) in [
                (UNKNOWN, no_such),
                (TERMINALS_AND_SOCKETS, no_descriptor),
                (HARMLESS_REQUESTS, no_descriptor),
                (FILE_REQUESTS, of_files),
                (STRAY_REQUESTS, refused),
            ] {
                let arguments: Vec<[i64; 3]> = requests
                    .iter()
                    .map(|(request, _)| [-1, i64::try_from(*request).unwrap(), 0])
                    .collect();
                let calls: Vec<(libc::c_long, &[i64])> =
                    arguments.iter().map(|each| (libc::SYS_ioctl, &each[..])).collect();
                let outcome = attempt_all(Setting { supervision, ..setting }, &calls);
                assert_eq!(outcome.said, said.repeat(requests.len()), "{setting:?} {requests:?}");
            }
        }
    }
}

#[test]
fn what_programs_try_as_a_matter_of_routine_is_refused_without_a_word() {
    let unix = libc::AF_UNIX.into();
    let calls: &[(libc::c_long, &[i64])] = &[
        (libc::SYS_io_uring_setup, &[8, 0]),
        (libc::SYS_socket, &[unix, libc::SOCK_DGRAM.into(), 0]),
        (libc::SYS_socket, &[unix, (libc::SOCK_RAW | libc::SOCK_CLOEXEC).into(), 0]),
    ];
    for setting in [NAMESPACES, LANDLOCK] {
        if is_possible(setting) {
            let outcome = attempt_all(setting, calls);
            assert_eq!((outcome.said.as_str(), outcome.denials.len()), ("1 1 1 ", 0));
        }
    }
}

#[test]
fn without_a_supervisor_no_unix_socket_is_made_and_no_pair_that_could_send_to_a_path() {
    let unix = libc::AF_UNIX.into();
    let calls: &[(libc::c_long, &[i64])] = &[
        (libc::SYS_socket, &[unix, libc::SOCK_STREAM.into(), 0]),
        (libc::SYS_socketpair, &[unix, libc::SOCK_DGRAM.into(), 0, 0]),
        (libc::SYS_socketpair, &[unix, libc::SOCK_RAW.into(), 0, 0]),
        (libc::SYS_mount, &[]),
    ];
    for setting in [NAMESPACES, LANDLOCK] {
        let setting = Setting { supervision: Supervision::None, ..setting };
        if is_possible(setting) {
            assert_eq!(attempt_all(setting, calls).said, "1 1 1 1 ");
        }
    }
}

#[test]
fn where_there_is_no_network_at_all_its_sockets_are_told_as_the_network() {
    let calls: &[(libc::c_long, &[i64])] = &[
        (libc::SYS_socket, &[libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0]),
        (libc::SYS_socket, &[libc::AF_INET6.into(), libc::SOCK_DGRAM.into(), 0]),
        (libc::SYS_prlimit64, &[1, 7, 0, 0]),
        (libc::SYS_ioctl, &[0, 0x4008_6602, 0]),
        (libc::SYS_ioctl, &[0, 0x401c_5820, 0]),
    ];
    if !is_possible(LANDLOCK) {
        return;
    }
    let outcome = attempt_all(LANDLOCK, calls);
    assert_eq!(outcome.said, "1 1 1 1 1 ");
    let expected = [
        "socket AF_INET socket NetworkOff socket",
        "socket AF_INET6 socket NetworkOff socket",
        "use prlimit64 of another process NeverAllowed prlimit64",
        "use FS_IOC_SETFLAGS NeverAllowed ioctl",
        "use FS_IOC_FSSETXATTR NeverAllowed ioctl",
    ];
    assert_eq!(outcome.denials, expected);
}
