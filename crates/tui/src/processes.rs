//! The pane of live processes.

use crate::paint::Picture;
use crate::text::{cut, harmless};
use crate::theme::{ACCENT, BAD, CHOSEN, DIM, GOOD, KEY, MIND, PLAIN, STRONG};
use avt::parser::Function;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};
use sandgate_protocol::{ProcessInfo, ProcessState};
use unicode_width::UnicodeWidthStr as _;

/// The longest line that is typed to a process, in bytes.
const LONGEST_LINE: usize = 4096;

/// A live process and what it holds of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessRow {
    /// What the session says of it.
    pub(crate) info: ProcessInfo,
    /// Its memory in bytes, where that is known.
    pub(crate) memory: Option<u64>,
}

/// What is typed to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    Line(String),
    Key(&'static str),
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    Close,
    Look(String),
    Send(String, Sent),
    Kill(String),
}

#[derive(Debug, Default)]
pub(crate) struct Processes {
    rows: Option<Vec<ProcessRow>>,
    chosen: usize,
    attached: Option<Attached>,
    /// Asked whether this one is to be ended.
    ending: Option<String>,
}

#[derive(Debug)]
struct Attached {
    id: String,
    /// What it printed, as a terminal would show it.
    lines: Vec<String>,
    line: String,
}

impl Processes {
    /// Which process is looked at.
    pub(crate) fn looks_at(&self) -> Option<&str> {
        self.attached.as_ref().map(|attached| attached.id.as_str())
    }

    pub(crate) fn listed(&mut self, rows: Vec<ProcessRow>) {
        self.chosen = self.chosen.min(rows.len().saturating_sub(1));
        self.rows = Some(rows);
    }

    /// What a process printed.
    pub(crate) fn printed(&mut self, id: &str, text: &str) {
        if let Some(attached) = self.attached.as_mut().filter(|attached| attached.id == id) {
            attached.lines = screen(text);
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Wanted {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(attached) = &mut self.attached {
            let id = attached.id.clone();
            let press = |name| Wanted::Send(id.clone(), Sent::Key(name));
            let is_empty = attached.line.is_empty();
            return match key.code {
                KeyCode::Char(']' | '5') if control => {
                    self.attached = None;
                    Wanted::Nothing
                }
                KeyCode::Char('c') if control => press("ctrl-c"),
                KeyCode::Char('d') if control => press("ctrl-d"),
                KeyCode::Char('z') if control => press("ctrl-z"),
                KeyCode::Esc => press("esc"),
                KeyCode::Tab => press("tab"),
                KeyCode::Up if is_empty => press("up"),
                KeyCode::Down if is_empty => press("down"),
                KeyCode::Left if is_empty => press("left"),
                KeyCode::Right if is_empty => press("right"),
                KeyCode::Enter => {
                    Wanted::Send(id, Sent::Line(std::mem::take(&mut attached.line) + "\n"))
                }
                KeyCode::Backspace => {
                    attached.line.pop();
                    Wanted::Nothing
                }
                KeyCode::Char(c) if !control && attached.line.len() < LONGEST_LINE => {
                    attached.line.push(c);
                    Wanted::Nothing
                }
                _ => Wanted::Nothing,
            };
        }
        if let Some(id) = self.ending.take() {
            return match key.code {
                KeyCode::Char('y') => Wanted::Kill(id),
                _ => Wanted::Nothing,
            };
        }
        let rows = self.rows.as_deref().unwrap_or_default();
        let id = rows.get(self.chosen).map(|row| row.info.process_id.clone());
        match (key.code, id) {
            (KeyCode::Esc | KeyCode::Char('q'), _) => return Wanted::Close,
            (KeyCode::Char('c' | 'd'), _) if control => return Wanted::Close,
            (KeyCode::Up | KeyCode::Char('k'), _) => self.chosen = self.chosen.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), _) => {
                self.chosen = (self.chosen + 1).min(rows.len().saturating_sub(1));
            }
            (KeyCode::Enter | KeyCode::Char('a'), Some(id)) => {
                self.attached =
                    Some(Attached { id: id.clone(), lines: Vec::new(), line: String::new() });
                return Wanted::Look(id);
            }
            (KeyCode::Char('x'), Some(id)) => self.ending = Some(id),
            _ => {}
        }
        Wanted::Nothing
    }

    pub(crate) fn picture(&self, width: usize, height: usize) -> Picture {
        match &self.attached {
            Some(attached) => attached.picture(width, height),
            None => self.list(width, height),
        }
    }

    fn list(&self, width: usize, height: usize) -> Picture {
        let mut rows = vec![Line::from(vec![
            Span::styled("Processes", STRONG),
            Span::styled(" of this session", DIM),
        ])];
        let listed = self.rows.as_deref().unwrap_or_default();
        if listed.is_empty() {
            let text = if self.rows.is_some() { "none is alive" } else { "…" };
            rows.push(Line::styled(format!("  {text}"), DIM));
        }
        let room = height.saturating_sub(4) / 2;
        let first = (self.chosen + 1).saturating_sub(room.max(1));
        let names = listed.iter().map(|row| name(row).width()).max().unwrap_or(0);
        for (number, row) in listed.iter().enumerate().skip(first).take(room.max(1)) {
            rows.extend(entry(row, number == self.chosen, names, width));
        }
        if listed.len() > room.max(1) {
            rows.push(Line::styled(format!("  {} of {}", self.chosen + 1, listed.len()), DIM));
        }
        match &self.ending {
            Some(id) => {
                let text = format!("End {} and all that it started?", cut(&harmless(id), 20));
                rows.push(Line::styled(text, MIND));
                rows.push(Line::from(vec![
                    Span::styled("[y]", KEY),
                    Span::raw(" yes; any other key: no"),
                ]));
            }
            None => {
                let all = [("↑↓", "choose"), ("enter", "attach"), ("x", "kill"), ("esc", "close")];
                rows.push(keys(&all, width));
            }
        }
        Picture { rows, cursor: None }
    }
}

