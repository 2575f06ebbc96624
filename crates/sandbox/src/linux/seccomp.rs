//! The system calls that a confined command may not make, as tables, and their compilation.
//!
//! The filters refuse what no layer beneath them sees: kernel interfaces that a command of a coding
//! agent never needs, namespaces and mounts, socket families, and keystrokes pushed into a terminal.
//! Files are the business of mounts and Landlock; where there is a supervisor, it is asked about
//! changes to them and about addresses too, so that it can tell what was refused.

use super::CageError;
use super::program::{Answer, Case, Condition, Mask, Program, Table, assemble};
use super::requests::{
    ALLOWED_KINDS, FILE_REQUESTS, HARMLESS_REQUESTS, KEY_REQUESTS, KIND, Request, SIGNAL_REQUESTS,
    STRAY_REQUESTS, TERMINAL_REQUESTS,
};
use super::supervisor::calls::{FILE_CALLS, GIVES_MODE, GivesMode, S_ISUID, opens_to_write};
use sandgate_protocol::NetworkAccess;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A system call: its number, and the constant that names it.
pub(super) type Call = (libc::c_long, &'static str);

/// System calls by the constants that name them.
macro_rules! calls {
    ($($constant:ident),* $(,)?) => {
        &[$((libc::$constant, stringify!($constant))),*]
    };
}

/// The filters of a cage, ready to be installed.
#[derive(Debug)]
pub(super) struct Programs {
    /// What the supervisor is asked about, and what is refused without a word. To be installed with a
    /// listener.
    pub(super) notify: Program,
    /// What is refused where there is no supervisor.
    pub(super) alone: Program,
}

/// Whether an attempt is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It says something about the command.
    Yes,
    /// Programs try it as a matter of routine and go on without it.
    No,
}

/// Calls that are refused whatever their arguments, with the reason for a reviewer.
struct Refused {
    calls: &'static [Call],
    told: Told,
    #[expect(dead_code, reason = "it is for whoever reads the table")]
    why: &'static str,
}

const REFUSED: &[Refused] = &[
    Refused {
        calls: calls![
            SYS_mount,
            SYS_umount2,
            SYS_pivot_root,
            SYS_chroot,
            SYS_open_tree,
            SYS_move_mount,
            SYS_fsopen,
            SYS_fsconfig,
            SYS_fsmount,
            SYS_fspick,
            SYS_mount_setattr,
        ],
        told: Told::Yes,
        why: "could uncover what a mount covers",
    },
    Refused {
        // Newer than the C library's list. The number is the same on every architecture.
        calls: &[(467, "SYS_open_tree_attr")],
        told: Told::Yes,
        why: "the same",
    },
    Refused {
        calls: &[(460, "SYS_lsm_set_self_attr")],
        told: Told::Yes,
        why: "says by which rules of another security module it lives; in /proc that is read-only",
    },
    Refused {
        calls: &[(443, "SYS_quotactl_fd")],
        told: Told::Yes,
        why: "runs the machine, like quotactl",
    },
    Refused {
        calls: calls![SYS_unshare, SYS_setns],
        told: Told::Yes,
        why: "a namespace of its own has all capabilities in it",
    },
    Refused {
        calls: calls![SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register],
        // Every start of node does, and uses threads instead.
        told: Told::No,
        why: "does system calls that no filter sees",
    },
    Refused {
        calls: calls![SYS_keyctl, SYS_add_key, SYS_request_key],
        told: Told::Yes,
        why: "keyrings belong to the user, not to the cage",
    },
    Refused {
        calls: calls![SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_fanotify_init],
        told: Told::Yes,
        why: "kernel surface that exploits like best",
    },
    Refused {
        calls: calls![SYS_open_by_handle_at],
        told: Told::Yes,
        why: "opens files past every directory's permission",
    },
    Refused {
        // Landlock refuses it without a word: a queue's file is beneath no root.
        calls: calls![SYS_mq_open],
        told: Told::Yes,
        why: "opens what other processes of the user share",
    },
    Refused {
        calls: calls![SYS_memfd_secret],
        told: Told::Yes,
        why: "has memory that the kernel takes paths from and a supervisor cannot read",
    },
    Refused {
        calls: calls![
            SYS_init_module,
            SYS_finit_module,
            SYS_delete_module,
            SYS_kexec_load,
            SYS_kexec_file_load,
            SYS_reboot,
            SYS_swapon,
            SYS_swapoff,
            SYS_acct,
            SYS_quotactl,
            SYS_settimeofday,
            SYS_clock_settime,
            SYS_clock_adjtime,
            SYS_adjtimex,
            SYS_syslog,
            SYS_sethostname,
            SYS_setdomainname,
            SYS_vhangup,
            SYS_lookup_dcookie,
            SYS_nfsservctl,
        ],
        told: Told::Yes,
        why: "runs the machine",
    },
    #[cfg(target_arch = "x86_64")]
    Refused {
        calls: calls![SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_sysfs],
        told: Told::Yes,
        why: "only old programs of this architecture had a use for them",
    },
];

