//! Which job lives among which mounts.
//!
//! None are given up as long as there may be jobs: somebody may hold what is beneath those that protect it.

use rustix::io::Errno;
use rustix::process::{Pid, Resource, getrlimit};
use sandgate_sandbox::linux::{HostProc, PROCESSES_OF_JOB, Room};

/// How many there can be, and so how many jobs at once in a cage with namespaces. More are refused.
const MOST: usize = 256;

/// How many descriptors a nursery and its guards need beside those that it has when it begins; each room takes two.
const OTHER_DESCRIPTORS: u64 = 24;

/// The mounts that a nursery has for its jobs. The first are those of the session itself.
pub(super) struct Rooms<M: Mounts = HostProc> {
    kept: [Option<Kept<M::Room>>; MOST],
    most: usize,
    place: Whereabouts,
    /// What they are made with; nothing where there are no namespaces.
    mounts: Option<M>,
}

/// Where a nursery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    /// In this room. Nothing of another job is there, unless one lives there.
    In(usize),
    /// In one that could not be entered all the way.
    Lost,
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
    /// For jobs without namespaces.
    pub(super) const fn none() -> Self {
        Self { kept: [const { None }; MOST], most: 0, place: Whereabouts::Lost, mounts: None }
    }

    /// The first is the one that this process is in, which has so many descriptors open.
    ///
    /// # Errors
    /// When the kernel refuses: no job may be started here.
    pub(super) fn with(mounts: M, open: usize) -> Result<Self, Errno> {
        let mut rooms = Self::none();
        let room = mounts.first()?;
        let [first, ..] = &mut rooms.kept;
        *first = Some(Kept { room, let_to: None });
        rooms.most = room_for(getrlimit(Resource::Nofile).current, open);
        rooms.place = Whereabouts::In(0);
        rooms.mounts = Some(mounts);
        Ok(rooms)
    }

    /// What they are made with.
    pub(super) fn mounts(&self) -> Option<&M> {
        self.mounts.as_ref()
    }

    /// Goes where the next job is to live.
    ///
    /// # Errors
    /// `EAGAIN` when there are too many jobs, others when the kernel refuses: nothing may be started where this process
    /// is then.
    pub(super) fn next(&mut self) -> Result<Place, Errno> {
        let Some(mounts) = &self.mounts else { return Ok(Place::HOST) };
        let place = |room| Place { room: Some(room), namespaces: PROCESSES_OF_JOB };
        let vacant =
            |kept: &Option<Kept<M::Room>>| kept.as_ref().is_some_and(|kept| kept.let_to.is_none());
        if let Whereabouts::In(here) = self.place
            && self.kept.get(here).is_some_and(vacant)
        {
            return Ok(place(here));
        }
        let mut refused = None;
        for (number, kept) in self.kept.iter().enumerate() {
            let Some(kept) = kept.as_ref().filter(|kept| kept.let_to.is_none()) else { continue };
            match M::enter(&kept.room) {
                Ok(()) => {
                    self.place = Whereabouts::In(number);
                    return Ok(place(number));
                }
                Err(errno) => refused = Some(errno),
            }
            self.place = Whereabouts::Lost;
        }
        let free = self.kept.iter().take(self.most).position(Option::is_none);
        // A copy of where one has not arrived is nothing to live in.
        match (refused, self.place, free) {
            (None, Whereabouts::In(_), Some(number)) => {
                self.place = Whereabouts::Lost;
                let room = mounts.another()?;
                if let Some(kept) = self.kept.get_mut(number) {
                    *kept = Some(Kept { room, let_to: None });
                }
                self.place = Whereabouts::In(number);
                Ok(place(number))
            }
            (Some(errno), ..) => Err(errno),
            _ => Err(Errno::AGAIN),
        }
    }

    /// A guard is there, and waits for its job.
    pub(super) fn let_to(&mut self, place: Place, guard: Pid) {
        if let Some(kept) = place.room.and_then(|number| self.kept.get_mut(number)?.as_mut()) {
            kept.let_to = Some(guard);
        }
    }

    /// A guard has ended, and all of its job.
    pub(super) fn vacate(&mut self, guard: Pid) {
        let its = |(_, kept): &(usize, &mut Kept<M::Room>)| kept.let_to == Some(guard);
        let mut kept = self.kept.iter_mut().enumerate();
        let kept = kept.by_ref().filter_map(|(number, kept)| Some((number, kept.as_mut()?)));
        let Some((number, kept)) = kept.into_iter().find(its) else { return };
        kept.let_to = None;
        // Its /proc is taken away now, while nobody waits. Where that fails, whoever goes there next hears of it.
        self.place = match M::enter(&kept.room) {
            Ok(()) => Whereabouts::In(number),
            Err(_) => Whereabouts::Lost,
        };
    }
}

/// How many there can be where so many descriptors can be open, if there is a limit, and so many are.
fn room_for(limit: Option<u64>, open: usize) -> usize {
    let left = |limit: u64| limit.saturating_sub(open as u64 + OTHER_DESCRIPTORS) / 2;
    // Two there are, for one command after the other: fewer descriptors than that takes are hardly enough to begin.
    limit.and_then(|limit| usize::try_from(left(limit)).ok()).unwrap_or(MOST).clamp(2, MOST)
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
        let mut rooms = Rooms::with(Numbered::default(), 0).unwrap();
        for job in 1..10 {
            assert_eq!(begin(&mut rooms, job), Some(0));
            rooms.vacate(pid(job));
        }
        assert_eq!(ENTERED.with_borrow(Vec::clone), [0; 9]);
    }

    #[test]
    fn there_are_as_many_as_jobs_at_once_and_none_is_given_up() {
        let mut rooms = Rooms::with(Numbered::default(), 0).unwrap();
        rooms.most = 20;
        for job in 1..=20 {
            assert_eq!(begin(&mut rooms, job), Some(job - 1));
        }
        assert_eq!(begin(&mut rooms, 21), None);
        for job in 1..=20 {
            rooms.vacate(pid(job));
        }
        assert_eq!(rooms.kept.iter().flatten().count(), 20);
        for job in 1..=20 {
            assert!(begin(&mut rooms, job).is_some());
        }
        assert_eq!(*rooms.mounts.unwrap().0.borrow(), 19);
    }

    /// spec CAGED.74: A cage with namespaces holds 256 commands at once, or as many as its descriptors allow. One more is
    /// refused, and there is room again when one has ended.
    #[test]
    fn there_are_256_or_as_many_as_descriptors_are_left_for() {
        assert_eq!(room_for(None, 900), 256);
        assert_eq!(room_for(Some(1 << 20), 900), 256);
        assert_eq!(room_for(Some(1024), 20), 256);
        // As many names as there can be are kept free, each in a directory of its own.
        assert_eq!(room_for(Some(1024), 820), 90);
        assert_eq!(room_for(Some(96), 20), 26);
        assert_eq!(room_for(Some(96), 200), 2);
    }

    #[test]
    fn nothing_is_copied_where_one_has_not_arrived() {
        let mut rooms = Rooms::with(Numbered::default(), 0).unwrap();
        assert_eq!(begin(&mut rooms, 1), Some(0));
        rooms.place = Whereabouts::Lost;
        assert_eq!(rooms.next(), Err(Errno::AGAIN));
        rooms.vacate(pid(1));
        assert_eq!(begin(&mut rooms, 2), Some(0));
        assert_eq!(begin(&mut rooms, 3), Some(1));
    }
}
