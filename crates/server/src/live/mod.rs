//! The conversations that a program has open for its clients.

mod conversation;
mod events;

pub(crate) use conversation::{Busy, LiveConversation, first_line};
pub(crate) use events::Reading;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many may be open at once.
pub(crate) const MOST_OPEN: usize = 64;

/// The open conversations, by their ids.
#[derive(Default)]
pub(crate) struct Conversations {
    open: Mutex<BTreeMap<String, Arc<LiveConversation>>>,
}

impl Conversations {
    /// One of them.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveConversation>> {
        self.open().get(id).cloned()
    }

    /// All of them, the one that was opened last first.
    pub(crate) fn all(&self) -> Vec<Arc<LiveConversation>> {
        let mut all: Vec<_> = self.open().values().cloned().collect();
        all.sort_by_key(|live| std::cmp::Reverse(live.about.started));
        all
    }

    /// Whether there is room for another.
    pub(crate) fn has_room(&self) -> bool {
        self.open().len() < MOST_OPEN
    }

    /// Adds one.
    pub(crate) fn add(&self, live: &Arc<LiveConversation>) {
        self.open().insert(live.about.id.clone(), Arc::clone(live));
    }

    /// Takes one away.
    pub(crate) fn take(&self, id: &str) -> Option<Arc<LiveConversation>> {
        self.open().remove(id)
    }

    /// Closes all of them.
    pub(crate) async fn close_all(&self) {
        let all = std::mem::take(&mut *self.open());
        for live in all.values() {
            live.close().await;
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LiveConversation>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