/// Reach other processes' memory. In a PID namespace there are only the cage's own.
const DEBUGGING: &[Call] =
    calls![SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp,];

/// Reach what other processes of the user share, or change what no rule on files covers. In
/// namespaces the first are the cage's own, and the second end at read-only mounts.
const SHARED: &[Call] = calls![
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_mq_unlink,
    // Who can read a queue's file can open it, and take its messages.
    SYS_mq_timedsend,
    SYS_mq_timedreceive,
    SYS_mq_notify,
    SYS_mq_getsetattr,
];

/// The same; newer than the C library's list. The numbers are the same on every architecture.
const SHARED_NEW: &[Call] = &[(469, "SYS_file_setattr")];

/// Change what a file says beside its contents. Where Landlock is alone no file system has such a thing: whoever
/// copies a file with all that belongs to it (`cp -p`, `install`) goes on without, and does not after a refusal.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
];
pub(super) const SYS_SETXATTRAT: libc::c_long = 463;
pub(super) const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// Calls that some arguments of are refused.
const PARTLY_REFUSED: &[Call] =
    calls![SYS_clone, SYS_fcntl, SYS_ioctl, SYS_kill, SYS_setsockopt, SYS_socket, SYS_socketpair];

/// Whether descriptors can be sent to a unix socket: of Linux 6.16, and not in the C library's list. A standard stream that is
/// one has this switched off, and a command must not switch it on again. To what, is in memory.
pub const SO_PASSRIGHTS: i32 = 83;

/// Calls whose first argument is the process that they set limits to, or hold up. In namespaces the first
/// one is the command's guard, which could be kept from seeing, or from moving, by them.
const HINDERING: &[Call] = calls![
    SYS_prlimit64,
    SYS_sched_setaffinity,
    SYS_sched_setattr,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
];

/// The same with a first argument that says what the second one is. It must be a process: the group of
/// processes that a command is in can be its caller's, and a user has others.
const HINDERING_WHO: &[(Call, i32)] = &[
    ((libc::SYS_setpriority, "SYS_setpriority"), 0),
    ((libc::SYS_ioprio_set, "SYS_ioprio_set"), 1),
];

/// The version of Landlock that lets no signal out. Before it `kill 0` reaches whoever is in the group that
/// sandgate was called in; other processes have no number in a PID namespace.
const KEEPS_SIGNALS_IN: i32 = 6;

/// Whoever is told by a signal that a descriptor is ready. Of a terminal that is the group of processes in the foreground,
/// whoever has asked; and the signal can be any.
const O_ASYNC: u32 = libc::O_ASYNC.cast_unsigned();

/// Calls that name an address.
const ADDRESSES: &[Call] = calls![SYS_connect, SYS_bind, SYS_sendto, SYS_sendmsg, SYS_sendmmsg];

/// Makes a namespace: every bit of `clone`'s flags that does.
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

/// The number that the first process of a namespace has in it.
const FIRST_PROCESS: i32 = 1;

/// Which layers the filter stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beneath {
    /// Namespaces: other processes and the host's network are out of reach anyway.
    Namespaces,
    /// Landlock alone.
    LandlockOnly,
}

/// Whether a call is refused altogether where Landlock is alone.
pub(super) fn is_refused_alone(number: libc::c_long) -> bool {
    [DEBUGGING, SHARED, SHARED_NEW].into_iter().flatten().any(|(call, _)| *call == number)
}

/// The process or thread that a call names to schedule it otherwise, if it is one of these.
pub(super) fn rescheduled(number: i32, arguments: &[u64; 6]) -> Option<i32> {
    let number = libc::c_long::from(number);
    let argument =
        |index: usize| arguments.get(index).map(|value| lower_half(*value).cast_signed());
    let who = HINDERING_WHO.iter().find(|((call, _), _)| *call == number);
    match who {
        Some((_, process)) if argument(0) == Some(*process) => argument(1),
        Some(_) => None,
        None if number == libc::SYS_prlimit64 => None,
        None => HINDERING.iter().find(|(call, _)| *call == number).and_then(|_| argument(0)),
    }
}

