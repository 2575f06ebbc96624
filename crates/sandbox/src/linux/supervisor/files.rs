//! Calls that change files: is the kernel about to refuse them because of the cage?
//!
//! What it is about to refuse is refused here, with the kernel's own error, so that what is told
//! has happened. All else continues: mounts and Landlock decide, whatever was seen here, so that
//! who changes a path behind our back gains nothing. That is also the answer to whatever is
//! unclear.
//!
//! The order of the kernel's checks is followed: where something else is wrong as well and the
//! kernel says so first, the cage had no part in it.

use super::calls::{FileCall, Where};
use super::mounts::{self, Mounts};
use super::place::{Entry, Follow, Place, canonical, is_beneath, is_read_only, read_text};
use super::text::PathText;
use super::thread::duplicate;
use super::{Answer, Scope};
use crate::linux::Mode;
use crate::sys::notify::{Asked, read_memory};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, fcntl_getfl, fstat, readlinkat_raw, statat};
use rustix::io::Errno;
use sandgate_protocol::DeniedOperation as Operation;

/// How many dangling links are followed in a row.
const MOST_LINKS: usize = 8;

/// One call, and where what it is about is written down.
pub(super) struct Files<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) asked: &'a Asked,
    pub(super) target: &'a mut PathText,
}

/// Something that is unclear, or that the cage has no part in.
const NOTHING: Option<Answer> = None;

