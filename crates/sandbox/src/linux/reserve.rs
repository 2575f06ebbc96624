//! Keeps protected names free that are not there: nobody in the cage can make them.
//!
//! A mount needs something to be mounted on, so an empty directory stands at each such name while a
//! cage is in use, and is removed afterwards. Three rules keep that honest.
//!
//! - A directory of ours is known by its mode, which nobody else uses. One that a crash left behind
//!   is taken over by the next cage and removed with it.
//! - Whoever uses one holds a shared lock on it, and only who gets an exclusive lock removes it, so
//!   two cages over one workspace can share it. A command can lock it as well, and leave the lock in a socket
//!   for the kernel to find some milliseconds later, so that who removes it waits for as long.
//! - Removing is `rmdir`: whatever has contents stays.

use super::cage::Absent;
use super::same::{must_be_there, open_same};
use super::{Cage, Stuck};
use crate::roots::{MOST_KEPT_FREE, PLACEHOLDER_MODE};
use crate::sys::{self, Inherited, Kept, use_all_capabilities};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, accessat, chmodat, flock, fstat, mkdirat,
    openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::path::DecInt;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{CStr, CString};
use std::io;
use std::slice::Iter;
use std::sync::Arc;
use std::time::Duration;

/// What a directory of ours is known by.
const MARK: Mode = Mode::from_raw_mode(PLACEHOLDER_MODE);

/// How often a name is tried that others are just giving back.
const ATTEMPTS: usize = 2_000;

/// How long to wait in all for locks that nobody may hold any more, a pause at a time. Another cage holds its own for longer.
const PAUSES_MS: [u64; 4] = [1, 2, 4, 8];

/// The absent names of one cage.
#[derive(Debug, Default)]
pub struct Reservations {
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    /// Where the name belongs, as the host has it. Names in one directory share it.
    parent: Arc<OwnedFd>,
    name: CString,
    /// All of it, as everybody sees it.
    path: CString,
    taken: Taken,
}

#[derive(Debug)]
enum Taken {
    NotYet,
    /// By a directory of ours, which is locked as long as this lives.
    ByUs(#[expect(dead_code, reason = "it is held for its lock")] OwnedFd),
    /// By something that was made meanwhile.
    BySomebody,
    /// It cannot be made by anybody who is in the cage either.
    Impossible,
}

impl Cage {
    /// Finds the places of the names that are to be kept free. Changes nothing. Whoever makes something
    /// in them is held by nothing, so they must be those that were found, and no link may lead there.
    ///
    /// # Errors
    /// When one of them cannot be opened, or is not what it was.
    pub fn reservations(&self) -> io::Result<Reservations> {
        let mut parents: BTreeMap<&CStr, Arc<OwnedFd>> = BTreeMap::new();
        let mut places = Vec::new();
        for Absent { parent, parent_number, name } in &self.absent {
            let path = CString::new([parent.as_bytes(), b"/", name.as_bytes()].concat())?;
            let opened = match parents.entry(parent) {
                Entry::Occupied(opened) => opened.into_mut(),
                Entry::Vacant(new) => {
                    let opened = open_same(&**parent, *parent_number).map_err(must_be_there)?;
                    new.insert(Arc::new(opened))
                }
            };
            let (parent, name) = (Arc::clone(opened), name.clone());
            places.push(Place { parent, name, path, taken: Taken::NotYet });
        }
        Ok(Reservations { places })
    }
}

impl Reservations {
    /// The descriptors that [`Reservations::remove`] needs.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.places.iter().map(|place| place.parent.as_fd())
    }

    /// Takes the names. Somebody who will call [`Reservations::remove`] if this process is killed
    /// must be there already. The process must have one thread: all of them share the mask.
    ///
    /// # Errors
    /// When one cannot be taken although somebody in the cage could.
    pub fn take(&mut self) -> Result<(), Stuck> {
        // The person's own would take bits off the mark, and with them the right to open it.
        let before = rustix::process::umask(Mode::empty());
        let taken = self.take_each();
        rustix::process::umask(before);
        taken.map_err(Stuck::at("keep a protected name free"))
    }

