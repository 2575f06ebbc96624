//! Keys in, pictures out, until the person leaves.

use crate::app::{App, Message, Screen};
use crate::drive::{Backstage, Driver, Opened};
use crate::paint::{Painter, Picture, Room};
use crate::plain;
use crate::terminal::{RawTerminal, Writer, shows_other_screen};
use crate::theme::Colours;
use crossterm::event::{Event, read};
use sandgate_protocol::ApprovalId;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often something that moves is drawn, and how often at most what happens by itself.
const FRAME: Duration = Duration::from_millis(120);
const LEAST: Duration = Duration::from_millis(30);
/// How often a pane of processes is looked up.
const GLANCE: Duration = Duration::from_millis(700);
/// How many events are taken before something is drawn.
const AT_ONCE: usize = 256;

/// What the person wants to begin with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Said at once.
    pub prompt: Option<String>,
    /// Whether colours are used.
    pub colours: Colours,
    /// How it is shown.
    pub manner: Manner,
}

/// How the interface is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Drawn in the lower part of a terminal.
    Drawn,
    /// Line by line, without a sequence that a terminal obeys.
    Plain,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The conversation, if it can be gone on with.
    pub conversation: Option<String>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

/// Why the interface could not go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// There is no terminal.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// There is no session.
    #[error("{0}")]
    Session(String),
}

/// Lets a person work with a session.
///
/// # Errors
/// When there is no terminal, or no session any longer.
pub async fn run(
    opened: Opened,
    backstage: &mut dyn Backstage,
    options: Options,
) -> Result<Ended, TuiError> {
    let (outcome, mut outcomes) = mpsc::unbounded_channel();
    let (mut driver, mut app) = Driver::new(opened, backstage, outcome).await;
    if options.manner == Manner::Plain {
        return plain::run(driver, app, outcomes, options.prompt).await;
    }
    let mut signals = signals::Signals::listen()?;
    let mut terminal = RawTerminal::take()?;
    let mut keys = keyboard()?;
    let mut stage = Stage::new(options.colours)?;
    if let Some(prompt) = options.prompt {
        for effect in app.submit(prompt) {
            driver.perform(&mut app, effect);
        }
    }
    let mut signal = None;
    while !driver.quit {
        if let Some(change) = driver.change.take() {
            stage.leave(&mut app).await;
            drop(terminal);
            driver.reopen(&mut app, &change).await.map_err(TuiError::Session)?;
            terminal = RawTerminal::take()?;
        }
        stage.draw(&mut app, &mut driver);
        let pause = stage.pause(&app);
        tokio::select! {
            biased;
            number = signals.next() => {
                signal = Some(number);
                break;
            }
            key = keys.recv() => match key {
                Some((event, at)) => stage.typed(&mut app, &mut driver, event, at),
                // The terminal is gone.
                None => break,
            },
            written = stage.writer.written(), if !stage.writer.is_free() => match written {
                Some(()) => {
                    let shown = stage.shown.clone();
                    driver.tell(&mut app, Message::Drawn(shown), driver.now());
                }
                None => break,
            },
            Some(outcome) = outcomes.recv() => {
                driver.came(&mut app, outcome);
                stage.dirty = true;
            }
            Some(event) = driver.events.next() => {
                let now = driver.now();
                driver.tell(&mut app, Message::Session(event), now);
                for _ in 0..AT_ONCE {
                    let Some(event) = driver.events.try_next() else { break };
                    driver.tell(&mut app, Message::Session(event), now);
                }
                stage.dirty = true;
            }
            () = tokio::time::sleep(pause) => stage.tick(&mut app, &driver),
        }
    }
    driver.end();
    driver.settle(&mut app, &mut outcomes).await;
    stage.leave(&mut app).await;
    drop(terminal);
    Ok(Ended { conversation: driver.end_conversation(), signal })
}

/// The screen, and when it is drawn.
struct Stage {
    writer: Writer,
    painter: Painter,
    size: (usize, usize),
    dirty: bool,
    room: Room,
    again: bool,
    /// The question that the last picture shows.
    shown: Option<ApprovalId>,
    last: Option<Instant>,
    glanced: Option<Instant>,
}

impl Stage {
    fn new(colours: Colours) -> io::Result<Self> {
        let size = RawTerminal::size();
        Ok(Self {
            writer: Writer::start()?,
            painter: Painter::new(colours, size.0),
            size,
            dirty: true,
            room: Room::Lower,
            again: false,
            shown: None,
            last: None,
            glanced: None,
        })
    }

