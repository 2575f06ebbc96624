//! The screen of a terminal, as a person would see it.
//!
//! Full-screen programs draw, and what they send makes no sense as text. An emulator keeps what is on
//! the screen; nothing that has scrolled away is kept. It costs memory and time, so it is made to be fed
//! only while a program has the alternate screen ([`AlternateScreen`] tells) or a caller asked for it.
//!
//! Such programs also ask the terminal questions, and some wait for the answer. The emulator answers
//! what programs wait for, and nothing that could carry text of a program's choice back into its input.

use super::sequences::{Sequence, Sequences};
use crate::spawner::TerminalSize;
use avt::parser::Function;
use sandgate_protocol::visible_line;

/// The largest side of a screen that is drawn. A terminal can be told to be larger than memory.
const MAX_SIDE: u16 = 500;

/// How many bytes of answers wait for somebody to send them. A program that asks more has stopped
/// listening.
const MAX_ANSWERS: usize = 4096;

/// A terminal's screen.
pub(crate) struct Screen {
    terminal: avt::Terminal,
    parser: avt::Parser,
    decoder: encoding_rs::Decoder,
    sequences: Sequences,
    answers: Vec<u8>,
}

/// What is on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenView {
    /// The lines from the top, without the blank ends of lines and without the blank lines at the end.
    /// Characters that do not show themselves are spelled out.
    pub lines: Vec<String>,
    /// The row and the column of the cursor, from 0.
    pub cursor: (usize, usize),
    /// Whether this is the screen that programs borrow and give back.
    pub alternate: bool,
}

impl Screen {
    /// A blank screen.
    pub(crate) fn new(size: TerminalSize) -> Self {
        let (columns, rows) = sides(size);
        let terminal = avt::Terminal::new(columns, rows).expect("both sides are at least 1");
        let decoder = encoding_rs::UTF_8.new_decoder_without_bom_handling();
        Self {
            terminal,
            parser: avt::Parser::new(),
            decoder,
            sequences: Sequences::default(),
            answers: Vec::new(),
        }
    }

    /// Draws what was sent to the terminal. What is not UTF-8 is drawn as U+FFFD.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Self { terminal, parser, decoder, sequences, answers } = self;
        let mut draw = |terminal: &mut avt::Terminal, bytes: &[u8]| {
            draw(terminal, parser, &decoded(decoder, bytes));
        };
        let mut drawn = 0;
        sequences.read(bytes, |end, sequence| {
            let Some(query) = Query::of(sequence) else { return };
            // The answer may depend on where the cursor is by now.
            draw(terminal, &bytes[drawn..end]);
            drawn = end;
            let answer = query.answer(terminal);
            if answers.len() + answer.len() <= MAX_ANSWERS {
                answers.extend_from_slice(answer.as_bytes());
            }
        });
        draw(terminal, &bytes[drawn..]);
    }

    /// Changes the size, as the terminal itself was changed.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let (columns, rows) = sides(size);
        self.terminal.resize(columns, rows);
    }

    /// What is on the screen now.
    pub(crate) fn view(&self) -> ScreenView {
        let screen = self.terminal.screen();
        let mut lines: Vec<String> =
            screen.visible_lines().map(|line| visible_line(line.text().trim_end())).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        ScreenView { lines, cursor: cursor(&self.terminal), alternate: self.is_borrowed() }
    }

    /// Whether a program has borrowed it to draw on.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.terminal.active_screen_kind() == avt::ScreenKind::Alternate
    }

    /// Whether the program wants the other sequences for arrow keys.
    pub(crate) fn wants_application_cursor_keys(&self) -> bool {
        self.terminal.cursor_key_app_mode()
    }

    /// What the terminal answers to what it was asked since the last time; to be written to the program's
    /// input. Only for a program that was promised such a terminal by its `TERM`.
    pub(crate) fn answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answers)
    }
}

fn sides(size: TerminalSize) -> (usize, usize) {
    let side = |length: u16| usize::from(length.clamp(1, MAX_SIDE));
    (side(size.columns), side(size.rows))
}

/// The text that is complete by now.
fn decoded(decoder: &mut encoding_rs::Decoder, bytes: &[u8]) -> String {
    let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or_default();
    let mut text = String::with_capacity(room);
    // The room is enough for all of it, so the result has nothing to say.
    let _ = decoder.decode_to_string(bytes, &mut text, false);
    text
}

