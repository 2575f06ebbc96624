//! Calls that make, remove and rename names, and those that change what is written about a file.

use super::Answer;
use super::calls::{Also, FileCall, Links, Where};
use super::files::{Files, look};
use super::place::{Entry, Follow, Place, canonical};
use crate::linux::Mode;
use crate::sys::notify::read_memory;
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, RenameFlags, StatVfsMountFlags, Statx, StatxAttributes, StatxFlags,
    statvfs, statx,
};
use rustix::io::Errno;
use sandgate_protocol::{DenialRule, DeniedOperation as Operation};

impl Files<'_> {
    /// Directories, nodes and links. Whether the name is taken is said before anything else.
    pub(super) fn make(&mut self, call: FileCall) -> Option<Answer> {
        let place = match call {
            FileCall::MakeDirectory(place) => place,
            FileCall::MakeNode(place, mode) => {
                let mode = self.argument(mode);
                let file = FileType::from_raw_mode(mode);
                let makes = !matches!(file, FileType::Directory | FileType::Symlink);
                let known = file != FileType::Unknown || mode & libc::S_IFMT == 0;
                (makes && known).then_some(place)?
            }
            FileCall::MakeLink(place, text) => self.has_text(text).then_some(place)?,
            FileCall::AddName(old, new, flags) => {
                let flags = flags.map_or(AtFlags::empty(), |flags| self.at_flags(flags));
                let follows = flags.contains(AtFlags::SYMLINK_FOLLOW);
                let follow = if follows { Follow::Yes } else { Follow::No };
                self.flagged(old, flags)?.hold(follow).ok()?;
                new
            }
            _ => return None,
        };
        let entry = self.place(place)?.split()?;
        if entry.slash && !matches!(call, FileCall::MakeDirectory(_)) {
            return None;
        }
        self.create(&entry, Operation::Create)
    }

    /// A read-only mount refuses to remove what is not there as well; Landlock does not.
    pub(super) fn remove(&mut self, place: Where, directory: bool) -> Option<Answer> {
        let place = self.place(place)?;
        let entry = place.split()?;
        let Some(parent) = self.closed_parent(&entry) else {
            return self.remove_held(&place, &entry, directory);
        };
        if self.scope.mode == Mode::LandlockOnly {
            let found = look(parent.as_fd(), &entry).ok()?;
            (is_directory(&found) == directory).then_some(())?;
        }
        self.refuse_entry(parent.as_fd(), &entry, Operation::Remove)
    }

    /// What has a mount on it cannot be removed.
    fn remove_held(&mut self, place: &Place, entry: &Entry, directory: bool) -> Option<Answer> {
        (self.scope.mode == Mode::Namespaces).then_some(())?;
        let found = look_at(place)?;
        (has_mount(&found) && is_directory(&found) == directory).then_some(())?;
        // Its permissions are looked at before.
        entry.parent.may_write(Follow::Yes).ok()?;
        self.refuse_mounted(entry, Operation::Remove, Errno::BUSY)
    }

    fn refuse_mounted(
        &mut self,
        entry: &Entry,
        operation: Operation,
        errno: Errno,
    ) -> Option<Answer> {
        let parent = entry.parent.hold(Follow::Yes).ok()?;
        canonical(parent.as_fd(), self.target).then_some(())?;
        self.name(entry)?;
        let rule = DenialRule::ProtectedName;
        Some(Answer::Refuse { errno, operation, rule })
    }

    pub(super) fn rename(&mut self, from: Where, to: Where, flags: Option<u8>) -> Option<Answer> {
        let flags = RenameFlags::from_bits_retain(flags.map_or(0, |flags| self.argument(flags)));
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        let others = RenameFlags::NOREPLACE | RenameFlags::WHITEOUT;
        if !(flags - RenameFlags::EXCHANGE - others).is_empty()
            || (exchanges && flags.intersects(others))
        {
            return None;
        }
        let (old, new) = (self.place(from)?, self.place(to)?);
        let (from, to) = (old.split()?, new.split()?);
        let from_closed = self.closed_parent(&from).is_some();
        if from_closed || self.closed_parent(&to).is_some() {
            return self.rename_closed(&from, &to, from_closed);
        }
        (self.scope.mode == Mode::Namespaces).then_some(())?;
        let (found, other) = (look_at(&old)?, look_at(&new));
        let held = if has_mount(&found) {
            &from
        } else if other.as_ref().is_some_and(has_mount) {
            &to
        } else {
            return None;
        };
        let errno = self.rename_held(&from, &to, &found, other.as_ref(), flags)?;
        self.refuse_mounted(held, Operation::Rename, errno)
    }

    /// At least one of the directories cannot be changed.
    fn rename_closed(&mut self, from: &Entry, to: &Entry, from_closed: bool) -> Option<Answer> {
        let (closed, operation) = (if from_closed { from } else { to }, Operation::Rename);
        let [old, new] = [from, to].map(|entry| entry.parent.hold(Follow::Yes));
        let (old, new) = (old.ok()?, new.ok()?);
        let held = if from_closed { &old } else { &new };
        if self.scope.mode == Mode::LandlockOnly {
            look(old.as_fd(), from).ok()?;
            return self.refuse_entry(held.as_fd(), closed, operation);
        }
        let [one, two] = [&old, &new].map(|parent| look_at_mount(parent.as_fd()));
        let (one, two) = (one?, two?);
        let answer = self.refuse_entry(held.as_fd(), closed, operation)?;
        if one.stx_mnt_id == two.stx_mnt_id {
            return Some(answer);
        }
        // That names lie on two mounts is seen before that one is read-only. On one and the same
        // file system it is the cage that has put a mount between them.
        look(old.as_fd(), from).ok()?;
        let Answer::Refuse { operation, rule, .. } = answer else { return None };
        let refusal = Answer::Refuse { errno: Errno::XDEV, operation, rule };
        (device(&one) == device(&two)).then_some(refusal)
    }

    /// The kernel's answer if nothing but mounts of the cage are in the way: that names lie on two of
    /// them is seen before that one of them has one on it.
    fn rename_held(
        &self,
        from: &Entry,
        to: &Entry,
        found: &Statx,
        other: Option<&Statx>,
        flags: RenameFlags,
    ) -> Option<Errno> {
        let parents = [from, to].map(|entry| entry.parent.hold(Follow::Yes));
        let [one, two] = parents.map(|parent| look_at_mount(parent.ok()?.as_fd()));
        let (one, two) = (one?, two?);
        if one.stx_mnt_id != two.stx_mnt_id {
            return (device(&one) == device(&two)).then_some(Errno::XDEV);
        }
        let fits = match other {
            Some(_) if flags.contains(RenameFlags::EXCHANGE) => true,
            Some(other) => {
                !flags.contains(RenameFlags::NOREPLACE)
                    && is_directory(found) == is_directory(other)
            }
            None => !flags.contains(RenameFlags::EXCHANGE),
        };
        let permitted = [from, to].iter().all(|entry| entry.parent.may_write(Follow::Yes).is_ok());
        (fits && permitted).then_some(Errno::BUSY)
    }

    pub(super) fn change(&mut self, place: Where, links: Links, also: Also) -> Option<Answer> {
        // Where Landlock is alone this is done elsewhere.
        (self.scope.mode == Mode::Namespaces).then_some(())?;
        let ready = match also {
            Also::Nothing => true,
            Also::Name(name) => self.has_name(name),
            Also::Times(times) => self.sets_times(times),
        };
        ready.then_some(())?;
        let (flags, follow) = match links {
            Links::Followed => (AtFlags::empty(), Follow::Yes),
            Links::Meant => (AtFlags::empty(), Follow::No),
            Links::AsFlagged(flags) => {
                let flags = self.at_flags(flags);
                let stays = flags.contains(AtFlags::SYMLINK_NOFOLLOW);
                (flags, if stays { Follow::No } else { Follow::Yes })
            }
        };
        let known = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        known.contains(flags).then_some(())?;
        if self.pointer(place.path) == 0 && matches!(also, Also::Times(_)) {
            // Times can be set through a descriptor in this way.
            return self.change_open(place.directory?);
        }
        let place = self.flagged(place, flags)?;
        self.change_at(&place, follow)
    }

    pub(super) fn change_open(&mut self, descriptor: u8) -> Option<Answer> {
        (self.scope.mode == Mode::Namespaces).then_some(())?;
        let descriptor = self.argument(descriptor).cast_signed();
        self.change_at(&Place::open(self.asked.thread, descriptor)?, Follow::Yes)
    }

    /// The mount is looked at before whose file it is.
    fn change_at(&mut self, place: &Place, follow: Follow) -> Option<Answer> {
        if follow == Follow::Yes {
            let mount = statvfs(place.path()).ok()?;
            mount.f_flag.contains(StatVfsMountFlags::RDONLY).then_some(())?;
        }
        let held = place.hold(follow).ok()?;
        self.refuse(held.as_fd(), Operation::Change)
    }

    /// Refuses to set a set-user-id bit, whatever it is about. That it would be set is said by a register,
    /// which no thread changes; what would have it is only told.
    pub(super) fn refuse_user_id(&mut self, call: FileCall) -> Answer {
        if self.name_what_has_mode(call).is_none() {
            self.target.clear();
            // It fits by far.
            let _ = self.target.push(b"set-user-id");
        }
        let (operation, rule) = (Operation::Change, DenialRule::NeverAllowed);
        Answer::Refuse { errno: Errno::PERM, operation, rule }
    }

    fn name_what_has_mode(&mut self, call: FileCall) -> Option<()> {
        let place = match call {
            FileCall::ChangeOpen(descriptor) => {
                Place::open(self.asked.thread, self.argument(descriptor).cast_signed())?
            }
            FileCall::Change(place, Links::AsFlagged(flags), _) => {
                self.flagged(place, self.at_flags(flags))?
            }
            FileCall::Change(place, ..)
            | FileCall::Open(place, _)
            | FileCall::Create(place)
            | FileCall::MakeNode(place, _) => self.place(place)?,
            _ => return None,
        };
        if let Ok(held) = place.hold(Follow::Yes) {
            return canonical(held.as_fd(), self.target).then_some(());
        }
        let entry = place.split()?;
        let parent = entry.parent.hold(Follow::Yes).ok()?;
        canonical(parent.as_fd(), self.target).then_some(())?;
        self.name(&entry)
    }

    pub(super) fn at_flags(&self, index: u8) -> AtFlags {
        AtFlags::from_bits_retain(self.argument(index))
    }

    /// A path that may be empty if flags say so: then the directory itself is meant.
    pub(super) fn flagged(&self, place: Where, flags: AtFlags) -> Option<Place> {
        self.place(place).or_else(|| {
            let empty = flags.contains(AtFlags::EMPTY_PATH) && !self.has_text(place.path);
            let directory = self.directory(place);
            if !empty {
                None
            } else if directory == libc::AT_FDCWD {
                Place::given(self.asked.thread, directory, b".")
            } else {
                Place::open(self.asked.thread, directory)
            }
        })
    }

    /// Whether at least one of two times is to be set. Without any, both are set to now.
    fn sets_times(&self, index: u8) -> bool {
        const OMIT: i64 = (1 << 30) - 2;
        const MOST: i64 = 999_999_999;
        const NOW: i64 = (1 << 30) - 1;
        if self.pointer(index) == 0 {
            return true;
        }
        // Seconds and nanoseconds, twice.
        let mut bytes = [0; 32];
        if read_memory(self.asked.thread, self.pointer(index), &mut bytes) < bytes.len() {
            return false;
        }
        let [one, two] = [8, 24].map(|at| {
            let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(OMIT, |bytes| i64::from_ne_bytes(*bytes))
        });
        let valid = |time: i64| matches!(time, 0..=MOST | NOW | OMIT);
        valid(one) && valid(two) && (one != OMIT || two != OMIT)
    }
}

fn is_directory(found: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::Directory
}

fn device(found: &Statx) -> (u32, u32) {
    (found.stx_dev_major, found.stx_dev_minor)
}

fn has_mount(found: &Statx) -> bool {
    found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}

/// What a path leads to. A link stands for itself.
fn look_at(place: &Place) -> Option<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(CWD, place.path(), flags, StatxFlags::BASIC_STATS).ok()
}

fn look_at_mount(directory: BorrowedFd<'_>) -> Option<Statx> {
    statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID).ok()
}
