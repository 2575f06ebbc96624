//! A question: what is asked, what can be answered, and which keys count.
//!
//! Every row of it begins with a bar that nothing else draws, and whatever came from a model, a command or
//! a file is indented behind it. A key counts only after the question has been on the screen, with no key
//! pressed, for a moment: what was typed for something else answers nothing.

use crate::diff::{self, shown_path};
use crate::paint::Picture;
use crate::text::{cut, harmless, harmless_lines, wrap};
use crate::theme::{ACCENT, BAD, DIM, GOOD, KEY, MIND, PLAIN, STRONG};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApprovalId, ExecApprovalRequest, GrantScope, ReviewDecision,
    RiskLevel,
};
use std::path::Path;
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// How long no key may be pressed before one counts.
pub(crate) const GUARD: Duration = Duration::from_millis(300);
/// How many rows of a long command are shown at least, beside its last.
const LEAST_SCROLLED: usize = 3;
/// How many refusals are listed.
const MOST_DENIALS: usize = 8;
/// The longest sentence to the agent, in bytes.
const LONGEST_FEEDBACK: usize = 4096;

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    /// Since when it has been on the screen with no key pressed.
    quiet_since: Option<Duration>,
    page: Page,
    scroll: usize,
    /// Keys that did not count, since one did.
    thrown: bool,
    /// What is known of a command has been in a picture. It stands below the command, which may be long.
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
        // A patch begins with what is known of it.
        let seen = matches!(asked, Asked::Patch(_));
        Self { asked, quiet_since: None, page: Page::Question, scroll: 0, thrown: false, seen }
    }

    pub(crate) fn id(&self) -> &ApprovalId {
        match &self.asked {
            Asked::Exec(request) => &request.approval_id,
            Asked::Patch(request) => &request.approval_id,
        }
    }

    /// What it is about, in a few words.
    pub(crate) fn summary(&self) -> String {
        match &self.asked {
            Asked::Exec(request) => request.command_text.replace('\n', " ⏎ "),
            Asked::Patch(request) => {
                let paths = request.changes.iter().map(|change| shown_path(&change.path));
                format!("change {}", paths.collect::<Vec<_>>().join(", "))
            }
        }
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
            Asked::Exec(request) => explained_command(request, text, self.offers_session()),
            Asked::Patch(_) => text.to_owned(),
        };
        self.turn_to(Page::Explained(text));
    }

    fn offers_session(&self) -> bool {
        match &self.asked {
            Asked::Exec(request) => request.offers().session,
            Asked::Patch(request) => request.offers().session,
        }
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
        let (grant, rule) = match &self.asked {
            Asked::Exec(request) => {
                (request.grant_offer.is_some(), request.proposed_rule.is_some())
            }
            Asked::Patch(_) => (false, false),
        };
        let is_patch = matches!(self.asked, Asked::Patch(_));
        let granted = |scope| Pressed::Answer(ReviewDecision::ApprovedWithGrant { scope });
        match code {
            KeyCode::Char('y') => return Pressed::Answer(ReviewDecision::Approved),
            KeyCode::Char('s') if self.offers_session() => {
                return Pressed::Answer(ReviewDecision::ApprovedForSession);
            }
            KeyCode::Char('g') if grant => return granted(GrantScope::Call),
            KeyCode::Char('G') if grant => return granted(GrantScope::Session),
            KeyCode::Char('r') if rule => return Pressed::Answer(ReviewDecision::ApprovedWithRule),
            KeyCode::Char('a') => return Pressed::Answer(ReviewDecision::Abort),
            KeyCode::Char('n') => self.page = Page::Telling(String::new()),
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
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(10),
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
        let mut rows = vec![self.title(inner, waiting), Line::default()];
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
        self.scroll = self.scroll.min(most);
        let below = body.len().saturating_sub(self.scroll + room);
        let all = self.page == Page::Question && (below == 0 || !pinned.is_empty());
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
                    false => format!("↓ {below} more rows to see before a yes"),
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
            Asked::Exec(request) if !request.denials.is_empty() => BAD,
            _ => MIND,
        }
    }

    fn title(&self, width: usize, waiting: usize) -> Line<'static> {
        let title = match &self.asked {
            Asked::Exec(request) if !request.denials.is_empty() => "The sandbox blocked this",
            Asked::Exec(request) if request.without_sandbox => "This wants to leave the sandbox",
            Asked::Exec(_) => "May this run?",
            Asked::Patch(_) => "May these files be changed?",
        };
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
            (_, Asked::Exec(request)) => {
                return (command_rows(request, width), command_facts(request, width, sandbox));
            }
            (_, Asked::Patch(request)) => patch_body(request, width),
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
    fn choices(&self) -> Vec<(String, String)> {
        let mut choices: Vec<(&str, String)> = Vec::new();
        match &self.asked {
            Asked::Exec(request) => {
                if let Some(offer) = &request.grant_offer {
                    let summary = harmless(&offer.summary);
                    choices.push(("g", format!("only what was blocked: {summary}")));
                    choices.push(("G", "the same for the session".to_owned()));
                }
                // Whatever is kept of a yes is kept with what it means.
                let out = if request.without_sandbox { " WITHOUT the sandbox" } else { "" };
                choices.push(("y", format!("once{out}")));
                if self.offers_session() {
                    choices.push(("s", format!("session{out}")));
                }
                if let Some(rule) = &request.proposed_rule {
                    let rule = harmless(&rule.join(" "));
                    choices.push(("r", format!("always{out} (rule: {rule} …)")));
                }
            }
            Asked::Patch(request) => {
                choices.push(("y", "once".to_owned()));
                if self.offers_session() {
                    choices.push((
                        "s",
                        match &request.grant_root {
                            Some(root) => format!("session: everything in {}", shown_path(root)),
                            None => "session: these files".to_owned(),
                        },
                    ));
                }
            }
        }
        choices.push(("n", "no, and tell the agent…".to_owned()));
        choices.push(("a", "abort".to_owned()));
        let explained = matches!(self.page, Page::Explained(_));
        choices.push(("e", if explained { "back" } else { "explain" }.to_owned()));
        if matches!(self.asked, Asked::Patch(_)) {
            let shown = self.page == Page::Diff;
            choices.push(("d", if shown { "back" } else { "diff" }.to_owned()));
        }
        choices.into_iter().map(|(key, what)| (key.to_owned(), what)).collect()
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
            if !matches!(key.as_str(), "e" | "d") {
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
fn explained_command(request: &ExecApprovalRequest, policy: &str, session: bool) -> String {
    let mut lines = Vec::new();
    if request.denials.is_empty() {
        lines.push(policy.trim_end().to_owned());
    } else {
        lines.push(format!("Before it ran, your policy said:\n{}\n", policy.trim_end()));
        lines.push("It ran, and the sandbox blocked:".to_owned());
        let denials = request.denials.iter().take(MOST_DENIALS);
        lines.extend(denials.map(|denial| format!("  {denial}")));
        let hidden = request.denials.len().saturating_sub(MOST_DENIALS) as u64;
        if hidden + request.more_denials > 0 {
            lines.push(format!("  {} more", hidden + request.more_denials));
        }
    }
    lines.push(format!("\nSo you are asked now: {}", request.reason));
    let place = match request.without_sandbox {
        true => "WITHOUT the sandbox, with all your rights",
        false => "as this session's sandbox confines it",
    };
    if let Some(offer) = &request.grant_offer {
        lines.push(format!("g: it runs again in the sandbox, and may also: {}", offer.summary));
        lines.push("G: the same, and so may others until the session ends".to_owned());
    }
    lines.push(format!("y: it runs this once, {place}"));
    if session {
        lines.push(format!("s: it runs {place}, and again in this session without a question"));
    }
    if let Some(rule) = &request.proposed_rule {
        let rule = rule.join(" ");
        lines.push(format!("r: a rule is kept: what begins with {rule} runs unasked, {place}"));
    }
    lines.push("n: it does not run; the agent is told so, and goes on".to_owned());
    lines.push("a: it does not run, and the work stops".to_owned());
    lines.join("\n")
}

/// What stands before every row of a question.
pub(crate) const BAR: &str = "▌ ";

/// Choices, as many in a row as fit. One that is longer than a row is broken.
fn flow(choices: &[(String, String)], width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (key, what) in choices {
        let spans = [Span::styled(format!("[{key}] "), KEY), Span::raw(what.clone())];
        let wide: usize = spans.iter().map(Span::width).sum();
        match rows.last_mut() {
            Some(row) if row.width() + 3 + wide <= width => {
                row.spans.push(Span::raw("   "));
                row.spans.extend(spans);
            }
            _ => {
                let [key, what] = spans;
                rows.extend(wrap(&Line::from(what), width, &key, &Span::raw("    ")));
            }
        }
    }
    rows
}

/// A name and what stands for it, which may be long.
fn fact(name: &str, value: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    let lead = Span::styled(format!("{name:<9}"), DIM);
    wrap(value, width, &lead, &Span::raw(" ".repeat(9)))
}

fn command_rows(request: &ExecApprovalRequest, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for (number, line) in harmless_lines(&request.command_text).into_iter().enumerate() {
        let mark = if number == 0 { "  $ " } else { "  │ " };
        let (first, rest) = (Span::styled(mark, ACCENT), Span::styled("  ↪ ", DIM));
        rows.extend(wrap(&Line::styled(line, STRONG), width, &first, &rest));
    }
    rows
}

/// Whether there is more in a row of a command than its mark.
fn says_something(row: &Line<'_>) -> bool {
    row.spans.iter().skip(1).any(|span| !span.content.trim().is_empty())
}

fn command_facts(request: &ExecApprovalRequest, width: usize, sandbox: &str) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let cwd = Span::styled("  in ", DIM);
    rows.extend(wrap(&Line::raw(shown_path(&request.cwd)), width, &cwd, &Span::raw("     ")));
    rows.push(Line::default());
    rows.extend(why(&request.reason, width));
    if let Some(words) = &request.justification {
        for (number, line) in harmless_lines(words).into_iter().enumerate() {
            let name = if number == 0 { "it says" } else { "" };
            rows.extend(fact(name, &Line::from(Span::styled(format!("“{line}”"), PLAIN)), width));
        }
    }
    for denial in request.denials.iter().take(MOST_DENIALS) {
        rows.extend(fact("blocked", &Line::styled(harmless(&denial.to_string()), BAD), width));
    }
    let hidden = request.denials.len().saturating_sub(MOST_DENIALS) as u64 + request.more_denials;
    if hidden > 0 {
        rows.extend(fact("blocked", &Line::styled(format!("{hidden} more"), BAD), width));
    }
    if let Some(risk) = &request.risk {
        let (word, style) = match risk.risk_level {
            RiskLevel::Low => ("LOW", GOOD),
            RiskLevel::Medium => ("MEDIUM", MIND),
            RiskLevel::High => ("HIGH", BAD),
        };
        let about = harmless_lines(&risk.description).join(" ");
        let line = Line::from(vec![
            Span::styled(word, style.patch(STRONG)),
            Span::raw(format!("  {about}")),
        ]);
        rows.extend(fact("risk", &line, width));
    }
    let confined = match request.without_sandbox {
        true => Line::from(vec![
            Span::raw(sandbox.to_owned()),
            Span::styled(" · once runs it without any", MIND),
        ]),
        false => Line::raw(sandbox.to_owned()),
    };
    rows.extend(fact("sandbox", &confined, width));
    rows.extend(asker(request.agent.as_deref(), width));
    rows
}

fn patch_body(request: &ApplyPatchApprovalRequest, width: usize) -> Vec<Line<'static>> {
    let mut rows = diff::files(&request.changes, None, width);
    rows.push(Line::default());
    rows.extend(why(&request.reason, width));
    if let Some(root) = &request.grant_root {
        rows.extend(fact("opens", &Line::raw(root_text(root)), width));
    }
    rows.extend(asker(request.agent.as_deref(), width));
    rows.push(Line::default());
    for change in &request.changes {
        rows.extend(diff::unified(&change.diff, width));
    }
    rows
}

fn root_text(root: &Path) -> String {
    format!("{}, if you say session", shown_path(root))
}

fn why(reason: &str, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for (number, line) in harmless_lines(reason).into_iter().enumerate() {
        rows.extend(fact(if number == 0 { "why" } else { "" }, &Line::raw(line), width));
    }
    rows
}

fn asker(agent: Option<&str>, width: usize) -> Vec<Line<'static>> {
    match agent {
        Some(agent) => fact("asks", &Line::raw(format!("the subagent {}", harmless(agent))), width),
        None => Vec::new(),
    }
}