fn draw(terminal: &mut avt::Terminal, parser: &mut avt::Parser, text: &str) {
    let (columns, _) = terminal.size();
    for c in text.chars() {
        match parser.feed(c) {
            // A few bytes could ask for so many characters that a megabyte takes minutes.
            Some(Function::Rep(times)) => {
                let most = u16::try_from(columns).unwrap_or(MAX_SIDE);
                terminal.execute(Function::Rep(times.min(most)));
            }
            Some(function) => terminal.execute(function),
            None => {}
        }
    }
}

/// Where the cursor is. Behind the last column it waits for the next character in the last one.
fn cursor(terminal: &avt::Terminal) -> (usize, usize) {
    let (columns, rows) = terminal.size();
    let cursor = terminal.cursor();
    (cursor.row.min(rows - 1), cursor.col.min(columns - 1))
}

/// A question that programs wait for the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    /// DA1: what are you?
    Attributes,
    /// DA2: which version?
    Version,
    /// DSR 5: are you well?
    Status,
    /// DSR 6: where is the cursor?
    Cursor,
    /// DECRQM: is this mode set, one of the standard or one of DEC's? With its number.
    Mode(u16),
    DecMode(u16),
    /// XTVERSION: what is your name?
    Name,
    /// XTWINOPS 18: how large are you?
    Size,
    /// OSC 10 and 11: which colours do you have?
    Foreground,
    Background,
}

impl Query {
    fn of(sequence: Sequence<'_>) -> Option<Self> {
        Some(match sequence {
            Sequence::Csi { parameters: b"" | b"0", last: b'c' } => Self::Attributes,
            Sequence::Csi { parameters: b">" | b">0", last: b'c' } => Self::Version,
            Sequence::Csi { parameters: b"5", last: b'n' } => Self::Status,
            Sequence::Csi { parameters: b"6", last: b'n' } => Self::Cursor,
            Sequence::Csi { parameters: [b'?', mode @ .., b'$'], last: b'p' } => {
                Self::DecMode(number(mode)?)
            }
            Sequence::Csi { parameters: [mode @ .., b'$'], last: b'p' } => {
                Self::Mode(number(mode)?)
            }
            Sequence::Csi { parameters: b">" | b">0", last: b'q' } => Self::Name,
            Sequence::Csi { parameters: b"18", last: b't' } => Self::Size,
            Sequence::Osc(b"10;?") => Self::Foreground,
            Sequence::Osc(b"11;?") => Self::Background,
            _ => return None,
        })
    }

    fn answer(self, terminal: &avt::Terminal) -> String {
        match self {
            // A VT220 with colours, the least that programs expect behind an xterm's name.
            Self::Attributes => "\x1b[?62;22c".to_owned(),
            Self::Version => "\x1b[>1;10;0c".to_owned(),
            Self::Status => "\x1b[0n".to_owned(),
            Self::Cursor => {
                let (row, column) = cursor(terminal);
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            // None is known: what is not promised nobody relies on.
            Self::Mode(number) => format!("\x1b[{number};0$y"),
            Self::DecMode(number) => format!("\x1b[?{number};0$y"),
            Self::Name => "\x1bP>|sandgate\x1b\\".to_owned(),
            Self::Size => {
                let (columns, rows) = terminal.size();
                format!("\x1b[8;{rows};{columns}t")
            }
            Self::Foreground => "\x1b]10;rgb:ffff/ffff/ffff\x1b\\".to_owned(),
            Self::Background => "\x1b]11;rgb:0000/0000/0000\x1b\\".to_owned(),
        }
    }
}

fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Notices when a program borrows the alternate screen and gives it back, in bytes split anywhere.
#[derive(Debug, Default)]
pub(crate) struct AlternateScreen {
    sequences: Sequences,
}

/// A change of screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// To the alternate screen. A [`Screen`] that is fed from here on must be fed [`ENTER`] first.
    Enter,
    /// Back from it.
    Leave,
}

/// Puts a new [`Screen`] where a program that entered the alternate one believes to be.
pub(crate) const ENTER: &[u8] = b"\x1b[?1049h";

