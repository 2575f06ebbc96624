//! Changes to files: the kernel's own answer with and without a supervisor, and the evidence.

use super::{LANDLOCK, NAMESPACES, Outcome, Setting, Supervision, World, is_possible, run};
use crate::sys::probe::{Argument, call};
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat, symlink};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// One call. In its text `{out}`, `{ws}` and the like stand for paths of a world.
type Try = (libc::c_long, Vec<Given>);

/// An argument before the world is known.
#[derive(Debug, Clone)]
enum Given {
    /// A path in the world, or, when it begins with `=`, exactly this text.
    Path(&'static str),
    Number(i64),
    Bytes(Vec<u8>),
    /// A descriptor of this path, opened for reading.
    Open(&'static str),
    /// One that only stands for it.
    Held(&'static str),
}
use Given::{Bytes, Held, Number, Open, Path};

/// What is expected of a try: evidence without its system call, or none.
type Expected = Option<&'static str>;

const CWD_FD: Given = Number(libc::AT_FDCWD as i64);

/// Makes each call in one cage and writes the error of each.
fn attempt_all(world: &World, setting: Setting, tries: &[Try]) -> Outcome {
    run(world, setting, |say| {
        std::env::set_current_dir(world.path("ws")).unwrap();
        for (number, given) in tries {
            let mut held = Vec::new();
            let texts: Vec<_> = given
                .iter()
                .map(|given| match given {
                    Path(text) => match text.strip_prefix('=') {
                        Some(exact) => Some(std::ffi::CString::new(exact).unwrap()),
                        None => Some(world.c(text)),
                    },
                    _ => None,
                })
                .collect();
            let arguments: Vec<_> = given
                .iter()
                .zip(&texts)
                .map(|(given, text)| match (given, text) {
                    (_, Some(text)) => Argument::Text(text),
                    (Number(number), _) => Argument::Number(*number),
                    (Bytes(bytes), _) => Argument::Bytes(bytes),
                    (Open(name) | Held(name), _) => {
                        let read =
                            if matches!(given, Open(_)) { OFlags::RDONLY } else { OFlags::PATH };
                        let flags = read | OFlags::CLOEXEC;
                        let fd = openat(CWD, world.path(name), flags, FileMode::empty()).unwrap();
                        held.push(fd);
                        Argument::Number(held.last().unwrap().as_raw_fd().into())
                    }
                    (Path(_), None) => unreachable!(),
                })
                .collect();
            let errno = call(*number, &arguments).err().map_or(0, Errno::raw_os_error);
            say(&format!("{errno}\n"));
        }
    })
}

/// Holds the answers of a cage with a supervisor against those of one without, and the evidence
/// against what is expected.
#[track_caller]
fn check(setting: Setting, tries: &[(Try, Expected)]) {
    if !is_possible(setting) {
        return;
    }
    let calls: Vec<Try> = tries.iter().map(|(call, _)| call.clone()).collect();
    let world = furnished();
    let supervised = attempt_all(&world, setting, &calls);
    let prefix = world.path("");
    let supervised_denials: Vec<String> =
        supervised.denials.iter().map(|line| line.replace(prefix.to_str().unwrap(), "")).collect();
    let other = furnished();
    let plain = Setting { supervision: Supervision::None, ..setting };
    let plain = attempt_all(&other, plain, &calls);
    let errors = |outcome: &Outcome| -> Vec<i32> {
        outcome.said.lines().map(|line| line.parse().unwrap()).collect()
    };
    let (with, without) = (errors(&supervised), errors(&plain));
    assert_eq!((with.len(), without.len()), (tries.len(), tries.len()));
    for (((number, given), _), (with, without)) in tries.iter().zip(with.iter().zip(&without)) {
        let name = super::super::syscall_name(i32::try_from(*number).unwrap());
        assert_eq!(with, without, "the error of {name} {given:?}");
    }
    let expected: Vec<String> = tries
        .iter()
        .filter_map(|((number, _), expected)| {
            let name = super::super::syscall_name(i32::try_from(*number).unwrap());
            expected.map(|expected| format!("{expected} {name}"))
        })
        .collect();
    assert_eq!(supervised_denials, expected);
    assert_eq!(plain.denials, [""; 0]);
    assert_eq!(describe(&world), describe(&other), "the same was changed in both");
}

/// Everything in a world, as text.
fn describe(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    let mut todo = vec![world.path("")];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.path().symlink_metadata().unwrap();
            let name = entry.path().strip_prefix(world.path("")).unwrap().to_owned();
            let text = if meta.is_file() {
                fs::read(entry.path()).unwrap_or_default()
            } else {
                Vec::new()
            };
            lines.push(format!("{} {:o} {text:?}", name.display(), meta.permissions().mode()));
            if meta.is_dir() {
                todo.push(entry.path());
            }
        }
    }
    lines.sort();
    lines
}

/// A world with links, modes and nodes of many kinds.
fn furnished() -> World {
    let world = World::new();
    let link = |to: &str, at: &str| symlink(to, world.path(at)).unwrap();
    link(world.path("out/file").to_str().unwrap(), "ws/to-file");
    link(world.path("out/absent").to_str().unwrap(), "ws/to-absent");
    link("../out/away", "ws/to-away");
    link("to-away", "ws/to-to-away");
    link(world.path("out").to_str().unwrap(), "ws/to-out");
    link("/proc/self/fd/0", "ws/to-descriptor");
    fs::write(world.path("out/closed"), "as it was").unwrap();
    fs::set_permissions(world.path("out/closed"), PermissionsExt::from_mode(0o444)).unwrap();
    fs::create_dir(world.path("out/locked")).unwrap();
    fs::set_permissions(world.path("out/locked"), PermissionsExt::from_mode(0o555)).unwrap();
    fs::create_dir(world.path("ws/empty")).unwrap();
    let mode = FileMode::RUSR | FileMode::WUSR;
    rustix::fs::mknodat(CWD, world.path("out/pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    world
}

fn flags(flags: i32) -> Given {
    Number(flags.into())
}

const WRITE: i32 = libc::O_WRONLY;
const CREATE: i32 = libc::O_WRONLY | libc::O_CREAT;
const TRUNC: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
const FRESH: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;

fn openat_try(path: &'static str, how: i32) -> Try {
    (libc::SYS_openat, vec![CWD_FD, Path(path), flags(how | libc::O_NONBLOCK), Number(0o600)])
}

#[test]
fn an_open_for_writing_is_refused_as_the_kernel_refuses_it_and_told() {
    let outside = |path: &str| -> Expected {
        Some(Box::leak(format!("{path} OutsideWritableRoots").into_boxed_str()))
    };
    let tries = [
        // The mount of the root is known before anything is tried that lies on another one.
        (openat_try("ws/file", WRITE), None),
        (openat_try("ws/first", CREATE), None),
        (openat_try("out/file", WRITE), outside("write out/file")),
        (openat_try("out/other", libc::O_RDWR), outside("write out/other")),
        (openat_try("out/new", CREATE), outside("create out/new")),
        (openat_try("out/sub/fresh", FRESH), outside("create out/sub/fresh")),
        (openat_try("out/locked/new", CREATE), outside("create out/locked/new")),
        (openat_try("ws/.git/config", WRITE), Some("write ws/.git/config ProtectedName")),
        (openat_try("ws/.git/new", CREATE), Some("create ws/.git/new ProtectedName")),
        (openat_try("ws/to-absent", CREATE), outside("create out/absent")),
        (openat_try("ws/to-to-away", CREATE), outside("create out/away")),
        (openat_try("ws/to-out/x", CREATE), outside("create out/x")),
        (openat_try("=../out/relative", CREATE), outside("create out/relative")),
        (openat_try("=/proc/self/cwd/../out/own", CREATE), outside("create out/own")),
        (openat_try("out/closed", TRUNC), outside("write out/closed")),
        (
            (libc::SYS_openat, vec![Held("out"), Path("=by-fd"), flags(CREATE), Number(0o600)]),
            outside("create out/by-fd"),
        ),
        (
            (
                libc::SYS_openat,
                vec![CWD_FD, Path("out"), flags(libc::O_TMPFILE | WRITE), Number(0o600)],
            ),
            outside("create out"),
        ),
        // What is told already.
        (openat_try("ws/to-file", WRITE), None),
        (openat_try("ws/to-out/file", libc::O_RDONLY | libc::O_TRUNC), None),
        // What the kernel has other reasons to refuse, or no reason.
        (openat_try("out/closed", WRITE), None),
        (openat_try("out/file", FRESH), None),
        (openat_try("out/file", libc::O_RDONLY | libc::O_CREAT), None),
        (openat_try("out/pipe", libc::O_RDWR), Some("write out/pipe OutsideWritableRoots")),
        (openat_try("out", WRITE), None),
        (openat_try("out", CREATE), None),
        (openat_try("out/sub/", CREATE), None),
        (openat_try("out/none/x", CREATE), None),
        (openat_try("out/file/x", CREATE), None),
        (openat_try("out/none", WRITE), None),
        (openat_try("out/file", libc::O_PATH | WRITE), None),
        (openat_try("out/none2", CREATE | libc::O_DIRECTORY), None),
        (openat_try("ws/to-file", WRITE | libc::O_NOFOLLOW), None),
        (openat_try("ws/to-absent", FRESH), None),
        (openat_try("=", CREATE), None),
        (openat_try("=/dev/null", WRITE), None),
        (openat_try("=/dev/null", TRUNC), None),
        (openat_try("ws/file", TRUNC), None),
        (openat_try("ws/new", CREATE), None),
        (openat_try("=here", CREATE), None),
        (openat_try("ws/sub/fresh", FRESH), None),
        ((libc::SYS_openat, vec![CWD_FD, Number(0), flags(CREATE), Number(0o600)]), None),
        ((libc::SYS_openat, vec![CWD_FD, Number(8), flags(CREATE), Number(0o600)]), None),
        ((libc::SYS_openat, vec![Number(99), Path("=x"), flags(CREATE), Number(0o600)]), None),
    ];
    check(NAMESPACES, &tries);
}

/// spec SANDBOX.142: A command cannot set the set-user-id bit of a file, nor make a file that has it.
#[test]
fn no_call_sets_a_set_user_id_bit() {
    /// The kernel takes less of a mode than there is room for.
    const MODES: [i64; 2] = [0o104_755, 0o4711 | 0x7fff_0000_0000_0000 | 0xdead_0000];
    const UNNAMED: i32 = libc::O_TMPFILE | libc::O_RDWR;
    const OLD: i32 = libc::O_RDONLY | libc::O_CREAT;
    let of_mode = |mode| {
        let mut tries: Vec<(Try, &str)> = vec![
            ((libc::SYS_fchmodat, vec![CWD_FD, Path("ws/file"), Number(mode)]), "ws/file"),
            ((libc::SYS_fchmodat, vec![CWD_FD, Path("ws/sub"), Number(mode)]), "ws/sub"),
            ((libc::SYS_fchmodat, vec![CWD_FD, Path("out/file"), Number(mode)]), "out/file"),
            ((libc::SYS_fchmod, vec![Open("ws/empty"), Number(mode)]), "ws/empty"),
            ((452, vec![CWD_FD, Path("ws/none"), Number(mode), Number(0)]), "ws/none"),
            (
                (452, vec![Held("out/other"), Path("="), Number(mode), flags(libc::AT_EMPTY_PATH)]),
                "out/other",
            ),
            ((libc::SYS_openat, vec![CWD_FD, Path("ws/a"), flags(CREATE), Number(mode)]), "ws/a"),
            ((libc::SYS_openat, vec![CWD_FD, Path("ws/b"), flags(OLD), Number(mode)]), "ws/b"),
            ((libc::SYS_openat, vec![CWD_FD, Path("ws"), flags(UNNAMED), Number(mode)]), "ws"),
            ((libc::SYS_mknodat, vec![CWD_FD, Path("ws/c"), Number(mode)]), "ws/c"),
        ];
        #[cfg(target_arch = "x86_64")]
        tries.extend([
            ((libc::SYS_chmod, vec![Path("ws/.git/config"), Number(mode)]), "ws/.git/config"),
            ((libc::SYS_open, vec![Path("ws/d"), flags(CREATE), Number(mode)]), "ws/d"),
            ((libc::SYS_creat, vec![Path("ws/e"), Number(mode)]), "ws/e"),
            ((libc::SYS_mknod, vec![Path("ws/f"), Number(mode)]), "ws/f"),
        ]);
        tries
    };
    for setting in [NAMESPACES, LANDLOCK] {
        for supervision in [Supervision::Full, Supervision::None] {
            let setting = Setting { supervision, ..setting };
            if !is_possible(setting) {
                continue;
            }
            let world = furnished();
            let before = describe(&world);
            let (calls, paths): (Vec<Try>, Vec<_>) = MODES.into_iter().flat_map(of_mode).unzip();
            let outcome = attempt_all(&world, setting, &calls);
            assert_eq!(outcome.said, "1\n".repeat(calls.len()), "{setting:?}");
            assert_eq!(describe(&world), before);
            let told = paths.iter().zip(&calls).take(calls.len() / 2).map(|(path, (number, _))| {
                let name = super::super::syscall_name(i32::try_from(*number).unwrap());
                format!("change {} NeverAllowed {name}", world.path(path).display())
            });
            let told = told.filter(|_| supervision == Supervision::Full);
            assert_eq!(outcome.denials.concat(), told.collect::<String>());
        }
    }
}

/// A mode that counts for nothing may be anything, and a set-group-id bit is how a tree is shared.
#[test]
fn other_modes_are_given_as_ever() {
    let allowed = [
        (libc::SYS_openat, vec![CWD_FD, Path("ws/file"), flags(WRITE), Number(0o4755)]),
        (libc::SYS_openat, vec![CWD_FD, Path("ws"), flags(libc::O_DIRECTORY), Number(0xffff_ffff)]),
        (libc::SYS_openat, vec![CWD_FD, Path("ws/new"), flags(CREATE), Number(0o1777)]),
        (libc::SYS_fchmodat, vec![CWD_FD, Path("ws/sub"), Number(0o2775)]),
        (libc::SYS_mkdirat, vec![CWD_FD, Path("ws/dir"), Number(0o7777)]),
    ];
    let tries: Vec<_> = allowed.into_iter().map(|call| (call, None)).collect();
    for setting in [NAMESPACES, LANDLOCK] {
        check(setting, &tries);
        if is_possible(setting) {
            let calls: Vec<Try> = tries.iter().map(|(call, _)| call.clone()).collect();
            assert_eq!(attempt_all(&furnished(), setting, &calls).said, "0\n".repeat(calls.len()));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_older_calls_are_judged_like_their_successors() {
    let tries = [
        (
            (libc::SYS_open, vec![Path("out/file"), flags(WRITE)]),
            Some("write out/file OutsideWritableRoots"),
        ),
        (
            (libc::SYS_creat, vec![Path("out/new"), Number(0o600)]),
            Some("create out/new OutsideWritableRoots"),
        ),
        ((libc::SYS_creat, vec![Path("ws/new"), Number(0o600)]), None),
        (
            (libc::SYS_mkdir, vec![Path("out/dir"), Number(0o700)]),
            Some("create out/dir OutsideWritableRoots"),
        ),
        ((libc::SYS_rmdir, vec![Path("out/sub")]), Some("remove out/sub OutsideWritableRoots")),
        ((libc::SYS_unlink, vec![Path("out/file")]), Some("remove out/file OutsideWritableRoots")),
        (
            (libc::SYS_mknod, vec![Path("out/node"), Number(0o010_600)]),
            Some("create out/node OutsideWritableRoots"),
        ),
        (
            (libc::SYS_symlink, vec![Path("=x"), Path("out/link")]),
            Some("create out/link OutsideWritableRoots"),
        ),
        (
            (libc::SYS_link, vec![Path("out/file"), Path("out/name")]),
            Some("create out/name OutsideWritableRoots"),
        ),
        (
            (libc::SYS_rename, vec![Path("out/file"), Path("out/moved")]),
            Some("rename out/file OutsideWritableRoots"),
        ),
        (
            (libc::SYS_chmod, vec![Path("out/file"), Number(0o600)]),
            Some("change out/file OutsideWritableRoots"),
        ),
        (
            (libc::SYS_lchown, vec![Path("out/other"), Number(-1), Number(-1)]),
            Some("change out/other OutsideWritableRoots"),
        ),
        (
            (libc::SYS_chown, vec![Path("out/sub"), Number(-1), Number(-1)]),
            Some("change out/sub OutsideWritableRoots"),
        ),
        (
            (libc::SYS_utime, vec![Path("out/pipe"), Number(0)]),
            Some("change out/pipe OutsideWritableRoots"),
        ),
        (
            (libc::SYS_utimes, vec![Path("out/locked"), Number(0)]),
            Some("change out/locked OutsideWritableRoots"),
        ),
        (
            (libc::SYS_futimesat, vec![CWD_FD, Path("out/closed"), Number(0)]),
            Some("change out/closed OutsideWritableRoots"),
        ),
    ];
    check(NAMESPACES, &tries);
}

#[test]
fn names_are_made_removed_and_renamed_only_where_the_cage_is_open() {
    let at = |call, path| (call, vec![CWD_FD, Path(path), Number(0o700)]);
    let remove = |path, how: i32| (libc::SYS_unlinkat, vec![CWD_FD, Path(path), flags(how)]);
    let rename = |from, to, how: i32| {
        (libc::SYS_renameat2, vec![CWD_FD, Path(from), CWD_FD, Path(to), flags(how)])
    };
    let link = |from, to| (libc::SYS_linkat, vec![CWD_FD, Path(from), CWD_FD, Path(to), Number(0)]);
    const DIRECTORY: i32 = libc::AT_REMOVEDIR;
    let node = |path, mode| (libc::SYS_mknodat, vec![CWD_FD, Path(path), Number(mode), Number(0)]);
    let tries = [
        (at(libc::SYS_mkdirat, "out/dir"), Some("create out/dir OutsideWritableRoots")),
        (at(libc::SYS_mkdirat, "out/slash/"), Some("create out/slash OutsideWritableRoots")),
        (
            at(libc::SYS_mkdirat, "out/locked/dir"),
            Some("create out/locked/dir OutsideWritableRoots"),
        ),
        (at(libc::SYS_mkdirat, "ws/.git/dir"), Some("create ws/.git/dir ProtectedName")),
        (at(libc::SYS_mkdirat, "out/sub"), None),
        (at(libc::SYS_mkdirat, "out/none/dir"), None),
        (at(libc::SYS_mkdirat, "out/."), None),
        (at(libc::SYS_mkdirat, "ws/made"), None),
        (node("out/node", 0o010_600), Some("create out/node OutsideWritableRoots")),
        (node("out/plain", 0o600), Some("create out/plain OutsideWritableRoots")),
        (node("out/bad", 0o040_600), None),
        (node("out/bad/", 0o010_600), None),
        (node("out/file", 0o010_600), None),
        (
            (libc::SYS_symlinkat, vec![Path("=x"), CWD_FD, Path("out/link")]),
            Some("create out/link OutsideWritableRoots"),
        ),
        ((libc::SYS_symlinkat, vec![Path("="), CWD_FD, Path("out/link2")]), None),
        ((libc::SYS_symlinkat, vec![Path("=x"), CWD_FD, Path("ws/link")]), None),
        (link("out/file", "out/name"), Some("create out/name OutsideWritableRoots")),
        (link("out/none", "out/name2"), None),
        (link("ws/file", "ws/name"), None),
        (remove("out/file", 0), Some("remove out/file OutsideWritableRoots")),
        (remove("out/none", 0), Some("remove out/none OutsideWritableRoots")),
        (remove("out/sub", DIRECTORY), Some("remove out/sub OutsideWritableRoots")),
        (remove("ws/.git/config", 0), Some("remove ws/.git/config ProtectedName")),
        (remove("ws/.git", DIRECTORY), Some("remove ws/.git ProtectedName")),
        (remove("ws", DIRECTORY), Some("remove ws OutsideWritableRoots")),
        (remove("ws/.git", 0), None),
        (remove("ws/none", 0), None),
        (remove("out/none/x", 0), None),
        (remove("out/..", DIRECTORY), None),
        (remove("out/other", 0x1000), None),
        (remove("ws/empty", DIRECTORY), None),
        (rename("out/file", "out/moved", 0), Some("rename out/file OutsideWritableRoots")),
        (rename("ws/.git", "ws/git", 0), Some("rename ws/.git ProtectedName")),
        (rename("ws/file", "ws/.git/file", 0), Some("rename ws/.git/file ProtectedName")),
        (rename("ws/file", "out/taken", 0), Some("rename out/taken OutsideWritableRoots")),
        (rename("out/other", "ws/other", 0), Some("rename out/other OutsideWritableRoots")),
        (rename("ws/sub", "ws/.git", 0), None),
        (rename("ws/none", "ws/.git", 0), None),
        (rename("ws/file", "ws/.git", 0), None),
        (rename("ws/sub", "ws/.git", 1), None),
        (rename("out/none", "ws/none", 0), None),
        (rename("ws/file", "ws/moved", 0), None),
        (rename("ws/moved", "ws/sub/moved", 1), None),
        (rename("ws/a", "ws/b", 0x80), None),
    ];
    check(NAMESPACES, &tries);
}

#[test]
fn modes_owners_times_and_attributes_are_changed_only_where_the_cage_is_open() {
    const OMIT: i64 = (1 << 30) - 2;
    let times = |one: i64, two: i64| {
        Bytes([0, one, 0, two].iter().flat_map(|n: &i64| n.to_ne_bytes()).collect())
    };
    let chown = |path, how: i32| {
        (libc::SYS_fchownat, vec![CWD_FD, Path(path), Number(-1), Number(-1), flags(how)])
    };
    let touch =
        |path, times, how: i32| (libc::SYS_utimensat, vec![CWD_FD, Path(path), times, flags(how)]);
    let set = |call, path, name| {
        (call, vec![Path(path), Path(name), Bytes(b"x".to_vec()), Number(1), Number(0)])
    };
    const STAY: i32 = libc::AT_SYMLINK_NOFOLLOW;
    let tries = [
        (
            (libc::SYS_fchmodat, vec![CWD_FD, Path("out/file"), Number(0o600)]),
            Some("change out/file OutsideWritableRoots"),
        ),
        (
            (libc::SYS_fchmodat, vec![CWD_FD, Path("out/pipe"), Number(0o600)]),
            Some("change out/pipe OutsideWritableRoots"),
        ),
        (
            (libc::SYS_fchmodat, vec![CWD_FD, Path("ws/.git"), Number(0o700)]),
            Some("change ws/.git ProtectedName"),
        ),
        (
            (452, vec![CWD_FD, Path("out/sub"), Number(0o700), Number(0)]),
            Some("change out/sub OutsideWritableRoots"),
        ),
        (
            (452, vec![Held("out/other"), Path("="), Number(0o600), flags(libc::AT_EMPTY_PATH)]),
            Some("change out/other OutsideWritableRoots"),
        ),
        ((libc::SYS_fchmodat, vec![CWD_FD, Path("out/none"), Number(0o600)]), None),
        ((libc::SYS_fchmodat, vec![CWD_FD, Path("ws/file"), Number(0o640)]), None),
        (
            (libc::SYS_fchmod, vec![Open("out/closed"), Number(0o444)]),
            Some("change out/closed OutsideWritableRoots"),
        ),
        ((libc::SYS_fchmod, vec![Open("ws/file"), Number(0o600)]), None),
        ((libc::SYS_fchmod, vec![Number(98), Number(0o600)]), None),
        (
            (libc::SYS_fchown, vec![Open("out/locked"), Number(-1), Number(-1)]),
            Some("change out/locked OutsideWritableRoots"),
        ),
        (chown("ws/.git/config", 0), Some("change ws/.git/config ProtectedName")),
        (chown("ws/to-out", 0), Some("change out OutsideWritableRoots")),
        (chown("ws/to-out", STAY), None),
        (chown("ws/file", 0), None),
        (chown("ws/file", 0x2), None),
        (touch("ws/.git/hooks", Number(0), 0), Some("change ws/.git/hooks ProtectedName")),
        (touch("ws/to-file", Number(0), STAY), None),
        (touch("out/file", times(OMIT, OMIT), 0), None),
        (touch("out/file", times(-5, 0), 0), None),
        (touch("out/none", Number(0), 0), None),
        (touch("ws/file", times(OMIT, 0), 0), None),
        ((libc::SYS_utimensat, vec![Open("ws/.git/hooks"), Number(0), Number(0), Number(0)]), None),
        (
            (libc::SYS_truncate, vec![Path("out/file"), Number(0)]),
            Some("write out/file OutsideWritableRoots"),
        ),
        ((libc::SYS_truncate, vec![Path("out/sub"), Number(0)]), None),
        ((libc::SYS_truncate, vec![Path("out/closed"), Number(0)]), None),
        ((libc::SYS_truncate, vec![Path("out/other"), Number(-1)]), None),
        ((libc::SYS_truncate, vec![Path("ws/file"), Number(1)]), None),
        (set(libc::SYS_setxattr, "ws/.git/config", "=user.x"), None),
        (set(libc::SYS_setxattr, "out/other", "=user.x"), None),
        (set(libc::SYS_lsetxattr, "out", "=user.x"), None),
        (set(libc::SYS_setxattr, "out/file", "="), None),
        ((libc::SYS_removexattr, vec![Path("out/other"), Path("=user.x")]), None),
        ((libc::SYS_fremovexattr, vec![Open("out/other"), Path("=user.x")]), None),
        (set(libc::SYS_setxattr, "ws/file", "=bad.x"), None),
    ];
    check(NAMESPACES, &tries);
}

#[test]
fn attributes_outside_are_refused_and_told() {
    let set = |call, path| {
        (call, vec![Path(path), Path("=user.x"), Bytes(b"x".to_vec()), Number(1), Number(0)])
    };
    let tries = [
        (set(libc::SYS_setxattr, "out/file"), Some("change out/file OutsideWritableRoots")),
        (set(libc::SYS_lsetxattr, "out/other"), Some("change out/other OutsideWritableRoots")),
        (
            (libc::SYS_removexattr, vec![Path("out/sub"), Path("=user.x")]),
            Some("change out/sub OutsideWritableRoots"),
        ),
        (
            (libc::SYS_lremovexattr, vec![Path("out/closed"), Path("=user.x")]),
            Some("change out/closed OutsideWritableRoots"),
        ),
        (
            (
                libc::SYS_fsetxattr,
                vec![
                    Open("out/locked"),
                    Path("=user.x"),
                    Bytes(b"x".to_vec()),
                    Number(1),
                    Number(0),
                ],
            ),
            Some("change out/locked OutsideWritableRoots"),
        ),
        (
            (libc::SYS_fremovexattr, vec![Open("ws/.git/config"), Path("=user.x")]),
            Some("change ws/.git/config ProtectedName"),
        ),
    ];
    check(NAMESPACES, &tries);
}

#[test]
fn where_landlock_is_alone_its_refusals_are_told_and_no_others() {
    let make = |path| (libc::SYS_mkdirat, vec![CWD_FD, Path(path), Number(0o700)]);
    let remove = |path, how: i32| (libc::SYS_unlinkat, vec![CWD_FD, Path(path), flags(how)]);
    let rename =
        |from, to| (libc::SYS_renameat2, vec![CWD_FD, Path(from), CWD_FD, Path(to), Number(0)]);
    let tries = [
        (openat_try("out/file", WRITE), Some("write out/file OutsideWritableRoots")),
        (openat_try("out/new", CREATE), Some("create out/new OutsideWritableRoots")),
        (openat_try("ws/to-away", CREATE), Some("create out/away OutsideWritableRoots")),
        (openat_try("out/pipe", libc::O_RDWR), Some("write out/pipe OutsideWritableRoots")),
        (openat_try("out/closed", WRITE), None),
        (openat_try("out/closed", TRUNC), None),
        (openat_try("out/locked/new", CREATE), None),
        (openat_try("out/file", FRESH), None),
        (openat_try("out", WRITE), None),
        (openat_try("=/dev/null", WRITE), None),
        (openat_try("ws/file", TRUNC), None),
        (openat_try("ws/new", CREATE), None),
        (openat_try("ws/.git/config", WRITE), None),
        (make("out/dir"), Some("create out/dir OutsideWritableRoots")),
        (make("out/sub"), None),
        (make("out/locked/dir"), None),
        (make("ws/dir"), None),
        (remove("out/file", 0), Some("remove out/file OutsideWritableRoots")),
        (remove("out/sub", libc::AT_REMOVEDIR), Some("remove out/sub OutsideWritableRoots")),
        (remove("out/none", 0), None),
        (remove("ws/dir", libc::AT_REMOVEDIR), None),
        (rename("out/file", "out/moved"), Some("rename out/file OutsideWritableRoots")),
        (rename("ws/file", "out/moved"), Some("rename out/moved OutsideWritableRoots")),
        (rename("ws/file", "ws/moved"), None),
        (
            (libc::SYS_truncate, vec![Path("out/other"), Number(0)]),
            Some("write out/other OutsideWritableRoots"),
        ),
    ];
    check(LANDLOCK, &tries);
}

/// Landlock has no rule on them, so that the supervisor makes these changes itself: in the roots they come
/// to what the kernel makes of them, and outside to nothing.
#[test]
fn where_landlock_is_alone_modes_owners_and_times_are_changed_in_the_roots_only() {
    const STAY: i32 = libc::AT_SYMLINK_NOFOLLOW;
    const EMPTY: i32 = libc::AT_EMPTY_PATH;
    const OMIT: i64 = (1 << 30) - 2;
    let times = |numbers: &[i64]| Bytes(numbers.iter().flat_map(|n| n.to_ne_bytes()).collect());
    let mode = |path, mode| (libc::SYS_fchmodat, vec![CWD_FD, Path(path), Number(mode)]);
    let owner = |path, how: i32| {
        (libc::SYS_fchownat, vec![CWD_FD, Path(path), Number(-1), Number(-1), flags(how)])
    };
    let touch =
        |path, times, how: i32| (libc::SYS_utimensat, vec![CWD_FD, Path(path), times, flags(how)]);
    let allowed = [
        mode("ws/file", 0o641),
        mode("ws/.git/config", 0o600),
        mode("ws/none", 0o600),
        mode("out/none", 0o600),
        mode("=", 0o600),
        (libc::SYS_fchmodat, vec![CWD_FD, Number(0), Number(0o600)]),
        (libc::SYS_fchmodat, vec![Number(98), Path("=file"), Number(0o600)]),
        (libc::SYS_fchmodat, vec![Held("ws"), Path("=file"), Number(0o1644)]),
        (libc::SYS_fchmod, vec![Open("ws/file"), Number(0o640)]),
        (libc::SYS_fchmod, vec![Held("ws/file"), Number(0o600)]),
        (libc::SYS_fchmod, vec![Number(98), Number(0o600)]),
        (452, vec![Held("ws/file"), Path("="), Number(0o604), flags(EMPTY)]),
        (452, vec![CWD_FD, Path("ws/file"), Number(0o604), Number(0x2)]),
        owner("ws/file", 0),
        owner("ws/to-out", STAY),
        owner("ws/file", 0x2),
        (libc::SYS_fchown, vec![Open("ws/file"), Number(-1), Number(-1)]),
        touch("ws/file", Number(0), 0),
        touch("ws/file", times(&[7, 8, 9, OMIT]), 0),
        touch("ws/file", times(&[7, -8, 9, 10]), 0),
        touch("ws/to-file", times(&[1, 2, 3, 4]), STAY),
        touch("ws/file", Number(1), 0),
        (libc::SYS_utimensat, vec![Open("ws/file"), Number(0), times(&[5, 6, 7, 8]), Number(0)]),
        (libc::SYS_utimensat, vec![CWD_FD, Number(0), Number(0), Number(0)]),
        (libc::SYS_utimensat, vec![Open("ws/file"), Number(0), Number(0), flags(STAY)]),
    ];
    let tries: Vec<_> = allowed.into_iter().map(|call| (call, None)).collect();
    check(LANDLOCK, &tries);
    let refused = [
        (mode("out/file", 0o777), "out/file"),
        (mode("out/sub", 0o777), "out/sub"),
        (mode("ws/to-out", 0o777), "out"),
        ((libc::SYS_fchmod, vec![Open("out/other"), Number(0o777)]), "out/other"),
        ((libc::SYS_fchown, vec![Open("out/locked"), Number(-1), Number(-1)]), "out/locked"),
        (owner("out/pipe", 0), "out/pipe"),
        (touch("out/closed", Number(0), 0), "out/closed"),
    ];
    if !is_possible(LANDLOCK) {
        return;
    }
    let (calls, paths): (Vec<Try>, Vec<_>) = refused.into_iter().unzip();
    let world = furnished();
    let before = describe(&world);
    let outcome = attempt_all(&world, LANDLOCK, &calls);
    assert_eq!(outcome.said, format!("{}\n", libc::EACCES).repeat(calls.len()));
    let prefix = world.path("");
    let told: Vec<_> =
        outcome.denials.iter().map(|line| line.replace(prefix.to_str().unwrap(), "")).collect();
    let name = |number: &libc::c_long| super::super::syscall_name(i32::try_from(*number).unwrap());
    let expected = calls.iter().zip(paths);
    let expected: Vec<_> = expected
        .map(|((number, _), path)| format!("change {path} OutsideWritableRoots {}", name(number)))
        .collect();
    assert_eq!(told, expected);
    assert_eq!(describe(&world), before);
}

/// The supervisor may look into processes that the command may not look into. What their mounts show by a
/// path of a root is not what lies there.
///
/// spec SANDBOX.141: Where namespaces are refused, what other processes have mounted in the place of a
/// root keeps its modes, owners and times.
#[test]
#[expect(clippy::disallowed_methods, reason = "somebody else's process, with mounts of its own")]
fn where_landlock_is_alone_nothing_is_changed_that_another_mount_shows_in_the_place_of_a_root() {
    const OTHER: &str = "mount -t tmpfs tmpfs \"$0\" && echo secret > \"$0/file\" && \
                         chmod 600 \"$0/file\" && touch -d @7 \"$0/file\" && echo ready && \
                         read -r _ && stat -c %a,%Y \"$0/file\"";
    if !is_possible(LANDLOCK) || !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let mut other = Command::new("unshare");
    other.args(["-Urm", "/bin/sh", "-c", OTHER]).arg(world.path("ws"));
    let Ok(mut other) = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        eprintln!("SKIPPED: there is no unshare here");
        return;
    };
    let mut said = BufReader::new(other.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let there = world.path("ws/file");
    let path = format!("/proc/{}/root{}", other.id(), there.display());
    let directory = format!("/proc/{}/root{}", other.id(), world.path("ws").display());
    if let Err(error) = fs::metadata(&path) {
        other.stdin.take().unwrap().write_all(b"\n").unwrap();
        other.wait().unwrap();
        eprintln!("SKIPPED: nobody here may look into another process: {error}");
        return;
    }
    let outcome = run(&world, LANDLOCK, |say| {
        let [path, directory] = [path, directory].map(|path| CString::new(path).unwrap());
        let at = |path| [Argument::Number(libc::AT_FDCWD as i64), Argument::Text(path)];
        let now = [Argument::Number(0), Argument::Number(0)];
        let attempts = [
            (libc::SYS_fchmodat, [at(&path).as_slice(), &[Argument::Number(0o666)]].concat()),
            (libc::SYS_fchmodat, [at(&directory).as_slice(), &[Argument::Number(0o777)]].concat()),
            (libc::SYS_utimensat, [at(&path).as_slice(), &now].concat()),
            (libc::SYS_fchownat, [at(&path).as_slice(), &[Argument::Number(-1); 2], &now].concat()),
        ];
        for (number, arguments) in attempts {
            let errno = call(number, &arguments).err().map_or(0, Errno::raw_os_error);
            say(&format!("{errno} "));
        }
    });
    other.stdin.take().unwrap().write_all(b"\n").unwrap();
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(other.wait().unwrap().success());
    assert_eq!((outcome.said.as_str(), line.as_str()), ("13 13 13 13 ", "600,7\n"));
}

/// What was opened in a root is the command's own, whatever becomes of its name.
#[test]
fn where_landlock_is_alone_what_a_command_has_open_is_its_own_under_any_name() {
    if !is_possible(LANDLOCK) {
        return;
    }
    let world = World::new();
    fs::write(world.path("ws/kept (deleted)"), "").unwrap();
    let outcome = run(&world, LANDLOCK, |say| {
        let open = |name| fs::File::open(world.path(name)).unwrap();
        let change = |file: &fs::File, mode| {
            let arguments = [Argument::Number(file.as_raw_fd().into()), Argument::Number(mode)];
            call(libc::SYS_fchmod, &arguments).err().map_or(0, Errno::raw_os_error)
        };
        let kept = change(&open("ws/kept (deleted)"), 0o601);
        fs::write(world.path("ws/one"), "").unwrap();
        let file = open("ws/one");
        fs::hard_link(world.path("ws/one"), world.path("ws/two")).unwrap();
        fs::remove_file(world.path("ws/one")).unwrap();
        let linked = change(&file, 0o602);
        fs::rename(world.path("ws/two"), world.path("ws/three")).unwrap();
        let renamed = change(&open("ws/three"), 0o603);
        fs::remove_file(world.path("ws/three")).unwrap();
        let removed = change(&file, 0o604);
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        say(&format!("{kept} {linked} {renamed} {removed} {mode:o}"));
    });
    assert_eq!(outcome.said, "0 0 0 0 604");
    let kept = fs::metadata(world.path("ws/kept (deleted)")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o601);
}
