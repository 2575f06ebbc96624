//! Text from models, commands and files, made harmless before it becomes a span.
//!
//! Nothing else in this crate makes spans of text that it was handed: what goes through here cannot move
//! the cursor, hide, turn the direction of reading or leave its cell.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use sandgate_protocol::{is_invisible, visible_line};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// How wide a tab is.
const TAB: usize = 4;
/// The longest escape sequence that is read as one.
const LONGEST_SEQUENCE: usize = 64;

/// One line of text, with everything spelled out that does not show itself. A tab becomes spaces.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut column = 0;
    for piece in text.split_inclusive('\t') {
        let (body, has_tab) = match piece.strip_suffix('\t') {
            Some(body) => (body, true),
            None => (piece, false),
        };
        let body = visible_line(body);
        column += body.width();
        shown.push_str(&body);
        if has_tab {
            let room = TAB - column % TAB;
            shown.extend(std::iter::repeat_n(' ', room));
            column += room;
        }
    }
    shown
}

/// Several lines, each harmless.
pub(crate) fn harmless_lines(text: &str) -> Vec<String> {
    text.split('\n').map(|line| harmless(line.strip_suffix('\r').unwrap_or(line))).collect()
}

/// What a command wrote, as lines. Of its escape sequences the colours of letters stay, in a set that can
/// be read on light and on dark; all others are left out. A carriage return begins the line again, as it
/// does in a terminal.
pub(crate) fn output(text: &str) -> Vec<Line<'static>> {
    let mut style = Style::default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(|line| output_line(line, &mut style)).collect()
}

fn output_line(line: &str, style: &mut Style) -> Line<'static> {
    let line = line.rsplit('\r').find(|piece| !piece.is_empty()).unwrap_or_default();
    // Behind it no text of a title or the like has an end: it is looked for once.
    let last_end = line.rfind('\x07').max(line.rfind("\x1b\\")).unwrap_or(0);
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        push(&mut spans, &rest[..at], *style);
        let has_end = line.len() - rest.len() + at < last_end;
        let (length, colours) = sequence(&rest[at..], has_end);
        match length {
            // What is no sequence is spelled out.
            0 => {
                push(&mut spans, "\x1b", *style);
                rest = &rest[at + 1..];
            }
            length => {
                if let Some(colours) = colours {
                    colour(colours, style);
                }
                rest = &rest[at + length..];
            }
        }
    }
    push(&mut spans, rest, *style);
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    if !text.is_empty() {
        spans.push(Span::styled(harmless(text), style));
    }
}

/// The length of the escape sequence at the beginning, and what it says if it is about colours. Nothing
/// if there is none, or it does not end. `has_end` is whether there is what ends a text.
fn sequence(text: &str, has_end: bool) -> (usize, Option<&str>) {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'[') => {
            let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
            let end = bytes.iter().skip(2).take(LONGEST_SEQUENCE).position(is_final);
            match end.map(|end| end + 2) {
                Some(end) if bytes[end] == b'm' => (end + 1, Some(&text[2..end])),
                Some(end) => (end + 1, None),
                None => (0, None),
            }
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') if has_end => {
            let end = text
                .char_indices()
                .skip(2)
                .find(|(at, c)| *c == '\x07' || *c == '\\' && bytes[at - 1] == b'\x1b');
            (end.map_or(0, |(at, _)| at + 1), None)
        }
        Some(b'(' | b')' | b'#') if bytes.get(2).is_some_and(u8::is_ascii) => (3, None),
        Some(b'=' | b'>' | b'7' | b'8' | b'c' | b'D' | b'E' | b'H' | b'M') => (2, None),
        _ => (0, None),
    }
}

/// Takes over of a sequence what does not make text unreadable: no backgrounds, no black and white, no
/// hiding.
fn colour(codes: &str, style: &mut Style) {
    let mut codes = codes.split([';', ':']).map(|code| match code {
        "" => Some(0),
        code => code.parse::<u16>().ok(),
    });
    while let Some(code) = codes.next() {
        match code {
            Some(0) => *style = Style::default(),
            Some(1) => *style = style.add_modifier(Modifier::BOLD),
            Some(2) => *style = style.add_modifier(Modifier::DIM),
            Some(3) => *style = style.add_modifier(Modifier::ITALIC),
            Some(4) => *style = style.add_modifier(Modifier::UNDERLINED),
            Some(22) => *style = style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            Some(23) => *style = style.remove_modifier(Modifier::ITALIC),
            Some(24) => *style = style.remove_modifier(Modifier::UNDERLINED),
            Some(code @ (31..=36 | 91..=96)) => style.fg = basic(code % 10),
            Some(39) => style.fg = None,
            Some(code @ (38 | 48)) => {
                let (kind, first) = (codes.next().flatten(), codes.next().flatten());
                match kind {
                    Some(5) if code == 38 => style.fg = first.and_then(|number| basic(number % 8)),
                    Some(5) => {}
                    _ => {
                        codes.next();
                        codes.next();
                    }
                }
            }
            _ => {}
        }
    }
}

/// The six colours that can be read on any background.
fn basic(number: u16) -> Option<Color> {
    match number {
        1 => Some(Color::Red),
        2 => Some(Color::Green),
        3 => Some(Color::Yellow),
        4 => Some(Color::Blue),
        5 => Some(Color::Magenta),
        6 => Some(Color::Cyan),
        _ => None,
    }
}

