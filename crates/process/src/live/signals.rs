//! The signals that may be sent to a live process, by their names.

/// Their names and numbers, which are the system's.
#[cfg(unix)]
const SIGNALS: [(&str, i32); 10] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("TERM", libc::SIGTERM),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
];

/// Here there are only these.
#[cfg(not(unix))]
const SIGNALS: [(&str, i32); 2] = [("INT", 2), ("KILL", 9)];

/// The names, for whoever asked for another.
pub const SIGNAL_NAMES: &str = match cfg!(unix) {
    true => "HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or TSTP",
    false => "INT or KILL",
};

/// The number of a signal, with or without `SIG` before its name.
pub fn signal_number(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let wanted = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().find(|(name, _)| *name == wanted).map(|(_, number)| *number)
}