/// The name of a system call that the supervisor is asked about.
pub(super) fn name_of(number: libc::c_long) -> &'static str {
    let refused = REFUSED.iter().flat_map(|refused| refused.calls);
    let others = [DEBUGGING, SHARED, SHARED_NEW, PARTLY_REFUSED, HINDERING, ADDRESSES];
    let others = others.into_iter().flatten().chain(HINDERING_WHO.iter().map(|(call, _)| call));
    let files = FILE_CALLS.iter().map(|(call, _)| call);
    let found = files.chain(refused).chain(others).find(|(known, _)| *known == number);
    found.map_or("unknown", |(_, constant)| constant.strip_prefix("SYS_").unwrap_or(constant))
}

/// The calls that are refused whatever their arguments, and told.
#[cfg(test)]
pub(super) fn told_calls(mode: super::Mode) -> Vec<libc::c_long> {
    let always = REFUSED.iter().filter(|refused| refused.told == Told::Yes);
    let alone: &[&[Call]] = match mode {
        super::Mode::Namespaces => &[],
        super::Mode::LandlockOnly => &[DEBUGGING, SHARED, SHARED_NEW],
    };
    let calls = always.flat_map(|refused| refused.calls).chain(alone.iter().copied().flatten());
    calls.map(|(number, _)| *number).collect()
}

/// The filters, which are compiled once for all cages of this program.
pub(super) fn programs(
    beneath: Beneath,
    network: NetworkAccess,
) -> Result<&'static Programs, CageError> {
    static IN_NAMESPACES: [OnceLock<Programs>; 2] = [const { OnceLock::new() }; 2];
    static ALONE: [OnceLock<Programs>; 2] = [const { OnceLock::new() }; 2];
    let [restricted, enabled] = match beneath {
        Beneath::Namespaces => &IN_NAMESPACES,
        Beneath::LandlockOnly => &ALONE,
    };
    let compiled = match network {
        NetworkAccess::Restricted => restricted,
        NetworkAccess::Enabled => enabled,
    };
    if let Some(compiled) = compiled.get() {
        return Ok(compiled);
    }
    let programs = Programs {
        notify: assemble(&supervised(beneath, network))?,
        alone: assemble(&unsupervised(beneath, network))?,
    };
    Ok(compiled.get_or_init(|| programs))
}

/// What becomes of calls where there is a supervisor.
pub(super) fn supervised(beneath: Beneath, network: NetworkAccess) -> Table {
    let silent = refused(beneath, |told| told == Told::No);
    let mut told = refused(beneath, |told| told == Told::Yes);
    told.insert(libc::SYS_socket, sockets(beneath, network, &[libc::AF_UNIX]));
    ask_about_files(&mut told);
    ask_about_addresses(&mut told, beneath, network);
    let mut table = with_answer(told, Answer::Ask);
    table.extend(with_answer(silent, REFUSE));
    add_absent(&mut table, beneath);
    // The supervisor looks at the addresses that sockets of this family are connected to. It does
    // not at those that datagrams are sent to, and every program that writes to the system's log
    // makes such a socket.
    let loose = Case { when: vec![is(0, libc::AF_UNIX), loose_type()], answer: REFUSE };
    table.entry(libc::SYS_socket).or_default().insert(0, loose);
    table
}

/// What becomes of calls where nobody can be asked.
pub(super) fn unsupervised(beneath: Beneath, network: NetworkAccess) -> Table {
    let mut rules = refused(beneath, |_| true);
    rules.insert(libc::SYS_socket, sockets(beneath, network, &[]));
    rules.extend(GIVES_MODE.iter().map(|gives| (gives.call, vec![sets_user_id(gives)])));
    let mut table = with_answer(rules, REFUSE);
    add_absent(&mut table, beneath);
    table
}

const REFUSE: Answer = Answer::Error(libc::EPERM);

/// Conditions that must all hold.
type Rule = Vec<Condition>;

/// For each call the rules, of which one must hold.
type Rules = BTreeMap<libc::c_long, Vec<Rule>>;

/// Whatever the arguments are.
fn always() -> Vec<Rule> {
    vec![Rule::new()]
}

