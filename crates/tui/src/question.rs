//! A question: what is asked, what can be answered, and which keys count.
//!
//! Every row of it begins with a bar that nothing else draws, and whatever came from a model, a command or
//! a file is indented behind it. A key counts only after the question has been on the screen, with no key
//! pressed, for a moment: what was typed for something else answers nothing.

use crate::diff;
use crate::paint::Picture;
use crate::text::{cut, harmless, harmless_lines, wrap};
use crate::theme::{ACCENT, BAD, DIM, GOOD, KEY, MIND, PLAIN, STRONG};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApprovalId, Choice, ExecApprovalRequest, Fact, FactKind,
    PatchChange, ReviewDecision, ShownQuestion,
};
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// How long no key may be pressed before one counts.
pub(crate) const GUARD: Duration = Duration::from_millis(300);
/// How many rows of a long command are shown at least, beside its last.
const LEAST_SCROLLED: usize = 3;
/// From this width on there is room for a row below the title, and for a column of labels of any length.
const ROOMY: usize = 60;
/// The longest sentence to the agent, in bytes.
const LONGEST_FEEDBACK: usize = 4096;

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    /// The same in words.
    words: ShownQuestion,
    /// Since when it has been on the screen with no key pressed.
    quiet_since: Option<Duration>,
    page: Page,
    scroll: usize,
    /// How many rows that scroll are on the screen.
    room: usize,
    /// Keys that did not count, since one did.
    thrown: bool,
    /// What has to be seen has been in pictures: what is known of a command, which stands below it and may be far
    /// away, and of a patch that, and all its files.
    seen: bool,
}

#[derive(Debug)]
pub(crate) enum Asked {
    Exec(Box<ExecApprovalRequest>),
    Patch(Box<ApplyPatchApprovalRequest>),
}

/// What of it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Question,
    /// Why it is asked, at length.
    Explained(String),
    /// What would change.
    Diff,
    /// The person writes what the agent is told.
    Telling(String),
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pressed {
    Nothing,
    Answer(ReviewDecision),
    /// More is to be found out about the command.
    Explain,
}

impl Question {
    pub(crate) fn new(asked: Asked) -> Self {
        let words = match &asked {
            Asked::Exec(request) => request.shown(),
            Asked::Patch(request) => request.shown(),
        };
        Self {
            asked,
            words,
            quiet_since: None,
            page: Page::Question,
            scroll: 0,
            room: 0,
            thrown: false,
            seen: false,
        }
    }

    pub(crate) fn id(&self) -> &ApprovalId {
        match &self.asked {
            Asked::Exec(request) => &request.approval_id,
            Asked::Patch(request) => &request.approval_id,
        }
    }

    /// What it is about, in a few words.
    pub(crate) fn summary(&self) -> &str {
        &self.words.summary
    }

    /// It is on the screen.
    pub(crate) fn drawn(&mut self, at: Duration) {
        self.quiet_since.get_or_insert(at);
    }

    /// It is not on the screen any longer, and has to be seen anew.
    pub(crate) fn hidden(&mut self) {
        self.quiet_since = None;
    }

    /// What the policy says about the command, or all that there is to say about a patch.
    pub(crate) fn explained(&mut self, text: &str) {
        let text = match &self.asked {
            Asked::Exec(_) => explained_command(&self.words, text),
            Asked::Patch(_) => text.to_owned(),
        };
        self.turn_to(Page::Explained(text));
    }

