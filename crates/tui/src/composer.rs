//! Where the person writes: several lines, what was written before, and what could be meant.

use crate::slash;
use crate::text::{cut, harmless};
use crate::theme::{CHOSEN, DIM, PLAIN};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};
use ratatui_textarea::{CursorMove, Input, Key, TextArea};
use std::sync::Arc;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The most that can be written, in bytes.
pub(crate) const LONGEST: usize = 1024 * 1024;
/// How many messages can be had again.
const MOST_HISTORY: usize = 200;
/// How many files are suggested.
const MOST_FILES: usize = 6;

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It was one for the text.
    Taken,
    /// It was not.
    Left,
    /// The text is done.
    Done(String),
    /// Files are needed to go on.
    WantsFiles,
}

/// The composer.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    area: TextArea<'static>,
    history: Vec<String>,
    /// Which of them is shown, and what was there before.
    recalled: Option<(usize, String)>,
    files: Option<Arc<Vec<String>>>,
    suggestions: Vec<Suggestion>,
    chosen: usize,
}

/// Something that could be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suggestion {
    /// What would stand there.
    text: String,
    about: String,
}

impl Composer {
    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.area = TextArea::default();
        self.recalled = None;
        self.suggestions.clear();
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.clear();
        self.paste(text);
        self.suggestions.clear();
    }

    /// Puts in what was pasted, without what does not show itself.
    pub(crate) fn paste(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.text().len());
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let shows =
            |c: &char| *c == '\n' || !(c.is_control() || sandgate_protocol::is_invisible(*c));
        self.area.insert_str(text.chars().filter(shows).collect::<String>());
        self.suggest();
    }

    /// The files that can be completed.
    pub(crate) fn set_files(&mut self, files: Arc<Vec<String>>) {
        self.files = Some(files);
        self.suggest();
    }

    /// Files are looked up anew the next time.
    pub(crate) fn forget_files(&mut self) {
        self.files = None;
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let other = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let open = !self.suggestions.is_empty();
        match key.code {
            KeyCode::Esc if open => {
                self.suggestions.clear();
                return Typed::Taken;
            }
            KeyCode::Tab if open => {
                self.accept();
                return Typed::Taken;
            }
            KeyCode::Up if open => {
                self.chosen = self.chosen.checked_sub(1).unwrap_or(self.suggestions.len() - 1);
                return Typed::Taken;
            }
            KeyCode::Down if open => {
                self.chosen = (self.chosen + 1) % self.suggestions.len();
                return Typed::Taken;
            }
            KeyCode::Enter if open && !other && self.changes_something() => {
                self.accept();
                // A command that needs nothing more is meant as it stands.
                if !self.is_whole_command() {
                    return Typed::Taken;
                }
                return self.done();
            }
            KeyCode::Char('j') if control => self.area.insert_newline(),
            KeyCode::Enter if other => self.area.insert_newline(),
            KeyCode::Enter if self.continues() => {
                self.area.delete_char();
                self.area.insert_newline();
            }
            KeyCode::Enter => return self.done(),
            KeyCode::Up if self.area.cursor().0 == 0 => return self.recall_before(),
            KeyCode::Down if self.area.cursor().0 + 1 == self.area.lines().len() => {
                return self.recall_after();
            }
            KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab => return Typed::Left,
            KeyCode::Char('c' | 'd' | 't' | 'o' | 'l' | 'g' | 'z' | 's' | 'q') if control => {
                return Typed::Left;
            }
            KeyCode::Char(_) if self.text().len() >= LONGEST => return Typed::Taken,
            _ => {
                let Some(input) = input(key) else { return Typed::Left };
                self.area.input(input);
            }
        }
        self.recalled = None;
        self.suggest();
        match self.files.is_none() && self.at_word().is_some() {
            true => Typed::WantsFiles,
            false => Typed::Taken,
        }
    }

    fn done(&mut self) -> Typed {
        let text = self.text();
        if text.trim().is_empty() {
            return Typed::Taken;
        }
        self.clear();
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        if self.history.len() > MOST_HISTORY {
            self.history.remove(0);
        }
        Typed::Done(text)
    }

    /// Whether the line goes on in the next one.
    fn continues(&self) -> bool {
        let (row, column) = self.cursor();
        self.area
            .lines()
            .get(row)
            .is_some_and(|line| line.ends_with('\\') && column == line.chars().count())
    }

    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    fn recall_before(&mut self) -> Typed {
        let at = match &self.recalled {
            None => self.history.len(),
            Some((at, _)) => *at,
        };
        if at > 0 {
            self.recall(at - 1);
        }
        Typed::Taken
    }

    fn recall_after(&mut self) -> Typed {
        match self.recalled.clone() {
            None => {}
            Some((at, _)) if at + 1 < self.history.len() => self.recall(at + 1),
            Some((_, draft)) => {
                self.area = TextArea::default();
                self.area.insert_str(draft);
                self.recalled = None;
            }
        }
        Typed::Taken
    }

    fn recall(&mut self, at: usize) {
        let draft = match self.recalled.take() {
            Some((_, draft)) => draft,
            None => self.text(),
        };
        self.area = TextArea::default();
        self.area.insert_str(&self.history[at]);
        self.recalled = Some((at, draft));
        self.suggestions.clear();
    }

    /// The name of a file that is being written, after its @.
    fn at_word(&self) -> Option<String> {
        let (row, column) = self.cursor();
        let before: String = self.area.lines().get(row)?.chars().take(column).collect();
        let word = before.rsplit(char::is_whitespace).next()?;
        word.strip_prefix('@').map(str::to_owned)
    }

    fn suggest(&mut self) {
        self.chosen = 0;
        self.suggestions = self.suggested();
    }

    fn suggested(&self) -> Vec<Suggestion> {
        let text = self.text();
        if let Some(word) = text.strip_prefix('/')
            && !word.contains(char::is_whitespace)
        {
            let commands = slash::beginning(word).into_iter();
            return commands
                .map(|command| Suggestion {
                    text: format!("/{} {}", command.name, command.argument).trim_end().to_owned(),
                    about: command.about.to_owned(),
                })
                .collect();
        }
        let (Some(word), Some(files)) = (self.at_word(), &self.files) else { return Vec::new() };
        let word = word.to_lowercase();
        let mut found: Vec<_> =
            files.iter().filter_map(|file| Some((distance(file, &word)?, file))).collect();
        found.sort();
        let found = found.into_iter().take(MOST_FILES);
        found.map(|(_, file)| Suggestion { text: file.clone(), about: String::new() }).collect()
    }

    /// Whether taking the suggestion changes what stands there.
    fn changes_something(&self) -> bool {
        let chosen = self.suggestions.get(self.chosen).map(|one| one.text.as_str()).unwrap_or("");
        match chosen.starts_with('/') {
            true => chosen.split(' ').next() != Some(self.text().as_str()),
            false => self.at_word().as_deref() != Some(chosen),
        }
    }

    fn is_whole_command(&self) -> bool {
        slash::find(&self.text()).is_some_and(|(command, _)| command.argument.is_empty())
    }

    fn accept(&mut self) {
        let Some(chosen) = self.suggestions.get(self.chosen).cloned() else { return };
        if chosen.text.starts_with('/') {
            let word = chosen.text.split(' ').next().unwrap_or_default().to_owned();
            let needs_more = chosen.text.contains(' ');
            self.area = TextArea::default();
            self.area.insert_str(if needs_more { word + " " } else { word });
        } else if let Some(word) = self.at_word() {
            for _ in word.chars() {
                self.area.delete_char();
            }
            self.area.insert_str(format!("{} ", chosen.text));
        }
        self.suggestions.clear();
    }

    /// The rows of the text, and the column and row of the cursor among them.
    pub(crate) fn rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(2);
        let (row, column) = self.cursor();
        let mut rows = Vec::new();
        let mut cursor = (0, 0);
        for (number, line) in self.area.lines().iter().enumerate() {
            let pieces = broken(line, width);
            let last = pieces.len() - 1;
            let mut before = 0;
            for (at, piece) in pieces.into_iter().enumerate() {
                let chars = piece.chars().count();
                let here = number == row && column >= before;
                if here && (column < before + chars || at == last) {
                    let left: String = piece.chars().take(column - before).collect();
                    cursor = (left.width(), rows.len());
                }
                before += chars;
                rows.push(piece);
            }
        }
        (rows, cursor)
    }

    /// What could be meant, as rows: all of it if there is room, or else what is chosen with what stands around
    /// it, and how much there is above and below.
    pub(crate) fn suggestion_rows(&self, width: usize, room: usize) -> Vec<Line<'static>> {
        let all = self.suggestions.len();
        let most = match all <= room {
            true => all,
            false => room.saturating_sub(1).max(1),
        };
        let first = (self.chosen + 1).saturating_sub(most);
        let shown = self.suggestions.iter().enumerate().skip(first).take(most);
        let widest = self.suggestions.iter().map(|one| one.text.width()).max().unwrap_or(0);
        let widest = widest.min(width.saturating_sub(4));
        let more = (all > room).then(|| further(first, all - first - most));
        let more = more.map(|more| Line::styled(cut(&format!("  {more}"), width), DIM));
        shown
            .map(|(number, one)| {
                let style = if number == self.chosen { CHOSEN } else { PLAIN };
                let text = cut(&harmless(&one.text), widest);
                let room = widest - text.width();
                let about = cut(&one.about, width.saturating_sub(widest + 6));
                Line::from(vec![
                    Span::raw("  "),
                    Span::styled(format!("{text}{}", " ".repeat(room)), style),
                    Span::styled(format!("  {about}"), DIM),
                ])
            })
            .chain(more)
            .collect()
    }

    /// Moves the cursor to the end.
    pub(crate) fn move_to_end(&mut self) {
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }
}