fn with_answer(rules: Rules, answer: Answer) -> Table {
    let case = |when| Case { when, answer };
    rules.into_iter().map(|(call, rules)| (call, rules.into_iter().map(case).collect())).collect()
}

/// What is answered as if there were no such thing. What `clone3` and `openat2` would do is in memory, where no filter sees
/// it. Kernels did not always have them, so that programs fall back to others whose arguments a filter can see: `clone` and
/// its flags, `openat` and the mode of what it makes.
fn add_absent(table: &mut Table, beneath: Beneath) {
    let answer = |when, errno| Case { when, answer: Answer::Error(errno) };
    for call in [libc::SYS_clone3, libc::SYS_openat2] {
        table.insert(call, vec![answer(Rule::new(), libc::ENOSYS)]);
    }
    if beneath == Beneath::LandlockOnly {
        for call in ATTRIBUTES {
            table.insert(*call, vec![answer(Rule::new(), libc::EOPNOTSUPP)]);
        }
    }
    // Behind the cases of those that are refused.
    let unknown = answer(unknown_request(beneath), libc::ENOTTY);
    table.entry(libc::SYS_ioctl).or_default().push(unknown);
}

/// Whether a call leaves a program that runs as its owner, whoever starts it. Where there is a
/// supervisor it looks at the same arguments, and can tell.
fn sets_user_id(gives: &GivesMode) -> Rule {
    let makes = gives.makes.map(|(flags, any)| Condition::AnyBit(u32::from(flags), any));
    makes.into_iter().chain([Condition::AnyBit(u32::from(gives.mode), S_ISUID)]).collect()
}

/// What is refused in any case, but for sockets. All that has arguments is worth telling.
fn refused(beneath: Beneath, wanted: impl Fn(Told) -> bool) -> Rules {
    let mut rules = Rules::new();
    for refused in REFUSED.iter().filter(|refused| wanted(refused.told)) {
        rules.extend(refused.calls.iter().map(|(call, _)| (*call, always())));
    }
    if !wanted(Told::Yes) {
        return rules;
    }
    if beneath == Beneath::LandlockOnly {
        let calls = [DEBUGGING, SHARED, SHARED_NEW].into_iter().flatten();
        rules.extend(calls.map(|(call, _)| (*call, always())));
    }
    // In namespaces there are only the cage's own and the guard. Elsewhere whoever is named is asked about,
    // because programs name their own threads; limits are the caller's own or nobody's.
    let another = |argument| match beneath {
        Beneath::Namespaces => is(argument, FIRST_PROCESS),
        Beneath::LandlockOnly => is_not(argument, 0),
    };
    rules.extend(HINDERING.iter().map(|(call, _)| (*call, vec![vec![another(0)]])));
    rules.extend(HINDERING_WHO.iter().map(|((call, _), process)| {
        let named = vec![is(0, *process), another(1)];
        (*call, vec![vec![is_not(0, *process)], named])
    }));
    let keeps_signals_in = crate::sys::landlock_version() >= KEEPS_SIGNALS_IN;
    if beneath == Beneath::Namespaces && !keeps_signals_in {
        rules.insert(libc::SYS_kill, vec![vec![is(0, 0)]]);
    }
    rules.insert(libc::SYS_clone, vec![vec![Condition::AnyBit(0, NAMESPACE_FLAGS)]]);
    let of_files = match beneath {
        Beneath::Namespaces => &[],
        Beneath::LandlockOnly => FILE_REQUESTS,
    };
    let of_signals = if keeps_signals_in { &[] } else { SIGNAL_REQUESTS };
    let requests = [TERMINAL_REQUESTS, KEY_REQUESTS, STRAY_REQUESTS, of_files, of_signals];
    let requests = numbers(&requests);
    rules.insert(libc::SYS_ioctl, vec![vec![Condition::OneOf(1, Mask::All, requests)]]);
    let mut of_descriptors = notices();
    if !keeps_signals_in {
        of_descriptors.push(vec![is(1, libc::F_SETFL), Condition::AnyBit(2, O_ASYNC)]);
    }
    rules.insert(libc::SYS_fcntl, of_descriptors);
    rules.insert(libc::SYS_socketpair, pairs());
    let passes_rights = vec![is(1, libc::SOL_SOCKET), is(2, SO_PASSRIGHTS)];
    rules.insert(libc::SYS_setsockopt, vec![passes_rights]);
    rules
}