/// How wide the word for a state is at most.
const STATE: usize = "waits for input".len();

fn name(row: &ProcessRow) -> String {
    cut(&harmless(&row.info.process_id), 16)
}

/// A process: its name and state, and below what it printed last.
fn entry(row: &ProcessRow, chosen: bool, names: usize, width: usize) -> [Line<'static>; 2] {
    let info = &row.info;
    let (state, style) = match (info.state, info.exit_code) {
        (ProcessState::Running, _) => ("running".to_owned(), GOOD),
        (ProcessState::WaitingForInput, _) => ("waits for input".to_owned(), MIND),
        (ProcessState::Exited, Some(0)) => ("ended".to_owned(), DIM),
        (ProcessState::Exited, code) => (format!("ended with {}", code.unwrap_or(-1)), BAD),
    };
    let memory = row.memory.map(shown_bytes).unwrap_or_default();
    let age = match info.age_seconds {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    };
    let name = name(row);
    let room = " ".repeat(names - name.width() + 2);
    let mark = if chosen { "› " } else { "  " };
    let mut first = Line::from(vec![
        Span::styled(mark, ACCENT),
        Span::styled(name, if chosen { CHOSEN } else { STRONG }),
        Span::raw(room),
        Span::styled(format!("{state:<STATE$}"), style),
        Span::styled(format!("{memory:>9}"), DIM),
    ]);
    // What does not fit is left out as a whole.
    let command = harmless(&info.command.join(" "));
    for more in [Span::styled(format!("{age:>8}"), DIM), Span::raw(format!("  {command}"))] {
        let left = width.saturating_sub(first.width());
        if left >= more.width().min(12) {
            first.spans.push(Span::styled(cut(&more.content, left), more.style));
        }
    }
    let last = cut(&harmless(&info.last_line), width.saturating_sub(6));
    [first, Line::from(vec![Span::styled("    │ ", DIM), Span::styled(last, DIM)])]
}

fn shown_bytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Keys and what they do, as many as fit.
pub(crate) fn keys(keys: &[(&str, &str)], width: usize) -> Line<'static> {
    let mut line = Line::default();
    for (key, what) in keys {
        if line.width() + key.width() + what.width() + 4 > width {
            break;
        }
        if !line.spans.is_empty() {
            line.spans.push(Span::styled(" · ", DIM));
        }
        line.spans.push(Span::styled((*key).to_owned(), KEY));
        line.spans.push(Span::styled(format!(" {what}"), DIM));
    }
    line
}

impl Attached {
    fn picture(&self, width: usize, height: usize) -> Picture {
        let mut rows = vec![Line::from(vec![
            Span::styled(cut(&harmless(&self.id), 20), STRONG),
            Span::styled(" · attached", DIM),
        ])];
        let room = height.saturating_sub(5).max(1);
        let lines = &self.lines[self.lines.len().saturating_sub(room)..];
        for line in lines {
            let text = cut(line, width.saturating_sub(2));
            rows.push(Line::from(vec![Span::styled("│ ", DIM), Span::styled(text, PLAIN)]));
        }
        let shown = harmless(&self.line);
        let shown: String = {
            let over = shown.width().saturating_sub(width.saturating_sub(4));
            shown.chars().skip(over).collect()
        };
        let cursor = (2 + shown.width(), rows.len());
        rows.push(Line::from(vec![Span::styled("» ", ACCENT), Span::raw(shown)]));
        let help = [
            ("enter", "types the line"),
            ("ctrl-]", "detach"),
            ("ctrl-c", "sent"),
            ("esc", "sent"),
        ];
        rows.push(keys(&help, width));
        Picture { rows, cursor: Some(cursor) }
    }
}

/// What a terminal would show of this, down to its last line: whatever moves, clears or hides has its way
/// there, and only letters come back.
fn screen(text: &str) -> Vec<String> {
    const COLUMNS: usize = 200;
    const MOST_TIMES: u16 = 200;
    const ROWS: usize = 60;
    let Ok(mut terminal) = avt::Terminal::new(COLUMNS, ROWS) else { return Vec::new() };
    // What was not printed to a terminal has no returns.
    let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let mut parser = avt::Parser::new();
    for c in text.chars() {
        match parser.feed(c) {
            // A few bytes could ask for more characters than there are places.
            Some(Function::Rep(times)) => terminal.execute(Function::Rep(times.min(MOST_TIMES))),
            Some(function) => terminal.execute(function),
            None => {}
        }
    }
    let shown = terminal.screen();
    let mut lines: Vec<String> =
        shown.visible_lines().map(|line| harmless(line.text().trim_end())).collect();
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(end);
    lines
}
