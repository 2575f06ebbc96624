//! Modes, owners and times where Landlock is alone, which has no rule on them.
//!
//! Nobody beneath would refuse such a change, so it is never continued. Like a connection it is made from
//! here: what it is about is held before it is judged, and is what is changed; the arguments are copies.
//! This process has the rights over files that the command has, and no other.

use super::Answer;
use super::calls::{Change, FileCall, Links, Times};
use super::files::{Files, kind};
use super::place::{Follow, is_at, own_link};
use super::thread::duplicate;
use crate::sys::notify::{read_memory, still_waits};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, UTIME_NOW, Uid, accessat,
    chmodat, chownat, fchmod, fchown, fstat, futimens, readlinkat_raw, utimensat,
};
use rustix::io::Errno;
use sandgate_protocol::DeniedOperation as Operation;

/// How often a path is taken down anew that somebody has changed meanwhile.
const MOST_LOOKS: usize = 8;

/// What is to be changed.
enum Subject {
    /// What the command has open.
    Open(OwnedFd),
    /// What a path led to, which nobody has opened.
    Found(OwnedFd),
}

/// A change with its arguments, copied.
enum Wanted {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(Timestamps),
}

/// Where something is.
enum Whereabouts {
    /// It is no file's, or its name is gone: nobody finds it by a path.
    Nowhere,
    /// Its path is written down.
    Known,
    /// It has one that cannot be told.
    Unknown,
}

