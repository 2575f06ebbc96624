//! What is worth knowing of the machine that the figures were taken on.

use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, and how busy it was.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(super) kernel: String,
    pub(super) cores: usize,
    /// The load of the last minute, before the run.
    pub(super) load_before: Option<String>,
    /// The same after it.
    pub(super) load_after: Option<String>,
}

/// The day that it is, in UTC, as 2026-11-18.
pub(crate) fn today() -> String {
    day(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// The day of a moment in seconds since 1970. Years begin in March here, so that the odd day is their last one.
fn day(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", era * 400 + year + later)
}

/// The kernel's own name.
pub(crate) fn kernel() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    kernel.trim().to_owned()
}

pub(crate) fn describe(load_before: Option<String>) -> Machine {
    Machine {
        kernel: kernel(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load_before,
        load_after: load_average(),
    }
}

/// The load of the last minute.
pub(crate) fn load_average() -> Option<String> {
    let loads = std::fs::read_to_string("/proc/loadavg").ok()?;
    loads.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn a_moment_has_its_day() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_795_046_399), "2026-11-18");
        assert_eq!(day(1_795_046_400), "2026-11-19");
    }
}
