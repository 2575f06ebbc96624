//! Opens what a search of the roots found, if that is what is there now.
//!
//! A root is searched before it is entered, and by its name. Meanwhile a command in another cage may
//! have moved something: what is opened by name then is something else, or lies elsewhere.

use crate::roots::Number;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FsWord, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2};
use rustix::io::Errno;
use rustix::path::Arg;

/// Its numbers do not last while nobody has a file open.
const FUSE: FsWord = 0x6573_5546;

/// Opens a place whose path has no link in it; if it is a link itself, that. Allocates nothing.
///
/// # Errors
/// `NOENT` when there is nothing, and `STALE` when it is not what has this number.
pub(super) fn open_same(path: impl Arg + Copy, number: Option<Number>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (mode, no_links) = (Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let opened = match openat2(CWD, path, flags, mode, no_links) {
        // Some containers have no such call. The number tells as much, but for a file system of FUSE.
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, mode),
        opened => opened,
    };
    let place = opened.map_err(|errno| match errno {
        Errno::NOTDIR => Errno::NOENT,
        Errno::LOOP => Errno::STALE,
        other => other,
    })?;
    let Some(number) = number else { return Ok(place) };
    let found = fstat(&place)?;
    let same = (found.st_dev, found.st_ino) == number;
    let lasting = || fstatfs(&place).map_or(true, |found| found.f_type != FUSE);
    if same || !lasting() { Ok(place) } else { Err(Errno::STALE) }
}

/// What it means that something is gone which must be there.
pub(super) fn must_be_there(errno: Errno) -> Errno {
    if errno == Errno::NOENT { Errno::STALE } else { errno }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn what_was_moved_replaced_or_led_elsewhere_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("out/b")).unwrap();
        let number = |path: &str| {
            let found = root.join(path).symlink_metadata().unwrap();
            Some((found.dev(), found.ino()))
        };
        let open = |path: &str, number| open_same(&root.join(path), number).map(|_| ());
        let seen = number("a/b");
        assert_eq!(open("a/b", seen), Ok(()));
        assert_eq!(open("a/b", number("out/b")), Err(Errno::STALE), "another one");
        fs::rename(root.join("a"), root.join("c")).unwrap();
        assert_eq!(open("a/b", seen), Err(Errno::NOENT), "moved away");
        symlink("c", root.join("a")).unwrap();
        assert_eq!(open("a/b", seen), Err(Errno::STALE), "reached by a link");
        assert_eq!(open("a", number("a")), Ok(()), "a link itself");
    }
}
