//! What is worth knowing of the machine that the figures were taken on.

use serde::Serialize;

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

pub(crate) fn describe(load_before: Option<String>) -> Machine {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        kernel: kernel.trim().to_owned(),
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