    /// Takes a key that was pressed at a moment.
    pub(crate) fn key(&mut self, key: KeyEvent, at: Duration) -> Pressed {
        match self.quiet_since {
            Some(since) if at >= since.saturating_add(GUARD) => {}
            since => {
                // It was meant for something else. What follows it may be, too.
                self.quiet_since = since.map(|since| since.max(at));
                self.thrown = true;
                return Pressed::Nothing;
            }
        }
        self.thrown = false;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Pressed::Answer(ReviewDecision::Abort);
        }
        if let Page::Telling(text) = &mut self.page {
            match key.code {
                KeyCode::Esc => self.page = Page::Question,
                KeyCode::Enter => {
                    let text = text.trim().to_owned();
                    let feedback = Some(text).filter(|text| !text.is_empty());
                    return Pressed::Answer(ReviewDecision::Denied { feedback });
                }
                KeyCode::Backspace => {
                    text.pop();
                }
                KeyCode::Char('u') if control => text.clear(),
                KeyCode::Char(c) if !control && text.len() < LONGEST_FEEDBACK => text.push(c),
                _ => {}
            }
            return Pressed::Nothing;
        }
        if control || key.modifiers.contains(KeyModifiers::ALT) {
            return Pressed::Nothing;
        }
        match self.choice(key.code) {
            Pressed::Answer(decision) if decision.approves() && !self.seen => {
                self.page = Page::Question;
                Pressed::Nothing
            }
            pressed => pressed,
        }
    }

    fn choice(&mut self, code: KeyCode) -> Pressed {
        let is_patch = matches!(self.asked, Asked::Patch(_));
        // No row is passed over.
        let page = self.room.clamp(1, 10);
        if let KeyCode::Char(letter) = code
            && let Some(choice) = self.words.by_key(letter.encode_utf8(&mut [0; 4]))
        {
            match &choice.answer {
                ReviewDecision::Denied { .. } => self.page = Page::Telling(String::new()),
                answer => return Pressed::Answer(answer.clone()),
            }
            return Pressed::Nothing;
        }
        match code {
            KeyCode::Char('e') => match self.page {
                Page::Explained(_) => self.turn_to(Page::Question),
                _ => return Pressed::Explain,
            },
            KeyCode::Char('d') if is_patch => match self.page {
                Page::Diff => self.turn_to(Page::Question),
                _ => self.turn_to(Page::Diff),
            },
            KeyCode::Esc => self.turn_to(Page::Question),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => {
                self.scroll = self.scroll.saturating_add(page);
            }
            _ => {}
        }
        Pressed::Nothing
    }

    fn turn_to(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    /// Draws it, in no more than this room. `waiting` is how many further ones wait; `sandbox` is what
    /// confines commands.
    pub(crate) fn picture(
        &mut self,
        width: usize,
        height: usize,
        waiting: usize,
        sandbox: &str,
    ) -> Picture {
        let inner = width.saturating_sub(BAR.width()).max(8);
        let mut rows = vec![self.title(inner, waiting)];
        if inner >= ROOMY {
            rows.push(Line::default());
        }
        let (mut body, mut facts) = self.body(inner, sandbox);
        let mut foot = self.foot(inner);
        if foot.len() + 5 > height && !matches!(self.page, Page::Telling(_)) {
            // There is no room for words; the page of e has it.
            let keys: Vec<String> =
                self.choices().into_iter().map(|(key, _)| format!("[{key}]")).collect();
            let text = format!("{} e: explain", keys.join(""));
            foot = vec![Line::styled(cut(&text, inner), KEY)];
        }
        let mut room = height.saturating_sub(rows.len() + foot.len() + 2).max(1);
        let mut pinned = Vec::new();
        let is_long = !facts.is_empty() && body.len() + facts.len() > room;
        if is_long && facts.len() + LEAST_SCROLLED + 2 <= room {
            // The command scrolls by itself, above its last line and what is known of it.
            let last = body.iter().rposition(says_something);
            pinned.extend(last.map(|last| body.remove(last)));
            pinned.append(&mut facts);
            pinned.push(Line::default());
            room -= pinned.len();
        }
        body.append(&mut facts);
        let most = body.len().saturating_sub(room);
        self.room = room;
        self.scroll = self.scroll.min(most);
        let below = body.len().saturating_sub(self.scroll + room);
        // Of a patch what changes in its files may be looked at or not.
        let unseen = match &self.asked {
            Asked::Exec(_) => below,
            Asked::Patch(request) => {
                let must = patch_head(&self.words, &request.changes, inner).len();
                must.saturating_sub(self.scroll + room)
            }
        };
        let all = self.page == Page::Question && (unseen == 0 || !pinned.is_empty());
        if all && !self.seen {
            // It has to be seen before a key counts.
            self.seen = true;
            self.hidden();
        }
        rows.extend(body.into_iter().skip(self.scroll).take(room));
        rows.push(match most > 0 {
            true => {
                let text = match self.seen || self.page != Page::Question {
                    true => format!("↑ {} · ↓ {below} more rows: arrows, page keys", self.scroll),
                    false => format!("↓ {unseen} more rows to see before a yes"),
                };
                Line::styled(cut(&text, inner), MIND)
            }
            false => Line::default(),
        });
        rows.append(&mut pinned);
        let cursor = match &self.page {
            // The cursor stands where the sentence ends.
            Page::Telling(_) => {
                foot.last().map(|last| (BAR.width() + last.width(), rows.len() + foot.len() - 1))
            }
            _ => None,
        };
        rows.extend(foot);
        let barred = rows.into_iter().map(|row| {
            let mut spans = vec![Span::styled(BAR, self.bar_style())];
            spans.extend(row.spans.into_iter().map(|span| span.patch_style(row.style)));
            Line::from(spans)
        });
        Picture {
            rows: barred.take(height).collect(),
            cursor: cursor.filter(|(_, row)| *row < height),
        }
    }

    fn bar_style(&self) -> Style {
        match &self.asked {
            Asked::Exec(request) if request.was_blocked() => BAD,
            _ => MIND,
        }
    }

    fn title(&self, width: usize, waiting: usize) -> Line<'static> {
        let title = self.words.title;
        let mut spans = vec![Span::styled(title, self.bar_style().patch(STRONG))];
        if waiting > 0 {
            let count = format!("1 of {}", waiting + 1);
            let room = width.saturating_sub(title.width() + count.width()).max(1);
            spans.push(Span::styled(format!("{}{count}", " ".repeat(room)), DIM));
        }
        Line::from(spans)
    }

    /// What is shown, and what of a command's question is shown below it however long it is.
    fn body(&self, width: usize, sandbox: &str) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
        let rows = match (&self.page, &self.asked) {
            (Page::Explained(text), _) => {
                let (first, rest) = (Span::raw(""), Span::raw("      "));
                let lines = harmless_lines(text.trim_end()).into_iter();
                lines.flat_map(|line| wrap(&Line::raw(line), width, &first, &rest)).collect()
            }
            (Page::Diff, Asked::Patch(request)) => {
                let mut rows = Vec::new();
                for change in &request.changes {
                    rows.extend(diff::files(std::slice::from_ref(change), None, width));
                    rows.extend(diff::unified(&change.diff, width));
                }
                rows
            }
            (_, Asked::Exec(_)) => {
                return (
                    command_rows(&self.words, width),
                    command_facts(&self.words, width, sandbox),
                );
            }
            (_, Asked::Patch(request)) => patch_body(&self.words, &request.changes, width),
        };
        (rows, Vec::new())
    }

    fn foot(&self, width: usize) -> Vec<Line<'static>> {
        if let Page::Telling(text) = &self.page {
            let said = format!("{text} ");
            let lead = Span::styled("Tell the agent: ", STRONG);
            let mut rows =
                vec![Line::styled(cut("enter sends the no · esc goes back", width), DIM)];
            let line = wrap(&Line::raw(harmless(said.trim_end())), width, &lead, &Span::raw("  "));
            rows.extend(line.into_iter().rev().take(3).rev());
            return rows;
        }
        let mut rows = flow(&self.choices(), width);
        if self.thrown {
            rows.push(Line::styled(cut("take your hands off the keys for a moment", width), MIND));
        }
        rows
    }

    /// What can be pressed, and what it means.
    fn choices(&self) -> Vec<(&'static str, String)> {
        let label = |choice: &Choice| match choice.answer {
            // There follows a line to write in.
            ReviewDecision::Denied { .. } => format!("{}…", choice.label),
            _ => harmless(&choice.label),
        };
        let offered = self.words.choices.iter();
        let mut choices: Vec<_> = offered.map(|choice| (choice.key, label(choice))).collect();
        let explained = matches!(self.page, Page::Explained(_));
        choices.push(("e", if explained { "back" } else { "explain" }.to_owned()));
        if matches!(self.asked, Asked::Patch(_)) {
            let shown = self.page == Page::Diff;
            choices.push(("d", if shown { "back" } else { "diff" }.to_owned()));
        }
        choices
    }

    /// The question for a screen reader, and for anything else that reads lines.
    pub(crate) fn plain(&self, sandbox: &str) -> Vec<String> {
        let width = 100;
        let mut rows = vec![self.title(width, 0)];
        let (body, facts) = self.body(width, sandbox);
        rows.extend(body.into_iter().chain(facts));
        let text =
            |row: &Line<'_>| row.spans.iter().map(|span| span.content.as_ref()).collect::<String>();
        let mut lines: Vec<String> =
            rows.iter().map(|row| format!("  {}", text(row)).trim_end().to_owned()).collect();
        for (key, what) in self.choices() {
            if !matches!(key, "e" | "d") {
                lines.push(format!("  {key}: {what}"));
            }
        }
        lines
    }

    /// Answers as a line: the letter, and after a no what the agent is told.
    pub(crate) fn line(&mut self, text: &str) -> Option<ReviewDecision> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        if matches!(word, "n" | "no") {
            let feedback = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
            return Some(ReviewDecision::Denied { feedback });
        }
        let mut letters = word.chars();
        let (Some(letter), None, true) = (letters.next(), letters.next(), rest.is_empty()) else {
            return None;
        };
        match self.choice(KeyCode::Char(letter)) {
            Pressed::Answer(decision) => Some(decision),
            _ => None,
        }
    }
}

