//! What has been told already.

use sandgate_protocol::{DenialRule, Denials, DeniedOperation};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Keeps the first attempts apart from their repetitions and from those that are too many.
pub(super) struct Evidence {
    /// Of each thing that was told, a number that stands for it.
    told: [u64; Denials::MOST],
    count: usize,
    more: u64,
}

impl Evidence {
    pub(super) const fn new() -> Self {
        Self { told: [0; Denials::MOST], count: 0, more: 0 }
    }

    /// Whether this is to be told.
    pub(super) fn is_news(
        &mut self,
        operation: DeniedOperation,
        rule: DenialRule,
        target: &[u8],
    ) -> bool {
        let mut hasher = DefaultHasher::new();
        (operation, rule, target).hash(&mut hasher);
        let number = hasher.finish();
        if self.told.iter().take(self.count).any(|told| *told == number) {
            return false;
        }
        let Some(free) = self.told.get_mut(self.count) else {
            self.more = self.more.saturating_add(1);
            return false;
        };
        *free = number;
        self.count += 1;
        true
    }

    /// How many attempts were not told because there were too many, since this was last asked.
    pub(super) fn take_more(&mut self) -> u64 {
        std::mem::take(&mut self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: DenialRule = DenialRule::OutsideWritableRoots;

    #[test]
    fn each_thing_is_told_once_and_a_hundred_at_the_most() {
        let mut evidence = Evidence::new();
        for round in 0..2 {
            for number in 0..Denials::MOST {
                let target = format!("/etc/{number}");
                let news = evidence.is_news(DeniedOperation::Write, OUTSIDE, target.as_bytes());
                assert_eq!(news, round == 0);
            }
        }
        assert_eq!(evidence.take_more(), 0);
        let removed = evidence.is_news(DeniedOperation::Remove, OUTSIDE, b"/etc/1");
        assert!(!removed, "another operation");
        assert!(!evidence.is_news(DeniedOperation::Write, OUTSIDE, b"/etc/100"));
        assert_eq!(evidence.take_more(), 2);
    }

    /// What is never allowed says nothing about what a grant could allow.
    #[test]
    fn the_same_attempt_by_another_rule_is_told_too() {
        let mut evidence = Evidence::new();
        for rule in [DenialRule::NeverAllowed, OUTSIDE] {
            assert!(evidence.is_news(DeniedOperation::Change, rule, b".git/config"));
            assert!(!evidence.is_news(DeniedOperation::Change, rule, b".git/config"));
        }
    }
}
