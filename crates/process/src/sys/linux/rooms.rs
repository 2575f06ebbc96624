//! Which job lives among which mounts.

use rustix::process::Pid;
use sandgate_sandbox::linux::{MOUNTS_OF_JOB, Room};

/// How many are kept. More jobs at once than this get mounts that go with them.
const MOST: usize = 8;

/// The mounts that a nursery has for its jobs. The first are those of the session itself.
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
    pub(super) fn new() -> Self {
        Self { rooms: [const { None }; MOST], here: None }
    }

    /// Goes where the next job is to live, and says which room that is and what namespace its first process has to
    /// get besides, as a flag of `clone`.
    pub(super) fn next(&mut self) -> (Option<usize>, u32) {
        match self.vacant() {
            Some(number) => (Some(number), 0),
            None => (None, MOUNTS_OF_JOB),
        }
    }

    fn vacant(&mut self) -> Option<usize> {
        let is_vacant = |room: &Option<Let>| room.as_ref().is_some_and(|room| room.to.is_none());
        let number = match self.rooms.iter().position(is_vacant) {
            Some(number) => {
                if self.here != Some(number) {
                    self.rooms.get(number)?.as_ref()?.room.enter().ok()?;
                }
                number
            }
            None => {
                let number = self.rooms.iter().position(Option::is_none)?;
                let first = self.here.is_none() && number == 0;
                let room = if first { Room::here() } else { self.another() }.ok()?;
                *self.rooms.get_mut(number)? = Some(Let { room, to: None });
                number
            }
        };
        self.here = Some(number);
        Some(number)
    }

    fn another(&mut self) -> Result<Room, rustix::io::Errno> {
        if self.rooms.iter().all(Option::is_none) {
            // There was no first one, so that there is no way back from a second either.
            return Err(rustix::io::Errno::NOENT);
        }
        self.here = None;
        Room::another()
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
