//! The processes of a session by their ids: how many there may be, and which one goes for another.

use super::ProcessNames;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many processes a session may have.
pub(crate) const MAX_UNIFIED_EXEC_PROCESSES: usize = 64;

/// From so many on a person is warned.
pub(crate) const WARNING_UNIFIED_EXEC_PROCESSES: usize = 60;

/// Those that were used last are never the ones to go.
const PROTECTED: usize = 8;

/// Processes by their ids.
#[derive(Debug)]
pub(crate) struct ProcessStore<P> {
    processes: BTreeMap<String, Entry<P>>,
    /// Counts uses, so that later ones are greater.
    uses: u64,
    /// What ids there are, here and wherever else they must not be the same.
    names: Arc<ProcessNames>,
}

#[derive(Debug)]
struct Entry<P> {
    /// None while it is being started.
    process: Option<P>,
    used: u64,
}

/// Whether a process has ended.
pub(crate) trait HasEnded {
    /// Whether it has.
    fn has_ended(&self) -> bool;
}

/// Why an id cannot be had.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoId {
    /// Somebody else has it.
    Taken,
    /// There is no room, and nobody who could go.
    Full,
}

/// An id that was reserved, and who had to go for it.
#[derive(Debug)]
pub(crate) struct Reserved<P> {
    pub(crate) id: String,
    pub(crate) pruned: Option<(String, P)>,
}

impl<P> ProcessStore<P> {
    /// An empty one.
    pub(crate) fn new(names: Arc<ProcessNames>) -> Self {
        Self { processes: BTreeMap::new(), uses: 0, names }
    }
}

impl<P> Drop for ProcessStore<P> {
    fn drop(&mut self) {
        for id in self.processes.keys() {
            self.names.release(id);
        }
    }
}

impl<P: HasEnded + Clone> ProcessStore<P> {
    /// Reserves an id before a process is started, so that nobody else gets it. The id of a process that
    /// has ended can be had again.
    pub(crate) fn reserve(&mut self, wanted: Option<&str>) -> Result<Reserved<P>, NoId> {
        if let Some(id) = wanted {
            match self.processes.get(id).map(|entry| &entry.process) {
                Some(Some(process)) if process.has_ended() => {
                    self.remove(id);
                }
                Some(_) => return Err(NoId::Taken),
                None => {}
            }
        }
        let pruned = self.make_room()?;
        let id = self.names.claim(wanted).ok_or(NoId::Taken)?;
        let used = self.used_now();
        self.processes.insert(id.clone(), Entry { process: None, used });
        Ok(Reserved { id, pruned })
    }

    /// Puts a process to its reserved id. How many there are now.
    pub(crate) fn insert(&mut self, id: &str, process: P) -> usize {
        let used = self.used_now();
        self.processes.insert(id.to_owned(), Entry { process: Some(process), used });
        self.processes.len()
    }

    /// Gives an id back that no process came to, or whose process is not wanted any more.
    pub(crate) fn remove(&mut self, id: &str) -> Option<P> {
        let removed = self.processes.remove(id)?;
        self.names.release(id);
        removed.process
    }

    /// A process, which counts as a use of it.
    pub(crate) fn get(&mut self, id: &str) -> Option<P> {
        let used = self.used_now();
        let entry = self.processes.get_mut(id)?;
        entry.used = used;
        entry.process.clone()
    }

    /// All of them, which is no use of any.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &P)> {
        self.processes
            .iter()
            .filter_map(|(id, entry)| entry.process.as_ref().map(|process| (id.as_str(), process)))
    }

    /// If there is no room: lets the one go that has ended and was not used for the longest time, or else
    /// any that was not; but none of those that were used last, and none that is being started.
    fn make_room(&mut self) -> Result<Option<(String, P)>, NoId> {
        if self.processes.len() < MAX_UNIFIED_EXEC_PROCESSES {
            return Ok(None);
        }
        let mut by_use: Vec<(&String, &Entry<P>)> = self.processes.iter().collect();
        by_use.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.used));
        let mut oldest_first = by_use.iter().skip(PROTECTED).rev();
        let ended = |entry: &Entry<P>| entry.process.as_ref().is_some_and(HasEnded::has_ended);
        let goes = oldest_first
            .clone()
            .find(|(_, entry)| ended(entry))
            .or_else(|| oldest_first.find(|(_, entry)| entry.process.is_some()));
        let id = goes.map(|(id, _)| (*id).clone()).ok_or(NoId::Full)?;
        Ok(self.remove(&id).map(|process| (id, process)))
    }

    fn used_now(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fake {
        Lives,
        Ended,
    }

    impl HasEnded for Fake {
        fn has_ended(&self) -> bool {
            *self == Self::Ended
        }
    }

    fn full_of(processes: impl Fn(usize) -> Fake) -> ProcessStore<Fake> {
        let mut store = ProcessStore::new(Arc::default());
        for n in 0..MAX_UNIFIED_EXEC_PROCESSES {
            let id = format!("p{n}");
            store.reserve(Some(&id)).unwrap();
            store.insert(&id, processes(n));
        }
        store
    }

    fn pruned(store: &mut ProcessStore<Fake>) -> String {
        store.reserve(None).unwrap().pruned.expect("somebody had to go").0
    }

    #[test]
    fn the_oldest_that_has_ended_goes_first() {
        let mut store = full_of(|n| if n == 3 || n == 5 { Fake::Ended } else { Fake::Lives });
        assert_eq!(pruned(&mut store), "p3");
        assert_eq!(pruned(&mut store), "p5");
        assert_eq!(pruned(&mut store), "p0");
    }

    #[test]
    fn the_last_eight_that_were_used_stay_even_if_they_have_ended() {
        let mut store = full_of(|n| if n >= 56 { Fake::Ended } else { Fake::Lives });
        assert_eq!(pruned(&mut store), "p0");
        let mut store = full_of(|_| Fake::Lives);
        store.get("p0");
        assert_eq!(pruned(&mut store), "p1");
    }

    #[test]
    fn ids_are_reserved_before_anything_starts() {
        let mut store = ProcessStore::<Fake>::new(Arc::default());
        assert_eq!(store.reserve(None).unwrap().id, "1000");
        assert_eq!(store.reserve(Some("1000")).unwrap_err(), NoId::Taken);
        assert_eq!(store.reserve(Some("1001")).unwrap().id, "1001");
        assert_eq!(store.reserve(None).unwrap().id, "1002");
        store.remove("1001");
        assert_eq!(store.reserve(Some("1001")).unwrap().id, "1001");
    }

    #[test]
    fn the_id_of_one_that_has_ended_can_be_had_again() {
        let mut store = ProcessStore::new(Arc::default());
        store.reserve(Some("a")).unwrap();
        store.insert("a", Fake::Lives);
        assert_eq!(store.reserve(Some("a")).unwrap_err(), NoId::Taken);
        store.insert("a", Fake::Ended);
        assert!(store.reserve(Some("a")).is_ok());
    }

    #[test]
    fn nobody_goes_who_is_being_started() {
        let mut store = ProcessStore::<Fake>::new(Arc::default());
        for _ in 0..MAX_UNIFIED_EXEC_PROCESSES {
            store.reserve(None).unwrap();
        }
        assert_eq!(store.reserve(None).unwrap_err(), NoId::Full);
    }
}
