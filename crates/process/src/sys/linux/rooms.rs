//! Which job lives among which mounts.
//!
//! A job may hand a descriptor of a directory in its room to another one beside it, which would then see whoever lives
//! there next. So a room is let again only if nobody else was there when its last job ended.

use rustix::process::Pid;
use sandgate_sandbox::linux::{MOUNTS_OF_JOB, PROCESSES_OF_JOB, Room};

/// How many are kept. More jobs at once than this get mounts that go with them.
const MOST: usize = 8;

/// The mounts that a nursery has for its jobs. The first are those of the session itself.
pub(super) struct Rooms<R = Room> {
    kept: [Option<Kept<R>>; MOST],
    /// The one that the nursery is in, unless it is in none that is kept, or somebody may have left something there.
    here: Option<usize>,
    /// Whether mounts can be kept at all.
    possible: bool,
    /// How many jobs there are. A guard that waits for one is none.
    jobs: u32,
}

struct Kept<R> {
    room: R,
    /// The first process of the job that lives there, or is to, until it has been waited for. All others have ended by
    /// then.
    let_to: Option<Pid>,
}

/// What can be done with mounts.
pub(super) trait Mounts: Sized {
    fn here() -> Option<Self>;
    fn another() -> Option<Self>;
    fn enter(&self) -> bool;
}

impl Mounts for Room {
    fn here() -> Option<Self> {
        Self::here().ok()
    }

    fn another() -> Option<Self> {
        Self::another().ok()
    }

    fn enter(&self) -> bool {
        self.enter().is_ok()
    }
}

/// Where a job is to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    room: Option<usize>,
    /// What namespaces its first process has to get, as flags of `clone`.
    pub(super) namespaces: u32,
}

impl Place {
    /// Where there are no namespaces.
    pub(super) const HOST: Self = Self { room: None, namespaces: 0 };
}

impl<R: Mounts> Rooms<R> {
    /// None at all.
    pub(super) fn none() -> Self {
        Self { kept: [const { None }; MOST], here: None, possible: false, jobs: 0 }
    }

    /// Keeps those that this process has, which no job has lived among.
    pub(super) fn here() -> Self {
        let mut rooms = Self::none();
        if let (Some(room), Some(first)) = (R::here(), rooms.kept.first_mut()) {
            *first = Some(Kept { room, let_to: None });
            rooms.here = Some(0);
            rooms.possible = true;
        }
        rooms
    }

    /// Goes where the next job is to live. `None` when that cannot be: nothing may be started where this process is then.
    pub(super) fn next(&mut self) -> Option<Place> {
        if !self.possible {
            return Some(Place { room: None, namespaces: PROCESSES_OF_JOB | MOUNTS_OF_JOB });
        }
        let is_vacant =
            |kept: &Option<Kept<R>>| kept.as_ref().is_some_and(|it| it.let_to.is_none());
        let room = self.kept.iter().position(is_vacant);
        let room = room.or_else(|| self.kept.iter().position(Option::is_none));
        let before = self.here.take();
        match room.and_then(|number| self.kept.get_mut(number)) {
            Some(Some(_)) if before == room => {}
            Some(Some(kept)) => kept.room.enter().then_some(())?,
            Some(new) => *new = Some(Kept { room: R::another()?, let_to: None }),
            // It goes with its job, and with whoever is in it now.
            None => drop(R::another()?),
        }
        self.here = room;
        Some(Place { room, namespaces: PROCESSES_OF_JOB })
    }

    /// A guard is there, and waits for its job.
    pub(super) fn let_to(&mut self, place: Place, guard: Pid) {
        if let Some(kept) = place.room.and_then(|number| self.kept.get_mut(number)?.as_mut()) {
            kept.let_to = Some(guard);
        }
    }

    /// A job has begun. This must be said before it can have met another one.
    pub(super) fn begin(&mut self) {
        self.jobs += 1;
    }

    /// A guard has ended, and all of its job if it had one.
    pub(super) fn end(&mut self, guard: Pid, had_a_job: bool) {
        self.jobs = self.jobs.saturating_sub(u32::from(had_a_job));
        let is_its =
            |kept: &Option<Kept<R>>| kept.as_ref().is_some_and(|kept| kept.let_to == Some(guard));
        let Some(number) = self.kept.iter().position(is_its) else { return };
        if self.here == Some(number) {
            // It may not have ended by itself.
            self.here = None;
        }
        if let Some(kept) = self.kept.get_mut(number) {
            match had_a_job && self.jobs > 0 {
                true => *kept = None,
                false => kept.iter_mut().for_each(|kept| kept.let_to = None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    thread_local! {
        static MADE: Cell<usize> = const { Cell::new(0) };
        static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// Mounts by the order in which they were made.
    struct Numbered(usize);

    impl Mounts for Numbered {
        fn here() -> Option<Self> {
            Some(Self(0))
        }

        fn another() -> Option<Self> {
            MADE.set(MADE.get() + 1);
            Some(Self(MADE.get()))
        }

        fn enter(&self) -> bool {
            ENTERED.with_borrow_mut(|entered| entered.push(self.0));
            true
        }
    }

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    /// Has a job begin, and says among which mounts it lives, if those are kept.
    fn begin(rooms: &mut Rooms<Numbered>, job: i32) -> Option<usize> {
        let place = rooms.next().unwrap();
        rooms.let_to(place, pid(job));
        rooms.begin();
        place.room.map(|number| rooms.kept[number].as_ref().unwrap().room.0)
    }

    #[test]
    fn one_after_the_other_lives_in_the_same_room() {
        let mut rooms = Rooms::here();
        for job in 1..10 {
            assert_eq!(begin(&mut rooms, job), Some(0));
            rooms.end(pid(job), true);
        }
        assert_eq!(MADE.get(), 0);
        assert_eq!(ENTERED.with_borrow(Vec::len), 8, "each may have left something");
    }

    #[test]
    fn nobody_moves_in_where_somebody_else_may_have_a_way() {
        let mut rooms = Rooms::here();
        assert_eq!(begin(&mut rooms, 1), Some(0));
        for job in 2..12 {
            let new = usize::try_from(job).unwrap() - 1;
            assert_eq!(begin(&mut rooms, job), Some(new), "the first job was beside the last");
            rooms.end(pid(job), true);
        }
        rooms.end(pid(1), true);
        assert_eq!(begin(&mut rooms, 12), Some(0), "nobody was beside the first any more");
    }

    #[test]
    fn more_at_once_than_are_kept_live_elsewhere() {
        let mut rooms = Rooms::here();
        let places: Vec<_> = (1..=10).map(|job| begin(&mut rooms, job)).collect();
        assert_eq!(places[..8], (0..8).map(Some).collect::<Vec<_>>());
        assert_eq!(places[8..], [None, None]);
        assert_eq!(MADE.get(), 9, "each has its own all the same");
    }

    #[test]
    fn a_guard_that_ended_without_a_job_leaves_its_room_to_be_entered_again() {
        let mut rooms = Rooms::<Numbered>::here();
        let place = rooms.next().unwrap();
        rooms.let_to(place, pid(1));
        rooms.end(pid(1), false);
        assert_eq!(begin(&mut rooms, 2), Some(0));
        assert_eq!(ENTERED.with_borrow(Clone::clone), [0]);
    }
}
