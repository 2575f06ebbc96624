//! The conversations that a program has open for its clients.

mod conversation;
mod events;

pub(crate) use conversation::{Busy, LiveConversation, first_line};
pub(crate) use events::Reading;

use crate::asking::Caller;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many may be open at once.
const MOST_OPEN: usize = 64;

/// How many of these only the person opens, so that no requester locks them out.
const FOR_THE_PERSON: usize = 8;

/// How many may be open if this one opens another.
pub(crate) fn most(caller: Caller) -> usize {
    match caller {
        Caller::Approver => MOST_OPEN,
        Caller::Requester => MOST_OPEN - FOR_THE_PERSON,
    }
}

/// The open conversations, by their ids.
#[derive(Default)]
pub(crate) struct Conversations {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<String, Arc<LiveConversation>>,
    /// How many are being opened.
    reserved: usize,
}

/// A place for a conversation that is being opened.
pub(crate) struct Place<'a>(&'a Conversations);

impl Place<'_> {
    /// Puts the conversation there.
    pub(crate) fn fill(self, live: &Arc<LiveConversation>) {
        self.0.state().open.insert(live.about.id.clone(), Arc::clone(live));
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state().reserved -= 1;
    }
}

impl Conversations {
    /// One of them.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveConversation>> {
        self.state().open.get(id).cloned()
    }

    /// All of them, the one that was opened last first.
    pub(crate) fn all(&self) -> Vec<Arc<LiveConversation>> {
        let mut all: Vec<_> = self.state().open.values().cloned().collect();
        all.sort_by_key(|live| std::cmp::Reverse(live.about.started));
        all
    }

    /// A place for another that this one opens, if there is room.
    pub(crate) fn reserve(&self, caller: Caller) -> Option<Place<'_>> {
        let mut state = self.state();
        if state.open.len() + state.reserved >= most(caller) {
            return None;
        }
        state.reserved += 1;
        Some(Place(self))
    }

    /// Takes one away.
    pub(crate) fn take(&self, id: &str) -> Option<Arc<LiveConversation>> {
        self.state().open.remove(id)
    }

    /// Closes all of them, at the same time.
    pub(crate) async fn close_all(&self) {
        let all = std::mem::take(&mut self.state().open);
        join_all(all.values().map(|live| live.close())).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec HTTP.38: At most 64 conversations are open or being opened, of which requesters leave 8 to the
    /// person.
    #[test]
    fn requesters_leave_places_to_the_person() {
        let conversations = Conversations::default();
        let reserve = |caller| {
            let places = std::iter::from_fn(|| conversations.reserve(caller));
            places.take(1000).collect::<Vec<_>>()
        };
        let mut requesters = reserve(Caller::Requester);
        assert_eq!(requesters.len(), 56);
        assert_eq!(reserve(Caller::Approver).len(), 8);
        // One that came to nothing is free again.
        requesters.pop();
        assert_eq!(reserve(Caller::Requester).len(), 1);
    }
}