    fn draw(&mut self, app: &mut App, driver: &mut Driver<'_>) {
        let soon = self.last.is_some_and(|last| last.elapsed() < LEAST);
        if !self.dirty || soon || !self.writer.is_free() {
            return;
        }
        let (width, height) = self.size;
        let mut bytes = Vec::new();
        if std::mem::take(&mut driver.redraw) {
            bytes = self.painter.clear();
            bytes.extend(b"\x1b[2J\x1b[H");
        }
        let room = app.room();
        // What is finished waits while the other screen is shown.
        if room == Room::Lower && self.room == Room::Lower {
            let above = app.take_finished(width);
            let picture = app.view(width, height);
            bytes.extend(self.painter.draw(&above, &picture));
        } else {
            let picture = app.view(width, height);
            bytes.extend(self.painter.draw_in(room, &picture));
            // What came in the meantime is drawn next.
            self.again = room != self.room;
            self.room = room;
            shows_other_screen(room == Room::Whole);
        }
        self.shown = app.questions.front().map(|question| question.id().clone());
        self.writer.write(bytes);
        self.dirty = std::mem::take(&mut self.again);
        self.last = Some(Instant::now());
    }

    /// How long nothing is to be done if nothing happens.
    fn pause(&self, app: &App) -> Duration {
        let is_pane = matches!(app.screen, Screen::Processes(_));
        match () {
            () if self.dirty && self.writer.is_free() => LEAST,
            () if app.moves() => FRAME,
            () if is_pane => GLANCE,
            () => Duration::from_secs(3600),
        }
    }

    fn tick(&mut self, app: &mut App, driver: &Driver<'_>) {
        app.tick(driver.now());
        self.dirty = true;
        if let Screen::Processes(pane) = &app.screen
            && self.glanced.is_none_or(|last| last.elapsed() >= GLANCE)
        {
            self.glanced = Some(Instant::now());
            match pane.looks_at() {
                Some(id) => driver.look(id.to_owned()),
                None => driver.list_processes(),
            }
        }
    }

    fn typed(&mut self, app: &mut App, driver: &mut Driver<'_>, event: Event, at: Instant) {
        let at = at.saturating_duration_since(driver.began);
        match event {
            Event::Key(key) => driver.tell(app, Message::Key(key), at),
            Event::Paste(text) => driver.tell(app, Message::Paste(text), at),
            Event::Resize(columns, rows) => {
                self.size = (usize::from(columns).max(10), usize::from(rows).max(4));
                self.painter.resized(self.size.0);
            }
            _ => return,
        }
        self.dirty = true;
        // The person looks: what they pressed is shown at once.
        self.last = None;
    }

    /// Takes the picture away, and leaves what is finished.
    async fn leave(&mut self, app: &mut App) {
        self.writer.finish().await;
        if self.writer.is_free() {
            let mut bytes = self.painter.clear();
            let above = app.take_finished(self.size.0);
            bytes.extend(self.painter.draw(&above, &Picture::default()));
            bytes.extend(self.painter.clear());
            self.writer.write(bytes);
            self.room = Room::Lower;
            shows_other_screen(false);
            self.writer.finish().await;
        }
        self.dirty = true;
    }
}

/// What is typed, with the moment at which it arrived. A thread of its own reads, because a read of a
/// terminal cannot be called off.
fn keyboard() -> io::Result<mpsc::Receiver<(Event, Instant)>> {
    let (sender, keys) = mpsc::channel(1024);
    std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        while let Ok(event) = read() {
            if sender.blocking_send((event, Instant::now())).is_err() {
                return;
            }
        }
    })?;
    Ok(keys)
}

#[cfg(unix)]
pub(crate) mod signals {
    use std::io;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// The signals by which people and systems end programs.
    pub(crate) struct Signals([(SignalKind, Signal); 3]);

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            let listen = |kind: SignalKind| signal(kind).map(|listening| (kind, listening));
            Ok(Self([
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
                listen(SignalKind::interrupt())?,
            ]))
        }

        pub(crate) async fn next(&mut self) -> i32 {
            let [(one, first), (two, second), (three, third)] = &mut self.0;
            tokio::select! {
                _ = first.recv() => one.as_raw_value(),
                _ = second.recv() => two.as_raw_value(),
                _ = third.recv() => three.as_raw_value(),
            }
        }
    }
}

#[cfg(not(unix))]
pub(crate) mod signals {
    use std::io;

    /// The closing of the window, and Ctrl-Break.
    pub(crate) struct Signals(tokio::signal::windows::CtrlBreak, tokio::signal::windows::CtrlClose);

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self(tokio::signal::windows::ctrl_break()?, tokio::signal::windows::ctrl_close()?))
        }

        pub(crate) async fn next(&mut self) -> i32 {
            tokio::select! {
                _ = self.0.recv() => {}
                _ = self.1.recv() => {}
            }
            sandgate_protocol::SIGNAL_INTERRUPT
        }
    }
}
