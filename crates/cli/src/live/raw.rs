//! A person's terminal while a process has it, and as it was before.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use sandgate_protocol::TerminalSizeParams;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A terminal that passes every key on. However this ends, the terminal is as it was.
pub(super) struct RawTerminal {
    terminal: File,
    before: Termios,
    screens: Arc<Mutex<Screens>>,
}

/// The way to the screen. A terminal that is held blocks whoever writes to it, so a thread of its own does.
pub(super) struct Screen {
    pub(super) pieces: mpsc::Sender<Vec<u8>>,
    shown: oneshot::Receiver<()>,
}

/// How many pieces wait for a slow terminal.
const QUEUED_PIECES: usize = 4;

/// How long a slow terminal is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

impl Screen {
    /// Waits until all has been shown, for a while.
    pub(super) async fn finish(self) {
        drop(self.pieces);
        let _ = tokio::time::timeout(PATIENCE, self.shown).await;
    }
}

impl RawTerminal {
    /// Takes the terminal that the person sits at.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn take() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Drain, &raw)?;
        Ok(Self { terminal, before, screens: Arc::default() })
    }

    /// A hold on it for whoever reads what is typed.
    pub(super) fn keyboard(&self) -> io::Result<File> {
        self.terminal.try_clone()
    }

    /// How large it is. One that does not know is as large as terminals were.
    pub(super) fn size(&self) -> TerminalSizeParams {
        let size = tcgetwinsize(&self.terminal).ok();
        let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
        TerminalSizeParams { rows, columns }
    }

    /// Begins to show what a process prints, as it is.
    pub(super) fn screen(&self) -> io::Result<Screen> {
        let (pieces, mut queue) = mpsc::channel::<Vec<u8>>(QUEUED_PIECES);
        let (done, shown) = oneshot::channel();
        let (mut terminal, screens) = (self.terminal.try_clone()?, Arc::clone(&self.screens));
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while let Some(bytes) = queue.blocking_recv() {
                screens.lock().unwrap_or_else(PoisonError::into_inner).read(&bytes);
                if terminal.write_all(&bytes).is_err() {
                    break;
                }
            }
            // Nobody may be waiting any more.
            let _ = done.send(());
        })?;
        Ok(Screen { pieces, shown })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Not after the rest has been shown: a terminal that is held would never be as it was.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        let borrowed = self.screens.lock().unwrap_or_else(PoisonError::into_inner).borrowed;
        let leave: &[u8] = if borrowed { LEAVE } else { b"" };
        if takes_more(&self.terminal) {
            let _ = (&self.terminal).write_all(&[leave, PLAIN].concat());
        }
    }
}

/// Whether something can be written there now. A terminal that is held takes nothing.
pub(super) fn takes_more(stream: &impl AsFd) -> bool {
    let mut ready = [PollFd::new(stream, PollFlags::OUT)];
    poll(&mut ready, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Gives the screen back that a program has borrowed.
const LEAVE: &[u8] = b"\x1b[?1049l";

/// Undoes what programs do to terminals: no mouse, no marks around what is pasted, plain keys and
/// letters, a cursor; and a new line.
const PLAIN: &[u8] = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[?7h\x1b[0m\x1b(B\x0f\r\n";

/// Follows whether a program has borrowed the screen.
#[derive(Debug, Default)]
struct Screens {
    borrowed: bool,
    /// The end of what came before: a sequence may come in pieces.
    tail: Vec<u8>,
}

impl Screens {
    const LONGEST: usize = b"\x1b[?1049h".len();

    fn read(&mut self, bytes: &[u8]) {
        let text = [&self.tail, bytes].concat();
        for start in (0..text.len()).filter(|at| text[*at] == b'\x1b') {
            for name in [&b"\x1b[?1049"[..], b"\x1b[?1047", b"\x1b[?47"] {
                match text[start..].strip_prefix(name).and_then(<[u8]>::first) {
                    Some(b'h') => self.borrowed = true,
                    Some(b'l') => self.borrowed = false,
                    _ => {}
                }
            }
        }
        self.tail = text[text.len().saturating_sub(Self::LONGEST - 1)..].to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_screen_is_known_even_if_it_comes_in_pieces() {
        let mut screens = Screens::default();
        screens.read(b"text \x1b[?10");
        assert!(!screens.borrowed);
        screens.read(b"49h drawn");
        assert!(screens.borrowed);
        screens.read(b"\x1b[?1049l\x1b[?25h");
        assert!(!screens.borrowed);
    }
}
