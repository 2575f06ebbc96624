//! Which job lives among which mounts.

use rustix::process::Pid;
use sandgate_sandbox::linux::{MOUNTS_OF_JOB, Room};

/// How many are kept. More jobs at once than this get mounts that go with them.
const MOST: usize = 8;

/// The mounts that a nursery has for its jobs. The first are those of the session itself; where those cannot be kept,
/// none are.
#[derive(Default)]
pub(super) struct Rooms {
    rooms: [Option<Let>; MOST],
    /// The one that the nursery is in, unless it is in none that is kept.
    here: Option<usize>,
}

struct Let {
    room: Room,
    /// The first process of the job, until it has been waited for. All others of the job have ended by then.
    to: Option<Pid>,
}

impl Rooms {
    /// Keeps those that this process has, which no job has lived among.
    pub(super) fn here() -> Self {
        let mut rooms = Self::default();
        if let (Ok(room), Some(first)) = (Room::here(), rooms.rooms.first_mut()) {
            *first = Some(Let { room, to: None });
            rooms.here = Some(0);
        }
        rooms
    }

    /// Goes where the next job is to live, and says which room that is and what namespace its first process has to
    /// get besides, as a flag of `clone`.
    pub(super) fn next(&mut self) -> (Option<usize>, u32) {
        if let Some(number) = self.vacant() {
            return (Some(number), 0);
        }
        self.here = None;
        // All are let. This one goes with its job, and with whoever is in it now.
        match self.are_kept() && Room::another().is_ok() {
            true => (None, 0),
            false => (None, MOUNTS_OF_JOB),
        }
    }

    fn are_kept(&self) -> bool {
        self.rooms.first().is_some_and(Option::is_some)
    }

    fn vacant(&mut self) -> Option<usize> {
        if !self.are_kept() {
            return None;
        }
        let is_vacant = |room: &Option<Let>| room.as_ref().is_none_or(|room| room.to.is_none());
        let number = self.rooms.iter().position(is_vacant)?;
        let room = self.rooms.get_mut(number)?;
        match room {
            _ if self.here == Some(number) => {}
            Some(vacant) => vacant.room.enter().ok()?,
            None => {
                self.here = None;
                *room = Some(Let { room: Room::another().ok()?, to: None });
            }
        }
        self.here = Some(number);
        Some(number)
    }

    /// A job has moved in.
    pub(super) fn let_to(&mut self, room: Option<usize>, job: Option<Pid>) {
        if let Some(room) = room.and_then(|number| self.rooms.get_mut(number)?.as_mut()) {
            room.to = job;
        }
    }

    /// A job is over.
    pub(super) fn vacate(&mut self, job: Pid) {
        for room in self.rooms.iter_mut().flatten() {
            if room.to == Some(job) {
                room.to = None;
            }
        }
    }
}
