//! What a live process has printed since it was last asked, in the form in which that is told.
//!
//! A shell that prints marks is told without its prompts and without the echo of what was typed. A program
//! that draws on a borrowed screen is told by the screen, not by what it drew it with.

use super::marks::{Mark, Marks, Piece};
use super::screen::{AlternateScreen, ENTER, Screen, ScreenView, Switch};
use crate::output::{HeadTailBuffer, Outline, RawStream};
use crate::spawner::TerminalSize;
use std::ops::Range;

/// How much of what nobody has asked for yet is kept in memory, as head and tail.
const UNREAD_BYTES: usize = 1024 * 1024;

/// What a process has printed, as it comes.
pub(crate) struct Transcript {
    text: Text,
    screens: AlternateScreen,
    /// What is on the screen, while somebody wants to know.
    screen: Option<Screen>,
    size: TerminalSize,
    wanted: ScreenWanted,
    /// Where what was not asked for yet begins, in all that was printed.
    since: u64,
    printed: u64,
    /// Whether the last byte ended a line.
    ends_a_line: bool,
    /// Whether what is told is what was printed, byte for byte.
    is_verbatim: bool,
}

/// What was printed since it was last asked for, when that is not in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aside {
    outline: Outline,
    range: Range<u64>,
}

impl Aside {
    /// Where its beginning and its end stand in all that was printed.
    pub(crate) fn ends(&self) -> [Range<u64>; 2] {
        let Range { start, end } = self.range;
        [start..start + self.outline.head as u64, end - self.outline.tail as u64..end]
    }

    /// All of it, from these ends.
    pub(crate) fn with(&self, head: Vec<u8>, tail: Vec<u8>) -> RawStream {
        HeadTailBuffer::of_outline(self.outline, head, tail).into()
    }
}

/// Whether the screen is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScreenWanted {
    /// While a program has borrowed it to draw on.
    #[default]
    WhileBorrowed,
    /// Always, and the terminal answers what programs ask it.
    Always,
}

/// What was printed since it was last asked for.
#[derive(Debug)]
pub struct Printed {
    /// What a person would have read of it.
    pub text: RawStream,
    /// Where it stands in all that was printed, as it was printed.
    pub range: Range<u64>,
    /// The exit status of the last command that ended, in a shell that tells.
    pub exit_status: Option<i32>,
    /// What is on the screen, if that is kept.
    pub screen: Option<ScreenView>,
}

/// The text of it.
struct Text {
    marks: Option<Marks>,
    unread: HeadTailBuffer,
    /// Set when it was taken out of memory, and then `unread` is empty.
    aside: Option<Aside>,
    exit_status: Option<i32>,
    /// How many prompts there have been.
    prompts: u64,
}

impl Transcript {
    /// Of a process on a terminal of this size, which prints marks with this nonce if there is one.
    pub(crate) fn new(marks: Option<&str>, size: TerminalSize, wanted: ScreenWanted) -> Self {
        let unread = HeadTailBuffer::new(UNREAD_BYTES);
        let is_verbatim = marks.is_none();
        let marks = marks.map(Marks::new);
        let text = Text { marks, unread, aside: None, exit_status: None, prompts: 0 };
        let screen = (wanted == ScreenWanted::Always).then(|| Screen::new(size));
        let screens = AlternateScreen::default();
        let (since, printed, ends_a_line) = (0, 0, true);
        Self { text, screens, screen, size, wanted, since, printed, ends_a_line, is_verbatim }
    }