/// How much of a list is above and below what is shown of it.
fn further(above: usize, below: usize) -> String {
    match (above, below) {
        (0, below) => format!("↓ {below} more"),
        (above, 0) => format!("↑ {above} more"),
        (above, below) => format!("↑ {above} more · ↓ {below} more"),
    }
}

/// How far a file is from what was written, in small letters; none if it is not meant. Nearest is what
/// begins its name, then what stands in its name, then what stands in its path, and last what has those
/// letters in this order; among equals the shorter.
fn distance(file: &str, word: &str) -> Option<(u8, usize)> {
    let path = file.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let rank = match () {
        () if name.starts_with(word) => 0,
        () if name.contains(word) => 1,
        () if path.contains(word) => 2,
        () => {
            let mut letters = path.chars();
            word.chars().all(|wanted| letters.any(|letter| letter == wanted)).then_some(3)?
        }
    };
    Some((rank, file.len()))
}

/// A line in pieces that fit, broken between words where it can be. Behind the last one there is room for
/// a cursor.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let (mut used, mut end, mut border) = (0, rest.len(), None);
        for (at, grapheme) in rest.grapheme_indices(true) {
            used += grapheme.width();
            if used > width {
                end = match border.unwrap_or(at) {
                    // One character that is wider than all the room has it for itself.
                    0 => grapheme.len(),
                    end => end,
                };
                break;
            }
            if grapheme == " " {
                border = Some(at + 1);
            }
        }
        let (piece, after) = rest.split_at(end);
        let full = after.is_empty() && piece.width() >= width;
        pieces.push(piece.to_owned());
        match (after.is_empty(), full) {
            (true, true) => {
                pieces.push(String::new());
                return pieces;
            }
            (true, false) => return pieces,
            (false, _) => rest = after,
        }
    }
}