    fn take_each(&mut self) -> Result<(), Errno> {
        for place in &mut self.places {
            place.taken = take(&place.parent, &place.name)?;
        }
        Ok(())
    }

    /// What is left to do about them, for a process that drops the rest of its memory: see
    /// [`Leftovers::in_bytes`].
    ///
    /// # Errors
    /// When they are too many, or there is no memory for it.
    pub fn leftovers(&self) -> io::Result<Kept<[u8]>> {
        if self.places.len() > Leftovers::MOST {
            return Err(io::Error::other("too many protected names are to be kept free"));
        }
        let mut bytes = Vec::new();
        for Place { parent, name, path, .. } in &self.places {
            bytes.extend(Inherited::new(parent.as_fd()).number().to_ne_bytes());
            bytes.extend(name.to_bytes_with_nul());
            bytes.extend(path.to_bytes_with_nul());
        }
        Kept::bytes(&bytes)
    }

    /// Whether the name at this index stands for something that must be made read-only.
    pub(super) fn is_taken(&self, index: usize) -> bool {
        let taken = self.places.get(index).map(|place| &place.taken);
        matches!(taken, Some(Taken::ByUs(_) | Taken::BySomebody))
    }

    /// Gives the names back that this process has taken, and perhaps mounted on. Nobody may run in the
    /// cage any more.
    pub fn give_back(&mut self) {
        // Whoever answered for a command has set those aside that made the names in a directory that is read-only.
        use_all_capabilities();
        for place in &mut self.places {
            if !matches!(place.taken, Taken::NotYet) {
                uncover(&place.path);
            }
            place.taken = Taken::NotYet;
        }
        self.remove();
    }

    /// Removes every directory of ours that no cage uses. Waits a little for locks that nobody may hold any more.
    /// Allocates nothing.
    pub fn remove(&self) {
        self.remove_after(&PAUSES_MS);
    }

    /// The same without waiting.
    pub fn remove_at_once(&self) {
        self.remove_after(&[]);
    }

    fn remove_after(&self, pauses: &[u64]) {
        let mut pauses = pauses.iter();
        for place in &self.places {
            // What cannot be removed now is removed with the next cage.
            let _ = remove(place.parent.as_fd(), &place.name, &mut pauses);
        }
    }
}

/// Where directories of ours may be left: for each the number of the descriptor of the directory that it
/// is in, its name and all of its path, both ended by a NUL.
#[derive(Debug, Clone, Copy)]
pub struct Leftovers<'a>(&'a [u8]);

struct Leftover<'a> {
    parent: Inherited,
    name: &'a CStr,
    path: &'a CStr,
}

/// Takes away what this process's own mount namespace has mounted on a name, so that it can be removed. Nobody may need
/// those mounts any more.
fn uncover(path: &CStr) {
    let mut bytes = [0u8; libc::PATH_MAX as usize];
    let path = path.to_bytes();
    let Some(to) = bytes.get_mut(..path.len()) else { return };
    to.copy_from_slice(path);
    let mut end = path.len();
    // Where nothing was mounted, or by somebody else, there is nothing to do. If a command has closed a directory on the way,
    // the root goes that it lies in, which is a mount too, and with it all that is mounted in there.
    while let Some(0) = bytes.get(end)
        && let Ok(path) = CStr::from_bytes_until_nul(&bytes)
        && unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) == Err(Errno::ACCESS)
    {
        let above = bytes.get(..end).unwrap_or_default().iter().rposition(|byte| *byte == b'/');
        end = above.unwrap_or(0);
        bytes.get_mut(end..).unwrap_or_default().fill(0);
    }
}

impl<'a> Leftovers<'a> {
    /// How many there can be.
    pub const MOST: usize = MOST_KEPT_FREE;

    /// As [`Reservations::leftovers`] has written them.
    pub fn in_bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many there may be.
    pub fn count(&self) -> usize {
        self.places().count()
    }