/// What led to a question, and what each answer to it does.
fn explained_command(question: &ShownQuestion, policy: &str) -> String {
    let texts = |kind| {
        let facts = question.facts.iter().filter(move |fact| fact.kind == kind);
        facts.map(|fact| fact.text.as_str())
    };
    let mut lines = Vec::new();
    if texts(FactKind::Blocked).next().is_none() {
        lines.push(policy.trim_end().to_owned());
    } else {
        lines.push(format!("Before it ran, your policy said:\n{}\n", policy.trim_end()));
        lines.push("It ran, and the sandbox blocked:".to_owned());
        lines.extend(texts(FactKind::Blocked).map(|denial| format!("  {denial}")));
    }
    lines
        .extend(texts(FactKind::Because).map(|reason| format!("\nSo you are asked now: {reason}")));
    lines
        .extend(question.choices.iter().map(|choice| format!("{}: {}", choice.key, choice.effect)));
    lines.join("\n")
}

/// What stands before every row of a question.
pub(crate) const BAR: &str = "▌ ";

/// Choices, as many in a row as fit. One that is longer than a row is broken, and behind one that may end in
/// words of a model there is no other.
fn flow(choices: &[(&str, String)], width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<Line<'static>> = Vec::new();
    let mut ends_in_ours = false;
    for (key, what) in choices {
        let spans = [Span::styled(format!("[{key}] "), KEY), Span::raw(what.clone())];
        let wide: usize = spans.iter().map(Span::width).sum();
        match rows.last_mut() {
            Some(row) if ends_in_ours && row.width() + 3 + wide <= width => {
                row.spans.push(Span::raw("   "));
                row.spans.extend(spans);
            }
            _ => {
                let [key, what] = spans;
                rows.extend(wrap(&Line::from(what), width, &key, &Span::raw("    ")));
            }
        }
        ends_in_ours = !matches!(*key, "g" | "G" | "s" | "r");
    }
    rows
}