    /// Takes what was printed next. What the terminal answers to it, if it was asked something.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.printed += bytes.len() as u64;
        self.ends_a_line = bytes.last().map_or(self.ends_a_line, |&last| last == b'\n');
        let mut switches = Vec::new();
        self.screens.read(bytes, |end, switch| switches.push((end, switch)));
        let mut from = 0;
        self.is_verbatim &= switches.is_empty();
        for (end, switch) in switches {
            self.draw(&bytes[from..end]);
            from = end;
            match (switch, &self.screen) {
                (Switch::Enter, None) => {
                    let mut screen = Screen::new(self.size);
                    screen.feed(ENTER);
                    self.screen = Some(screen);
                }
                (Switch::Leave, Some(_)) if self.wanted == ScreenWanted::WhileBorrowed => {
                    self.screen = None;
                }
                _ => {}
            }
        }
        self.draw(&bytes[from..]);
        match (&mut self.screen, self.wanted) {
            (Some(screen), ScreenWanted::Always) => screen.answers(),
            _ => Vec::new(),
        }
    }

    fn draw(&mut self, bytes: &[u8]) {
        let is_borrowed = self.screen.as_ref().is_some_and(Screen::is_borrowed);
        if let Some(screen) = &mut self.screen {
            screen.feed(bytes);
        }
        if !is_borrowed {
            self.text.read(bytes);
        }
    }

    /// How much was printed in all.
    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    /// Whether what was printed ends within a line, as it does at a prompt.
    pub(crate) fn is_within_a_line(&self) -> bool {
        !self.ends_a_line
    }

    /// What was printed and not taken yet.
    pub(crate) fn unread(&self) -> &HeadTailBuffer {
        &self.text.unread
    }

    /// How many prompts a shell that tells has shown until it waited for a command.
    pub(crate) fn prompts(&self) -> u64 {
        self.text.prompts
    }

    /// Whether such a shell waits for a command, as far as it has told.
    pub(crate) fn at_prompt(&self) -> bool {
        self.text.marks.as_ref().is_some_and(Marks::at_prompt)
    }

    /// Whether the program wants the other sequences for arrow keys.
    pub(crate) fn wants_application_cursor_keys(&self) -> bool {
        self.screen.as_ref().is_some_and(Screen::wants_application_cursor_keys)
    }

    /// What is on the screen, if a program has borrowed it.
    pub(crate) fn borrowed_screen(&self) -> Option<ScreenView> {
        self.screen.as_ref().filter(|screen| screen.is_borrowed()).map(Screen::view)
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.size = size;
        if let Some(screen) = &mut self.screen {
            screen.resize(size);
        }
    }

    /// Nothing more will be printed.
    pub(crate) fn finish(&mut self) {
        let Text { marks: Some(marks), unread, .. } = &mut self.text else { return };
        marks.finish(|piece| {
            if let Piece::Output(bytes) = piece {
                unread.push(bytes);
            }
        });
    }

    /// Takes what was not asked for yet out of memory, if it is all that was printed since, so that it can be read
    /// where that is `kept`. Nothing more may be printed afterwards.
    pub(crate) fn set_aside(&mut self, kept: &Range<u64>) {
        let aside = Aside { outline: self.text.unread.outline(), range: self.since..self.printed };
        let is_kept = kept.start <= self.since && kept.end == self.printed;
        if is_kept && self.is_verbatim {
            self.text.unread = HeadTailBuffer::new(UNREAD_BYTES);
            self.text.aside = Some(aside);
        }
    }

    /// What was printed and not taken yet, if it is not in memory.
    pub(crate) fn aside(&self) -> Option<Aside> {
        self.text.aside.clone()
    }

    /// Takes what was printed since the last time. Its text is empty if it was not in memory.
    pub(crate) fn take(&mut self) -> Printed {
        let text = &mut self.text;
        text.aside = None;
        let unread = std::mem::replace(&mut text.unread, HeadTailBuffer::new(UNREAD_BYTES));
        let range = self.since..self.printed;
        self.since = self.printed;
        Printed {
            text: unread.into(),
            range,
            exit_status: text.exit_status.take(),
            screen: self.screen.as_ref().map(Screen::view),
        }
    }
}

