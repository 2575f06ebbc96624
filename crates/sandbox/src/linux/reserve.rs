//! Keeps protected names free that are not there: nobody in the cage can make them.
//!
//! A mount needs something to be mounted on, so an empty directory stands at each such name while a
//! cage is in use, and is removed afterwards. Three rules keep that honest.
//!
//! - A directory of ours is known by its mode, which nobody else uses. One that a crash left behind
//!   is taken over by the next cage and removed with it.
//! - Whoever uses one holds a shared lock on it, and only who gets an exclusive lock removes it, so
//!   two cages over one workspace can share it.
//! - Removing is `rmdir`: whatever has contents stays.

use super::Cage;
use crate::roots::PLACEHOLDER_MODE;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, accessat, flock, fstat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::time::Duration;

/// What a directory of ours is known by.
const MARK: Mode = Mode::from_raw_mode(PLACEHOLDER_MODE);

/// How often a name is tried that others are just giving back.
const ATTEMPTS: usize = 2_000;

/// The absent names of one cage.
#[derive(Debug, Default)]
pub struct Reservations {
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    /// Where the name belongs, as the host has it.
    parent: OwnedFd,
    name: CString,
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
    /// Finds the places of the names that are to be kept free. Changes nothing.
    ///
    /// # Errors
    /// When one of them cannot be opened.
    pub fn reservations(&self) -> io::Result<Reservations> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = |(parent, name): &(CString, CString)| {
            let parent = openat(CWD, parent.as_c_str(), flags, Mode::empty())?;
            Ok(Place { parent, name: name.clone(), taken: Taken::NotYet })
        };
        Ok(Reservations { places: self.absent.iter().map(place).collect::<io::Result<_>>()? })
    }
}

impl Reservations {
    /// Whether there is nothing to keep free.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The descriptors that [`Reservations::remove`] needs.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.places.iter().map(|place| place.parent.as_fd())
    }

    /// Takes the names. Somebody who will call [`Reservations::remove`] if this process is killed
    /// must be there already.
    ///
    /// # Errors
    /// When one cannot be taken although somebody in the cage could.
    pub fn take(&mut self) -> io::Result<()> {
        for place in &mut self.places {
            place.taken = take(&place.parent, &place.name)?;
        }
        Ok(())
    }

    /// Whether the name at this index stands for something that must be made read-only.
    pub(super) fn is_taken(&self, index: usize) -> bool {
        let taken = self.places.get(index).map(|place| &place.taken);
        matches!(taken, Some(Taken::ByUs(_) | Taken::BySomebody))
    }

    /// Gives the names back that were taken: none is used by this process any more.
    pub fn give_back(mut self) {
        for place in &mut self.places {
            place.taken = Taken::NotYet;
        }
        self.remove();
    }

    /// Removes every directory of ours that no cage uses. Allocates nothing.
    pub fn remove(&self) {
        for place in &self.places {
            // What cannot be removed now is removed with the next cage.
            let _ = remove(&place.parent, &place.name);
        }
    }
}

fn take(parent: &OwnedFd, name: &CStr) -> io::Result<Taken> {
    for _ in 0..ATTEMPTS {
        match mkdirat(parent, name, MARK) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ROFS) => return Ok(Taken::Impossible),
            Err(Errno::ACCESS | Errno::PERM) if is_out_of_reach(parent) => {
                return Ok(Taken::Impossible);
            }
            Err(errno) => {
                let text = format!("cannot keep {} free: {errno}", name.to_string_lossy());
                return Err(io::Error::new(io::Error::from(errno).kind(), text));
            }
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
    let text = format!("{} comes and goes", name.to_string_lossy());
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

/// Whether this user could not make anything there whatever its mode: it is somebody else's, or
/// something above the mode forbids it.
fn is_out_of_reach(parent: &OwnedFd) -> bool {
    let owner = statat(parent, c"", AtFlags::EMPTY_PATH).map(|stat| stat.st_uid);
    let ours = owner == Ok(rustix::process::geteuid().as_raw());
    let allowed = accessat(parent, c".", Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    !ours || allowed
}

fn remove(parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let directory = open(parent, name)?;
    if !is_ours(&directory)? {
        return Ok(());
    }
    if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(());
    }
    if is_still(parent, name, &directory) {
        unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn open(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
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

fn is_still(parent: &OwnedFd, name: &CStr, directory: &OwnedFd) -> bool {
    match (fstat(directory), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(held), Ok(named)) => (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn place(directory: &Path) -> Reservations {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(CWD, directory, flags, Mode::empty()).unwrap();
        let place = Place { parent, name: c".git".to_owned(), taken: Taken::NotYet };
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
}
