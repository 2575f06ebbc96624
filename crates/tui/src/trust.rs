//! The question whether a directory is trusted, before any work has begun in it.

use crate::paint::{Painter, Picture};
use crate::question::{BAR, GUARD};
use crate::run::Manner;
use crate::terminal::RawTerminal;
use crate::text::{cut, harmless_lines, wrap};
use crate::theme::{Colours, DIM, KEY, MIND, STRONG};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use ratatui::text::{Line, Span};
use std::io::{self, BufRead as _, Write as _};
use std::time::Instant;

/// What the person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// They do.
    Yes,
    /// They do not, and are not asked again.
    No,
    /// They do not for now.
    Later,
    /// They do not want to work here at all.
    Leave,
}

/// Asks. `changed` is whether they trust it and have not seen what it loosens now.
///
/// # Errors
/// When there is no terminal.
pub fn ask_trust(text: &str, changed: bool, colours: Colours, manner: Manner) -> io::Result<Trust> {
    match manner {
        Manner::Plain => ask_in_lines(text, changed),
        Manner::Drawn => ask_drawn(text, changed, colours),
    }
}

fn ask_drawn(text: &str, changed: bool, colours: Colours) -> io::Result<Trust> {
    let _terminal = RawTerminal::take()?;
    let (mut width, mut height) = RawTerminal::size();
    let mut painter = Painter::new(colours, width);
    let mut page = Page::default();
    let draw = |painter: &mut Painter, page: &mut Page, width, height| {
        let bytes = painter.draw(&[], &page.picture(text, changed, width, height));
        io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush())
    };
    draw(&mut painter, &mut page, width, height)?;
    let mut quiet_since = Instant::now();
    let answer = loop {
        match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
                    break Trust::Leave;
                }
                // What was typed before it was there answers nothing, and neither does what follows.
                let quiet = quiet_since.elapsed() >= GUARD;
                quiet_since = if quiet { quiet_since } else { Instant::now() };
                if !control && page.turn(key.code) {
                    let was_seen = page.seen;
                    draw(&mut painter, &mut page, width, height)?;
                    // What is seen only now has to be seen before a key counts.
                    quiet_since = if was_seen { quiet_since } else { Instant::now() };
                    continue;
                }
                match answer(key.code, changed).filter(|_| quiet && !control) {
                    Some(Trust::Yes) if !page.seen => continue,
                    Some(answer) => break answer,
                    None => continue,
                }
            }
            Event::Resize(columns, rows) => {
                (width, height) = (usize::from(columns).max(10), usize::from(rows).max(4));
                painter.resized(width);
                draw(&mut painter, &mut page, width, height)?;
            }
            _ => {}
        }
    };
    io::stdout().write_all(&painter.clear())?;
    io::stdout().flush()?;
    Ok(answer)
}

fn answer(code: KeyCode, changed: bool) -> Option<Trust> {
    match code {
        KeyCode::Char('y') => Some(Trust::Yes),
        KeyCode::Char('n') if !changed => Some(Trust::No),
        KeyCode::Char('l') => Some(Trust::Later),
        _ => None,
    }
}

fn choices(changed: bool) -> &'static [(&'static str, &'static str)] {
    match changed {
        false => &[
            ("y", "yes"),
            ("n", "no: commands only read, and I am asked before all that is not known to be safe"),
            ("l", "the same for now, and ask me later"),
        ],
        true => &[("y", "yes, it shall count"), ("l", "not now")],
    }
}

/// What of a long text is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Page {
    scroll: usize,
    /// How many rows of the text are on the screen.
    room: usize,
    /// The last row has been on the screen, and so have those before it. Until then there is no yes.
    pub(crate) seen: bool,
}

impl Page {
    /// Scrolls, if this is a key for that.
    pub(crate) fn turn(&mut self, code: KeyCode) -> bool {
        let page = self.room.clamp(1, 10);
        self.scroll = match code {
            KeyCode::Up => self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll.saturating_add(page),
            _ => return false,
        };
        true
    }

    pub(crate) fn picture(
        &mut self,
        text: &str,
        changed: bool,
        width: usize,
        height: usize,
    ) -> Picture {
        let inner = width.saturating_sub(2).max(8);
        let title = match changed {
            false => "Do you trust this directory?",
            true => "You trust this directory, but have not seen this",
        };
        let mut rows =
            wrap(&Line::styled(title, STRONG.patch(MIND)), inner, &Span::raw(""), &Span::raw(""));
        rows.push(Line::default());
        let mut body = Vec::new();
        for line in harmless_lines(text.trim_end()) {
            let indent = if line.starts_with(' ') { "    " } else { "" };
            body.extend(wrap(&Line::raw(line), inner, &Span::raw(""), &Span::raw(indent)));
        }
        let mut foot = Vec::new();
        for (key, what) in choices(changed) {
            let lead = Span::styled(format!("[{key}] "), KEY);
            foot.extend(wrap(&Line::raw(*what), inner, &lead, &Span::raw("    ")));
        }
        // A row below the text is for what is hidden of it, and one below all for the way out.
        let room = height.saturating_sub(rows.len() + foot.len() + 2).max(1);
        self.room = room;
        self.scroll = self.scroll.min(body.len().saturating_sub(room));
        let below = body.len().saturating_sub(self.scroll + room);
        self.seen |= below == 0;
        let hidden = match (self.scroll, below, self.seen) {
            (0, 0, _) => Line::default(),
            (_, _, false) => hint(&format!("↓ {below} more rows to see before a yes"), inner),
            _ => {
                let text = format!("↑ {} · ↓ {below} more rows: arrows, page keys", self.scroll);
                hint(&text, inner)
            }
        };
        rows.extend(body.into_iter().skip(self.scroll).take(room));
        rows.push(hidden);
        rows.extend(foot);
        let barred = rows.into_iter().map(|row| {
            let mut spans = vec![Span::styled(BAR, MIND)];
            spans.extend(row.spans.into_iter().map(|span| span.patch_style(row.style)));
            Line::from(spans)
        });
        let rows = barred.chain([Line::styled(cut("ctrl-c leaves", inner), DIM)]);
        Picture { rows: rows.collect(), cursor: None }
    }
}

fn hint(text: &str, width: usize) -> Line<'static> {
    Line::styled(cut(text, width), MIND)
}

fn ask_in_lines(text: &str, changed: bool) -> io::Result<Trust> {
    let mut out = io::stdout();
    writeln!(out, "Do you trust this directory?")?;
    for line in harmless_lines(text.trim_end()) {
        writeln!(out, "  {line}")?;
    }
    for (key, what) in choices(changed) {
        writeln!(out, "  {key}: {what}")?;
    }
    loop {
        write!(out, "answer> ")?;
        out.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Trust::Leave);
        }
        let mut letters = line.trim().chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && let Some(answer) = answer(KeyCode::Char(letter), changed)
        {
            return Ok(answer);
        }
    }
}