impl Text {
    fn read(&mut self, bytes: &[u8]) {
        let Self { marks, unread, exit_status, prompts, .. } = self;
        let Some(marks) = marks else { return unread.push(bytes) };
        marks.read(bytes, |piece| match piece {
            Piece::Output(bytes) => unread.push(bytes),
            Piece::Prompt(_) | Piece::Echo(_) => {}
            Piece::Mark(Mark::CommandEnd { status }) => *exit_status = status.or(*exit_status),
            Piece::Mark(Mark::PromptEnd) => *prompts += 1,
            Piece::Mark(Mark::PromptStart | Mark::CommandStart) => {}
        });
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript").field("printed", &self.printed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(marks: Option<&str>, wanted: ScreenWanted) -> Transcript {
        Transcript::new(marks, TerminalSize::default(), wanted)
    }

    fn text(transcript: &mut Transcript) -> String {
        transcript.take().text.to_stream_output(None).text
    }

    #[test]
    fn a_shell_that_prints_marks_is_told_without_prompt_and_echo() {
        let mut transcript = transcript(Some("n"), ScreenWanted::WhileBorrowed);
        let mark = |mark: &str| format!("\x1b]133;{mark};aid=n\x07");
        let first = format!("{}{}$ {}", mark("D"), mark("A"), mark("B"));
        transcript.push(first.as_bytes());
        assert_eq!((text(&mut transcript).as_str(), transcript.prompts()), ("", 1));
        assert!(transcript.at_prompt());
        let second =
            format!("echo hi\r\n{}hi\r\n{}{}$ {}", mark("C"), mark("D;3"), mark("A"), mark("B"));
        transcript.push(second.as_bytes());
        let printed = transcript.take();
        assert_eq!(printed.text.to_stream_output(None).text, "hi\r\n");
        assert_eq!((printed.exit_status, transcript.prompts()), (Some(3), 2));
    }

    #[test]
    fn a_borrowed_screen_is_told_as_it_looks_and_leaves_no_text() {
        let mut transcript = transcript(None, ScreenWanted::WhileBorrowed);
        transcript.push(b"before\r\n\x1b[?10");
        transcript.push(b"49h\x1b[Hdrawn");
        let printed = transcript.take();
        assert_eq!(printed.screen.unwrap().lines, ["drawn"]);
        transcript.push(b"more\x1b[?1049lafter\r\n");
        let printed = transcript.take();
        assert_eq!((printed.screen, printed.range.end), (None, transcript.printed()));
        assert!(printed.text.to_stream_output(None).text.ends_with("after\r\n"));
    }

    #[test]
    fn what_is_told_as_it_was_printed_can_be_read_elsewhere() {
        let mut plain = transcript(None, ScreenWanted::WhileBorrowed);
        plain.push(b"told\n");
        plain.take();
        plain.push(b"not told\n");
        plain.set_aside(&(6..14));
        assert_eq!(plain.aside(), None, "its beginning is not kept");
        plain.set_aside(&(0..14));
        let aside = plain.aside().unwrap();
        assert_eq!((aside.ends(), plain.unread().total_bytes()), ([5..14, 14..14], 0));
        let text = aside.with(b"not told\n".to_vec(), Vec::new());
        assert_eq!(text.to_stream_output(None).text, "not told\n");
        assert_eq!((plain.take().range, plain.aside()), (5..14, None));
    }

    #[test]
    fn what_is_told_in_other_words_stays_in_memory() {
        for (marks, printed) in [(Some("n"), "text"), (None, "\x1b[?1049hdrawn\x1b[?1049ltext")] {
            let mut transcript = transcript(marks, ScreenWanted::WhileBorrowed);
            transcript.push(printed.as_bytes());
            transcript.finish();
            let before = transcript.unread().contents();
            transcript.set_aside(&(0..transcript.printed()));
            assert_eq!((transcript.aside(), transcript.unread().contents()), (None, before));
        }
    }

    #[test]
    fn a_terminal_that_was_asked_for_answers() {
        let mut asked = transcript(None, ScreenWanted::Always);
        assert!(!asked.push(b"\x1b[6n").is_empty());
        let mut plain = transcript(None, ScreenWanted::WhileBorrowed);
        assert!(plain.push(b"\x1b[6n").is_empty());
    }
}
