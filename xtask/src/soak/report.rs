//! What came of it, for the terminal and for a file.

use super::census::{Sample, WARM_UP};
use super::ledger::{Ledger, Violation};
use crate::bench::machine::Machine;
use crate::bench::samples::Samples;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Everything that is worth keeping.
#[derive(Debug, serde::Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) user: &'static str,
    pub(super) program: String,
    pub(super) machine: Machine,
    seconds: u64,
    actions: usize,
    calls: u64,
    kinds: Vec<Kind>,
    memory_growth_bytes_per_1000_calls: BTreeMap<&'static str, i64>,
    samples: Vec<Sample>,
    pub(super) violations: Vec<Violation>,
}

/// How often something was done, and how long it took.
#[derive(Debug, serde::Serialize)]
struct Kind {
    name: &'static str,
    count: usize,
    p50_ms: f64,
    p99_ms: f64,
}

impl Report {
    pub(super) fn of(
        ledger: &Ledger,
        samples: Vec<Sample>,
        about: (&'static str, String, Machine),
    ) -> Self {
        let (user, program, machine) = about;
        let kinds = ledger.times().into_iter().filter_map(|(name, times)| {
            let (count, samples) = (times.len(), Samples::new(times).ok()?);
            let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
            Some(Kind { name, count, p50_ms: ms(samples.median()), p99_ms: ms(samples.p99()) })
        });
        let names = samples.first().map(|first| first.hosts.keys().copied().collect::<Vec<_>>());
        let growth = |name: &'static str| {
            let points: Vec<(u64, u64)> = samples
                .iter()
                .skip(WARM_UP)
                .filter_map(|sample| Some((sample.calls, sample.hosts.get(name)?.memory_bytes)))
                .collect();
            (name, slope(&points))
        };
        Self {
            seed: ledger.seed,
            user,
            program,
            machine,
            seconds: ledger.elapsed().as_secs(),
            actions: ledger.done(),
            calls: ledger.calls(),
            kinds: kinds.collect(),
            memory_growth_bytes_per_1000_calls: names.into_iter().flatten().map(growth).collect(),
            samples,
            violations: ledger.violations(),
        }
    }

    /// For a person.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "soak: {} s as {}, seed {}: {} actions, {} commands that are in the audit log",
            self.seconds, self.user, self.seed, self.actions, self.calls
        );
        let _ =
            writeln!(text, "\n{:<20} {:>7} {:>11} {:>11}", "action", "count", "p50 ms", "p99 ms");
        for Kind { name, count, p50_ms, p99_ms } in &self.kinds {
            let _ = writeln!(text, "{name:<20} {count:>7} {p50_ms:>11.1} {p99_ms:>11.1}");
        }
        for (name, growth) in &self.memory_growth_bytes_per_1000_calls {
            let of = |figure: fn(&super::census::Host) -> u64| -> Vec<u64> {
                self.samples
                    .iter()
                    .filter_map(|sample| sample.hosts.get(name))
                    .map(figure)
                    .collect()
            };
            let _ =
                writeln!(text, "\n{name}: {:+} KiB of memory per 1,000 commands", growth / 1024);
            let lines = [
                ("memory, MiB", of(|host| host.memory_bytes >> 20)),
                ("descriptors", of(|host| host.descriptors as u64)),
                ("threads", of(|host| host.threads as u64)),
                ("guards", of(|host| host.guards as u64)),
            ];
            for (what, values) in lines {
                let _ = writeln!(text, "  {what:<12} {}", curve(&values));
            }
        }
        let settled = self.samples.iter().map(|sample| sample.settled_in_ms).max().unwrap_or(0);
        let lines = self.samples.last().map_or(0, |sample| sample.audit_lines);
        let _ = writeln!(
            text,
            "\n{} checks; after the last answer everything was gone within {settled} ms; \
             {lines} lines of audit log verified",
            self.samples.len()
        );
        match self.violations.len() {
            0 => text += "no violation\n",
            count => {
                let _ = writeln!(text, "{count} violations:");
                for Violation { after_s, what } in &self.violations {
                    let _ = writeln!(text, "  after {after_s} s: {what}");
                }
            }
        }
        text
    }
}

/// Values as a curve of one line, with the least and the most beside it.
fn curve(values: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (Some(&least), Some(&most)) = (values.iter().min(), values.iter().max()) else {
        return String::new();
    };
    let step = |value: &u64| {
        let part = (value - least) * 7 / (most - least).max(1);
        STEPS[usize::try_from(part).unwrap_or(0)]
    };
    format!("{} {least}…{most}", values.iter().map(step).collect::<String>())
}

/// How many bytes more per thousand calls, by the straight line that fits best.
fn slope(points: &[(u64, u64)]) -> i64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(u64, u64)) -> u64| {
        points.iter().map(|point| of(point) as f64).sum::<f64>() / count
    };
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut above, mut below) = (0.0, 0.0);
    for (calls, bytes) in points {
        above += (*calls as f64 - x) * (*bytes as f64 - y);
        below += (*calls as f64 - x).powi(2);
    }
    if below == 0.0 || points.is_empty() { 0 } else { (above / below * 1000.0) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_shows_the_least_and_the_most() {
        assert_eq!(curve(&[10, 12, 17, 10]), "▁▃█▁ 10…17");
        assert_eq!(curve(&[5, 5]), "▁▁ 5…5");
        assert_eq!(curve(&[]), "");
    }

    #[test]
    fn a_slope_is_per_thousand_calls() {
        assert_eq!(slope(&[(0, 100), (1000, 200), (2000, 300)]), 100);
        assert_eq!(slope(&[(0, 100), (1000, 100)]), 0);
        assert_eq!(slope(&[(500, 100)]), 0);
        assert_eq!(slope(&[]), 0);
    }
}
