//! Signals to this program, which are meant for the command.

use sandgate_runtime::Stop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Listens to the signals by which people and systems end programs.
pub(crate) struct Signals {
    last: Arc<AtomicI32>,
}

impl Signals {
    /// The last signal that arrived, if one did.
    pub(crate) fn received(&self) -> Option<i32> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// Starts to listen: the first Ctrl-C asks the command to end, the second ends it, and so does
    /// every other signal that would have ended us.
    ///
    /// # Errors
    /// When the system does not let us listen.
    #[cfg(unix)]
    pub(crate) fn listen(stop: &Stop) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let last = Arc::new(AtomicI32::new(0));
        let kinds = [
            (SignalKind::interrupt(), Manner::Ask),
            (SignalKind::terminate(), Manner::End),
            (SignalKind::hangup(), Manner::End),
        ];
        let ignored = ignored();
        for (kind, manner) in kinds {
            if ignored & 1 << (kind.as_raw_value() - 1) != 0 {
                continue;
            }
            let mut arrivals = signal(kind)?;
            let last = Arc::clone(&last);
            let stop = stop.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() {
                    last.store(kind.as_raw_value(), Ordering::Relaxed);
                    pull(&stop, manner);
                }
            });
        }
        Ok(Self { last })
    }

    /// Starts to listen: the first Ctrl-C asks the command to end; the second ends it, and so do
    /// Ctrl-Break and the closing of the window.
    ///
    /// # Errors
    /// When the system does not let us listen.
    #[cfg(not(unix))]
    pub(crate) fn listen(stop: &Stop) -> io::Result<Self> {
        use sandgate_protocol::SIGNAL_INTERRUPT;
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
        let (mut asked, mut broken, mut closed) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
        let last = Arc::new(AtomicI32::new(0));
        let signals = Self { last: Arc::clone(&last) };
        let stop = stop.clone();
        tokio::spawn(async move {
            loop {
                let manner = tokio::select! {
                    _ = asked.recv() => Manner::Ask,
                    _ = broken.recv() => Manner::End,
                    _ = closed.recv() => Manner::End,
                };
                last.store(SIGNAL_INTERRUPT, Ordering::Relaxed);
                pull(&stop, manner);
            }
        });
        Ok(signals)
    }
}

/// What a signal wants of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// To end by itself; when it was asked before, to end.
    Ask,
    /// To end.
    End,
}

fn pull(stop: &Stop, manner: Manner) {
    if manner == Manner::Ask && !stop.interrupt.is_cancelled() {
        stop.interrupt.cancel();
    } else {
        stop.cancel.cancel();
    }
}

/// The signals that whoever started us wanted to be ignored, as `nohup` does with a hangup: a bit for
/// each, from signal 1 on. Listening would undo that.
#[cfg(target_os = "linux")]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Elsewhere only unsafe code could tell.
#[cfg(all(unix, not(target_os = "linux")))]
fn ignored() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec RUN.52: The first Ctrl-C asks the command to end, the second ends it; SIGTERM and SIGHUP
    /// end it at once.
    #[test]
    fn the_second_ctrl_c_is_not_a_question() {
        let levers = |stop: &Stop| (stop.interrupt.is_cancelled(), stop.cancel.is_cancelled());
        let stop = Stop::default();
        pull(&stop, Manner::Ask);
        assert_eq!(levers(&stop), (true, false));
        pull(&stop, Manner::Ask);
        assert_eq!(levers(&stop), (true, true));
        let stop = Stop::default();
        pull(&stop, Manner::End);
        assert_eq!(levers(&stop), (false, true));
    }
}
