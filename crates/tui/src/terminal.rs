//! The terminal itself: raw while we have it, as it was when we do not, whatever ends us.

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Whether the terminal is ours just now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether it shows its other screen.
static WHOLE: AtomicBool = AtomicBool::new(false);
/// Letters as they are, a cursor, the whole screen, rows that wrap; a picture that was begun is shown.
const PLAIN: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?2026l";
/// How long the last picture is waited for when the terminal does not take it.
const LAST_PATIENCE: Duration = Duration::from_millis(300);

/// A terminal in raw mode.
#[derive(Debug)]
pub(crate) struct RawTerminal;

impl RawTerminal {
    /// Takes it.
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let _ = crossterm::execute!(io::stdout(), EnableBracketedPaste);
        Ok(Self)
    }

    /// Its columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        let (columns, rows) = size().unwrap_or((80, 24));
        (usize::from(columns).max(10), usize::from(rows).max(4))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Remembers which screen the terminal shows, in case that something ends us.
pub(crate) fn shows_other_screen(whole: bool) {
    WHOLE.store(whole, Ordering::SeqCst);
}

/// Makes the terminal what it was, if it is ours. On a thread of its own where it might not take a byte.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // First what needs no room in it.
        let _ = disable_raw_mode();
        let (done, waits) = std::sync::mpsc::channel();
        let write = move || {
            let mut out = io::stdout();
            if WHOLE.swap(false, Ordering::SeqCst) {
                let _ = out.write_all(b"\x1b[?1049l");
            }
            let _ = crossterm::execute!(out, DisableBracketedPaste);
            let _ = out.write_all(PLAIN).and_then(|()| out.flush());
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(write).is_ok() {
            let _ = waits.recv_timeout(LAST_PATIENCE);
        }
    }
}

/// Writes to the terminal, one picture at a time, on a thread of its own: a terminal that takes nothing
/// stops nobody else.
#[derive(Debug)]
pub(crate) struct Writer {
    pictures: std::sync::mpsc::SyncSender<Vec<u8>>,
    written: mpsc::UnboundedReceiver<()>,
    under_way: bool,
}

impl Writer {
    pub(crate) fn start() -> io::Result<Self> {
        let (pictures, waiting) = std::sync::mpsc::sync_channel::<Vec<u8>>(1);
        let (done, written) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            let mut out = io::stdout();
            while let Ok(bytes) = waiting.recv() {
                let gone = out.write_all(&bytes).and_then(|()| out.flush()).is_err();
                if done.send(()).is_err() || gone {
                    return;
                }
            }
        })?;
        Ok(Self { pictures, written, under_way: false })
    }

    /// Whether a picture can be written.
    pub(crate) fn is_free(&self) -> bool {
        !self.under_way
    }

    /// Writes one. Only if it is free.
    pub(crate) fn write(&mut self, bytes: Vec<u8>) {
        self.under_way = self.pictures.try_send(bytes).is_ok();
    }

    /// The picture has been written. None if the terminal is gone.
    pub(crate) async fn written(&mut self) -> Option<()> {
        let done = self.written.recv().await;
        self.under_way = false;
        done
    }

    /// Waits a moment for the last picture.
    pub(crate) async fn finish(&mut self) {
        if self.under_way {
            let _ = tokio::time::timeout(LAST_PATIENCE, self.written()).await;
        }
    }
}
