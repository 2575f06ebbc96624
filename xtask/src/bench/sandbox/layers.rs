//! What really held a command while it was measured.

use crate::bench::row::{Row, Target};
use sandgate_protocol::Enforcement;

/// What was missing from the cage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layers {
    missing: Vec<&'static str>,
}

impl Layers {
    pub(super) fn of(enforced: &Enforcement) -> Self {
        let layers = [
            ("namespaces", enforced.namespaces),
            ("Landlock", enforced.landlock_abi > 0),
            ("filters", enforced.seccomp),
            ("the supervisor", enforced.supervisor),
        ];
        let missing = layers.iter().filter(|(_, there)| !there).map(|(name, _)| *name);
        Self { missing: missing.collect() }
    }

    /// States what was promised of a row. It was promised of the whole cage: a row that was taken with
    /// less says what was missing and cannot have met it.
    pub(super) fn judge(&self, row: Row, target: Target) -> Row {
        match self.missing.as_slice() {
            [] => row.target(target),
            _ => self.label(row).target(target).unmet(),
        }
    }

    /// The row of something that nothing was promised of.
    pub(super) fn label(&self, row: Row) -> Row {
        match self.missing.as_slice() {
            [] => row,
            missing => row.with_remark(&format!("without {}", missing.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::{Outcome, Quantity};
    use sandgate_protocol::SandboxType;

    fn enforced(supervisor: bool) -> Enforcement {
        Enforcement {
            sandbox: SandboxType::LinuxSeccomp,
            namespaces: true,
            landlock_abi: 6,
            seccomp: true,
            supervisor,
            missing: Vec::new(),
        }
    }

    fn judged(supervisor: bool) -> Row {
        let row = Row::new("x", Quantity::Seconds(1.0)).against("y", Quantity::Seconds(1.0));
        Layers::of(&enforced(supervisor)).judge(row, Target::RatioAtMost(1.5))
    }

    #[test]
    fn a_figure_without_the_supervisor_meets_no_target_and_says_so() {
        let (whole, partial) = (judged(true), judged(false));
        let met = |row: &Row| match &row.outcome {
            Outcome::Measured(figures) => figures.met,
            Outcome::Skipped { .. } | Outcome::Failed { .. } => None,
        };
        assert_eq!((whole.what.as_str(), met(&whole)), ("x", Some(true)));
        assert_eq!(partial.what, "x (without the supervisor)");
        assert_eq!(met(&partial), Some(false));
    }
}
