//! Text from an untrusted program, made fit to be shown to a person's terminal or to a model.
//!
//! A program can print more than it seems to say: it can move the cursor, retitle the window, fill
//! the clipboard, turn the direction of reading, or hide words in characters that have no shape.
//! Here the text becomes what a plain line printer would show, and what is hidden becomes visible.
//!
//! Lines never touch each other: a sequence that a line leaves open ends with the line. So text can be
//! cut at any newline, before or after it was made harmless, and nothing can hide the lines below.

use sandgate_protocol::is_invisible;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Makes text harmless: no control character but newline and tab remains, escape sequences are
/// gone, what `\r` and `\b` overwrote is overwritten, and invisible characters are spelled out.
///
/// ```
/// use sandgate_process::harmless;
///
/// assert_eq!(harmless("\x1b[31mred\x1b[0m\n"), "red\n");
/// assert_eq!(harmless("10%\r100%\n"), "100%\n");
/// ```
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut row = Row::default();
    for line in text.split_inclusive('\n') {
        row.show(line, &mut shown);
    }
    Cow::Owned(shown)
}

/// The length of the longest beginning of a line that surely takes at most `budget` bytes when it
/// has been made harmless. It never ends inside a character or an escape sequence.
pub(super) fn fitting_start(line: &str, budget: usize) -> usize {
    let mut used = 0;
    let mut end = 0;
    for (unit, length) in Units(line) {
        used += unit.max_shown_bytes();
        if used > budget {
            break;
        }
        end += length;
    }
    end
}

/// Where the longest end of a line starts that surely takes at most `budget` bytes when it has been
/// made harmless. Two passes forward, because sequences cannot be read backwards.
pub(super) fn fitting_end(line: &str, budget: usize) -> usize {
    let mut left: usize = Units(line).map(|(unit, _)| unit.max_shown_bytes()).sum();
    let mut start = 0;
    for (unit, length) in Units(line) {
        if left <= budget {
            break;
        }
        left -= unit.max_shown_bytes();
        start += length;
    }
    start
}

/// Nothing in this line needs a second look.
fn is_plain(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        || line.chars().all(|c| c == '\t' || (!c.is_control() && !is_invisible(c)))
}

/// One row of a terminal that is as wide as it has to be. Every character takes one column.
#[derive(Default)]
struct Row {
    cells: Vec<char>,
    cursor: usize,
}

impl Row {
    /// Prints one line, with or without its newline, and appends what is seen of it at its end.
    fn show(&mut self, line: &str, shown: &mut String) {
        let (line, newline) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        if is_plain(line) {
            shown.push_str(line);
        } else {
            self.cells.clear();
            self.cursor = 0;
            Units(line).for_each(|(unit, _)| self.print(unit));
            spell(&self.cells, shown);
        }
        shown.push_str(newline);
    }

    fn print(&mut self, unit: Unit) {
        match unit {
            Unit::Shown(c) => {
                match self.cells.get_mut(self.cursor) {
                    Some(cell) => *cell = c,
                    None => self.cells.push(c),
                }
                self.cursor += 1;
            }
            Unit::Back => self.cursor = self.cursor.saturating_sub(1),
            // Padding up to a far column would let a few bytes grow to many, so the end is the limit.
            Unit::Column(column) => self.cursor = column.min(self.cells.len()),
            Unit::EraseToEnd => self.cells.truncate(self.cursor),
            Unit::EraseLine => {
                self.cells.clear();
                self.cursor = 0;
            }
            Unit::Nothing => {}
        }
    }
}

/// Appends the characters, with the invisible ones spelled out as `\u{202e}`.
fn spell(cells: &[char], shown: &mut String) {
    // Only what is shown as itself counts as standing before something.
    let mut before = None;
    for (at, &c) in cells.iter().enumerate() {
        if !is_invisible(c) || is_part_of_a_word_or_emoji(before, c, cells.get(at + 1)) {
            shown.push(c);
            before = Some(c);
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            before = None;
        }
    }
}

/// Joiners and emoji selectors belong to honest text after a visible character that is not ASCII:
/// Persian words, the warning sign in colour, families of emoji. So does a joiner after a selector,
/// as in the rainbow flag, and a selector between the sign and the frame of a keycap. Everywhere
/// else they only hide.
fn is_part_of_a_word_or_emoji(before: Option<char>, c: char, after: Option<&char>) -> bool {
    const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];
    const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
    const KEYCAP_FRAME: char = '\u{20e3}';
    let Some(before) = before else { return false };
    let follows_visible = !before.is_ascii() && !is_invisible(before);
    if SELECTORS.contains(&c) {
        let is_keycap =
            matches!(before, '0'..='9' | '#' | '*') && after.is_some_and(|c| *c == KEYCAP_FRAME);
        return follows_visible || is_keycap;
    }
    JOINERS.contains(&c) && (follows_visible || SELECTORS.contains(&before))
}

