//! Times that were taken, and the figures that stand for them.

use super::progress::Progress;
use std::time::{Duration, Instant};

/// Times, sorted. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// # Errors
    /// When there are none.
    pub(crate) fn new(mut times: Vec<Duration>) -> anyhow::Result<Self> {
        anyhow::ensure!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Ok(Self(times))
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(50)
    }

    pub(super) fn p95(&self) -> Duration {
        self.quantile(95)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.quantile(99)
    }

    pub(super) fn least(&self) -> Duration {
        self.quantile(0)
    }

    pub(super) fn most(&self) -> Duration {
        self.quantile(100)
    }

    /// The time that so many of a hundred do not exceed.
    fn quantile(&self, percent: usize) -> Duration {
        let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// The times of the thing that is measured, and of the lower limit beside it.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) ours: Samples,
    pub(super) reference: Samples,
}

/// Times two things by turns, so that whatever else the machine does hits both. The order changes
/// from pair to pair: each follows itself as often as it follows the other, and what one leaves to
/// be done in the background does not burden only the other. The first pair is not counted.
pub(super) fn by_turns(
    pairs: usize,
    progress: &Progress,
    mut ours: impl FnMut() -> anyhow::Result<()>,
    mut reference: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Pair> {
    by_turns_timed(pairs, progress, || timed(&mut ours), || timed(&mut reference))
}

/// The same for things that know by themselves how long they took, because not all that they do is
/// to be counted.
pub(super) fn by_turns_timed(
    pairs: usize,
    progress: &Progress,
    mut ours: impl FnMut() -> anyhow::Result<Duration>,
    mut reference: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<Pair> {
    let mut our_times = Vec::with_capacity(pairs);
    let mut reference_times = Vec::with_capacity(pairs);
    ours()?;
    reference()?;
    for pair in 0..pairs {
        if pair % 2 == 0 {
            our_times.push(ours()?);
            reference_times.push(reference()?);
        } else {
            reference_times.push(reference()?);
            our_times.push(ours()?);
        }
        progress.step(pair + 1, pairs);
    }
    Ok(Pair { ours: Samples::new(our_times)?, reference: Samples::new(reference_times)? })
}

/// How long something takes.
pub(super) fn timed(action: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    action()?;
    Ok(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn millis(times: &[u64]) -> Samples {
        let times = times.iter().copied().map(Duration::from_millis).collect();
        Samples::new(times).expect("some times")
    }

    #[test]
    fn the_figures_are_times_that_were_taken() {
        let samples = millis(&[5, 1, 4, 2, 3]);
        let ms = Duration::from_millis;
        assert_eq!((samples.least(), samples.median(), samples.most()), (ms(1), ms(3), ms(5)));
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(millis(&hundred).p95(), ms(95));
        assert_eq!(millis(&[7]).p95(), ms(7));
    }

    #[test]
    fn no_times_give_no_figures() {
        assert!(Samples::new(Vec::new()).is_err());
    }

    #[test]
    fn each_of_two_follows_itself_as_often_as_the_other() {
        let order = RefCell::new(String::new());
        let note = |what: char| {
            order.borrow_mut().push(what);
            Ok(())
        };
        by_turns(4, &Progress::new(), || note('o'), || note('r')).expect("both work");
        assert_eq!(order.into_inner(), "or orro orro".replace(' ', ""));
    }
}
