//! What has happened so far: counted, timed, and found to be wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many of the last things are shown with something that is wrong.
const RECENT: usize = 24;

/// After so many there is nothing more to learn.
const MOST_VIOLATIONS: usize = 20;

/// Something that must never be, and was.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Violation {
    /// Seconds since the beginning.
    pub(super) after_s: u64,
    pub(super) what: String,
}

/// Shared by all who do something.
pub(super) struct Ledger {
    pub(super) seed: u64,
    began: Instant,
    over: AtomicBool,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    times: BTreeMap<&'static str, Vec<Duration>>,
    recent: VecDeque<String>,
    violations: Vec<Violation>,
    /// The marks of commands that ran and were answered, until they were found in the audit log.
    ran: BTreeSet<String>,
    calls: u64,
}

impl Ledger {
    pub(super) fn new(seed: u64) -> Self {
        let (over, told) = (AtomicBool::new(false), Mutex::default());
        Self { seed, began: Instant::now(), over, told }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether everybody should stop: somebody pressed Ctrl-C, or too much is wrong.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Something begins.
    pub(super) fn begins(&self, what: String) {
        let mut told = self.told();
        if told.recent.len() == RECENT {
            told.recent.pop_front();
        }
        told.recent.push_back(what);
    }

    /// Something was done, and took so long.
    pub(super) fn did(&self, what: &'static str, took: Duration) {
        self.told().times.entry(what).or_default().push(took);
    }

    /// A command ran and was answered: the audit log must have it.
    pub(super) fn ran(&self, mark: &str) {
        let mut told = self.told();
        told.ran.insert(mark.to_owned());
        told.calls += 1;
    }

    /// What the audit log must have by now.
    pub(super) fn take_ran(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.told().ran)
    }

    /// Tells at once what is wrong, with all that it takes to look for it.
    pub(super) fn violation(&self, what: String) {
        let after_s = self.elapsed().as_secs();
        let mut told = self.told();
        eprintln!("\nsoak: VIOLATION after {after_s} s, --seed {}: {what}", self.seed);
        eprintln!("soak: the last things that were begun:");
        for recent in &told.recent {
            eprintln!("soak:   {recent}");
        }
        told.violations.push(Violation { after_s, what });
        if told.violations.len() >= MOST_VIOLATIONS {
            self.end();
        }
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        self.told().violations.clone()
    }

    /// How many commands ran and were answered.
    pub(super) fn calls(&self) -> u64 {
        self.told().calls
    }

    /// How long everything took, by its name.
    pub(super) fn times(&self) -> BTreeMap<&'static str, Vec<Duration>> {
        self.told().times.clone()
    }

    /// How many things were done.
    pub(super) fn done(&self) -> usize {
        self.told().times.values().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_violations_end_it() {
        let ledger = Ledger::new(1);
        for number in 1..MOST_VIOLATIONS {
            ledger.violation(format!("number {number}"));
        }
        assert!(!ledger.is_over());
        ledger.violation("the last".to_owned());
        assert!(ledger.is_over());
        assert_eq!(ledger.violations().len(), MOST_VIOLATIONS);
    }

    #[test]
    fn what_ran_is_asked_for_once_and_counted_for_good() {
        let ledger = Ledger::new(1);
        ledger.ran("a");
        ledger.ran("b");
        assert_eq!(ledger.take_ran().len(), 2);
        assert_eq!((ledger.take_ran().len(), ledger.calls()), (0, 2));
    }
}
