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
    let draw = |painter: &mut Painter, width, height| {
        let bytes = painter.draw(&[], &picture(text, changed, width, height));
        io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush())
    };
    draw(&mut painter, width, height)?;
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
                match answer(key.code, changed).filter(|_| quiet && !control) {
                    Some(answer) => break answer,
                    None => continue,
                }
            }
            Event::Resize(columns, rows) => {
                (width, height) = (usize::from(columns).max(10), usize::from(rows).max(4));
                painter.resized(width);
                draw(&mut painter, width, height)?;
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

pub(crate) fn picture(text: &str, changed: bool, width: usize, height: usize) -> Picture {
    let inner = width.saturating_sub(2).max(8);
    let title = match changed {
        false => "Do you trust this directory?",
        true => "You trust this directory, but have not seen this",
    };
    let mut rows =
        wrap(&Line::styled(title, STRONG.patch(MIND)), inner, &Span::raw(""), &Span::raw(""));
    rows.push(Line::default());
    for line in harmless_lines(text.trim_end()) {
        let indent = if line.starts_with(' ') { "    " } else { "" };
        rows.extend(wrap(&Line::raw(line), inner, &Span::raw(""), &Span::raw(indent)));
    }
    rows.push(Line::default());
    let mut foot = Vec::new();
    for (key, what) in choices(changed) {
        let lead = Span::styled(format!("[{key}] "), KEY);
        foot.extend(wrap(&Line::raw(*what), inner, &lead, &Span::raw("    ")));
    }
    let room = height.saturating_sub(foot.len() + 2);
    if rows.len() > room {
        let hidden = rows.len() - room;
        rows.truncate(room);
        let text = format!("{hidden} more rows do not fit here; sandgate trust shows all");
        rows.push(Line::styled(cut(&text, inner), MIND));
    }
    rows.extend(foot);
    let barred = rows.into_iter().map(|row| {
        let mut spans = vec![Span::styled(BAR, MIND)];
        spans.extend(row.spans.into_iter().map(|span| span.patch_style(row.style)));
        Line::from(spans)
    });
    let rows = barred.chain([Line::styled(cut("ctrl-c leaves", inner), DIM)]);
    Picture { rows: rows.collect(), cursor: None }
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
