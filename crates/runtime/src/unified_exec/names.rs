//! The ids of processes: chosen here where nobody chose one, and no two the same.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The ids that are taken. Sessions that share it have no id in common.
#[derive(Debug)]
pub(crate) struct ProcessNames {
    /// What ids begin with that are chosen here.
    prefix: &'static str,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    taken: BTreeSet<String>,
    next: u64,
}

impl Default for ProcessNames {
    /// Those of a session that shares them with nobody.
    fn default() -> Self {
        Self::beginning_with("", 1000)
    }
}

impl ProcessNames {
    /// None taken yet. The first that is chosen is this prefix and this number.
    pub(crate) fn beginning_with(prefix: &'static str, first: u64) -> Self {
        Self { prefix, state: Mutex::new(State { taken: BTreeSet::new(), next: first }) }
    }

    /// Takes an id: the one that is wanted, if nobody has it.
    pub(super) fn claim(&self, wanted: Option<&str>) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = wanted {
            return state.taken.insert(id.to_owned()).then(|| id.to_owned());
        }
        loop {
            let id = format!("{}{}", self.prefix, state.next);
            state.next += 1;
            if state.taken.insert(id.clone()) {
                return Some(id);
            }
        }
    }

    /// Gives an id back.
    pub(super) fn release(&self, id: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).taken.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_twice_as_long_as_it_is_taken() {
        let names = ProcessNames::beginning_with("d", 1);
        assert_eq!(names.claim(Some("d2")).as_deref(), Some("d2"));
        assert_eq!(names.claim(None).as_deref(), Some("d1"));
        assert_eq!(names.claim(None).as_deref(), Some("d3"));
        assert_eq!(names.claim(Some("d1")), None);
        names.release("d1");
        assert_eq!(names.claim(Some("d1")).as_deref(), Some("d1"));
    }
}
