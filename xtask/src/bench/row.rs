//! One row of the table: a figure of ours, the reference beside it, and what was promised.

use super::samples::{Pair, Samples};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What came of measuring one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Rows that were taken over belong to the measurement that took them.
    #[serde(skip_deserializing)]
    pub(super) measurement: &'static str,
    pub(super) what: String,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// Whether there is a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub(super) enum Outcome {
    /// There is.
    Measured(Figures),
    /// It cannot be had on this machine.
    Skipped { why: String },
    /// Something did not do what it should have done.
    Failed { why: String },
}

/// The figures of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) ours: Quantity,
    pub(super) reference: Option<Reference>,
    /// Ours divided by the reference.
    pub(super) ratio: Option<f64>,
    pub(super) target: Option<Target>,
    pub(super) met: Option<bool>,
    /// Further figures, by name.
    pub(super) details: BTreeMap<String, Quantity>,
}

/// What ours is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) what: String,
    #[serde(flatten)]
    pub(super) quantity: Quantity,
}

/// A number and what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "unit", content = "value")]
pub(super) enum Quantity {
    Seconds(f64),
    BytesPerSecond(f64),
    Bytes(f64),
    Count(f64),
    Ratio(f64),
}

/// What was promised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    RatioAtMost(f64),
    RatioAtLeast(f64),
    Within(Quantity),
    SameAsReference,
}

impl Row {
    pub(super) fn new(what: impl Into<String>, ours: Quantity) -> Self {
        let details = BTreeMap::new();
        let figures =
            Figures { ours, reference: None, ratio: None, target: None, met: None, details };
        Self { measurement: "", what: what.into(), outcome: Outcome::Measured(figures) }
    }

    /// The medians of two things that were timed by turns, with their 95th percentiles.
    pub(super) fn of_times(what: impl Into<String>, reference: &str, pair: &Pair) -> Self {
        Self::new(what, pair.ours.median().into())
            .against(reference, pair.reference.median().into())
            .detail("p95", pair.ours.p95().into())
            .detail("p95 of the reference", pair.reference.p95().into())
    }

    /// The median rates of two things that moved the same bytes by turns, with the best of each.
    pub(super) fn of_rates(
        what: impl Into<String>,
        reference: &str,
        bytes: u64,
        pair: &Pair,
    ) -> Self {
        let rate = |time: Duration| Quantity::rate(bytes, time);
        Self::new(what, rate(pair.ours.median()))
            .against(reference, rate(pair.reference.median()))
            .detail("best", rate(pair.ours.least()))
            .detail("best of the reference", rate(pair.reference.least()))
    }

    /// The worst of some times, with their median.
    pub(super) fn of_worst(what: impl Into<String>, times: &Samples) -> Self {
        Self::new(what, times.most().into()).detail("median", times.median().into())
    }

    pub(super) fn against(mut self, what: &str, quantity: Quantity) -> Self {
        if let Outcome::Measured(figures) = &mut self.outcome {
            let ratio = figures.ours.number() / quantity.number();
            figures.ratio = ratio.is_finite().then_some(ratio);
            figures.reference = Some(Reference { what: what.to_owned(), quantity });
        }
        self
    }

    /// States what was promised. Comes after the reference that it may be about.
    pub(super) fn target(mut self, target: Target) -> Self {
        if let Outcome::Measured(figures) = &mut self.outcome {
            figures.target = Some(target);
            figures.met = Some(target.is_met_by(figures));
        }
        self
    }

    /// What was promised is not met, whatever the figures say: they are of something else.
    pub(super) fn unmet(mut self) -> Self {
        if let Outcome::Measured(figures) = &mut self.outcome {
            figures.met = figures.target.map(|_| false);
        }
        self
    }

    /// Says something about the row, in brackets behind its name.
    pub(super) fn with_remark(mut self, remark: &str) -> Self {
        self.what = format!("{} ({remark})", self.what);
        self
    }

    pub(super) fn detail(mut self, name: &str, quantity: Quantity) -> Self {
        if let Outcome::Measured(figures) = &mut self.outcome {
            figures.details.insert(name.to_owned(), quantity);
        }
        self
    }
}

impl Target {
    fn is_met_by(self, figures: &Figures) -> bool {
        match self {
            Self::RatioAtMost(most) => figures.ratio.is_some_and(|ratio| ratio <= most),
            Self::RatioAtLeast(least) => figures.ratio.is_some_and(|ratio| ratio >= least),
            Self::Within(limit) => figures.ours.number() <= limit.number(),
            Self::SameAsReference => {
                figures.reference.as_ref().is_some_and(|same| same.quantity == figures.ours)
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RatioAtMost(ratio) => write!(f, "ratio ≤ {ratio:.2}"),
            Self::RatioAtLeast(ratio) => write!(f, "ratio ≥ {ratio:.2}"),
            Self::Within(limit) => write!(f, "≤ {limit}"),
            Self::SameAsReference => f.write_str("the same"),
        }
    }
}

impl Quantity {
    /// So many bytes in so much time.
    pub(super) fn rate(bytes: u64, time: Duration) -> Self {
        Self::BytesPerSecond(bytes as f64 / time.as_secs_f64())
    }

