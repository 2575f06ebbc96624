//! Paths as a process gives them, resolved here as they are there.
//!
//! The supervisor has the same root directory and the same mounts, but another working directory,
//! other descriptors, and is another `/proc/self`. What it finds is used to tell what the kernel
//! will refuse. Only where Landlock is alone is something done because of it, which `changes.rs` does to what it holds.

use super::mounts::{LOOK, are_one};
use super::text::{PathText, Text};
use crate::sys::notify::read_memory;
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, Statx, accessat, fstatvfs,
    openat, openat2, readlinkat_raw, statx,
};
use rustix::io::Errno;

/// The longest path that the kernel takes, with its end.
const PATH_MAX: usize = 4096;

/// The longest name in a directory.
const NAME_MAX: usize = 255;

/// What many paths fit into: the rest is only read when there is more.
const FIRST_READ: usize = 256;

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    Yes,
    No,
}

/// A path that means the same to this process as to the one that gave it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    text: PathText,
    /// How much of it stands for the directory that a relative path begins at, without the slash.
    base: usize,
    /// Whether links of `/proc` on its way are known to mean the same here and there.
    is_told_apart: bool,
    /// The descriptor that it is a name of, like `/dev/stdin`.
    descriptor: Option<i32>,
}

/// A directory and a name in it that may be missing.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) parent: Place,
    pub(super) name: Text<{ NAME_MAX + 1 }>,
    /// Whether a slash follows.
    pub(super) slash: bool,
}

impl Place {
    /// Reads a path from a thread's memory. `None` when there is none, or it is too long, or empty.
    pub(super) fn read(thread: i32, directory: i32, address: u64) -> Option<Self> {
        let mut place = Self::new();
        place.text.fill(|text| {
            let most = text.len().min(PATH_MAX);
            text.get_mut(..most).map_or(0, |text| read_some(thread, address, text))
        })?;
        (!place.text.as_bytes().is_empty()).then_some(())?;
        place.make_ours(thread, directory)?;
        Some(place)
    }

    const fn new() -> Self {
        Self { text: PathText::new(), base: 0, is_told_apart: false, descriptor: None }
    }

    /// A path as a thread has given it.
    pub(super) fn given(thread: i32, directory: i32, path: &[u8]) -> Option<Self> {
        let mut place = Self::new();
        place.text.push(path)?;
        place.make_ours(thread, directory)?;
        Some(place)
    }

    /// What a thread has open under a number.
    pub(super) fn open(thread: i32, descriptor: i32) -> Option<Self> {
        let mut place = Self::new();
        let base = base(thread, (descriptor >= 0).then_some(descriptor)?)?;
        place.text.push(base.as_bytes())?;
        place.base = base.as_bytes().len();
        Some(place)
    }

    /// Makes a path of another thread's mean the same to this one.
    fn make_ours(&mut self, thread: i32, directory: i32) -> Option<()> {
        let path = self.text.as_bytes();
        if path.first() != Some(&b'/') {
            let mut base = base(thread, directory)?;
            self.base = base.as_bytes().len();
            return self.text.replace_start(0, base.push(b"/")?.as_bytes());
        }
        self.is_told_apart = path.starts_with(b"/proc/");
        if let Some((own, its)) = own_path(path) {
            self.is_told_apart = true;
            let mut directory = of_thread(thread)?;
            let length = directory.as_bytes().len();
            self.text.replace_start(own.len(), directory.push(its)?.as_bytes())?;
            self.descriptor = self.text.as_bytes().get(length..).and_then(descriptor);
        }
        Some(())
    }

    /// The descriptor of the process that it is a name of, if it is one.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.descriptor
    }

    /// The part that the process gave; empty when it gave a directory only.
    fn rest(&self) -> &[u8] {
        let from = if self.base == 0 { 0 } else { self.base + 1 };
        self.text.as_bytes().get(from..).unwrap_or_default()
    }

    /// Whether it begins at a directory that the process has open, or works in.
    pub(super) fn is_relative(&self) -> bool {
        self.base > 0
    }

    /// Splits off the last name. `None` when that is no name.
    pub(super) fn split(&self) -> Option<Entry> {
        let rest = self.rest();
        let end = rest.iter().rposition(|&byte| byte != b'/')? + 1;
        let start = rest.iter().take(end).rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let name = rest.get(start..end).filter(|name| !matches!(*name, b"." | b".."))?;
        let mut entry = Entry { parent: *self, name: Text::new(), slash: end < rest.len() };
        entry.name.push(name)?;
        // The slash stays only where it is the root directory.
        let before = self.text.as_bytes().len() - rest.len();
        entry.parent.text.cut((before + start).saturating_sub(1).max(1));
        Some(entry)
    }

    /// Whether this process, which has the same rights over files as the other, could write there.
    ///
    /// # Errors
    /// As the kernel says; `EROFS` only if the permissions would allow it.
    pub(super) fn may_write(&self, follow: Follow) -> Result<(), Errno> {
        let mut flags = AtFlags::EACCESS;
        if follow == Follow::No {
            flags |= AtFlags::SYMLINK_NOFOLLOW;
        }
        accessat(CWD, self.text.as_c_str(), Access::WRITE_OK, flags)
    }

    /// Finds what is there, without opening it.
    ///
    /// # Errors
    /// As the kernel says; `ELOOP` too when the way leads over a link that could lead the other
    /// process elsewhere.
    pub(super) fn hold(&self, follow: Follow) -> Result<OwnedFd, Errno> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if follow == Follow::No {
            flags |= OFlags::NOFOLLOW;
        }
        if self.is_told_apart || self.rest().is_empty() {
            // The last link is the descriptor itself.
            let flags = if self.rest().is_empty() { flags - OFlags::NOFOLLOW } else { flags };
            return openat(CWD, self.text.as_c_str(), flags, Mode::empty());
        }
        let resolve = ResolveFlags::NO_MAGICLINKS;
        if self.base == 0 {
            return openat2(CWD, self.text.as_c_str(), flags, Mode::empty(), resolve);
        }
        let mut base = Text::<64>::new();
        base.push(self.text.as_bytes().get(..self.base).unwrap_or_default())
            .ok_or(Errno::NAMETOOLONG)?;
        let base = openat(CWD, base.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let mut rest = PathText::new();
        rest.push(self.rest()).ok_or(Errno::NAMETOOLONG)?;
        openat2(base, rest.as_c_str(), flags, Mode::empty(), resolve)
    }

    /// What is there, and on which mount.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) fn look(&self, follow: Follow) -> Result<Statx, Errno> {
        let mut flags = AtFlags::NO_AUTOMOUNT;
        if follow == Follow::No {
            flags |= AtFlags::SYMLINK_NOFOLLOW;
        }
        statx(CWD, self.text.as_c_str(), flags, LOOK)
    }

    pub(super) fn path(&self) -> &std::ffi::CStr {
        self.text.as_c_str()
    }
}