impl Files<'_> {
    /// The answer to a call.
    pub(super) fn answer(&mut self, call: FileCall, mounts: &mut Mounts) -> Answer {
        let refused = match call {
            FileCall::Open(place, flags) => {
                let flags = self.flags(flags);
                self.place(place).and_then(|place| self.open(&place, flags, mounts))
            }
            FileCall::Create(place) => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                self.place(place).and_then(|place| self.open(&place, flags, mounts))
            }
            FileCall::Truncate(place) => self.truncate(place),
            FileCall::MakeDirectory(_)
            | FileCall::MakeNode(..)
            | FileCall::MakeLink(..)
            | FileCall::AddName(..) => self.make(call),
            FileCall::RemoveFile(place) => self.remove(place, false),
            FileCall::RemoveDirectory(place) => self.remove(place, true),
            FileCall::Remove(place, flags) => match AtFlags::from_bits_retain(self.argument(flags))
            {
                AtFlags::REMOVEDIR => self.remove(place, true),
                flags if flags.is_empty() => self.remove(place, false),
                _ => NOTHING,
            },
            FileCall::Rename(from, to, flags) => self.rename(from, to, flags),
            FileCall::Change(place, links, also) => self.change(place, links, also),
            FileCall::ChangeOpen(descriptor) => self.change_open(descriptor),
        };
        refused.unwrap_or(Answer::Continue)
    }

    /// An argument as the 32 bits that the kernel takes of it.
    pub(super) fn argument(&self, index: u8) -> u32 {
        (self.pointer(index) & u64::from(u32::MAX)) as u32
    }

    pub(super) fn pointer(&self, index: u8) -> u64 {
        self.asked.arguments.get(usize::from(index)).copied().unwrap_or(0)
    }

    fn flags(&self, index: u8) -> OFlags {
        OFlags::from_bits_retain(self.argument(index))
    }

    pub(super) fn directory(&self, place: Where) -> i32 {
        place.directory.map_or(libc::AT_FDCWD, |index| self.argument(index).cast_signed())
    }

    pub(super) fn place(&self, place: Where) -> Option<Place> {
        Place::read(self.asked.thread, self.directory(place), self.pointer(place.path))
    }

    fn open(&mut self, place: &Place, flags: OFlags, mounts: &mut Mounts) -> Option<Answer> {
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let creates = flags.contains(OFlags::CREATE);
        let empties = flags.contains(OFlags::TRUNC);
        if flags.contains(OFlags::PATH) || !(writes || creates || empties) {
            return NOTHING;
        }
        if flags.contains(OFlags::TMPFILE) {
            return self.open_unnamed(place, flags);
        }
        if creates && flags.contains(OFlags::DIRECTORY) {
            return NOTHING;
        }
        let only_new = creates && flags.contains(OFlags::EXCL);
        let stays = only_new || flags.contains(OFlags::NOFOLLOW);
        let follow = if stays { Follow::No } else { Follow::Yes };
        if place.descriptor().is_some_and(|number| self.is_written(number)) {
            return NOTHING;
        }
        if self.lies_open(place, creates, mounts) {
            return NOTHING;
        }
        match (place.may_write(follow), self.scope.mode) {
            (Err(Errno::NOENT), _) if creates => self.open_new(place, follow),
            _ if only_new => NOTHING,
            // A file that is only created if it is missing, and read, is not changed.
            _ if !writes && !empties => NOTHING,
            (Ok(()), Mode::Namespaces) => {
                self.open_special(place, follow).or_else(|| self.open_again(place, follow))
            }
            (Ok(()), Mode::LandlockOnly) | (Err(Errno::ROFS), Mode::Namespaces) => {
                self.open_old(place, follow)
            }
            // Whether it is to be emptied is looked at before its permissions.
            (Err(Errno::ACCESS), Mode::Namespaces) if empties => self.open_old(place, follow),
            _ => NOTHING,
        }
    }

    /// Whether the cage has no part in what comes of opening a place: a file that is there, or is to be made in a directory,
    /// on a mount that can be written to. That is so almost always.
    fn lies_open(&self, place: &Place, creates: bool, mounts: &mut Mounts) -> bool {
        if self.scope.mode != Mode::Namespaces || place.descriptor().is_some() {
            return false;
        }
        let found = place.look(Follow::No);
        let missing = creates && matches!(found, Err(Errno::NOENT));
        let entry = if missing { place.split().filter(|entry| !entry.slash) } else { None };
        let (place, found, expected) = match &entry {
            None => (place, found, FileType::RegularFile),
            Some(entry) => (&entry.parent, entry.parent.look(Follow::Yes), FileType::Directory),
        };
        found.is_ok_and(|found| {
            mounts::kind(&found) == expected
                && mounts.is_open(&found, || place.hold(Follow::Yes).ok())
        })
    }

    /// A file without a name, in a directory that is there.
    fn open_unnamed(&mut self, place: &Place, flags: OFlags) -> Option<Answer> {
        let valid =
            flags.intersects(OFlags::WRONLY | OFlags::RDWR) && !flags.contains(OFlags::CREATE);
        let stays = flags.contains(OFlags::NOFOLLOW);
        let follow = if stays { Follow::No } else { Follow::Yes };
        let held = place.hold(follow).ok().filter(|_| valid)?;
        if kind(held.as_fd())? != FileType::Directory || !self.permits(place)? {
            return NOTHING;
        }
        self.refuse(held.as_fd(), Operation::Create)
    }

    fn open_old(&mut self, place: &Place, follow: Follow) -> Option<Answer> {
        let held = place.hold(follow).ok()?;
        match kind(held.as_fd())? {
            FileType::RegularFile => {
                let refused = self.refuse(held.as_fd(), Operation::Write);
                refused.filter(|_| !is_tried_as_a_routine(self.target.as_bytes()))
            }
            FileType::Directory | FileType::Symlink => NOTHING,
            // Nothing on a disk changes. Landlock takes such a file for one.
            FileType::Fifo if self.scope.mode == Mode::LandlockOnly => {
                self.refuse(held.as_fd(), Operation::Write)
            }
            _ => NOTHING,
        }
    }

    /// A pipe or a device, which is written to on a read-only mount as well: Landlock holds the one, and the
    /// mount the other, as one without devices.
    fn open_special(&mut self, place: &Place, follow: Follow) -> Option<Answer> {
        let stays = AtFlags::SYMLINK_NOFOLLOW;
        let flags = if follow == Follow::No { stays } else { AtFlags::empty() };
        let found = statat(CWD, place.path(), flags).ok()?;
        let is_closed = match FileType::from_raw_mode(found.st_mode) {
            FileType::Fifo => crate::sys::landlock_version() > 0,
            FileType::CharacterDevice | FileType::BlockDevice => true,
            _ => false,
        };
        is_closed.then_some(())?;
        let held = place.hold(follow).ok()?;
        canonical(held.as_fd(), self.target).then_some(())?;
        let path = self.target.as_bytes();
        let is_open = self.scope.is_in_roots(path) || is_own(path);
        let (operation, rule) = (Operation::Write, self.scope.rule_on(path));
        (!is_open).then_some(Answer::Refuse { errno: Errno::ACCESS, operation, rule })
    }

    /// A file that is open for reading, as standard input is, by the name of its descriptor. It was opened before the
    /// cage was entered, so that no mount is in the way, and Landlock is.
    fn open_again(&mut self, place: &Place, follow: Follow) -> Option<Answer> {
        place.descriptor().filter(|_| follow == Follow::Yes)?;
        (crate::sys::landlock_version() > 0).then_some(())?;
        let held = place.hold(follow).ok()?;
        let found = fstat(&held).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        // What has no name is on no disk.
        (is_file && found.st_nlink > 0 && canonical(held.as_fd(), self.target)).then_some(())?;
        let path = self.target.as_bytes();
        let is_open = self.scope.is_in_roots(path) || is_own(path);
        let (operation, rule) = (Operation::Write, self.scope.rule_on(path));
        (!is_open).then_some(Answer::Refuse { errno: Errno::ACCESS, operation, rule })
    }

    /// Whether what is open under a number is open for writing, there or as a standard stream: that can be opened
    /// again.
    fn is_written(&self, number: i32) -> bool {
        let same = |one: &OwnedFd, other: &OwnedFd| {
            let [one, other] =
                [one, other].map(|file| fstat(file).map(|at| (at.st_dev, at.st_ino)));
            one.is_ok() && one == other
        };
        let writes = |file: &OwnedFd| {
            let flags = OFlags::WRONLY | OFlags::RDWR;
            fcntl_getfl(file).is_ok_and(|found| found.intersects(flags))
        };
        let Ok(file) = duplicate(self.asked.thread, number) else { return false };
        let mut streams = (0..3).filter_map(|number| duplicate(self.asked.thread, number).ok());
        writes(&file) || streams.any(|stream| writes(&stream) && same(&stream, &file))
    }

    /// A file that is not there, or a link to one that is not.
    fn open_new(&mut self, place: &Place, follow: Follow) -> Option<Answer> {
        let mut led: Option<Place> = None;
        for _ in 0..MOST_LINKS {
            let place = led.as_ref().unwrap_or(place);
            let entry = place.split().filter(|entry| !entry.slash)?;
            // It was looked at, and is no link, or it could be one. What could be written means
            // nothing then.
            if follow == Follow::No || place.may_write(Follow::No) == Err(Errno::NOENT) {
                return self.create(&entry, Operation::Create);
            }
            led = Some(self.follow_once(&entry)?);
        }
        NOTHING
    }

    /// Where a dangling link leads.
    fn follow_once(&self, entry: &Entry) -> Option<Place> {
        let parent = entry.parent.hold(Follow::Yes).ok()?;
        let mut bytes = [0; 4096];
        let length = readlinkat_raw(&parent, entry.name.as_c_str(), bytes.as_mut_slice()).ok()?;
        let link = bytes.get(..length).filter(|link| link.len() < bytes.len())?;
        if link.first() == Some(&b'/') {
            return Place::given(self.asked.thread, libc::AT_FDCWD, link);
        }
        let mut path = PathText::new();
        canonical(parent.as_fd(), &mut path).then_some(())?;
        path.push(b"/")?.push(link)?;
        Place::given(self.asked.thread, libc::AT_FDCWD, path.as_bytes())
    }

    /// Something new, in a directory that is looked at before anything else.
    pub(super) fn create(&mut self, entry: &Entry, operation: Operation) -> Option<Answer> {
        let parent = self.closed_parent(entry)?;
        let missing = statat(&parent, entry.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        (missing.err()? == Errno::NOENT).then_some(())?;
        self.refuse_entry(parent.as_fd(), entry, operation)
    }

    /// The directory of an entry, if the cage lets nobody change it.
    pub(super) fn closed_parent(&mut self, entry: &Entry) -> Option<OwnedFd> {
        if self.scope.mode == Mode::Namespaces && entry.parent.may_write(Follow::Yes).is_ok() {
            return None;
        }
        let permitted = self.permits(&entry.parent)?;
        let parent = entry.parent.hold(Follow::Yes).ok()?;
        (permitted && kind(parent.as_fd())? == FileType::Directory).then_some(())?;
        self.closes(parent.as_fd()).map(|_| parent)
    }

    /// Whether it is the cage and not a file's permissions that would be in the way. Read-only mounts
    /// are looked at before those.
    fn permits(&self, place: &Place) -> Option<bool> {
        match self.scope.mode {
            Mode::Namespaces => Some(true),
            Mode::LandlockOnly => Some(place.may_write(Follow::Yes).is_ok()),
        }
    }

    /// The error with which the cage refuses changes to something. Writes down where that is.
    pub(super) fn closes(&mut self, held: BorrowedFd<'_>) -> Option<Errno> {
        match self.scope.mode {
            Mode::Namespaces => {
                is_read_only(held).then_some(())?;
                canonical(held, self.target).then_some(Errno::ROFS)
            }
            Mode::LandlockOnly => {
                let somewhere = canonical(held, self.target);
                // What has been removed has no place that a rule could be about.
                let named = fstat(held).is_ok_and(|stat| stat.st_nlink > 0);
                let outside = !self.scope.is_in_roots(self.target.as_bytes());
                (somewhere && named && outside).then_some(Errno::ACCESS)
            }
        }
    }

    /// Refuses to change something that is there, if the cage does.
    pub(super) fn refuse(&mut self, held: BorrowedFd<'_>, operation: Operation) -> Option<Answer> {
        let errno = self.closes(held)?;
        let rule = self.scope.rule_on(self.target.as_bytes());
        Some(Answer::Refuse { errno, operation, rule })
    }

    /// Refuses to change what a name stands for, if the cage closes its directory.
    pub(super) fn refuse_entry(
        &mut self,
        parent: BorrowedFd<'_>,
        entry: &Entry,
        operation: Operation,
    ) -> Option<Answer> {
        let errno = self.closes(parent)?;
        let rule = self.scope.rule_on(self.target.as_bytes());
        self.name(entry)?;
        Some(Answer::Refuse { errno, operation, rule })
    }

    /// Adds a name to the directory that is written down.
    pub(super) fn name(&mut self, entry: &Entry) -> Option<()> {
        if self.target.as_bytes() != b"/" {
            self.target.push(b"/")?;
        }
        self.target.push(entry.name.as_bytes()).map(|_| ())
    }

    fn truncate(&mut self, place: Where) -> Option<Answer> {
        if self.pointer(1).cast_signed() < 0 {
            return NOTHING;
        }
        let place = self.place(place)?;
        match (place.may_write(Follow::Yes), self.scope.mode) {
            (Err(Errno::ROFS), Mode::Namespaces) | (Ok(()), Mode::LandlockOnly) => {}
            _ => return NOTHING,
        }
        let held = place.hold(Follow::Yes).ok()?;
        (kind(held.as_fd())? == FileType::RegularFile).then_some(())?;
        self.refuse(held.as_fd(), Operation::Write)
    }

    /// Whether text in memory is there and not empty.
    pub(super) fn has_text(&self, index: u8) -> bool {
        let mut byte = [0; 1];
        read_memory(self.asked.thread, self.pointer(index), &mut byte) == 1 && byte != [0]
    }

    /// Whether a name of an attribute could be one.
    pub(super) fn has_name(&self, index: u8) -> bool {
        let mut bytes = [0; 256];
        let name = read_text(self.asked.thread, self.pointer(index), &mut bytes);
        name.is_some_and(|name| !name.is_empty())
    }
}