/// What is known, each behind its label, with the words of a model in quotation marks. What a yes does is not
/// among it: the answers stand just below, and the page of e says what each of them does.
fn fact_rows(known: &[Fact], sandbox: Option<&str>, width: usize) -> Vec<Line<'static>> {
    // The answers say what a yes does, and the picture how much there is to look at.
    let said = [FactKind::Yes, FactKind::Length];
    let known = || known.iter().filter(|fact| !said.contains(&fact.kind));
    let least = "sandbox".width();
    let longest = known().map(|fact| fact.label.width()).max().unwrap_or(0).max(least);
    // Where there is little room, a long label takes none from the others.
    let column = if width < ROOMY { least } else { longest };
    let row = |label: &str, style, value: &Line<'static>| {
        let lead = Span::styled(format!("{label:<column$}  "), style);
        wrap(value, width, &lead, &Span::raw(" ".repeat(column + 2)))
    };
    let mut rows = Vec::new();
    for fact in known() {
        let (label_style, style) = match fact.kind {
            FactKind::Blocked => (DIM, BAD),
            FactKind::HighRisk => (BAD.patch(STRONG), PLAIN),
            FactKind::MediumRisk => (MIND.patch(STRONG), PLAIN),
            FactKind::LowRisk => (GOOD.patch(STRONG), PLAIN),
            _ => (DIM, PLAIN),
        };
        for (number, line) in harmless_lines(&fact.text).into_iter().enumerate() {
            let line = match fact.kind.is_said_by_model() {
                true => format!("“{line}”"),
                false => line,
            };
            let label = if number == 0 { fact.label } else { "" };
            rows.extend(row(label, label_style, &Line::styled(line, style)));
        }
    }
    rows.extend(
        sandbox.into_iter().flat_map(|sandbox| row("sandbox", DIM, &Line::raw(sandbox.to_owned()))),
    );
    rows
}