    /// The descriptors that [`Leftovers::remove`] needs, in order.
    pub fn descriptors<'b>(&self, into: &'b mut [RawFd; MOST_KEPT_FREE]) -> &'b [RawFd] {
        let mut count = 0;
        for (to, from) in into.iter_mut().zip(self.places()) {
            *to = from.parent.number();
            count += 1;
        }
        let used = into.get_mut(..count).unwrap_or_default();
        used.sort_unstable();
        used
    }

    /// Removes every directory of ours that no other cage uses; this one's mounts go first. Allocates
    /// nothing.
    pub fn remove(&self) {
        let mut pauses = PAUSES_MS.iter();
        for Leftover { parent, name, path } in self.places() {
            if let Some(parent) = parent.borrow() {
                uncover(path);
                let _ = remove(parent, name, &mut pauses);
            }
        }
    }

    fn places(&self) -> impl Iterator<Item = Leftover<'a>> {
        fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a CStr> {
            let all: &'a [u8] = rest;
            let text = CStr::from_bytes_until_nul(all).ok()?;
            *rest = all.get(text.to_bytes_with_nul().len()..)?;
            Some(text)
        }
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (number, more) = rest.split_first_chunk()?;
            rest = more;
            let parent = Inherited::numbered(RawFd::from_ne_bytes(*number));
            Some(Leftover { parent, name: text(&mut rest)?, path: text(&mut rest)? })
        })
    }
}

fn take(parent: &OwnedFd, name: &CStr) -> Result<Taken, Errno> {
    for _ in 0..ATTEMPTS {
        match mkdirat(parent, name, MARK) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ROFS) => return Ok(Taken::Impossible),
            Err(Errno::ACCESS | Errno::PERM) if is_out_of_reach(parent) => {
                return Ok(Taken::Impossible);
            }
            Err(errno) => return Err(errno),
        }
        let directory = match open(parent, name) {
            Ok(directory) => directory,
            // Given back just now.
            Err(Errno::NOENT) => continue,
            Err(_) => return Ok(Taken::BySomebody),
        };
        if !is_ours(&directory)? {
            return Ok(Taken::BySomebody);
        }
        match flock(&directory, FlockOperation::NonBlockingLockShared) {
            // Somebody is about to remove it.
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
            // A file system without locks has no second cage that we could know of.
            _ if is_still(parent, name, &directory) => return Ok(Taken::ByUs(directory)),
            _ => {}
        }
    }
    // It comes and goes.
    Err(Errno::BUSY)
}

/// Whether this user could not make anything there whatever its mode: it is somebody else's, or
/// something above the mode forbids it.
fn is_out_of_reach(parent: &OwnedFd) -> bool {
    let owner = statat(parent, c"", AtFlags::EMPTY_PATH).map(|stat| stat.st_uid);
    let ours = owner == Ok(rustix::process::geteuid().as_raw());
    let allowed = accessat(parent, c".", Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    !ours || allowed
}

fn remove(parent: BorrowedFd<'_>, name: &CStr, pauses: &mut Iter<'_, u64>) -> Result<(), Errno> {
    match remove_there(parent, name, pauses) {
        // A command may have taken the person's rights to the directory away, as it may with all in its roots.
        Err(Errno::ACCESS) => {
            let before = Mode::from_raw_mode(fstat(parent)?.st_mode);
            change_mode(parent, before | Mode::RWXU)?;
            let removed = remove_there(parent, name, pauses);
            change_mode(parent, before)?;
            removed
        }
        removed => removed,
    }
}

/// Changes the mode of what was opened as a place only.
fn change_mode(place: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    match sys::change_mode(place, mode) {
        // Before Linux 6.6, and where somebody's filter does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let ours = openat(CWD, c"/proc/self/fd", flags, Mode::empty())?;
            chmodat(ours, DecInt::from_fd(place), mode, AtFlags::empty())
        }
        changed => changed,
    }
}