impl Files<'_> {
    /// Makes a change in the caller's place, or refuses it.
    pub(super) fn change_here(
        &mut self,
        call: FileCall,
        change: Change,
        listener: BorrowedFd<'_>,
    ) -> Answer {
        match self.try_change(call, change, listener) {
            Ok(()) => Answer::Done,
            Err(answer) => answer,
        }
    }

    fn try_change(
        &mut self,
        call: FileCall,
        change: Change,
        listener: BorrowedFd<'_>,
    ) -> Result<(), Answer> {
        let wanted = self.wanted(change).map_err(Answer::Fail)?;
        let subject = self.subject(call).map_err(Answer::Fail)?;
        // Until here the thread's number was its own, so what was found is.
        if !still_waits(listener, self.asked.id) {
            return Err(Answer::Fail(Errno::SRCH));
        }
        self.judge_change(&subject, &wanted)?;
        wanted.make(&subject).map_err(Answer::Fail)
    }

    fn wanted(&self, change: Change) -> Result<Wanted, Errno> {
        let number = |index| Some(self.argument(index)).filter(|number| *number != u32::MAX);
        Ok(match change {
            Change::Mode(mode) => Wanted::Mode(Mode::from_raw_mode(self.argument(mode) & 0o7777)),
            Change::Owner(user, group) => {
                Wanted::Owner(number(user).map(Uid::from_raw), number(group).map(Gid::from_raw))
            }
            Change::Times(times, pointer) => {
                Wanted::Times(self.times(times, self.pointer(pointer))?)
            }
        })
    }

    /// Copies two times. Without any, both are now.
    fn times(&self, times: Times, pointer: u64) -> Result<Timestamps, Errno> {
        let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if pointer == 0 {
            return Ok(Timestamps { last_access: now(), last_modification: now() });
        }
        let mut bytes = [0; 32];
        let size = if times == Times::Seconds { 16 } else { 32 };
        let bytes = bytes.get_mut(..size).unwrap_or_default();
        if read_memory(self.asked.thread, pointer, bytes) < size {
            return Err(Errno::FAULT);
        }
        let number = |at: usize| {
            let bytes = bytes.get(8 * at..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| i64::from_ne_bytes(*bytes))
        };
        let time = |index: usize| match times {
            Times::Seconds => Ok(Timespec { tv_sec: number(index), tv_nsec: 0 }),
            Times::Nanoseconds => {
                Ok(Timespec { tv_sec: number(2 * index), tv_nsec: number(2 * index + 1) })
            }
            Times::Microseconds => match number(2 * index + 1) {
                micro @ 0..=999_999 => {
                    Ok(Timespec { tv_sec: number(2 * index), tv_nsec: micro * 1000 })
                }
                _ => Err(Errno::INVAL),
            },
        };
        Ok(Timestamps { last_access: time(0)?, last_modification: time(1)? })
    }

    /// Finds what a call is about, with the errors that the kernel has when there is nothing.
    fn subject(&self, call: FileCall) -> Result<Subject, Errno> {
        let (place, links) = match call {
            FileCall::ChangeOpen(descriptor) => {
                return self.opened(self.argument(descriptor).cast_signed());
            }
            FileCall::Change(place, links, _) => (place, links),
            _ => return Err(Errno::NOSYS),
        };
        let flags = match links {
            Links::AsFlagged(flags) => self.at_flags(flags),
            Links::Followed => AtFlags::empty(),
            Links::Meant => AtFlags::SYMLINK_NOFOLLOW,
        };
        let known = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        known.contains(flags).then_some(()).ok_or(Errno::INVAL)?;
        let directory = self.directory(place);
        // Times can be set through a descriptor in this way; other calls want a path.
        let has_descriptor = place.directory.is_some() && directory != libc::AT_FDCWD;
        if self.pointer(place.path) == 0 && has_descriptor && self.sets_times_of_open() {
            flags.is_empty().then_some(()).ok_or(Errno::INVAL)?;
            return self.opened(directory);
        }
        let follow = match flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
            true => Follow::No,
            false => Follow::Yes,
        };
        let found = self.flagged(place, flags).ok_or_else(|| self.pathless(place.path))?;
        match found.hold(follow) {
            Err(Errno::NOENT) if found.is_relative() && has_descriptor => {
                self.opened(directory).and(Err(Errno::NOENT))
            }
            held => held.map(Subject::Found),
        }
    }

    fn sets_times_of_open(&self) -> bool {
        let call = libc::c_long::from(self.asked.call);
        #[cfg(target_arch = "x86_64")]
        if call == libc::SYS_futimesat {
            return true;
        }
        call == libc::SYS_utimensat
    }

    fn opened(&self, descriptor: i32) -> Result<Subject, Errno> {
        match duplicate(self.asked.thread, descriptor) {
            Err(Errno::BADF) => Err(Errno::BADF),
            result => result.map(Subject::Open).map_err(|_| Errno::ACCESS),
        }
    }

    /// Why no path could be had.
    fn pathless(&self, index: u8) -> Errno {
        let mut byte = [0; 1];
        match read_memory(self.asked.thread, self.pointer(index), &mut byte) {
            1 if byte == [0] => Errno::NOENT,
            1 => Errno::NAMETOOLONG,
            _ => Errno::FAULT,
        }
    }

    /// Refuses what lies outside the roots. What its owner alone may change is nothing that the cage
    /// keeps from others.
    fn judge_change(&mut self, subject: &Subject, wanted: &Wanted) -> Result<(), Answer> {
        let is_its_own = matches!(subject, Subject::Open(_));
        let subject = subject.as_fd();
        let found = fstat(subject).map_err(Answer::Fail)?;
        match self.whereabouts(subject, found.st_nlink == 0) {
            Whereabouts::Nowhere if is_its_own => return Ok(()),
            Whereabouts::Known if self.scope.is_in_roots(self.target.as_bytes()) => {
                let found = self.is_found_there(subject, is_its_own);
                return found.then_some(()).ok_or(Answer::Fail(Errno::ACCESS));
            }
            Whereabouts::Known => {}
            // A path in `/proc` can lead to what another process has open, and this one is let follow it.
            Whereabouts::Nowhere | Whereabouts::Unknown => return Err(Answer::Fail(Errno::ACCESS)),
        }
        if found.st_uid != rustix::process::geteuid().as_raw() {
            match wanted {
                Wanted::Owner(None, None) => {}
                Wanted::Times(times) if times.are_now() => {
                    let link = own_link(subject);
                    accessat(CWD, link.as_c_str(), Access::WRITE_OK, AtFlags::EACCESS)
                        .map_err(|_| Answer::Fail(Errno::ACCESS))?;
                }
                _ => return Err(Answer::Fail(Errno::PERM)),
            }
        }
        let (operation, rule) = (Operation::Change, self.scope.rule_on(self.target.as_bytes()));
        Err(Answer::Refuse { errno: Errno::ACCESS, operation, rule })
    }

    /// Whether what is held is what the path leads to that is written down, which lies in a root.
    fn is_found_there(&mut self, subject: BorrowedFd<'_>, is_its_own: bool) -> bool {
        for _ in 0..MOST_LOOKS {
            match is_at(subject, self.target) {
                Ok(true) => return true,
                // What has lost the name by which it was opened may have another one.
                Err(Errno::NOENT) if self.target.as_bytes().ends_with(b" (deleted)") => {
                    return is_its_own;
                }
                Ok(false) | Err(_) => {}
            }
            // It may have been renamed since. Where it has not, nothing will come of looking again.
            let before = *self.target;
            if !matches!(self.whereabouts(subject, false), Whereabouts::Known)
                || self.target.as_bytes() == before.as_bytes()
                || !self.scope.is_in_roots(self.target.as_bytes())
            {
                return false;
            }
        }
        false
    }

    /// Writes down where something is. Unlike where a refusal is only told, what cannot be told here must
    /// not pass for something that is nowhere.
    fn whereabouts(&mut self, subject: BorrowedFd<'_>, is_gone: bool) -> Whereabouts {
        let mut bytes = [0; 4096];
        let link = own_link(subject);
        let length = readlinkat_raw(CWD, link.as_c_str(), bytes.as_mut_slice()).unwrap_or(0);
        let path = bytes.get(..length).unwrap_or_default();
        self.target.clear();
        match path.first() {
            None => Whereabouts::Unknown,
            Some(b'/') if length == bytes.len() => Whereabouts::Unknown,
            Some(b'/') if is_gone && path.ends_with(b" (deleted)") => Whereabouts::Nowhere,
            Some(b'/') if self.target.push(path).is_some() => Whereabouts::Known,
            Some(b'/') => Whereabouts::Unknown,
            // Pipes, sockets and the like.
            Some(_) => Whereabouts::Nowhere,
        }
    }
}