fn command_rows(question: &ShownQuestion, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for (number, line) in question.subject.iter().enumerate() {
        let mark = if number == 0 { "  $ " } else { "  │ " };
        let (first, rest) = (Span::styled(mark, ACCENT), Span::styled("  ↪ ", DIM));
        rows.extend(wrap(&Line::styled(harmless(line), STRONG), width, &first, &rest));
    }
    rows
}

/// Whether there is more in a row of a command than its mark.
fn says_something(row: &Line<'_>) -> bool {
    row.spans.iter().skip(1).any(|span| !span.content.trim().is_empty())
}

fn command_facts(question: &ShownQuestion, width: usize, sandbox: &str) -> Vec<Line<'static>> {
    let place = harmless(question.place.as_deref().unwrap_or_default());
    let (first, rest) = (Span::styled("  in ", DIM), Span::raw("     "));
    let mut rows = wrap(&Line::raw(place), width, &first, &rest);
    rows.push(Line::default());
    rows.extend(fact_rows(&question.facts, Some(sandbox), width));
    rows
}

/// The files of a patch, and what is known of it.
fn patch_head(
    question: &ShownQuestion,
    changes: &[PatchChange],
    width: usize,
) -> Vec<Line<'static>> {
    let mut rows = diff::files(changes, None, width);
    rows.push(Line::default());
    rows.extend(fact_rows(&question.facts, None, width));
    rows
}

fn patch_body(
    question: &ShownQuestion,
    changes: &[PatchChange],
    width: usize,
) -> Vec<Line<'static>> {
    let mut rows = patch_head(question, changes, width);
    rows.push(Line::default());
    for change in changes {
        rows.extend(diff::unified(&change.diff, width));
    }
    rows
}
