//! Processes that live across the calls of a session.
//!
//! They are started through the orchestrator like any command, and from then on they are known here by
//! their ids. When the session goes, they go.

mod entry;
mod names;
mod reply;
mod store;
mod wake;

pub(crate) use entry::{Kept, LiveEntry, LiveObserver, Whereabouts, Writes};
pub(crate) use names::ProcessNames;
pub(crate) use reply::{Wanted, reply, shown};
pub(crate) use store::{MAX_UNIFIED_EXEC_PROCESSES, WARNING_UNIFIED_EXEC_PROCESSES};
pub(crate) use wake::wake_when_printed;

use crate::session::Services;
use sandgate_protocol::{CallId, CodexErr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{HasEnded, NoId, ProcessStore};

/// The live processes of a session.
#[derive(Debug)]
pub(crate) struct UnifiedExecProcessManager {
    store: Mutex<ProcessStore<Arc<LiveEntry>>>,
}

/// An id that no other process gets as long as this is there.
#[derive(Debug)]
pub(crate) struct ReservedId<'a> {
    manager: &'a UnifiedExecProcessManager,
    id: String,
    is_used: bool,
}

impl HasEnded for Arc<LiveEntry> {
    fn has_ended(&self) -> bool {
        self.process.has_ended()
    }
}

impl UnifiedExecProcessManager {
    /// One that has no processes yet, whose ids will be among these.
    pub(crate) fn new(names: Arc<ProcessNames>) -> Self {
        Self { store: Mutex::new(ProcessStore::new(names)) }
    }

    /// Reserves an id for a process that is about to be started. If there are too many, one goes.
    pub(crate) async fn reserve(
        &self,
        wanted: Option<&str>,
        services: &Services,
        call_id: &CallId,
    ) -> Result<ReservedId<'_>, CodexErr> {
        let reserved = self.store().reserve(wanted).map_err(|no| no_id(&no, wanted))?;
        // From here on the id is given back also if the call is given up while somebody is warned.
        let reserved_id = ReservedId { manager: self, id: reserved.id, is_used: false };
        if let Some((id, process)) = reserved.pruned
            && !process.has_ended()
        {
            process.process.terminate();
            let message = format!(
                "process {id} was ended to make room: there are {MAX_UNIFIED_EXEC_PROCESSES} at the \
                 most"
            );
            services.warn(Some(call_id.clone()), message).await;
        }
        Ok(reserved_id)
    }

    /// A process by its id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<LiveEntry>, CodexErr> {
        let found = self.store().get(id);
        found.ok_or_else(|| CodexErr::ToolExecutionFailed(self.unknown(id)))
    }

    /// A process by its id, if it is one of these. That is a use of it.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<LiveEntry>> {
        self.store().get(id)
    }

    /// Lets a process go that has ended, so that its id can be had elsewhere.
    #[cfg(unix)]
    pub(crate) fn forget_ended(&self, id: &str) {
        let mut store = self.store();
        let ended = store.all().any(|(other, entry)| other == id && entry.has_ended());
        if ended {
            store.remove(id);
        }
    }

    /// All of them with their ids.
    pub(crate) fn all(&self) -> Vec<(String, Arc<LiveEntry>)> {
        let store = self.store();
        store.all().map(|(id, process)| (id.to_owned(), Arc::clone(process))).collect()
    }

    fn unknown(&self, id: &str) -> String {
        let id: String = id.chars().take(40).collect();
        let alive = self.all();
        let alive = alive.iter().filter(|(_, entry)| !entry.has_ended()).map(|(id, _)| id.as_str());
        let alive: Vec<&str> = alive.collect();
        match alive.is_empty() {
            true => format!("there is no process {id:?}, and none is alive"),
            false => format!("there is no process {id:?}; alive are {}", alive.join(", ")),
        }
    }

    fn store(&self) -> MutexGuard<'_, ProcessStore<Arc<LiveEntry>>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedId<'_> {
    /// The id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Gives the id to a process. How many there are now.
    pub(crate) fn give_to(mut self, entry: Arc<LiveEntry>) -> usize {
        self.is_used = true;
        self.manager.store().insert(&self.id, entry)
    }
}

impl Drop for ReservedId<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.manager.store().remove(&self.id);
        }
    }
}

fn no_id(no: &NoId, wanted: Option<&str>) -> CodexErr {
    CodexErr::ToolExecutionFailed(match no {
        NoId::Taken => {
            let id = wanted.unwrap_or_default();
            format!("process {id:?} is alive: write to it with write_stdin, or end it first")
        }
        NoId::Full => format!(
            "{MAX_UNIFIED_EXEC_PROCESSES} processes are being started, which is as many as there may be"
        ),
    })
}
