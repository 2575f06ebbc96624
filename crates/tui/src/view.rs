//! The state, drawn.

use crate::app::{App, Screen};
use crate::cell::{Cell, Fold, NoticeKind, shown_time, spinner};
use crate::paint::{Picture, Room};
use crate::processes::keys;
use crate::slash::COMMANDS;
use crate::text::{cut, harmless};
use crate::theme::{ACCENT, DIM, MIND};
use ratatui::text::{Line, Span};
use sandgate_protocol::AskForApproval;
use unicode_width::UnicodeWidthStr as _;

/// The most rows that the composer takes.
const COMPOSER_ROWS: usize = 8;
/// How many of the messages that wait are shown.
const SHOWN_QUEUE: usize = 3;

impl App {
    /// What is finished, as the lines that go above. Each is handed out once.
    pub(crate) fn take_finished(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        let mut at = self.printed;
        while let Some(cell) = self.cells.get_mut(at) {
            if !cell.is_over() {
                // What is being said is not interrupted; what runs beside it stays below.
                if matches!(cell, Cell::Agent { .. } | Cell::Thought { .. }) {
                    let settled = cell.take_settled(width);
                    let any = !settled.is_empty();
                    rows.extend(settled);
                    rows.extend(any.then(Line::default));
                    break;
                }
                at += 1;
                continue;
            }
            let drawn = cell.rows(width, Fold::Folded, self.now);
            // Of a message that went above piece by piece nothing may be left.
            if drawn.iter().any(|row| row.width() > 0) {
                rows.extend(drawn);
            }
            if let Some(cell) = self.cells.remove(at) {
                self.cells.insert(self.printed, cell);
            }
            self.printed += 1;
            at += 1;
        }
        rows
    }

    /// How much of the terminal is wanted: all of it for what is only looked at, and nothing of what the
    /// person has in their scrollback for anything else.
    pub(crate) fn room(&self) -> Room {
        match (&self.screen, self.questions.is_empty()) {
            (Screen::Composer, _) | (_, false) => Room::Lower,
            (Screen::Processes(_) | Screen::Transcript(_), true) => Room::Whole,
        }
    }

    /// What is drawn there.
    pub(crate) fn view(&mut self, width: usize, height: usize) -> Picture {
        let room = match self.room() {
            Room::Lower => height.saturating_sub(1).max(3),
            Room::Whole => height,
        };
        if let Some(question) = self.questions.pop_front() {
            let mut question = question;
            let mut picture =
                question.picture(width, room, self.questions.len(), &self.info.sandbox);
            self.questions.push_front(question);
            picture.rows.truncate(room);
            return picture;
        }
        match &self.screen {
            Screen::Processes(pane) => pane.picture(width, room),
            Screen::Transcript(back) => {
                let back = *back;
                let (picture, back) = self.transcript(width, room, back);
                self.screen = Screen::Transcript(back);
                picture
            }
            Screen::Composer => self.composing(width, room),
        }
    }

    fn composing(&self, width: usize, room: usize) -> Picture {
        let mut below = self.waiting(width);
        let (text, cursor) = self.composer.rows(width.saturating_sub(3));
        let most = COMPOSER_ROWS.min(room.saturating_sub(3)).max(1);
        let first = (cursor.1 + 1).saturating_sub(most);
        let top = below.len();
        for (number, row) in text.iter().enumerate().skip(first).take(most) {
            let mark = if number == 0 { "› " } else { "  " };
            below.push(Line::from(vec![Span::styled(mark, ACCENT), Span::raw(row.clone())]));
        }
        if self.composer.is_empty() {
            let text = cut(self.placeholder(), width.saturating_sub(3));
            below[top].spans.push(Span::styled(text, DIM));
        }
        let mut cursor = (cursor.0 + 2, top + cursor.1 - first);
        let left = room.saturating_sub(below.len() + 1);
        below.extend(self.composer.suggestion_rows(width, left));
        below.push(self.footer(width));
        let mut rows = self.live(width, room.saturating_sub(below.len()));
        cursor.1 += rows.len();
        rows.extend(below);
        Picture { rows, cursor: Some(cursor) }
    }

