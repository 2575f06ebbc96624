//! What is drawn, as bytes for a terminal.
//!
//! The lower part of the screen is ours and is drawn again and again; what is finished goes above it, into
//! the terminal's own scrollback, once. All moves are relative to where the cursor was left, so that it
//! need not be asked where that is: an answer could be slow, or mixed with what the person types.

use crate::theme::Colours;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use std::fmt::Write as _;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// What the lower part shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Picture {
    /// Its rows.
    pub(crate) rows: Vec<Line<'static>>,
    /// The column and row of the cursor, if there is one.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// How much of the terminal a picture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// The lower part, below what has been finished.
    Lower,
    /// All of it for a while: the other screen, which leaves nothing behind.
    Whole,
}

/// Draws pictures, and remembers what it has drawn.
#[derive(Debug)]
pub(crate) struct Painter {
    room: Room,
    colours: Colours,
    width: usize,
    /// The rows of the last picture, as they were written, with their widths.
    drawn: Vec<(String, usize)>,
    /// Where the cursor was left: in which of them, and in which column.
    cursor: (usize, usize),
}

impl Painter {
    pub(crate) fn new(colours: Colours, width: usize) -> Self {
        Self { room: Room::Lower, colours, width, drawn: Vec::new(), cursor: (0, 0) }
    }

    /// The terminal has another width: what was drawn has been broken anew by it.
    pub(crate) fn resized(&mut self, width: usize) {
        let width = width.max(1);
        if width == self.width {
            return;
        }
        let rows = |wide: &usize| wide.max(&1).div_ceil(width);
        let (row, column) = self.cursor;
        let above: usize = self.drawn.iter().take(row).map(|(_, wide)| rows(wide)).sum();
        self.cursor = (above + column / width, column % width);
        self.width = width;
        // None of it can be used again.
        for (text, _) in &mut self.drawn {
            text.clear();
        }
        self.drawn.resize(self.drawn.len().max(self.cursor.0 + 1), (String::new(), 0));
        self.drawn.push((String::new(), 0));
    }

