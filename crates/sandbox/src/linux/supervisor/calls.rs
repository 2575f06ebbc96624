//! The system calls that change files, as a table: which arguments say what would be changed.

use crate::linux::seccomp::{Call, SYS_REMOVEXATTRAT, SYS_SETXATTRAT};

/// Where a path is among the arguments, each by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) struct Where {
    /// The directory that it begins at; without one, the working directory.
    pub(super) directory: Option<u8>,
    pub(super) path: u8,
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Links {
    Followed,
    Meant,
    /// As the flags in this argument say. They can also say that there may be no path.
    AsFlagged(u8),
}

/// What else must be right before the kernel looks at whether it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Also {
    Nothing,
    /// This argument points to times of which one at least is to be set.
    Times(u8),
    /// This argument points to a name.
    Name(u8),
}

/// How times are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Nanoseconds,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer architectures never had it")
    )]
    Microseconds,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer architectures never had it")
    )]
    Seconds,
}

/// What a call changes that Landlock has no rule on, and which arguments say to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Mode(u8),
    /// The user and the group.
    Owner(u8, u8),
    Times(Times, u8),
}

/// What a call does to files, and to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum FileCall {
    /// Opens with the flags in an argument.
    Open(Where, u8),
    /// Makes a file, or empties one, and opens it for writing.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer architectures never had it")
    )]
    Create(Where),
    Truncate(Where),
    MakeDirectory(Where),
    /// The kind is in an argument.
    MakeNode(Where, u8),
    /// What it leads to is in an argument.
    MakeLink(Where, u8),
    /// A second name. The first path is what gets it; flags may say that links are followed.
    AddName(Where, Where, Option<u8>),
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer architectures never had it")
    )]
    RemoveFile(Where),
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer architectures never had it")
    )]
    RemoveDirectory(Where),
    /// Either of them, as flags say.
    Remove(Where, u8),
    Rename(Where, Where, Option<u8>),
    Change(Where, Links, Also),
    /// Changes what is open under the descriptor in an argument.
    ChangeOpen(u8),
}

const fn at(directory: u8, path: u8) -> Where {
    Where { directory: Some(directory), path }
}

const fn here(path: u8) -> Where {
    Where { directory: None, path }
}

/// Newer than the C libraries' lists for all architectures.
const SYS_FCHMODAT2: libc::c_long = 452;
#[cfg(target_arch = "x86_64")]
const SYS_RENAMEAT: libc::c_long = libc::SYS_renameat;
#[cfg(not(target_arch = "x86_64"))]
const SYS_RENAMEAT: libc::c_long = 38;