/// One thing that a line does: show a character, or act on what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Shown(char),
    Back,
    Column(usize),
    EraseToEnd,
    EraseLine,
    Nothing,
}

impl Unit {
    /// The most bytes it can add, whatever stands around it.
    fn max_shown_bytes(self) -> usize {
        match self {
            Self::Shown(c) if is_invisible(c) => "\\u{10ffff}".len(),
            Self::Shown(c) => c.len_utf8(),
            _ => 0,
        }
    }
}

/// Takes a line apart, each unit with its length in bytes. Every byte belongs to exactly one unit.
struct Units<'t>(&'t str);

impl Iterator for Units<'_> {
    type Item = (Unit, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.0.chars().next()?;
        let after = &self.0[first.len_utf8()..];
        let (unit, rest) = match first {
            '\u{1b}' => after_escape(after),
            '\u{9b}' => control_sequence(after),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                (Unit::Nothing, skip_string(after))
            }
            '\r' => (Unit::Column(0), after),
            '\u{8}' => (Unit::Back, after),
            '\t' | '\n' => (Unit::Shown(first), after),
            c if c.is_control() => (Unit::Nothing, after),
            c => (Unit::Shown(c), after),
        };
        let length = self.0.len() - rest.len();
        self.0 = rest;
        Some((unit, length))
    }
}

fn is_parameter(c: char) -> bool {
    matches!(c, '0'..='?')
}

fn is_intermediate(c: char) -> bool {
    matches!(c, ' '..='/')
}

/// The last character of a control sequence.
fn is_final(c: char) -> bool {
    matches!(c, '@'..='~')
}

/// The last character of a sequence that is not a control sequence.
fn is_short_final(c: char) -> bool {
    matches!(c, '0'..='~')
}

