//! Which calls of a session are at work.
//!
//! Whoever makes calls says what they are known by. Two at once by the same id could not be told apart in the events
//! and in the record, so there are no such two. A process that a call left running is still that call's.

use sandgate_protocol::CallId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls that are at work, each with how many hold it.
#[derive(Debug, Default)]
pub(crate) struct AtWork(Arc<Mutex<Held>>);

type Held = HashMap<CallId, usize>;

/// As long as this is there, the call is at work.
#[derive(Debug)]
pub(crate) struct Working {
    all: Arc<Mutex<Held>>,
    call_id: CallId,
}

impl AtWork {
    /// A call begins, unless one of this id is at work.
    pub(crate) fn begin(&self, call_id: &CallId) -> Option<Working> {
        let mut held = lock(&self.0);
        if held.contains_key(call_id) {
            return None;
        }
        held.insert(call_id.clone(), 1);
        Some(Working { all: Arc::clone(&self.0), call_id: call_id.clone() })
    }

    /// Something of a call that may go on when it has been answered.
    pub(crate) fn also(&self, call_id: &CallId) -> Working {
        *lock(&self.0).entry(call_id.clone()).or_default() += 1;
        Working { all: Arc::clone(&self.0), call_id: call_id.clone() }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut held = lock(&self.all);
        if let Some(count) = held.get_mut(&self.call_id) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.call_id);
            }
        }
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