    /// Draws on the whole terminal, or on its lower part again.
    pub(crate) fn draw_in(&mut self, room: Room, picture: &Picture) -> Vec<u8> {
        let mut out = String::new();
        if room != self.room {
            out.push_str(if room == Room::Whole { "\x1b[?1049h" } else { "\x1b[?1049l" });
            self.room = room;
        }
        if room == Room::Lower {
            let mut bytes = out.into_bytes();
            bytes.extend(self.draw(&[], picture));
            return bytes;
        }
        out.push_str("\x1b[?2026h\x1b[?25l\x1b[?7l\x1b[H");
        for (number, row) in picture.rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            let _ = write!(out, "\x1b[K{}", self.row(row).0);
        }
        out.push_str("\x1b[J");
        if let Some((column, row)) = picture.cursor {
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1);
        }
        out.push_str("\x1b[?7h\x1b[?2026l");
        out.into_bytes()
    }

    /// Puts finished lines above, and draws the picture below them.
    pub(crate) fn draw(&mut self, above: &[Line<'static>], picture: &Picture) -> Vec<u8> {
        let rows: Vec<(String, usize)> = picture.rows.iter().map(|row| self.row(row)).collect();
        let mut out = String::from("\x1b[?2026h\x1b[?25l\x1b[?7l");
        self.to_top(&mut out);
        let again = !above.is_empty() || rows.len() != self.drawn.len();
        if again {
            out.push_str("\x1b[J");
        }
        for line in above {
            let (text, _) = self.row(line);
            // Writing to a string does not fail.
            let _ = write!(out, "\x1b[K{text}\r\n");
        }
        for (number, (text, _)) in rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            let same = !again && self.drawn.get(number).is_some_and(|(old, _)| old == text);
            if !same {
                // First, because behind the last column it would take away what stands there.
                let _ = write!(out, "\x1b[K{text}");
            }
        }
        self.drawn = rows;
        let last = self.drawn.len().saturating_sub(1);
        self.cursor = match picture.cursor {
            Some((column, row)) if row <= last => {
                up(&mut out, last - row);
                out.push('\r');
                if column > 0 {
                    let _ = write!(out, "\x1b[{column}C");
                }
                out.push_str("\x1b[?25h");
                (row, column)
            }
            _ => {
                out.push('\r');
                (last, 0)
            }
        };
        out.push_str("\x1b[?7h\x1b[?2026l");
        out.into_bytes()
    }

    /// Takes the picture away. What follows begins where it was.
    pub(crate) fn clear(&mut self) -> Vec<u8> {
        let mut out = String::new();
        if self.room == Room::Whole {
            out.push_str("\x1b[?1049l");
            self.room = Room::Lower;
        }
        self.to_top(&mut out);
        out.push_str("\x1b[J\x1b[?25h");
        self.drawn.clear();
        self.cursor = (0, 0);
        out.into_bytes()
    }

    fn to_top(&self, out: &mut String) {
        up(out, self.cursor.0);
        out.push('\r');
    }

    /// A row as bytes, and how wide it is: never wider than the terminal.
    fn row(&self, line: &Line<'_>) -> (String, usize) {
        let mut out = String::new();
        let mut used = 0;
        for span in &line.spans {
            let codes = codes(line.style.patch(span.style), self.colours);
            if !codes.is_empty() {
                let _ = write!(out, "\x1b[{codes}m");
            }
            for grapheme in span.content.graphemes(true) {
                let wide = grapheme.width();
                // The last border: whatever came here, no byte of it is one that a terminal obeys.
                if used + wide > self.width || grapheme.chars().any(char::is_control) {
                    continue;
                }
                used += wide;
                out.push_str(grapheme);
            }
            if !codes.is_empty() {
                out.push_str("\x1b[0m");
            }
        }
        (out, used)
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

/// The numbers by which a terminal is told of a style.
fn codes(style: Style, colours: Colours) -> String {
    let mut codes: Vec<String> = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    if colours == Colours::On
        && let Some(code) = style.fg.and_then(foreground)
    {
        codes.push(code.to_string());
    }
    codes.join(";")
}

fn foreground(colour: Color) -> Option<u8> {
    match colour {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        Color::Blue => Some(34),
        Color::Magenta => Some(35),
        Color::Cyan => Some(36),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme;
    use proptest::prelude::*;
    use ratatui::text::Span;

    fn picture(rows: &[&str]) -> Picture {
        Picture {
            rows: rows.iter().map(|row| Line::raw((*row).to_owned())).collect(),
            cursor: None,
        }
    }

    fn shown(terminal: &avt::Terminal) -> Vec<String> {
        let lines = terminal.screen().visible_lines();
        let rows: Vec<String> = lines.map(|line| line.text().trim_end().to_owned()).collect();
        let end = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        rows[..end].to_vec()
    }

    fn feed(terminal: &mut avt::Terminal, bytes: &[u8]) {
        terminal.feed([std::str::from_utf8(bytes).unwrap()]);
    }

    #[test]
    fn what_is_finished_goes_above_and_the_rest_is_drawn_in_place() {
        let mut terminal = avt::Terminal::new(20, 6).unwrap();
        let mut painter = Painter::new(Colours::On, 20);
        feed(&mut terminal, b"$ sandgate\r\n");
        feed(&mut terminal, &painter.draw(&[], &picture(&["one", "two"])));
        feed(&mut terminal, &painter.draw(&[], &picture(&["one", "2"])));
        assert_eq!(shown(&terminal), ["$ sandgate", "one", "2"]);
        feed(&mut terminal, &painter.draw(&[Line::raw("done")], &picture(&["x"])));
        assert_eq!(shown(&terminal), ["$ sandgate", "done", "x"]);
        feed(&mut terminal, &painter.clear());
        assert_eq!(shown(&terminal), ["$ sandgate", "done"]);
    }

    #[test]
    fn more_than_a_screen_scrolls_and_loses_nothing() {
        let mut terminal = avt::Terminal::with_scrollback(20, 4, Some(100)).unwrap();
        let mut painter = Painter::new(Colours::Off, 20);
        for number in 0..10 {
            let above = Line::raw(format!("line {number}"));
            feed(&mut terminal, &painter.draw(&[above], &picture(&["a", "b"])));
        }
        assert_eq!(shown(&terminal), ["line 8", "line 9", "a", "b"]);
        let all: Vec<String> =
            terminal.screen().text().iter().map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(all[..3], ["line 0", "line 1", "line 2"]);
    }

    /// spec TUI.41: When the terminal gets another size, what is drawn takes the place of what was drawn,
    /// and what stands above it stays.
    #[test]
    fn another_width_leaves_nothing_behind() {
        for width in [40, 12, 7, 33] {
            let mut terminal = avt::Terminal::with_scrollback(24, 12, Some(100)).unwrap();
            let mut painter = Painter::new(Colours::Off, 24);
            feed(
                &mut terminal,
                &painter.draw(&[Line::raw("kept")], &picture(&["a row of 20 columns", "short"])),
            );
            terminal.resize(width, 12);
            painter.resized(width);
            feed(&mut terminal, &painter.draw(&[], &picture(&["new"])));
            // A terminal may put the first rows into its scrollback when it breaks others.
            let all = terminal.screen().text();
            let all: Vec<&str> =
                all.iter().map(|row| row.trim_end()).filter(|row| !row.is_empty()).collect();
            assert_eq!(all, ["kept", "new"], "at {width} columns");
        }
    }

    proptest! {
        #[test]
        fn no_row_leaves_its_row(text in any::<String>(), width in 1_usize..50) {
            let mut painter = Painter::new(Colours::On, width);
            let row = Line::from(Span::styled(text, theme::BAD));
            let bytes = painter.draw(&[], &Picture { rows: vec![row, Line::raw("end")], cursor: None });
            let bytes = String::from_utf8(bytes).unwrap();
            prop_assert!(bytes.matches("\r\n").count() == 1);
            let control = |c: char| c.is_control() && !matches!(c, '\x1b' | '\r' | '\n');
            prop_assert!(!bytes.contains(control));
        }
    }
}