/// What follows ESC: the introducer of a longer sequence, or a short sequence of its own.
fn after_escape(rest: &str) -> (Unit, &str) {
    match rest.bytes().next() {
        Some(b'[') => control_sequence(&rest[1..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => (Unit::Nothing, skip_string(&rest[1..])),
        _ => {
            let rest = rest.trim_start_matches(is_intermediate);
            (Unit::Nothing, rest.strip_prefix(is_short_final).unwrap_or(rest))
        }
    }
}

/// The rest of `ESC [`: parameters, intermediates, one final byte. A sequence that breaks off leaves
/// the character that broke it.
fn control_sequence(rest: &str) -> (Unit, &str) {
    let after_parameters = rest.trim_start_matches(is_parameter);
    let parameters = &rest[..rest.len() - after_parameters.len()];
    let after_intermediates = after_parameters.trim_start_matches(is_intermediate);
    let Some(rest) = after_intermediates.strip_prefix(is_final) else {
        return (Unit::Nothing, after_intermediates);
    };
    if after_intermediates.len() < after_parameters.len() {
        return (Unit::Nothing, rest);
    }
    let unit = match (after_intermediates.as_bytes()[0], parameters) {
        (b'K', "" | "0") => Unit::EraseToEnd,
        (b'K', "2") => Unit::EraseLine,
        (b'G', "") => Unit::Column(0),
        (b'G', column) => column.parse::<usize>().map_or(Unit::Nothing, |column| {
            // Columns are counted from one, and zero means one.
            Unit::Column(column.saturating_sub(1))
        }),
        _ => Unit::Nothing,
    };
    (unit, rest)
}

/// The rest of a sequence that carries a string (titles, links, clipboard contents, images). It ends
/// with BEL or ST, is broken off by CAN, SUB or a new ESC, and ends with the line in any case.
fn skip_string(rest: &str) -> &str {
    let ends = |c: char| matches!(c, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{1b}' | '\u{9c}' | '\n');
    let Some(end) = rest.find(ends) else { return "" };
    match rest[end..].chars().next() {
        Some('\u{1b}' | '\n') | None => {
            rest[end..].strip_prefix("\u{1b}\\").unwrap_or(&rest[end..])
        }
        Some(last) => &rest[end + last.len_utf8()..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec OUTPUT.14: Colours, cursor movements, window titles, links, clipboard writes and device
    /// strings are removed, in their 7-bit and their 8-bit form, also when they are never ended.
    #[test]
    fn escape_sequences_are_removed_in_every_form() {
        let cases = [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}1;31mred\u{9b}0m", "red"),
            ("a\u{1b}[2J\u{1b}[10;20Hb", "ab"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]0;title\u{1b}\\x", "x"),
            ("\u{9d}0;title\u{9c}x", "x"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}x", "x"),
            ("\u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\", "here"),
            ("\u{1b}Pq#0;2;0;0;0\u{1b}\\x", "x"),
            ("\u{90}q#0\u{9c}x", "x"),
            ("\u{1b}_app\u{1b}\\\u{1b}^pm\u{1b}\\\u{1b}Xsos\u{1b}\\x", "x"),
            ("\u{1b}(B\u{1b}#8\u{1b}c\u{1b}7x\u{1b}8", "x"),
            ("\u{1b}[?25l\u{1b}[>0c\u{1b}[0 qx", "x"),
            ("before\u{1b}]52;c;ZXZpbA==\nafter\n", "before\nafter\n"),
            ("before\u{1b}[12", "before"),
            ("before\u{1b}", "before"),
            ("\u{1b}]0;broken\u{18}x", "x"),
            ("\u{1b}]0;broken\u{1b}[31mx", "x"),
            ("\u{1b}[31é", "é"),
            ("a\u{0}\u{7}\u{b}\u{c}\u{7f}\u{85}\u{80}b", "ab"),
        ];
        for (text, expected) in cases {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }

    /// spec OUTPUT.15: A line that a program overwrites with carriage returns, backspaces or erasures
    /// is shown in its last state.
    #[test]
    fn overwritten_lines_are_shown_in_their_last_state() {
        let cases = [
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            (" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
            ("abcdef\rxy\n", "xycdef\n"),
            ("abcdef\r\u{1b}[Kxy\n", "xy\n"),
            ("abcdef\u{1b}[2K\rxy\n", "xy\n"),
            ("abcdef\u{1b}[1G\u{1b}[0Kxy\n", "xy\n"),
            ("waiting\r", "waiting"),
            ("\r\r\n", "\n"),
            ("N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n", "NAME\n"),
            ("\u{8}\u{8}x\n", "x\n"),
            ("ab\u{1b}[99Gc\n", "abc\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }

    /// spec OUTPUT.16: Characters that turn the direction of reading or take no room are spelled out,
    /// except joiners and emoji selectors where honest text has them.
    #[test]
    fn hidden_characters_are_spelled_out() {
        assert_eq!(harmless("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        assert_eq!(harmless("a\u{2066}b\u{2069}c\u{200b}d"), "a\\u{2066}b\\u{2069}c\\u{200b}d");
        assert_eq!(harmless("hi\u{e0041}\u{e0042}"), "hi\\u{e0041}\\u{e0042}");
        assert_eq!(harmless("x\u{fe0f}y\u{200d}"), "x\\u{fe0f}y\\u{200d}");
        assert_eq!(harmless("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}\\u{fe0f}");
        assert_eq!(harmless("1\u{fe0f}2 x\u{fe0f}\u{20e3}"), "1\\u{fe0f}2 x\\u{fe0f}\u{20e3}");
        assert_eq!(harmless("x\u{fe0f}\u{200d}y"), "x\\u{fe0f}\\u{200d}y");
        assert_eq!(harmless("🏳\u{fe0f}\u{200d}\u{200d}"), "🏳\u{fe0f}\u{200d}\\u{200d}");
        for honest in [
            "⚠\u{fe0f} careful",
            "می\u{200c}خواهم",
            "👩\u{200d}🔬",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
            "naïve\tcafé\n日本",
        ] {
            assert_eq!(harmless(honest), honest);
        }
    }

    #[test]
    fn pieces_of_a_line_keep_their_budget_and_their_sequences() {
        let line = "\u{1b}[31mabc\u{1b}[0m\u{202e}déf";
        for budget in 0..30 {
            let start = &line[..fitting_start(line, budget)];
            let end = &line[fitting_end(line, budget)..];
            assert!(harmless(start).len() <= budget, "{start:?}");
            assert!(harmless(end).len() <= budget, "{end:?}");
            assert!(!harmless(end).contains('['), "{end:?}");
        }
        assert_eq!(fitting_start(line, 30), line.len());
        assert_eq!(fitting_end(line, 30), 0);
    }
}