macro_rules! file_calls {
    ($($(#[$where:meta])* $constant:ident => $does:expr;)*) => {
        &[$($(#[$where])* ((libc::$constant, stringify!($constant)), $does)),*]
    };
}

/// Those that are made most come first.
pub(in crate::linux) const FILE_CALLS: &[(Call, FileCall)] = {
    use Also::{Name, Nothing, Times};
    use FileCall::*;
    use Links::{AsFlagged, Followed, Meant};
    const NEW: [(Call, FileCall); 4] = [
        ((SYS_RENAMEAT, "SYS_renameat"), Rename(at(0, 1), at(2, 3), None)),
        ((SYS_FCHMODAT2, "SYS_fchmodat2"), Change(at(0, 1), AsFlagged(3), Nothing)),
        ((SYS_SETXATTRAT, "SYS_setxattrat"), Change(at(0, 1), AsFlagged(2), Name(3))),
        ((SYS_REMOVEXATTRAT, "SYS_removexattrat"), Change(at(0, 1), AsFlagged(2), Name(3))),
    ];
    const KNOWN: &[(Call, FileCall)] = file_calls! {
        SYS_openat => Open(at(0, 1), 2);
        #[cfg(target_arch = "x86_64")] SYS_open => Open(here(0), 1);
        #[cfg(target_arch = "x86_64")] SYS_unlink => RemoveFile(here(0));
        SYS_unlinkat => Remove(at(0, 1), 2);
        #[cfg(target_arch = "x86_64")] SYS_rename => Rename(here(0), here(1), None);
        SYS_renameat2 => Rename(at(0, 1), at(2, 3), Some(4));
        #[cfg(target_arch = "x86_64")] SYS_mkdir => MakeDirectory(here(0));
        SYS_mkdirat => MakeDirectory(at(0, 1));
        #[cfg(target_arch = "x86_64")] SYS_rmdir => RemoveDirectory(here(0));
        SYS_utimensat => Change(at(0, 1), AsFlagged(3), Times(2));
        #[cfg(target_arch = "x86_64")] SYS_chmod => Change(here(0), Followed, Nothing);
        SYS_fchmod => ChangeOpen(0);
        SYS_fchmodat => Change(at(0, 1), Followed, Nothing);
        #[cfg(target_arch = "x86_64")] SYS_creat => Create(here(0));
        SYS_truncate => Truncate(here(0));
        #[cfg(target_arch = "x86_64")] SYS_mknod => MakeNode(here(0), 1);
        SYS_mknodat => MakeNode(at(0, 1), 2);
        #[cfg(target_arch = "x86_64")] SYS_symlink => MakeLink(here(1), 0);
        SYS_symlinkat => MakeLink(at(1, 2), 0);
        #[cfg(target_arch = "x86_64")] SYS_link => AddName(here(0), here(1), None);
        SYS_linkat => AddName(at(0, 1), at(2, 3), Some(4));
        #[cfg(target_arch = "x86_64")] SYS_chown => Change(here(0), Followed, Nothing);
        #[cfg(target_arch = "x86_64")] SYS_lchown => Change(here(0), Meant, Nothing);
        SYS_fchown => ChangeOpen(0);
        SYS_fchownat => Change(at(0, 1), AsFlagged(4), Nothing);
        #[cfg(target_arch = "x86_64")] SYS_utime => Change(here(0), Followed, Nothing);
        #[cfg(target_arch = "x86_64")] SYS_utimes => Change(here(0), Followed, Nothing);
        #[cfg(target_arch = "x86_64")] SYS_futimesat => Change(at(0, 1), Followed, Nothing);
        SYS_setxattr => Change(here(0), Followed, Name(1));
        SYS_lsetxattr => Change(here(0), Meant, Name(1));
        SYS_fsetxattr => ChangeOpen(0);
        SYS_removexattr => Change(here(0), Followed, Name(1));
        SYS_lremovexattr => Change(here(0), Meant, Name(1));
        SYS_fremovexattr => ChangeOpen(0);
    };
    const ALL: [(Call, FileCall); KNOWN.len() + NEW.len()] = {
        let mut all = [KNOWN[0]; KNOWN.len() + NEW.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = if index < KNOWN.len() { KNOWN[index] } else { NEW[index - KNOWN.len()] };
            index += 1;
        }
        all
    };
    &ALL
};

/// For a call that opens, the argument with its flags and those that say that something could
/// change.
pub(in crate::linux) fn opens_to_write(call: FileCall) -> Option<(u8, u64)> {
    let flags = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    match call {
        FileCall::Open(_, argument) => Some((argument, u64::from(flags.cast_unsigned()))),
        _ => None,
    }
}

/// Says that a program runs as its owner, whoever starts it.
pub(in crate::linux) const S_ISUID: u32 = libc::S_ISUID;

/// A call that gives a file its mode.
#[derive(Debug, Clone, Copy)]
pub(in crate::linux) struct GivesMode {
    pub(in crate::linux) call: libc::c_long,
    /// The argument with the mode.
    pub(in crate::linux) mode: u8,
    /// The argument with flags of which one must be set; otherwise nothing is made and the mode is anything.
    pub(in crate::linux) makes: Option<(u8, u32)>,
}

/// Those that could give a set-user-id bit. For directories the kernel takes none, and where queues lie nothing can be
/// executed.
pub(in crate::linux) const GIVES_MODE: &[GivesMode] = {
    const fn gives(call: libc::c_long, mode: u8) -> GivesMode {
        GivesMode { call, mode, makes: None }
    }
    const fn opens(call: libc::c_long, flags: u8, mode: u8) -> GivesMode {
        // The constant for a file without a name has the bit for directories in it.
        let any = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);
        GivesMode { call, mode, makes: Some((flags, any.cast_unsigned())) }
    }
    &[
        #[cfg(target_arch = "x86_64")]
        gives(libc::SYS_chmod, 1),
        gives(libc::SYS_fchmod, 1),
        gives(libc::SYS_fchmodat, 2),
        gives(SYS_FCHMODAT2, 2),
        #[cfg(target_arch = "x86_64")]
        opens(libc::SYS_open, 1, 2),
        opens(libc::SYS_openat, 2, 3),
        #[cfg(target_arch = "x86_64")]
        gives(libc::SYS_creat, 1),
        #[cfg(target_arch = "x86_64")]
        gives(libc::SYS_mknod, 1),
        gives(libc::SYS_mknodat, 2),
    ]
};

/// Whether a call would set that bit.
pub(super) fn sets_user_id(number: i32, arguments: &[u64; 6]) -> bool {
    let has = |index: u8, any: u32| {
        arguments.get(usize::from(index)).is_some_and(|argument| argument & u64::from(any) != 0)
    };
    let gives = GIVES_MODE.iter().find(|gives| gives.call == libc::c_long::from(number));
    gives.is_some_and(|gives| {
        gives.makes.is_none_or(|(flags, any)| has(flags, any)) && has(gives.mode, S_ISUID)
    })
}

/// What a call changes of a file's mode, owner or times; `None` when it changes none of them.
pub(super) fn change(number: i32) -> Option<Change> {
    Some(match libc::c_long::from(number) {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Change::Mode(1),
        libc::SYS_fchmod => Change::Mode(1),
        libc::SYS_fchmodat | SYS_FCHMODAT2 => Change::Mode(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => Change::Owner(1, 2),
        libc::SYS_fchown => Change::Owner(1, 2),
        libc::SYS_fchownat => Change::Owner(2, 3),
        libc::SYS_utimensat => Change::Times(Times::Nanoseconds, 2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => Change::Times(Times::Seconds, 1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => Change::Times(Times::Microseconds, 1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => Change::Times(Times::Microseconds, 2),
        _ => return None,
    })
}

/// What a call does to files; `None` when it does nothing to them.
pub(super) fn file_call(number: i32) -> Option<FileCall> {
    let number = libc::c_long::from(number);
    FILE_CALLS.iter().find(|((known, _), _)| *known == number).map(|(_, does)| *does)
}