impl AlternateScreen {
    /// Names every change in these bytes, and where the bytes after it begin.
    pub(crate) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(usize, Switch)) {
        self.sequences.read(bytes, |end, sequence| {
            let Sequence::Csi { parameters, last: last @ (b'h' | b'l') } = sequence else { return };
            let Some(modes) = parameters.strip_prefix(b"?") else { return };
            if modes.split(|b| *b == b';').any(|mode| matches!(mode, b"47" | b"1047" | b"1049")) {
                each(end, if last == b'h' { Switch::Enter } else { Switch::Leave });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn screen(rows: u16, columns: u16) -> Screen {
        Screen::new(TerminalSize { rows, columns })
    }

    #[test]
    fn what_is_drawn_is_seen_and_what_scrolled_away_is_not() {
        let mut screen = screen(3, 10);
        screen.feed(b"one\r\ntwo\r\nthree\r\nfour\x1b[1;3HX\x1b[31mred\x1b[m");
        let view = screen.view();
        assert_eq!(view.lines, ["twXred", "three", "four"]);
        assert_eq!((view.cursor, view.alternate), ((0, 6), false));
        screen.feed(b"\x1b[?1049h\x1b[H~\r\n~");
        assert_eq!((screen.view().lines, screen.view().alternate), (vec!["~".into(); 2], true));
        screen.feed(b"\x1b[?1049l");
        assert_eq!(screen.view(), view);
    }

    #[test]
    fn characters_may_be_split_and_may_be_wrong() {
        let mut screen = screen(2, 20);
        for byte in "gr\u{fc}\u{df}e \u{1f980}".as_bytes() {
            screen.feed(&[*byte]);
        }
        screen.feed(b"\xff!");
        assert_eq!(screen.view().lines, ["gr\u{fc}\u{df}e \u{1f980}\u{fffd}!"]);
    }

    #[test]
    fn the_cursor_stays_on_the_screen() {
        let mut screen = screen(2, 4);
        screen.feed(b"abcd");
        assert_eq!(screen.view().cursor, (0, 3));
    }

    #[test]
    fn questions_are_answered_in_order_and_where_they_are_asked() {
        let mut screen = screen(24, 80);
        let questions = b"\x1b[cab\x1b[6n\r\n\x1b[5n\x1b[6n\x1b[>c\x1b]11;?\x07\x1b]10;?\x1b\\";
        let answers = b"\x1b[?62;22c\x1b[1;3R\x1b[0n\x1b[2;1R\x1b[>1;10;0c\
            \x1b]11;rgb:0000/0000/0000\x1b\\\x1b]10;rgb:ffff/ffff/ffff\x1b\\";
        screen.feed(questions);
        assert_eq!(screen.answers(), answers);
        assert_eq!(screen.answers(), b"");
        screen.feed(b"\x1bc");
        for byte in questions {
            screen.feed(&[*byte]);
        }
        assert_eq!(screen.answers(), answers);
    }

    #[test]
    fn modes_names_and_sizes_are_answered_with_nothing_but_numbers_of_theirs() {
        let mut screen = screen(24, 80);
        screen.feed(b"\x1b[?12$p\x1b[4$p\x1b[>q\x1b[>0q\x1b[18t");
        let name = "\x1bP>|sandgate\x1b\\";
        let answers = format!("\x1b[?12;0$y\x1b[4;0$y{name}{name}\x1b[8;24;80t");
        assert_eq!(String::from_utf8(screen.answers()).unwrap(), answers);
        screen.feed(b"\x1b[?12;13$p\x1b[$p\x1b[?99999$p\x1b[?+1 $p\x1b[21t");
        assert_eq!(screen.answers(), b"");
    }

    #[test]
    fn answers_that_nobody_takes_are_bounded() {
        let mut screen = screen(24, 80);
        screen.feed(&b"\x1b[c".repeat(100_000));
        assert!(screen.answers().len() <= MAX_ANSWERS);
    }

    #[test]
    fn a_program_that_repeats_a_character_gets_at_most_one_line_of_it() {
        let mut screen = screen(4, 10);
        screen.feed(b"x\x1b[65535b");
        assert_eq!(screen.view().lines, ["xxxxxxxxxx", "x"]);
    }

    #[test]
    fn a_screen_that_is_too_large_is_cut_and_one_without_size_is_a_character() {
        assert_eq!(screen(u16::MAX, u16::MAX).terminal.size(), (500, 500));
        let mut screen = screen(0, 0);
        screen.feed(b"abc\xf0\x9f\xa6\x80");
        screen.resize(TerminalSize { rows: 0, columns: 9 });
        assert_eq!(screen.terminal.size(), (9, 1));
    }

    #[test]
    fn the_program_chooses_what_arrows_send() {
        let mut screen = screen(24, 80);
        assert!(!screen.wants_application_cursor_keys());
        screen.feed(b"\x1b[?1h");
        assert!(screen.wants_application_cursor_keys());
    }

    fn switches(chunks: &[&[u8]]) -> Vec<(usize, Switch)> {
        let mut alternate = AlternateScreen::default();
        let mut found = Vec::new();
        let mut before = 0;
        for chunk in chunks {
            alternate.read(chunk, |at, switch| found.push((before + at, switch)));
            before += chunk.len();
        }
        found
    }

    #[test]
    fn the_alternate_screen_is_noticed_however_it_is_asked_for() {
        for mode in ["1049", "1047", "47", "1;1049", "1049;25"] {
            let text = format!("ab\x1b[?{mode}hcd\x1b[?{mode}l");
            let entered = 2 + 4 + mode.len();
            let expected = [(entered, Switch::Enter), (text.len(), Switch::Leave)];
            assert_eq!(switches(&[text.as_bytes()]), expected, "{mode}");
        }
        for other in ["\x1b[?25h", "\x1b[1049h", "\x1b[?1048h", "[?1049h", "\x1b]0;[?1049h\x07"] {
            assert_eq!(switches(&[other.as_bytes()]), [], "{other:?}");
        }
    }

    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let sequences = [
            "\x1b[?1049h",
            "\x1b[?47l",
            "\x1b[6n",
            "\x1b[c",
            "\x1b[999;999H",
            "\x1b[9999b",
            "\x1b[9999@",
            "\x1b[9999P",
            "\x1b[9999L",
            "\x1b[9999M",
            "\x1b[9999S",
            "\x1b[9999T",
            "\x1b[2;1r",
            "\x1b[1;9999r",
            "\x1b[2J",
            "\x1b[3J",
            "\x1b7",
            "\x1b8",
            "\x1b[?6h",
            "\x1b[?7l",
            "\x1bM",
            "\x1bD",
            "\x1b#8",
            "\x1bc",
            "\x1b[4h",
            "\t",
            "\r\n",
            "\u{8}",
            "\u{ff0c}",
            "\u{301}",
            "\u{1f980}",
            "\x1b]11;?\x07",
            "\x1bP",
            "\x1b[9999Z",
            "\x1b(0",
        ];
        prop_oneof![
            prop::sample::select(sequences.to_vec()).prop_map(|s| s.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..12),
            "[ -~]{0,40}".prop_map(String::into_bytes),
        ]
    }

    fn side() -> impl Strategy<Value = u16> {
        prop_oneof![4 => 1_u16..6, 4 => 1_u16..120, 1 => 1_u16..=500, 1 => any::<u16>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn no_bytes_and_no_sizes_break_it(
            steps in prop::collection::vec((noise(), prop::option::weighted(0.3, (side(), side()))), 1..40),
            rows in side(),
            columns in side(),
        ) {
            let mut screen = screen(rows, columns);
            for (bytes, size) in steps {
                screen.feed(&bytes);
                if let Some((rows, columns)) = size {
                    screen.resize(TerminalSize { rows, columns });
                }
                let (columns, rows) = screen.terminal.size();
                let view = screen.view();
                prop_assert!(view.lines.len() <= rows);
                prop_assert!(view.cursor.0 < rows && view.cursor.1 < columns);
                for line in &view.lines {
                    prop_assert!(!line.chars().any(char::is_control));
                    prop_assert!(!line.chars().any(sandgate_protocol::is_invisible));
                }
            }
        }

        #[test]
        fn a_change_of_screens_is_found_wherever_the_bytes_are_split(
            tokens in prop::collection::vec(noise(), 0..20),
            cut in 1_usize..7,
        ) {
            let bytes = tokens.concat();
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(switches(&chunks), switches(&[&bytes]));
        }
    }
}
