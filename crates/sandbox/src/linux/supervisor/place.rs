//! Paths as a process gives them, resolved here as they are there.
//!
//! The supervisor has the same root directory and the same mounts, but another working directory,
//! other descriptors, and is another `/proc/self`. What it finds is used to tell what the kernel
//! will refuse, never to allow anything.

use super::text::{PathText, Text};
use crate::sys::notify::read_memory;
use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, accessat, fstatvfs,
    openat, openat2, readlinkat_raw,
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
    pub(super) resolve: ResolveFlags,
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
        let mut bytes = [0; PATH_MAX];
        let path = read_text(thread, address, &mut bytes)?;
        if path.is_empty() { None } else { Self::given(thread, directory, path) }
    }

    /// A path as a thread has given it.
    pub(super) fn given(thread: i32, directory: i32, path: &[u8]) -> Option<Self> {
        let mut text = PathText::new();
        let thread_number = u64::try_from(thread).ok().filter(|&thread| thread > 0)?;
        let resolve = ResolveFlags::empty();
        if path.first() == Some(&b'/') {
            let own = own_path(path);
            if let Some((directory, _)) = own {
                text.push(b"/proc/")?.push_number(thread_number)?.push(directory)?;
            }
            text.push(own.map_or(path, |(_, rest)| rest))?;
            let is_told_apart = own.is_some() || path.starts_with(b"/proc/");
            return Some(Self { text, base: 0, is_told_apart, resolve });
        }
        let mut place = Self::directory(thread_number, directory)?;
        place.text.push(b"/")?.push(path)?;
        Some(place)
    }

    /// What a thread has open under a number.
    pub(super) fn open(thread: i32, descriptor: i32) -> Option<Self> {
        let descriptor = (descriptor >= 0).then_some(descriptor)?;
        Self::directory(u64::try_from(thread).ok().filter(|&thread| thread > 0)?, descriptor)
    }

    fn directory(thread: u64, directory: i32) -> Option<Self> {
        let mut text = PathText::new();
        text.push(b"/proc/")?.push_number(thread)?;
        if directory == libc::AT_FDCWD {
            text.push(b"/cwd")?;
        } else {
            text.push(b"/fd/")?.push_number(u64::try_from(directory).ok()?)?;
        }
        let base = text.as_bytes().len();
        Some(Self { text, base, is_told_apart: false, resolve: ResolveFlags::empty() })
    }

    /// The part that the process gave; empty when it gave a directory only.
    fn rest(&self) -> &[u8] {
        let from = if self.base == 0 { 0 } else { self.base + 1 };
        self.text.as_bytes().get(from..).unwrap_or_default()
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
        let resolve = self.resolve | ResolveFlags::NO_MAGICLINKS;
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

    pub(super) fn path(&self) -> &std::ffi::CStr {
        self.text.as_c_str()
    }
}

/// Reads text from a thread's memory, up to its end. `None` when that is not found.
pub(super) fn read_text(thread: i32, address: u64, into: &mut [u8]) -> Option<&[u8]> {
    let first = FIRST_READ.min(into.len());
    let mut filled = read_memory(thread, address, into.get_mut(..first)?);
    let is_closed = |bytes: &[u8]| bytes.contains(&0);
    if filled == first && !is_closed(into.get(..filled)?) {
        filled += read_memory(thread, address.wrapping_add(filled as u64), into.get_mut(first..)?);
    }
    let text = into.get(..filled)?;
    text.get(..text.iter().position(|&byte| byte == 0)?)
}

/// Where a path begins that leads through the process itself, in its directory of `/proc`, and
/// what follows.
fn own_path(path: &[u8]) -> Option<(&'static [u8], &[u8])> {
    const OWN: [(&[u8], &[u8]); 3] =
        [(b"/proc/self", b""), (b"/proc/thread-self", b""), (b"/dev/fd", b"/fd")];
    OWN.iter().find_map(|(own, directory)| {
        let rest = path.strip_prefix(*own)?;
        (rest.is_empty() || rest.first() == Some(&b'/')).then_some((*directory, rest))
    })
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
