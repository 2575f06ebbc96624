//! Who has which connection, and who goes when there are as many as there may be.
//!
//! Anybody on the machine can connect, and a caged command with the network can read the requester's token: neither may lock
//! the person out. So a connection on which nothing is done for somebody with a token makes room for a new one, the oldest
//! first, and requesters leave some to the person. What the bodies of their requests take of the memory is counted here too.

use super::problem::Problem;
use crate::asking::Caller;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How many of the connections only the person has: one of so many.
const FOR_THE_PERSON: usize = 8;

/// All connections.
pub(super) struct Crowd {
    most: usize,
    /// How many bytes the bodies of requesters may have together.
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came.
    seats: BTreeMap<u64, Sitting>,
    last: u64,
    /// How many bytes the bodies of requesters have now.
    bytes: u64,
}

struct Sitting {
    /// For whom something is done, if it is.
    caller: Option<Caller>,
    bytes: u64,
    leave: CancellationToken,
}

/// The place of one connection, which is free again when this is dropped.
pub(super) struct Seat {
    number: u64,
    crowd: Arc<Crowd>,
    /// Tells it to make room.
    pub(super) leave: CancellationToken,
}

impl Crowd {
    /// One of at most so many connections, whose requesters send at most so many bytes at once.
    pub(super) fn new(most: usize, most_bytes: u64) -> Arc<Self> {
        Arc::new(Self { most, most_bytes, state: Mutex::default() })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.state().seats.len()
    }

    /// A place for another. If there is none, the oldest on which nothing is done makes room; none if all are at work.
    pub(super) fn sit(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let mut state = self.state();
        if state.seats.len() >= self.most {
            let mut idle = state.seats.iter().filter(|(_, sitting)| sitting.caller.is_none());
            let oldest = idle.next().map(|(number, _)| *number)?;
            state.free(oldest)?.leave.cancel();
        }
        state.last += 1;
        let (number, leave) = (state.last, CancellationToken::new());
        state.seats.insert(number, Sitting { caller: None, bytes: 0, leave: leave.clone() });
        Some(Arc::new(Seat { number, crowd: Arc::clone(self), leave }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn free(&mut self, number: u64) -> Option<Sitting> {
        let freed = self.seats.remove(&number)?;
        self.bytes -= freed.bytes;
        Some(freed)
    }

    fn requesters(&self) -> usize {
        self.seats.values().filter(|one| one.caller == Some(Caller::Requester)).count()
    }
}

/// A request that is worked on, until its answer is sent.
pub(super) struct Working(Arc<Seat>);

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.crowd.state();
        if let Some(sitting) = state.seats.get_mut(&self.0.number) {
            sitting.caller = None;
            let bytes = std::mem::take(&mut sitting.bytes);
            state.bytes -= bytes;
        }
    }
}

impl Seat {
    /// Works for this caller, as long as what is given back is there.
    pub(super) fn work_for(self: &Arc<Self>, caller: Caller) -> Result<Working, Problem> {
        let mut state = self.crowd.state();
        let full = self.crowd.most - self.crowd.most.div_ceil(FOR_THE_PERSON);
        let is_full = caller == Caller::Requester && state.requesters() >= full;
        match state.seats.get_mut(&self.number) {
            Some(sitting) if !is_full => sitting.caller = Some(caller),
            // Or it had to make room meanwhile.
            _ => return Err(too_many()),
        }
        Ok(Working(Arc::clone(self)))
    }

    /// So many bytes more of a body came; a person's are not counted.
    pub(super) fn sends(&self, bytes: usize) -> Result<(), Problem> {
        let mut state = self.crowd.state();
        let together = state.bytes + bytes as u64;
        let is_full = together > self.crowd.most_bytes;
        match state.seats.get_mut(&self.number) {
            Some(sitting) if sitting.caller == Some(Caller::Requester) => {
                if is_full {
                    let why = "too much is being sent at once; try again when something is done";
                    return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why));
                }
                sitting.bytes += bytes as u64;
                state.bytes = together;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crowd.state().free(self.number);
    }
}

fn too_many() -> Problem {
    let why = "there are too many connections; close some, or try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec HTTP.45: When there are as many connections as there may be, the oldest on which nothing is done for somebody
    /// with a token makes room for a new one, and requesters leave one of eight to the person.
    #[test]
    fn who_has_no_token_makes_room_and_requesters_leave_some() {
        let crowd = Crowd::new(16, 0);
        let [first, second] = [(), ()].map(|()| crowd.sit().unwrap());
        let person = second.work_for(Caller::Approver).ok().unwrap();
        let others: Vec<_> = (0..14).map(|_| crowd.sit().unwrap()).collect();
        let new = crowd.sit().unwrap();
        assert!(first.leave.is_cancelled() && !second.leave.is_cancelled());
        assert!(first.work_for(Caller::Requester).is_err(), "it is no place any more");
        drop(first);
        assert_eq!(crowd.count(), 16);
        let work = others.iter().filter_map(|seat| seat.work_for(Caller::Requester).ok());
        let mut work: Vec<_> = work.collect();
        assert_eq!(work.len(), 14);
        assert!(new.work_for(Caller::Requester).is_err(), "the rest is for the person");
        let more = new.work_for(Caller::Approver).ok().unwrap();
        assert!(crowd.sit().is_none(), "nobody who is at work makes room");
        work.pop();
        assert!(crowd.sit().is_some() && others[13].leave.is_cancelled());
        drop((person, more, work, second, new, others));
        assert_eq!(crowd.count(), 0);
    }

    /// spec HTTP.46: What requesters send takes no more than 256 MiB of memory at once.
    #[test]
    fn bodies_are_counted_until_their_request_is_over() {
        let crowd = Crowd::new(16, 100);
        let [one, other, person] = [(), (), ()].map(|()| crowd.sit().unwrap());
        let work = |seat: &Arc<Seat>, caller| seat.work_for(caller).ok().unwrap();
        let first = work(&one, Caller::Requester);
        let others = (work(&other, Caller::Requester), work(&person, Caller::Approver));
        one.sends(60).unwrap();
        other.sends(40).unwrap();
        assert!(other.sends(1).is_err());
        person.sends(1000).unwrap();
        drop(first);
        other.sends(60).unwrap();
        assert_eq!(crowd.state().bytes, 100);
        drop(others);
        assert_eq!(crowd.state().bytes, 0);
    }
}
