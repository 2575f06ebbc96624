//! Numbers without a pattern, the same for the same seed.

use std::time::Duration;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Those of one lane in one round. Each has its own, so that what one lane does, and how far it
    /// got, changes nothing in the others and in the rounds to come.
    pub(super) fn of(seed: u64, lane: usize, round: usize) -> Self {
        let mut first = Self(seed);
        let place = (u64::try_from(lane).unwrap_or(0) << 32) | u64::try_from(round).unwrap_or(0);
        Self(first.next() ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one below the limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// From the one to the other, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True so many times of a hundred.
    pub(super) fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    /// One of several; there must be one.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        &of[index]
    }

    /// A moment until which something is let go on: mostly a short one, because most of what can go
    /// wrong is at the beginning.
    pub(super) fn moment(&mut self) -> Duration {
        let most = *self.pick(&[3_000, 30_000, 30_000, 150_000, 600_000]);
        Duration::from_micros(self.below(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_no_other_does() {
        let numbers = |seed, lane, round| {
            let mut random = Random::of(seed, lane, round);
            (0..20).map(|_| random.below(1 << 40)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7, 1, 2), numbers(7, 1, 2));
        for other in [(8, 1, 2), (7, 2, 2), (7, 1, 3), (7, 2, 1)] {
            assert_ne!(numbers(7, 1, 2), numbers(other.0, other.1, other.2), "{other:?}");
        }
    }

    #[test]
    fn limits_are_kept_and_reached() {
        let mut random = Random::of(1, 0, 0);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert!([3, 4, 5].iter().all(|number| drawn.contains(number)));
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
        assert_eq!((random.below(0), random.percent(0), random.percent(100)), (0, false, true));
    }
}