/// Any request but those that are known to change nothing beyond what the layers beneath hold.
fn unknown_request(beneath: Beneath) -> Rule {
    let allowed: &[&[Request]] = match beneath {
        Beneath::Namespaces => &[HARMLESS_REQUESTS, FILE_REQUESTS],
        Beneath::LandlockOnly => &[HARMLESS_REQUESTS],
    };
    vec![
        Condition::NoneOf(1, Mask::Only(KIND), ALLOWED_KINDS.to_vec()),
        Condition::NoneOf(1, Mask::All, numbers(allowed)),
    ]
}

fn numbers(tables: &[&[Request]]) -> Vec<u32> {
    tables.iter().copied().flatten().map(|(request, _)| lower_half(*request)).collect()
}

/// Reading costs nothing: only those opens are asked about whose flags say that something could
/// change.
fn ask_about_files(rules: &mut Rules) {
    for ((call, _), file_call) in FILE_CALLS {
        let when = opens_to_write(*file_call).map(|(argument, flags)| {
            vec![vec![Condition::AnyBit(u32::from(argument), lower_half(flags))]]
        });
        // What is refused altogether stays so.
        rules.entry(*call).or_insert(when.unwrap_or_else(always));
    }
}

fn ask_about_addresses(rules: &mut Rules, beneath: Beneath, network: NetworkAccess) {
    rules.insert(libc::SYS_connect, always());
    rules.insert(libc::SYS_bind, always());
    // Without a network of the cage's own there are no sockets of the internet's either.
    if network == NetworkAccess::Restricted && beneath == Beneath::Namespaces {
        rules.insert(libc::SYS_sendto, vec![vec![Condition::NotNull(4)]]);
        rules.insert(libc::SYS_sendmsg, always());
        rules.insert(libc::SYS_sendmmsg, always());
    }
}

/// Whether sockets of the internet's families are allowed.
pub(super) fn has_internet(beneath: Beneath, network: NetworkAccess) -> bool {
    // In namespaces the cage has a loopback of its own to use them on.
    beneath == Beneath::Namespaces || network == NetworkAccess::Enabled
}

/// Everything but the families that are allowed.
fn sockets(beneath: Beneath, network: NetworkAccess, more: &[i32]) -> Vec<Rule> {
    let mut allowed = [&[libc::AF_NETLINK], more].concat();
    if has_internet(beneath, network) {
        allowed.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let allowed = allowed.into_iter().map(i32::cast_unsigned).collect();
    let others = Condition::NoneOf(0, Mask::All, allowed);
    vec![vec![others], vec![is(0, libc::AF_NETLINK), is_not(2, libc::NETLINK_ROUTE)]]
}

/// The types of unix sockets that are not connected before something is sent through them: each
/// message could name any path. The kernel takes a raw one for one of datagrams.
fn loose_type() -> Condition {
    const TYPE: u32 = 0xf;
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(i32::cast_unsigned);
    Condition::NoneOf(1, Mask::Only(TYPE), connected.to_vec())
}

/// Who holds a lease on a file is asked before others open it, and they wait; signals tell of changes; and what is said of
/// how long its contents last, everybody is told who asks. To read a file is enough for all of them. Giving up a lease is
/// giving up nothing.
fn notices() -> Vec<Rule> {
    /// Of Linux 6.19: a lease on a directory too. What kind is in memory.
    const F_SETDELEG: i32 = 1024 + 16;
    const F_SET_RW_HINT: i32 = 1024 + 12;
    const F_SET_FILE_RW_HINT: i32 = 1024 + 14;
    vec![
        vec![is(1, libc::F_SETLEASE), is_not(2, libc::F_UNLCK)],
        vec![is(1, libc::F_NOTIFY)],
        vec![is(1, F_SETDELEG)],
        vec![is(1, F_SET_RW_HINT)],
        vec![is(1, F_SET_FILE_RW_HINT)],
    ]
}

/// Pairs reach only each other, but for those of datagrams.
fn pairs() -> Vec<Rule> {
    vec![vec![is_not(0, libc::AF_UNIX)], vec![loose_type()]]
}

fn is(argument: u32, constant: i32) -> Condition {
    Condition::OneOf(argument, Mask::All, vec![constant.cast_unsigned()])
}

fn is_not(argument: u32, constant: i32) -> Condition {
    Condition::NoneOf(argument, Mask::All, vec![constant.cast_unsigned()])
}

/// The half of a value that the kernel takes from these arguments.
fn lower_half(value: u64) -> u32 {
    value as u32
}
