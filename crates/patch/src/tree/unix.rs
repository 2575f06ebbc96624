//! Directories by their descriptors.

use super::Entry;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Component, Path};

/// How a directory is opened that is only gone through. Where there is a way that needs no permission
/// to list it, it is that.
#[cfg(target_os = "linux")]
const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const THROUGH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What of a mode a new version of a file keeps. Not setuid and setgid: whoever writes to such a file
/// takes them away.
const KEPT_MODE: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO).union(Mode::SVTX);

/// A directory that was opened.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

/// What a new version of a file has from the old one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likeness {
    mode: Mode,
    owner: u32,
    group: u32,
}

impl Directory {
    /// Opens a directory beneath a root, neither of them by way of a link.
    pub(crate) fn open(root: &Path, inside: &Path) -> io::Result<Self> {
        let top = rustix::fs::open("/", THROUGH, Mode::empty())?;
        let from_top = root.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
        let root = open_beneath(&top, from_top)?;
        Ok(Self(open_beneath(&root, inside)?))
    }

    /// What a name stands for.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<Entry> {
        let found = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(Entry::Absent),
            Err(error) => return Err(error.into()),
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(Entry::Other);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(Entry::Absent),
            Err(Errno::LOOP) => return Ok(Entry::Other),
            Err(error) => return Err(error.into()),
        };
        let found = fstat(&opened)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(Entry::Other);
        }
        let mut contents = Vec::new();
        File::from(opened).read_to_end(&mut contents)?;
        let mode = Mode::from_raw_mode(found.st_mode) & KEPT_MODE;
        let like = Likeness { mode, owner: found.st_uid, group: found.st_gid };
        Ok(Entry::File { contents, like })
    }

    /// Makes a file that is not there, complete and on the disk when this returns.
    pub(crate) fn create(
        &self,
        name: &OsStr,
        contents: &[u8],
        like: Option<&Likeness>,
    ) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Until it has its contents nobody else needs to see it, unless it is for everybody anyway.
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let opened = rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?;
        let mut file = File::from(opened);
        file.write_all(contents)?;
        if let Some(like) = like {
            take_after(&file, like)?;
        }
        file.sync_all()
    }

    /// Whether an existing file may be written to; its directory may say otherwise.
    pub(crate) fn ensure_writable(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.0, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    /// Swaps what two names stand for, in one step. `Unsupported` where the file system cannot.
    pub(crate) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        self.rename_with(one, other, RenameFlags::EXCHANGE)
    }

    /// Renames, if nothing has the new name.
    pub(crate) fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_with(from, to, RenameFlags::NOREPLACE) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                // Not in one step, on file systems that do not have it in one.
                match statat(&self.0, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => self.rename_over(from, to),
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(error) => Err(error.into()),
                }
            }
            done => done,
        }
    }

    /// Renames, whatever has the new name.
    pub(crate) fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    fn rename_with(&self, from: &OsStr, to: &OsStr, flags: RenameFlags) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.0, from, &self.0, to, flags) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            done => Ok(done?),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory; one that is there is fine.
    pub(crate) fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a directory that is empty. Others, and what is no directory, stay.
    pub(crate) fn remove_empty_directory(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts its names on the disk. Somebody who may not list it cannot, and goes without.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0, ".", flags, Mode::empty()) {
            Ok(opened) => match rustix::fs::fsync(opened) {
                Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Gives a new file the mode of the old one, and its owner where we may.
fn take_after(file: &File, like: &Likeness) -> io::Result<()> {
    use rustix::fs::{Gid, Uid};
    let made = fstat(file)?;
    if (made.st_uid, made.st_gid) != (like.owner, like.group) {
        let (owner, group) = (Uid::from_raw(like.owner), Gid::from_raw(like.group));
        match rustix::fs::fchown(file, Some(owner), Some(group)) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rustix::fs::fchmod(file, like.mode)?)
}

fn open_beneath(from: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    match open_at_once(from, path) {
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {}
        done => return Ok(done?),
    }
    open_step_by_step(from, path)
}

/// The whole way in one call, which no link can be slipped into.
#[cfg(target_os = "linux")]
fn open_at_once(from: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    rustix::fs::openat2(from, path, THROUGH, Mode::empty(), resolve)
}

/// One name after the other, none of which may be a link.
fn open_step_by_step(from: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut directory = from.try_clone()?;
    for component in path.components() {
        let Component::Normal(name) = component else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = THROUGH | OFlags::NOFOLLOW;
        directory = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
    }
    Ok(directory)
}

/// Whether something else than directories is in the way to a directory: a link, a file.
pub(crate) fn is_blocked(error: &io::Error) -> bool {
    let code = error.raw_os_error().unwrap_or_default();
    [Errno::LOOP, Errno::NOTDIR, Errno::XDEV].map(Errno::raw_os_error).contains(&code)
}

/// Makes a directory for its owner only, if it is not there.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file that is there only to be locked. Nobody may read it, not even its owner: whoever can open a file can hold
/// a lock on it, and a confined command can open what its owner can read.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o200);
    let lock = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = lock.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("the lock is not a file"));
    }
    // An older version let its owner read it.
    if found.mode() & 0o777 != 0o200 {
        lock.set_permissions(Permissions::from_mode(0o200))?;
    }
    Ok(lock)
}

/// How a file is opened that is its owner's only.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// spec PATCH.41: A directory is opened only if no name on the way to it is a link, whichever way
    /// of opening the system has.
    #[test]
    fn no_link_is_met_on_the_way() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("root/a/b")).unwrap();
        fs::create_dir(base.join("outside")).unwrap();
        fs::write(base.join("root/file"), "").unwrap();
        symlink("a", base.join("root/inward")).unwrap();
        symlink(base.join("outside"), base.join("root/outward")).unwrap();
        symlink("root", base.join("root-link")).unwrap();
        let root = rustix::fs::open(base.join("root"), THROUGH, Mode::empty()).unwrap();
        type Way = fn(&OwnedFd, &Path) -> io::Result<OwnedFd>;
        let ways: &[Way] = &[
            open_beneath,
            open_step_by_step,
            #[cfg(target_os = "linux")]
            |from, path| Ok(open_at_once(from, path)?),
        ];
        for way in ways {
            for (inside, opens) in [
                ("", true),
                ("a/b", true),
                ("inward", false),
                ("inward/b", false),
                ("outward", false),
                ("..", false),
                ("../outside", false),
                ("a/../..", false),
                ("file", false),
                ("absent", false),
            ] {
                assert_eq!(way(&root, Path::new(inside)).is_ok(), opens, "{inside}");
            }
        }
        assert!(Directory::open(&base.join("root"), Path::new("a/b")).is_ok());
        assert!(Directory::open(&base.join("root-link"), Path::new("a")).is_err());
        assert!(Directory::open(&base.join("root-link/a"), Path::new("")).is_err());
    }
}