fn input(key: KeyEvent) -> Option<Input> {
    let of = match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Delete => Key::Delete,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    };
    Some(Input {
        key: of,
        ctrl: key.modifiers.contains(KeyModifiers::CONTROL),
        alt: key.modifiers.contains(KeyModifiers::ALT),
        shift: key.modifiers.contains(KeyModifiers::SHIFT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(composer: &mut Composer, keys: &str) {
        for c in keys.chars() {
            composer.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
    }

    fn enter(composer: &mut Composer) -> Typed {
        composer.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE))
    }

    fn up(composer: &mut Composer) -> Typed {
        composer.key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE))
    }

    /// spec TUI.10: Enter sends what was written; Alt-Enter, Ctrl-J and a backslash before Enter begin a
    /// new line; Up and Down bring back what was sent before, and then what was being written.
    #[test]
    fn lines_are_written_sent_and_had_again() {
        let mut composer = Composer::default();
        press(&mut composer, "one\\");
        assert_eq!(enter(&mut composer), Typed::Taken);
        press(&mut composer, "two");
        composer.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
        press(&mut composer, "three");
        composer.key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL));
        press(&mut composer, "four");
        assert_eq!(enter(&mut composer), Typed::Done("one\ntwo\nthree\nfour".to_owned()));
        press(&mut composer, "draft");
        up(&mut composer);
        assert_eq!(composer.text(), "one\ntwo\nthree\nfour");
        composer.key(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
        assert_eq!(composer.text(), "draft");
    }

    /// spec TUI.11: What is pasted is put in whole, with its lines, and without what does not show itself;
    /// it sends nothing.
    #[test]
    fn a_paste_sends_nothing_and_hides_nothing() {
        let mut composer = Composer::default();
        composer.paste("rm -rf x\r\n\x1b[2Jecho \u{202e}hi\n");
        assert_eq!(composer.text(), "rm -rf x\n[2Jecho hi\n");
    }

    /// spec TUI.12: After @ the files of the workspace are suggested, the nearest first; Tab takes one.
    #[test]
    fn files_are_completed() {
        let mut composer = Composer::default();
        press(&mut composer, "see ");
        let at = composer.key(KeyEvent::new(KeyCode::Char('@'), KeyModifiers::NONE));
        assert_eq!(at, Typed::WantsFiles);
        let files = ["README.md", "src/main.rs", "src/composer.rs"].map(str::to_owned);
        composer.set_files(Arc::new(files.to_vec()));
        press(&mut composer, "comp");
        composer.key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
        assert_eq!(composer.text(), "see @src/composer.rs ");
    }

    /// spec TUI.17: After / all commands are listed if there is room, and otherwise how many more there are above
    /// and below those that are shown.
    #[test]
    fn a_list_says_that_it_goes_on() {
        let mut composer = Composer::default();
        press(&mut composer, "/");
        let all = slash::COMMANDS.len();
        let rows = |composer: &Composer, room| {
            let rows = composer.suggestion_rows(60, room);
            rows.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(rows(&composer, all).len(), all);
        let shown = rows(&composer, 5);
        assert_eq!(shown.len(), 5);
        assert_eq!(shown[4], format!("  ↓ {} more", all - 4));
        for _ in 0..5 {
            composer.key(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
        }
        assert_eq!(rows(&composer, 5)[4], format!("  ↑ 2 more · ↓ {} more", all - 6));
        up(&mut composer);
        for _ in 0..5 {
            up(&mut composer);
        }
        let shown = rows(&composer, 5);
        assert!(shown[3].starts_with("  /quit"), "{shown:?}");
        assert_eq!(shown[4], format!("  ↑ {} more", all - 4));
    }

    #[test]
    fn names_are_nearer_than_paths() {
        let files = ["parse/mod.rs", "src/a_parse.rs", "src/parse.rs", "p/a/r/s/e.rs", "other"];
        let mut near: Vec<_> =
            files.iter().filter_map(|file| Some((distance(file, "parse")?, *file))).collect();
        near.sort();
        let names: Vec<&str> = near.into_iter().map(|(_, file)| file).collect();
        assert_eq!(names, ["src/parse.rs", "src/a_parse.rs", "parse/mod.rs", "p/a/r/s/e.rs"]);
    }

    #[test]
    fn the_cursor_is_where_the_text_is_broken() {
        let mut composer = Composer::default();
        press(&mut composer, "abcdef");
        let (rows, cursor) = composer.rows(4);
        assert_eq!((rows, cursor), (vec!["abcd".to_owned(), "ef".to_owned()], (2, 1)));
        press(&mut composer, "gh");
        let (rows, cursor) = composer.rows(4);
        assert_eq!((rows.len(), cursor), (3, (0, 2)));
    }
}