trait Now {
    /// Whether both are to be set to now, which asks for less than to set them to something else.
    fn are_now(&self) -> bool;
}

impl Now for Timestamps {
    fn are_now(&self) -> bool {
        [&self.last_access, &self.last_modification].iter().all(|time| time.tv_nsec == UTIME_NOW)
    }
}

impl Subject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Open(held) | Self::Found(held) => held.as_fd(),
        }
    }
}

impl Wanted {
    fn make(&self, subject: &Subject) -> Result<(), Errno> {
        match (self, subject) {
            (Self::Mode(mode), Subject::Open(open)) => fchmod(open, *mode),
            (Self::Owner(user, group), Subject::Open(open)) => fchown(open, *user, *group),
            (Self::Times(times), Subject::Open(open)) => futimens(open, times),
            (Self::Owner(user, group), Subject::Found(held)) => {
                chownat(held, c"", *user, *group, AtFlags::EMPTY_PATH)
            }
            (_, Subject::Found(held)) => {
                let is_link = kind(held.as_fd()) == Some(FileType::Symlink);
                let link = own_link(held.as_fd());
                match self {
                    Self::Times(times) if is_link => {
                        utimensat(held, c"", times, AtFlags::EMPTY_PATH)
                    }
                    Self::Times(times) => utimensat(CWD, link.as_c_str(), times, AtFlags::empty()),
                    // A link has none.
                    Self::Mode(_) if is_link => Err(Errno::OPNOTSUPP),
                    Self::Mode(mode) => chmodat(CWD, link.as_c_str(), *mode, AtFlags::empty()),
                    Self::Owner(..) => Err(Errno::NOSYS),
                }
            }
        }
    }
}
