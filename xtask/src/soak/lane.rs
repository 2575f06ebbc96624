//! One of those who do things at once: a row of random actions.

use super::actions::{ACTIONS, Action};
use super::ledger::Ledger;
use super::random::Random;
use super::steady::Steady;
use super::work::Work;
use super::world::World;
use std::time::{Duration, Instant};

/// What an action is handed.
pub(super) struct Lane<'a> {
    pub(super) number: usize,
    pub(super) random: Random,
    pub(super) world: &'a World,
    pub(super) ledger: &'a Ledger,
    pub(super) steady: &'a Steady,
    round: usize,
    made: u64,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        place: (usize, usize),
        world: &'a World,
        ledger: &'a Ledger,
        steady: &'a Steady,
    ) -> Self {
        let (number, round) = place;
        let random = Random::of(ledger.seed, number, round);
        Self { number, random, world, ledger, steady, round, made: 0 }
    }

    /// Does one thing after the other until it is time to stop.
    pub(super) fn go(&mut self, until: Instant, only: &[String]) {
        let wanted =
            |action: &&Action| only.is_empty() || only.iter().any(|name| name == action.name);
        let actions: Vec<&Action> = ACTIONS.iter().filter(wanted).collect();
        let weights: u64 = actions.iter().map(|action| action.weight).sum();
        while Instant::now() < until && !self.ledger.is_over() {
            let mut drawn = self.random.below(weights);
            let action = actions.iter().find(|action| match drawn.checked_sub(action.weight) {
                Some(rest) => {
                    drawn = rest;
                    false
                }
                None => true,
            });
            if let Some(action) = action {
                self.act(action);
            }
        }
    }

    fn act(&mut self, action: &Action) {
        let name = action.name;
        self.ledger
            .begins(format!("lane {} round {}: {name}, {}", self.number, self.round, self.made));
        let began = Instant::now();
        let done = (action.run)(self);
        self.ledger.did(name, began.elapsed());
        if let Err(error) = done {
            let (lane, round) = (self.number, self.round);
            self.ledger.violation(format!("lane {lane}, round {round}: {name}: {error:#}"));
        }
    }

    /// A word that nothing else has, the same for the same seed.
    pub(super) fn mark(&mut self) -> String {
        self.made += 1;
        format!("soak_{}_{}_{}_", self.number, self.round, self.made)
    }

    pub(super) fn work(&mut self) -> Work {
        let mark = self.mark();
        Work::any(&mut self.random, self.world, mark)
    }

    /// Waits for a random moment.
    pub(super) fn linger(&mut self) -> Duration {
        let moment = self.random.moment();
        std::thread::sleep(moment);
        moment
    }
}
