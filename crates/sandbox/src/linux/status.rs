//! What this machine can enforce, found out by trying.

use crate::sys;
use sandgate_protocol::{Enforcement, SandboxType};

/// The versions of Landlock that brought something, and what is missing before them.
const LANDLOCK: [(u32, &str); 5] = [
    (2, "moving files between directories is refused altogether: Landlock is older than version 2"),
    (3, "files outside the roots can be cut short: Landlock is older than version 3"),
    (4, "TCP is held by the filter only: Landlock is older than version 4"),
    (5, "device files answer to ioctl: Landlock is older than version 5"),
    (6, "signals reach other processes of the user: Landlock is older than version 6"),
];

/// Tries it.
pub(crate) fn status() -> Enforcement {
    enforced(sys::may_make_namespaces(), sys::may_supervise())
}

/// What holds a command that has namespaces of its own, or not, and a supervisor, or not.
pub(crate) fn enforced(namespaces: bool, supervisor: bool) -> Enforcement {
    let landlock_abi = sys::landlock_version().cast_unsigned();
    let seccomp = sys::has_filters();
    let mut missing = Vec::new();
    if !namespaces {
        missing.push(
            "namespaces are refused to this user here: protected names and other terminals are not \
             held (docs/platforms.md)"
                .to_owned(),
        );
    }
    if landlock_abi == 0 {
        missing.push("this kernel has no Landlock, or it is switched off".to_owned());
    } else if !namespaces {
        let too_old = LANDLOCK.iter().filter(|(version, _)| landlock_abi < *version);
        missing.extend(too_old.map(|(_, what)| (*what).to_owned()));
    }
    if !seccomp {
        missing.push("this kernel has no filters for system calls".to_owned());
    }
    if seccomp && !supervisor {
        missing.push(
            "nobody can be asked about single calls here, so unix sockets are closed and what is \
             refused is not recorded: another supervisor is at work already, or the kernel has none"
                .to_owned(),
        );
    }
    let enforceable = seccomp && (namespaces || landlock_abi > 0);
    let sandbox = if enforceable { SandboxType::LinuxSeccomp } else { SandboxType::None };
    Enforcement { sandbox, namespaces, landlock_abi, seccomp, supervisor, missing }
}