/// A line that is as wide as it may be, and says that it was cut if it was.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used + 1 > width {
            break;
        }
        shown.push_str(grapheme);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// Breaks a line so that no row is wider than it may be: between words where it can, inside of them where
/// it must. Nothing is left out but the spaces at a break. `first` and `rest` stand before the rows.
pub(crate) fn wrap(
    line: &Line<'_>,
    width: usize,
    first: &Span<'static>,
    rest: &Span<'static>,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(first.width().max(rest.width())).max(1);
    let mut rows = Vec::new();
    let mut row = Row::default();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for grapheme in span.content.graphemes(true) {
            // Tabs and the like were made harmless long before; whatever is left of them shows nothing.
            if grapheme.chars().any(|c| c.is_control() || is_invisible(c)) {
                continue;
            }
            match grapheme.width() > room {
                // Its parts may fit where it does not.
                true => {
                    for part in grapheme.split_inclusive(|_: char| true) {
                        row.push(part, style, room, &mut rows);
                    }
                }
                false => row.push(grapheme, style, room, &mut rows),
            }
        }
    }
    rows.push(row.cells);
    let lead = |number: usize| if number == 0 { first.clone() } else { rest.clone() };
    rows.into_iter().enumerate().map(|(number, cells)| join(lead(number), cells)).collect()
}

/// A row that is being filled.
#[derive(Default)]
struct Row {
    cells: Vec<(String, Style)>,
    width: usize,
    /// How many cells there are up to the last space.
    border: Option<usize>,
}

impl Row {
    fn push(
        &mut self,
        grapheme: &str,
        style: Style,
        room: usize,
        rows: &mut Vec<Vec<(String, Style)>>,
    ) {
        let wide = grapheme.width();
        if self.width + wide > room && !self.cells.is_empty() {
            let over = match self.border.take() {
                _ if grapheme == " " => Vec::new(),
                Some(cells) => self.cells.split_off(cells),
                None => Vec::new(),
            };
            while self.cells.last().is_some_and(|(text, _)| text == " ") {
                self.cells.pop();
            }
            rows.push(std::mem::take(&mut self.cells));
            self.width = over.iter().map(|(text, _)| text.width()).sum();
            self.cells = over;
            if grapheme == " " {
                return;
            }
        }
        self.cells.push((grapheme.to_owned(), style));
        self.width += wide;
        // Not behind what only indents.
        if grapheme == " " && self.cells.iter().any(|(text, _)| text != " ") {
            self.border = Some(self.cells.len());
        }
    }
}

fn join(lead: Span<'static>, cells: Vec<(String, Style)>) -> Line<'static> {
    let mut spans = vec![lead];
    for (text, style) in cells {
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => spans.push(Span::styled(text, style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn colours_stay_and_everything_else_goes() {
        let lines = output("\x1b[31mred\x1b[0m \x1b[2Jx\x1b]0;title\x07y\x1b[7;40mz\n50%\r100%\n");
        assert_eq!(lines.iter().map(text).collect::<Vec<_>>(), ["red xyz", "100%"]);
        assert_eq!(lines[0].spans[0].style.fg, Some(Color::Red));
        assert!(lines[0].spans.iter().all(|span| span.style.bg.is_none()));
    }

    #[test]
    fn a_title_ends_where_it_ends() {
        let shown = |source: &str| text(&output(source)[0]);
        assert_eq!(shown("a\x1b]0;x\x1b\\b\x1b]1;y\x07c"), "abc");
        assert_eq!(shown("a\x07b\x1b]0;x"), r"a\u{7}b\u{1b}]0;x");
        assert_eq!(shown("shown\r\r"), "shown");
    }

    #[test]
    fn a_background_is_no_colour_of_letters() {
        let lines = output("\x1b[38;5;1mred\x1b[48;5;2mstill\x1b[48;2;0;255;0m red");
        assert!(lines[0].spans.iter().all(|span| span.style.fg == Some(Color::Red)), "{lines:?}");
    }

    #[test]
    fn what_is_no_sequence_is_spelled_out() {
        let lines = output("a\x1b[12");
        assert_eq!(text(&lines[0]), r"a\u{1b}[12");
    }

    #[test]
    fn lines_break_between_words_and_inside_of_long_ones() {
        let rows = |source: &str, width| -> Vec<String> {
            let none = Span::raw("");
            wrap(&Line::raw(source.to_owned()), width, &none, &none).iter().map(text).collect()
        };
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(rows("", 4), [""]);
        // What is one to the eye may be wider than a row.
        assert_eq!(rows("\u{1fa80}\u{11440}", 2), ["\u{1fa80}", "\u{11440}"]);
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_it_may_be(source in any::<String>(), width in 4_usize..60) {
            let lead = Span::raw("│ ");
            for line in harmless_lines(&source) {
                for row in wrap(&Line::raw(line), width, &lead, &lead) {
                    prop_assert!(row.width() <= width, "{row:?}");
                }
            }
        }

        #[test]
        fn nothing_in_output_moves_a_cursor(source in any::<String>()) {
            for line in output(&source) {
                let shown = text(&line);
                prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)), "{shown:?}");
            }
        }
    }
}
