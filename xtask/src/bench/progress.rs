//! What is going on, for the person who waits: one line on standard error.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often the line is drawn again at the most.
const PAUSE: Duration = Duration::from_millis(100);

/// A line that is drawn over itself on a terminal, and printed once everywhere else.
pub(super) struct Progress {
    terminal: bool,
    line: Cell<String>,
    drawn: Cell<Option<Instant>>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            line: Cell::default(),
            drawn: Cell::new(None),
        }
    }

    pub(super) fn begin(&self, line: &str) {
        self.drawn.set(None);
        if self.terminal {
            self.line.set(line.to_owned());
            self.draw("");
        } else {
            eprintln!("bench: {line}");
        }
    }

    /// So many of so many are done.
    pub(super) fn step(&self, done: usize, of: usize) {
        if self.terminal && self.drawn.get().is_none_or(|drawn| drawn.elapsed() > PAUSE) {
            self.draw(&format!(" {done}/{of}"));
            self.drawn.set(Some(Instant::now()));
        }
    }

    pub(super) fn end(&self) {
        if self.terminal {
            self.line.take();
            eprint!("\r\x1b[K");
        }
    }

    fn draw(&self, rest: &str) {
        let line = self.line.take();
        eprint!("\r\x1b[Kbench: {line}{rest}");
        self.line.set(line);
        // A line that cannot be shown is no reason to stop.
        let _ = std::io::stderr().flush();
    }
}