    pub(super) fn bytes(bytes: u64) -> Self {
        Self::Bytes(bytes as f64)
    }

    pub(super) fn count(count: usize) -> Self {
        Self::Count(count as f64)
    }

    pub(super) fn number(self) -> f64 {
        match self {
            Self::Seconds(number)
            | Self::BytesPerSecond(number)
            | Self::Bytes(number)
            | Self::Count(number)
            | Self::Ratio(number) => number,
        }
    }
}

impl From<Duration> for Quantity {
    fn from(time: Duration) -> Self {
        Self::Seconds(time.as_secs_f64())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: f64 = 1024.0;
        const MIB: f64 = 1024.0 * KIB;
        const GIB: f64 = 1024.0 * MIB;
        match *self {
            Self::Seconds(time) if time < 1e-5 => write!(f, "{:.2} µs", time * 1e6),
            Self::Seconds(time) if time < 1e-3 => write!(f, "{:.0} µs", time * 1e6),
            Self::Seconds(time) if time < 1.0 => write!(f, "{:.2} ms", time * 1e3),
            Self::Seconds(time) => write!(f, "{time:.2} s"),
            Self::BytesPerSecond(rate) if rate < GIB => write!(f, "{:.0} MiB/s", rate / MIB),
            Self::BytesPerSecond(rate) => write!(f, "{:.2} GiB/s", rate / GIB),
            Self::Bytes(size) if size < MIB => write!(f, "{:.0} KiB", size / KIB),
            Self::Bytes(size) => write!(f, "{:.1} MiB", size / MIB),
            Self::Count(count) => write!(f, "{count:.0}"),
            Self::Ratio(ratio) if ratio < 0.1 => write!(f, "{ratio:.4}"),
            Self::Ratio(ratio) => write!(f, "{ratio:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(row: &Row) -> Option<bool> {
        match &row.outcome {
            Outcome::Measured(figures) => figures.met,
            Outcome::Skipped { .. } | Outcome::Failed { .. } => None,
        }
    }

    #[test]
    fn a_target_is_met_up_to_its_border() {
        let row = |ours, reference| {
            Row::new("x", Quantity::Seconds(ours)).against("y", Quantity::Seconds(reference))
        };
        assert_eq!(met(&row(3.0, 2.0).target(Target::RatioAtMost(1.5))), Some(true));
        assert_eq!(met(&row(3.1, 2.0).target(Target::RatioAtMost(1.5))), Some(false));
        assert_eq!(met(&row(1.2, 2.0).target(Target::RatioAtLeast(0.6))), Some(true));
        assert_eq!(met(&row(1.1, 2.0).target(Target::RatioAtLeast(0.6))), Some(false));
        let limit = Target::Within(Quantity::Seconds(0.1));
        assert_eq!(met(&Row::new("x", Quantity::Seconds(0.1)).target(limit)), Some(true));
        assert_eq!(met(&Row::new("x", Quantity::Seconds(0.2)).target(limit)), Some(false));
    }

    #[test]
    fn nothing_is_the_same_as_nothing() {
        let zombies = Row::new("zombies", Quantity::count(0)).against("before", Quantity::count(0));
        assert_eq!(met(&zombies.target(Target::SameAsReference)), Some(true));
        let zombies = Row::new("zombies", Quantity::count(1)).against("before", Quantity::count(0));
        assert_eq!(met(&zombies.target(Target::SameAsReference)), Some(false));
    }

    #[test]
    fn a_ratio_without_a_reference_is_never_met() {
        let row = Row::new("x", Quantity::Seconds(0.0)).target(Target::RatioAtMost(1.5));
        assert_eq!(met(&row), Some(false));
    }

    #[test]
    fn quantities_are_shown_in_a_unit_that_suits_them() {
        let shown: Vec<String> = [
            Quantity::Seconds(0.000_006_34),
            Quantity::Seconds(0.000_812_4),
            Quantity::Seconds(0.012_345),
            Quantity::Seconds(1.5),
            Quantity::rate(1 << 30, Duration::from_secs(2)),
            Quantity::rate(3 << 30, Duration::from_secs(2)),
            Quantity::bytes(2048),
            Quantity::bytes(5 << 19),
            Quantity::count(200),
            Quantity::Ratio(1.25),
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(
            shown,
            [
                "6.34 µs",
                "812 µs",
                "12.35 ms",
                "1.50 s",
                "512 MiB/s",
                "1.50 GiB/s",
                "2 KiB",
                "2.5 MiB",
                "200",
                "1.25"
            ]
        );
    }
}
