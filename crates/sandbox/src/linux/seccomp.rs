//! The system calls that a confined command may not make, as a table, and its compilation.
//!
//! The filter refuses what no layer beneath it sees: kernel interfaces that a command of a coding
//! agent never needs, namespaces and mounts, socket families, and keystrokes pushed into a terminal.
//! Files are the business of mounts and Landlock.

use super::CageError;
use sandgate_protocol::NetworkAccess;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Refused whatever their arguments, with the reason for a reviewer.
const REFUSED: &[(&[libc::c_long], &str)] = &[
    (
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
        ],
        "could uncover what a mount covers",
    ),
    (&[libc::SYS_unshare, libc::SYS_setns], "a namespace of its own has all capabilities in it"),
    (
        &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register],
        "does system calls that no filter sees",
    ),
    (
        &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key],
        "keyrings belong to the user, not to the cage",
    ),
    (
        &[libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init],
        "kernel surface that exploits like best",
    ),
    (&[libc::SYS_open_by_handle_at], "opens files past every directory's permission"),
    (
        &[
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_acct,
            libc::SYS_quotactl,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_clock_adjtime,
            libc::SYS_adjtimex,
            libc::SYS_syslog,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
            libc::SYS_vhangup,
            libc::SYS_lookup_dcookie,
            libc::SYS_nfsservctl,
        ],
        "runs the machine",
    ),
];

/// The same for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_kexec_file_load];

/// Reach other processes' memory. In a PID namespace there are only the cage's own.
const DEBUGGING: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];

/// Reach what other processes of the user share, or change what no rule on files covers. In
/// namespaces the first are the cage's own, and the second end at read-only mounts.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
];

/// Newer than the C library's list; the numbers are the same on every architecture.
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// Makes a namespace: every bit of `clone`'s flags that does.
const NAMESPACE_FLAGS: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Pushes keystrokes into a terminal, where whoever uses it next runs them.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// Which layers the filter stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beneath {
    /// Namespaces: other processes and the host's network are out of reach anyway.
    Namespaces,
    /// Landlock alone.
    LandlockOnly,
}

/// The compiled filters.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) supervised: Vec<BpfProgram>,
    pub(super) notify: BpfProgram,
    pub(super) alone: Vec<BpfProgram>,
}

/// Compiles the filters, to be installed in this order: the second refuses what the first cannot say.
pub(super) fn compile(beneath: Beneath, network: NetworkAccess) -> Result<Programs, CageError> {
    let refused = filter(refused(beneath, network), libc::EPERM)?;
    // The C library falls back to `clone`, whose flags a filter can see; those of `clone3` are in
    // memory.
    let unknown = filter(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    let mut programs = vec![refused, unknown];
    if cfg!(target_arch = "x86_64") {
        programs.push(no_x32());
    }
    Ok(Programs { supervised: programs.clone(), notify: Vec::new(), alone: programs })
}

fn filter(
    rules: BTreeMap<libc::c_long, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, CageError> {
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(CageError::filter)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    filter.and_then(BpfProgram::try_from).map_err(CageError::filter)
}

fn refused(beneath: Beneath, network: NetworkAccess) -> BTreeMap<libc::c_long, Vec<SeccompRule>> {
    let mut rules = BTreeMap::new();
    let always = REFUSED.iter().flat_map(|(calls, _why)| calls.iter()).chain(REFUSED_HERE);
    for &call in always {
        rules.insert(call, Vec::new());
    }
    if beneath == Beneath::LandlockOnly {
        rules.extend(DEBUGGING.iter().chain(SHARED).map(|&call| (call, Vec::new())));
        // Limits of any process but the caller's own.
        rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, Op::Ne, 0)])]);
    }
    let each_bit = (0..32).map(|bit| 1u64 << bit).filter(|bit| NAMESPACE_FLAGS & bit != 0);
    rules.insert(
        libc::SYS_clone,
        each_bit.map(|bit| rule(&[(0, Op::MaskedEq(bit), bit)])).collect(),
    );
    let keystrokes = [TIOCSTI, TIOCLINUX].map(|request| rule(&[(1, Op::Eq, request)]));
    rules.insert(libc::SYS_ioctl, keystrokes.into());
    rules.insert(libc::SYS_socket, sockets(beneath, network));
    rules.insert(libc::SYS_socketpair, pairs());
    rules
}

/// Everything but the families that are allowed.
fn sockets(beneath: Beneath, network: NetworkAccess) -> Vec<SeccompRule> {
    let internet = match (beneath, network) {
        // The cage has a loopback of its own to use them on.
        (Beneath::Namespaces, _) | (_, NetworkAccess::Enabled) => true,
        (Beneath::LandlockOnly, NetworkAccess::Restricted) => false,
    };
    let mut allowed = vec![libc::AF_NETLINK];
    if internet {
        allowed.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let others: Vec<_> = allowed.iter().map(|&family| (0, Op::Ne, number(family))).collect();
    let routes = number(libc::NETLINK_ROUTE);
    vec![rule(&others), rule(&[(0, Op::Eq, number(libc::AF_NETLINK)), (2, Op::Ne, routes)])]
}

/// A pair of datagram sockets can be used to send to any path; the others reach only each other.
fn pairs() -> Vec<SeccompRule> {
    const TYPE: u64 = 0xf;
    let datagram = number(libc::SOCK_DGRAM);
    vec![rule(&[(0, Op::Ne, number(libc::AF_UNIX))]), rule(&[(1, Op::MaskedEq(TYPE), datagram)])]
}

fn number(constant: i32) -> u64 {
    u64::from(constant.cast_unsigned())
}

/// A rule that holds when all of its conditions do. The kernel takes these arguments as 32 bits.
fn rule(conditions: &[(u8, Op, u64)]) -> SeccompRule {
    let conditions = conditions
        .iter()
        .map(|(index, op, value)| SeccompCondition::new(*index, Len::Dword, op.clone(), *value));
    let conditions: Result<Vec<_>, _> = conditions.collect();
    conditions
        .and_then(SeccompRule::new)
        .expect("argument numbers are below six and no rule is empty")
}

/// Refuses the second numbering of system calls that x86-64 kernels may have: the tables above do
/// not name it, so it would go around them.
fn no_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    let op = |code: u32, jt, jf, k| seccompiler::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt,
        jf,
        k,
    };
    vec![
        // The number is the first field of what a filter sees.
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        op(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        ),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