fn remove_there(
    parent: BorrowedFd<'_>,
    name: &CStr,
    pauses: &mut Iter<'_, u64>,
) -> Result<(), Errno> {
    let directory = open(parent, name)?;
    if !is_ours(&directory)? {
        return Ok(());
    }
    while flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        let Some(pause) = pauses.next() else { return Ok(()) };
        std::thread::sleep(Duration::from_millis(*pause));
    }
    if is_still(parent, name, &directory) {
        unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn open(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

fn is_ours(directory: &OwnedFd) -> Result<bool, Errno> {
    let stat = fstat(directory)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    // The person's mask may have taken some of the bits, and the directory around it given one.
    let marked = mode.contains(Mode::SVTX) && MARK.contains(mode.difference(Mode::SGID));
    Ok(marked && stat.st_uid == rustix::process::geteuid().as_raw())
}

fn is_still(parent: impl AsFd, name: &CStr, directory: &OwnedFd) -> bool {
    match (fstat(directory), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(held), Ok(named)) => (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::CapabilitySet;
    use std::fs;
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn place(directory: &Path) -> Reservations {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = Arc::new(openat(CWD, directory, flags, Mode::empty()).unwrap());
        let path = CString::new(directory.join(".git").into_os_string().into_vec()).unwrap();
        let place = Place { parent, name: c".git".to_owned(), path, taken: Taken::NotYet };
        Reservations { places: vec![place] }
    }

    #[test]
    fn a_name_is_given_back_by_the_last_who_took_it() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(".git");
        let [mut one, mut two] = [place(directory.path()), place(directory.path())];
        one.take().unwrap();
        two.take().unwrap();
        assert!(one.is_taken(0) && two.is_taken(0) && name.is_dir());
        one.give_back();
        assert!(name.is_dir(), "the other one still needs it");
        two.give_back();
        assert!(!name.exists());
    }

    /// spec SANDBOX.212: A command that locks what keeps a name free, or takes its user's rights to the directory around
    /// it away, does not keep it on the disk.
    #[test]
    fn a_name_is_given_back_in_a_directory_without_rights() {
        let directory = tempfile::tempdir().unwrap();
        let mut reservations = place(directory.path());
        reservations.take().unwrap();
        let mode = |mode| fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode));
        mode(0o1050).unwrap();
        let as_ordinary_user = || {
            let mut all = rustix::thread::capabilities(None).unwrap();
            all.effective = CapabilitySet::empty();
            // This thread's own, which ends with this.
            rustix::thread::set_capabilities(None, all).unwrap();
            assert!(fs::read_dir(directory.path()).is_err());
            reservations.give_back();
        };
        std::thread::scope(|scope| scope.spawn(as_ordinary_user).join()).unwrap();
        assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o7777, 0o1050);
        mode(0o700).unwrap();
        assert!(!directory.path().join(".git").exists());
    }

    #[test]
    fn what_a_crash_left_is_taken_over_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(".git");
        fs::create_dir(&name).unwrap();
        fs::set_permissions(&name, PermissionsExt::from_mode(0o1555)).unwrap();
        let mut reservations = place(directory.path());
        reservations.take().unwrap();
        reservations.give_back();
        assert!(!name.exists());
    }

    #[test]
    fn what_somebody_else_made_stays() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(".git");
        fs::create_dir(&name).unwrap();
        let mut reservations = place(directory.path());
        reservations.take().unwrap();
        assert!(reservations.is_taken(0));
        reservations.give_back();
        assert!(name.is_dir());
        fs::remove_dir(&name).unwrap();
        fs::write(&name, "gitdir: elsewhere").unwrap();
        let mut reservations = place(directory.path());
        reservations.take().unwrap();
        assert!(reservations.is_taken(0));
        reservations.give_back();
        assert!(name.is_file());
    }

    #[test]
    fn what_is_left_is_known_without_the_rest_of_the_memory() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut reservations = place(one.path());
        reservations.places.extend(place(two.path()).places);
        reservations.take().unwrap();
        let leftovers = reservations.leftovers().unwrap();
        let leftovers = Leftovers::in_bytes(&leftovers);
        let mut parents: Vec<_> =
            reservations.descriptors().map(|fd| rustix::fd::AsRawFd::as_raw_fd(&fd)).collect();
        parents.sort_unstable();
        assert_eq!(leftovers.descriptors(&mut [0; Leftovers::MOST]), parents);
        leftovers.remove();
        assert!(one.path().join(".git").exists(), "somebody holds it");
        reservations.places.iter_mut().for_each(|place| place.taken = Taken::NotYet);
        leftovers.remove();
        assert!(!one.path().join(".git").exists() && !two.path().join(".git").exists());
    }
}
