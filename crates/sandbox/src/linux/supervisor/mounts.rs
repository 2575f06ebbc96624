//! Mounts on which the cage closes nothing.
//!
//! Most of what a command opens to write lies in its roots. What is there, and on which mount, is told by one look, so that
//! whoever knows the mount needs no second one. Nothing is allowed by what is remembered: a mount that is another one by now, or has become
//! read-only, decides as ever, and all that is lost is a line of evidence.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, StatVfsMountFlags, Statx, StatxFlags, fstatvfs, statx};

/// How many are remembered: roots, and what every cage has of its own.
const MOST: usize = 16;

/// What one look has to tell.
pub(super) const LOOK: StatxFlags = StatxFlags::TYPE.union(NUMBER);

/// The number of a mount. Since 6.8 it can be had as one that is never given away again, `STATX_MNT_ID_UNIQUE`.
const NUMBER: StatxFlags = StatxFlags::MNT_ID.union(StatxFlags::from_bits_retain(0x4000));

/// What is known of mounts, by their numbers.
pub(super) struct Mounts {
    known: [Option<Known>; MOST],
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    number: u64,
    is_open: bool,
}

impl Mounts {
    pub(super) const fn new() -> Self {
        Self { known: [None; MOST], next: 0 }
    }

    /// Whether what was found is on a mount that can be written to. What is on one that is not known yet is held, and
    /// looked at more closely.
    pub(super) fn is_open(
        &mut self,
        found: &Statx,
        hold: impl FnOnce() -> Option<OwnedFd>,
    ) -> bool {
        let Some(number) = number(found) else { return false };
        let known = self.known.iter().flatten().find(|known| known.number == number);
        match known {
            Some(known) => known.is_open,
            None => hold()
                .is_some_and(|held| self.learn(&held) == Some(Known { number, is_open: true })),
        }
    }

    /// Remembers the mount of what is held. That may be something else than what was found, but its number and what
    /// can be done there are of one mount.
    fn learn(&mut self, held: &OwnedFd) -> Option<Known> {
        let found = statx(held, c"", AtFlags::EMPTY_PATH, LOOK).ok()?;
        let is_open = !fstatvfs(held).ok()?.f_flag.contains(StatVfsMountFlags::RDONLY);
        let known = Known { number: number(&found)?, is_open };
        if let Some(slot) = self.known.get_mut(self.next % MOST) {
            *slot = Some(known);
        }
        self.next = self.next.wrapping_add(1);
        Some(known)
    }
}

/// Kernels before 5.8 tell none.
fn number(found: &Statx) -> Option<u64> {
    StatxFlags::from_bits_retain(found.stx_mask).intersects(NUMBER).then_some(found.stx_mnt_id)
}

/// Whether two descriptors hold one file by one mount. Without numbers of mounts they do not.
pub(super) fn are_one(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let look = |held| {
        let wanted = LOOK | StatxFlags::INO;
        let found = statx(held, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
        Some((found.stx_dev_major, found.stx_dev_minor, found.stx_ino, number(&found)?))
    };
    look(one).is_some_and(|one| look(other) == Some(one))
}

pub(super) fn kind(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};

    #[test]
    fn one_mount_does_not_answer_for_another_and_the_oldest_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let hold = |path: &std::path::Path| {
            openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
        };
        let look = |held: &OwnedFd| statx(held, c"", AtFlags::EMPTY_PATH, LOOK).unwrap();
        let [here, there] = [directory.path(), std::path::Path::new("/proc")];
        let (one, other) = (hold(here), hold(there));
        let mut mounts = Mounts::new();
        assert!(mounts.is_open(&look(&one), || Some(hold(here))));
        assert!(mounts.is_open(&look(&one), || panic!("it is known")));
        assert!(!mounts.is_open(&look(&other), || None), "nothing is known of this one");
        assert!(!mounts.is_open(&look(&other), || Some(hold(here))), "something else");
        let mut asked = false;
        mounts.is_open(&look(&other), || {
            asked = true;
            Some(hold(there))
        });
        assert!(asked, "it was not learnt from something else");
        for _ in 0..MOST {
            mounts.learn(&other).unwrap();
        }
        assert!(!mounts.is_open(&look(&one), || None), "the oldest are forgotten first");
    }
}