/// Whether a path is in what the cage has of its own, where everything is allowed that is there.
fn is_own(path: &[u8]) -> bool {
    [b"/dev".as_slice(), b"/proc"].into_iter().any(|own| is_beneath(path, own))
}

/// Whether programs open it to write whenever they start, and go on without: every Java for what goes into its cores, every
/// debugger to look for the quickest way into a process that it may trace. Nobody traces the guard.
fn is_tried_as_a_routine(path: &[u8]) -> bool {
    const NAMES: [&[u8]; 2] = [b"coredump_filter", b"mem"];
    const GUARD: &[u8] = b"1";
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let [name, process] = [parts.next(), parts.next()].map(Option::unwrap_or_default);
    let is_process = !process.is_empty() && process.iter().all(u8::is_ascii_digit);
    path.starts_with(b"/proc/") && is_process && process != GUARD && NAMES.contains(&name)
}

pub(super) fn kind(held: BorrowedFd<'_>) -> Option<FileType> {
    fstat(held).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// What a name in a directory stands for. A link stands for itself.
pub(super) fn look(parent: BorrowedFd<'_>, entry: &Entry) -> Result<rustix::fs::Statx, Errno> {
    use rustix::fs::{StatxFlags, statx};
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(parent, entry.name.as_c_str(), flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}