/// The directory of a thread in `/proc`.
fn of_thread(thread: i32) -> Option<Text<64>> {
    let mut text = Text::new();
    let thread = u64::try_from(thread).ok().filter(|&thread| thread > 0)?;
    text.push(b"/proc/")?.push_number(thread)?;
    Some(text)
}

/// The directory that a thread's relative paths begin at.
fn base(thread: i32, directory: i32) -> Option<Text<64>> {
    let mut text = of_thread(thread)?;
    if directory == libc::AT_FDCWD {
        text.push(b"/cwd")?;
    } else {
        text.push(b"/fd/")?.push_number(u64::try_from(directory).ok()?)?;
    }
    Some(text)
}

/// Reads text from a thread's memory, up to its end. `None` when that is not found.
pub(super) fn read_text(thread: i32, address: u64, into: &mut [u8]) -> Option<&[u8]> {
    let filled = read_some(thread, address, into);
    let text = into.get(..filled)?;
    text.get(..text.iter().position(|&byte| byte == 0)?)
}

/// Reads a thread's memory: the first part, and the rest when the first does not end.
fn read_some(thread: i32, address: u64, into: &mut [u8]) -> usize {
    let (first, rest) = into.split_at_mut(FIRST_READ.min(into.len()));
    let filled = read_memory(thread, address, first);
    if filled < first.len() || first.contains(&0) {
        return filled;
    }
    filled + read_memory(thread, address.wrapping_add(filled as u64), rest)
}

/// The beginning of a path that leads through the process itself, and what it is in the thread's
/// directory of `/proc`.
fn own_path(path: &[u8]) -> Option<(&'static [u8], &'static [u8])> {
    const OWN: [(&[u8], &[u8]); 6] = [
        (b"/proc/self", b""),
        (b"/proc/thread-self", b""),
        (b"/dev/fd", b"/fd"),
        (b"/dev/stdin", b"/fd/0"),
        (b"/dev/stdout", b"/fd/1"),
        (b"/dev/stderr", b"/fd/2"),
    ];
    OWN.into_iter().find(|(own, _)| is_beneath(path, own))
}

/// The descriptor that a path in a thread's directory of `/proc` stands for.
fn descriptor(path: &[u8]) -> Option<i32> {
    let number = path.strip_prefix(b"/fd/").filter(|number| number.iter().all(u8::is_ascii_digit));
    std::str::from_utf8(number?).ok()?.parse().ok()
}

/// Writes down where something is. Says whether it is anywhere: pipes and the like have no path.
pub(super) fn canonical(held: BorrowedFd<'_>, into: &mut PathText) -> bool {
    let mut bytes = [0; PATH_MAX];
    let link = own_link(held);
    let length = readlinkat_raw(CWD, link.as_c_str(), bytes.as_mut_slice()).unwrap_or(0);
    into.clear();
    let path = bytes.get(..length).unwrap_or_default();
    path.first() == Some(&b'/') && length < PATH_MAX && into.push(path).is_some()
}

/// Whether what is held is what its canonical path leads to from here. The links of `/proc` lead to other mounts
/// too, where this process may follow them and the command may not, and there the path of anything can read like
/// one of ours.
///
/// # Errors
/// As the kernel says where nothing is found by that path, or a link lies on it.
pub(super) fn is_at(held: BorrowedFd<'_>, path: &PathText) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let there = openat2(CWD, path.as_c_str(), flags, Mode::empty(), resolve)?;
    Ok(are_one(there.as_fd(), held))
}

/// The path by which this process reaches what it holds, and nothing else.
pub(super) fn own_link(held: BorrowedFd<'_>) -> Text<64> {
    let mut link = Text::new();
    let number = u64::try_from(held.as_raw_fd()).unwrap_or(0);
    // Far shorter than its room.
    let _ = link.push(b"/proc/self/fd/").and_then(|link| link.push_number(number));
    link
}

/// Whether nothing can be changed through the mount that something is on.
pub(super) fn is_read_only(held: BorrowedFd<'_>) -> bool {
    fstatvfs(held).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether a path is at a root or beneath it.
pub(super) fn is_beneath(path: &[u8], root: &[u8]) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}