    fn placeholder(&self) -> &'static str {
        match (self.info.offline, self.busy.is_some()) {
            (_, true) => "what comes next?",
            (true, _) => "no model is set: /model · ! runs a command · $ in a prompt proposes one",
            (false, _) => "what is to be done? · ! runs a command · @ names a file · / lists more",
        }
    }

    /// What is not finished, its end if there is not room for all of it.
    fn live(&self, width: usize, room: usize) -> Vec<Line<'static>> {
        let fold = if self.unfolded { Fold::Open } else { Fold::Folded };
        let mut rows = Vec::new();
        for cell in self.cells.iter().skip(self.printed) {
            rows.extend(cell.rows(width, fold, self.now));
        }
        let over = rows.len().saturating_sub(room);
        rows.drain(..over);
        rows
    }

    /// What the model does, and what waits to be sent to it.
    fn waiting(&self, width: usize) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        if let Some((since, what)) = &self.busy {
            let took = shown_time(self.now.saturating_sub(*since));
            rows.push(Line::from(vec![
                Span::styled(format!("{} ", spinner(self.now)), ACCENT),
                Span::raw(what.clone()),
                Span::styled(format!(" · {took} · esc ends it"), DIM),
            ]));
        } else if self.running > 0 {
            rows.push(Line::from(vec![
                Span::styled(format!("{} ", spinner(self.now)), ACCENT),
                Span::styled("your command runs · esc ends it", DIM),
            ]));
        }
        for next in self.queue.iter().take(SHOWN_QUEUE) {
            let text = cut(&harmless(next.lines().next().unwrap_or("")), width.saturating_sub(8));
            rows.push(Line::styled(format!("  next: {text}"), DIM));
        }
        if self.queue.len() > SHOWN_QUEUE {
            rows.push(Line::styled(format!("  and {} more", self.queue.len() - SHOWN_QUEUE), DIM));
        }
        if !rows.is_empty() {
            rows.push(Line::default());
        }
        rows
    }

    /// Who answers, what it took, and by which policies: as much of it as fits.
    fn footer(&self, width: usize) -> Line<'static> {
        if let Some((_, hint)) = &self.hint {
            return Line::styled(format!("  {}", cut(hint, width.saturating_sub(2))), MIND);
        }
        // Some serve only one model, and it has no name.
        let name = match self.info.model.as_str() {
            _ if self.info.offline => "offline",
            "none" => &self.info.provider,
            model => model,
        };
        let mut parts = vec![cut(&harmless(name), 24)];
        if let Some((last, total, window)) = &self.usage {
            if let Some(window) = window.filter(|window| *window > 0) {
                parts.push(format!("{}% context", (last.total() * 100 / window).min(100)));
            }
            if total.total() > 0 {
                parts.push(format!("{} tokens", short(total.total())));
            }
        }
        parts.push(self.info.sandbox.split(',').next().unwrap_or_default().to_owned());
        parts.push(asking(self.info.approval).to_owned());
        parts.push(harmless(&self.info.workspace));
        let mut text = String::from("  ");
        for part in parts {
            if text.width() + part.width() + 3 > width {
                continue;
            }
            if text.width() > 2 {
                text.push_str(" · ");
            }
            text.push_str(&part);
        }
        Line::styled(text, DIM)
    }

    /// All that happened, unfolded, and how far from its end it can be looked at.
    fn transcript(&self, width: usize, room: usize, back: usize) -> (Picture, usize) {
        let all: Vec<Line<'static>> =
            self.cells.iter().flat_map(|cell| cell.rows(width, Fold::Open, self.now)).collect();
        let body = room.saturating_sub(1);
        let back = back.min(all.len().saturating_sub(body));
        let end = all.len() - back;
        let mut rows = all[end.saturating_sub(body)..end].to_vec();
        let mut foot =
            keys(&[("↑↓", "scroll"), ("g", "begin"), ("G", "end"), ("esc", "close")], width);
        foot.spans.push(Span::styled(format!("  {end}/{}", all.len()), DIM));
        rows.push(foot);
        (Picture { rows, cursor: None }, back)
    }

    /// What stands first.
    pub(crate) fn welcome(&mut self) {
        let info = &self.info;
        let model = match info.offline {
            true => "none is set; /model says how to have one".to_owned(),
            false if info.model == "none" => info.provider.clone(),
            false => format!("{} of {}", info.model, info.provider),
        };
        let trusted = if info.trusted { "" } else { ", which you have not trusted" };
        let rows = vec![
            ("model".to_owned(), model),
            ("works in".to_owned(), format!("{}{trusted}", info.workspace)),
            ("confined".to_owned(), format!("{}; asks {}", info.sandbox, asking(info.approval))),
        ];
        let title = concat!("sandgate ", env!("CARGO_PKG_VERSION")).to_owned();
        self.push(Cell::Card { title, rows });
    }

    pub(crate) fn status(&mut self) {
        let info = &self.info;
        let model = match info.offline {
            true => "none (offline); /model says how to have one".to_owned(),
            false => format!("{} of {}", info.model, info.provider),
        };
        let trusted = if info.trusted { "trusted" } else { "not trusted" };
        let mut rows = vec![
            ("model".to_owned(), model),
            ("directory".to_owned(), format!("{} ({trusted})", info.workspace)),
            ("sandbox".to_owned(), info.sandbox.clone()),
            (
                "approvals".to_owned(),
                format!("{}: {}", asking(info.approval), asking_means(info.approval)),
            ),
        ];
        if !info.missing.is_empty() {
            rows.push(("missing".to_owned(), info.missing.join("; ")));
        }
        if let Some((last, total, window)) = &self.usage {
            let window = window.map(|window| format!(" of {}", short(window))).unwrap_or_default();
            let text = format!(
                "{} in context{window}; {} read, {} written in all",
                short(last.total()),
                short(total.input_tokens),
                short(total.output_tokens)
            );
            rows.push(("tokens".to_owned(), text));
        }
        if let Some(id) = &info.conversation {
            rows.push(("go on".to_owned(), format!("sandgate resume {id}")));
        }
        self.push(Cell::Card { title: "Status".to_owned(), rows });
    }

    pub(crate) fn help(&mut self) {
        let mut rows: Vec<(String, String)> = COMMANDS
            .iter()
            .map(|one| {
                (
                    format!("/{} {}", one.name, one.argument).trim_end().to_owned(),
                    one.about.to_owned(),
                )
            })
            .collect();
        for (key, what) in [
            ("! COMMAND", "run it through the gate, as your own"),
            ("@ FILE", "name a file; tab completes"),
            ("alt-enter, ctrl-j", "a new line"),
            ("esc", "call off what is at work"),
            ("ctrl-t", "all that happened, unfolded"),
            ("ctrl-o", "unfold what is going on"),
            ("ctrl-d", "end"),
        ] {
            rows.push((key.to_owned(), what.to_owned()));
        }
        self.push(Cell::Card { title: "Commands and keys".to_owned(), rows });
    }

    pub(crate) fn approvals(&mut self) {
        let all = [
            AskForApproval::UnlessTrusted,
            AskForApproval::OnFailure,
            AskForApproval::OnRequest,
            AskForApproval::Never,
        ];
        let rows = all.map(|one| {
            let mark = if one == self.info.approval { "› " } else { "  " };
            (format!("{mark}{}", asking(one)), asking_means(one).to_owned())
        });
        let title = "When you are asked; /approvals POLICY changes it".to_owned();
        self.push(Cell::Card { title, rows: rows.to_vec() });
    }

    pub(crate) fn sandbox(&mut self) {
        let now = self.info.sandbox.split(',').next().unwrap_or_default().to_owned();
        let rows = [
            ("read-only", "read anywhere, write nowhere, no network"),
            ("workspace-write", "write in the workspace and for temporary files, no network"),
            ("danger-full-access", "no sandbox at all"),
        ]
        .map(|(name, means)| {
            let mark = if name == now { "› " } else { "  " };
            (format!("{mark}{name}"), means.to_owned())
        });
        let title = "What commands may touch; /sandbox MODE changes it".to_owned();
        self.push(Cell::Card { title, rows: rows.to_vec() });
    }

    pub(crate) fn model(&mut self) {
        let info = &self.info;
        let text = match info.offline {
            false => format!(
                "{} of {}. /model NAME changes it, /model PROVIDER:NAME also who serves it.",
                info.model, info.provider
            ),
            true => "There is no model. For this session: /model anthropic, /model openai or /model \
                     ollama:NAME. For good: sandgate config set model_provider anthropic. Keys are read \
                     from ANTHROPIC_API_KEY and OPENAI_API_KEY; docs/models.md says more."
                .to_owned(),
        };
        self.tell(NoticeKind::Told, text);
    }

    pub(crate) fn show_diff(&mut self) {
        if self.diffs.is_empty() {
            self.tell(NoticeKind::Told, "no turn of this session has changed anything");
            return;
        }
        let diff = self.diffs.join("\n");
        self.push(Cell::Diff { title: "What the turns of this session changed".to_owned(), diff });
    }
}

/// The word for an approval policy.
pub(crate) fn asking(policy: AskForApproval) -> &'static str {
    match policy {
        AskForApproval::UnlessTrusted => "untrusted",
        AskForApproval::OnFailure => "on-failure",
        AskForApproval::OnRequest => "on-request",
        AskForApproval::Never => "never",
    }
}

fn asking_means(policy: AskForApproval) -> &'static str {
    match policy {
        AskForApproval::UnlessTrusted => "before everything that is not known to be safe",
        AskForApproval::OnFailure => {
            "before what is dangerous, and when the sandbox blocked something"
        }
        AskForApproval::OnRequest => {
            "before what is dangerous or asks to leave the sandbox, and when it blocked something"
        }
        AskForApproval::Never => "never: what would need an answer is refused",
    }
}

/// A number in as few letters as people use.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1_000.0),
        _ => format!("{:.1}M", number as f64 / 1_000_000.0),
    }
}
