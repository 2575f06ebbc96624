//! Which job lives among which mounts.
//!
//! None are given up as long as there may be jobs: somebody may hold what is beneath those that protect it.

use rustix::io::Errno;
use rustix::process::Pid;
use sandgate_sandbox::linux::{HostProc, MOUNTS_OF_JOB, PROCESSES_OF_JOB, Room};

/// How many there can be, and so how many jobs at once in a cage with namespaces. More are refused.
const MOST: usize = 256;

/// The mounts that a nursery has for its jobs. The first are those of the session itself.
pub(super) struct Rooms<M: Mounts = HostProc> {
    kept: [Option<Kept<M::Room>>; MOST],
    /// The one that the nursery is in. Nothing of another job is there.
    here: Option<usize>,
    /// What they are made with, where they can be.
    mounts: Option<M>,
}

struct Kept<R> {
    room: R,
    /// The first process of the job that lives there, or is to, until it has been waited for. All others have ended by
    /// then.
    let_to: Option<Pid>,
}

/// What can be done with mounts.
pub(super) trait Mounts {
    type Room;
    fn first(&self) -> Result<Self::Room, Errno>;
    fn another(&self) -> Result<Self::Room, Errno>;
    fn enter(room: &Self::Room) -> Result<(), Errno>;
}

impl Mounts for HostProc {
    type Room = Room;

    fn first(&self) -> Result<Room, Errno> {
        Room::first(self)
    }

    fn another(&self) -> Result<Room, Errno> {
        Room::another(self)
    }

    fn enter(room: &Room) -> Result<(), Errno> {
        room.enter()
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

impl<M: Mounts> Rooms<M> {
    /// The first is the one that this process is in, if there are any: where no jobs have been, or can be kept from
    /// each other, each has mounts that go with it.
    pub(super) fn with(mounts: Option<M>) -> Self {
        let first = mounts.as_ref().and_then(|mounts| mounts.first().ok());
        let mut rooms = Self { kept: [const { None }; MOST], here: None, mounts: None };
        if let (Some(room), Some(slot)) = (first, rooms.kept.first_mut()) {
            *slot = Some(Kept { room, let_to: None });
            rooms.here = Some(0);
            rooms.mounts = mounts;
        }
        rooms
    }

    /// What they are made with.
    pub(super) fn mounts(&self) -> Option<&M> {
        self.mounts.as_ref()
    }

    /// Goes where the next job is to live.
    ///
    /// # Errors
    /// When that cannot be: nothing may be started where this process is then.
    pub(super) fn next(&mut self) -> Result<Place, Errno> {
        let Some(mounts) = &self.mounts else {
            return Ok(Place { room: None, namespaces: PROCESSES_OF_JOB | MOUNTS_OF_JOB });
        };
        let is_vacant =
            |kept: &Option<Kept<M::Room>>| kept.as_ref().is_some_and(|kept| kept.let_to.is_none());
        let here = self.here.take();
        let room = here.filter(|here| self.kept.get(*here).is_some_and(is_vacant));
        let room = room.or_else(|| self.kept.iter().position(is_vacant));
        let room = room.or_else(|| self.kept.iter().position(Option::is_none));
        match room.and_then(|number| self.kept.get_mut(number)) {
            Some(Some(_)) if here == room => {}
            Some(Some(kept)) => M::enter(&kept.room)?,
            Some(new) => *new = Some(Kept { room: mounts.another()?, let_to: None }),
            None => return Err(Errno::AGAIN),
        }
        self.here = room;
        Ok(Place { room, namespaces: PROCESSES_OF_JOB })
    }

    /// A guard is there, and waits for its job.
    pub(super) fn let_to(&mut self, place: Place, guard: Pid) {
        if let Some(kept) = place.room.and_then(|number| self.kept.get_mut(number)?.as_mut()) {
            kept.let_to = Some(guard);
        }
    }

    /// A guard has ended, and all of its job.
    pub(super) fn vacate(&mut self, guard: Pid) {
        let is_its = |kept: &Option<Kept<M::Room>>| {
            kept.as_ref().is_some_and(|kept| kept.let_to == Some(guard))
        };
        let Some(number) = self.kept.iter().position(is_its) else { return };
        if let Some(kept) = self.kept.get_mut(number).and_then(Option::as_mut) {
            kept.let_to = None;
            // Its /proc is taken away now, while nobody waits. Where that fails, whoever goes there next hears of it.
            self.here = M::enter(&kept.room).is_ok().then_some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Mounts by the order in which they were made, and who entered which.
    #[derive(Default)]
    struct Numbered(RefCell<usize>);

    thread_local! {
        static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    impl Mounts for Numbered {
        type Room = usize;

        fn first(&self) -> Result<usize, Errno> {
            Ok(0)
        }

        fn another(&self) -> Result<usize, Errno> {
            *self.0.borrow_mut() += 1;
            Ok(*self.0.borrow())
        }

        fn enter(room: &usize) -> Result<(), Errno> {
            ENTERED.with_borrow_mut(|entered| entered.push(*room));
            Ok(())
        }
    }

    fn pid(number: usize) -> Pid {
        Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
    }

    fn begin(rooms: &mut Rooms<Numbered>, job: usize) -> Option<usize> {
        let place = rooms.next().ok()?;
        rooms.let_to(place, pid(job));
        place.room
    }

    #[test]
    fn one_after_the_other_lives_in_the_same_room_which_is_cleared_between_them() {
        let mut rooms = Rooms::with(Some(Numbered::default()));
        for job in 1..10 {
            assert_eq!(begin(&mut rooms, job), Some(0));
            rooms.vacate(pid(job));
        }
        assert_eq!(ENTERED.with_borrow(Vec::clone), [0; 9]);
    }

    #[test]
    fn there_are_as_many_as_jobs_at_once_and_none_is_given_up() {
        let mut rooms = Rooms::with(Some(Numbered::default()));
        for job in 1..=MOST {
            assert_eq!(begin(&mut rooms, job), Some(job - 1));
        }
        assert_eq!(begin(&mut rooms, MOST + 1), None);
        for job in 1..=MOST {
            rooms.vacate(pid(job));
        }
        assert!(rooms.kept.iter().all(Option::is_some));
        for job in 1..=MOST {
            assert!(begin(&mut rooms, job).is_some());
        }
        assert_eq!(*rooms.mounts.unwrap().0.borrow(), MOST - 1);
    }

    #[test]
    fn where_none_can_be_kept_each_job_has_its_own() {
        let mut rooms = Rooms::<Numbered>::with(None);
        let place = rooms.next().unwrap();
        assert_eq!(place.namespaces, PROCESSES_OF_JOB | MOUNTS_OF_JOB);
        rooms.let_to(place, pid(1));
        rooms.vacate(pid(1));
        assert_eq!(rooms.next(), Ok(place));
    }
}
