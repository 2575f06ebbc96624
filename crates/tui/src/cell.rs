//! What happened, piece by piece: each is drawn while it goes on, and goes above when it is over.

use crate::diff;
use crate::markdown::{markdown, settled};
use crate::tail::Tail;
use crate::text::{cut, harmless, harmless_lines, output, wrap};
use crate::theme::{ACCENT, BAD, DIM, GOOD, MIND, PLAIN, STRONG};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sandgate_protocol::{CallId, ExecCommandEnd, PatchChange};
use std::path::PathBuf;
use std::time::Duration;

/// How many lines of an output, of a command and of other texts are shown when a cell is folded.
const FOLDED_HEAD: usize = 2;
const FOLDED_TAIL: usize = 4;
const FOLDED_COMMAND: usize = 4;
/// How many refusals are listed.
const MOST_DENIALS: usize = 4;

/// Whether all of a cell is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    Folded,
    Open,
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// The person said something.
    User(String),
    /// The model says something.
    Agent { text: String, over: bool, shown: usize },
    /// It thinks.
    Thought { text: String, over: bool },
    /// A command.
    Command(CommandCell),
    /// Files are changed.
    Patch(PatchCell),
    /// Another tool.
    Tool(ToolCell),
    /// Somebody decided.
    Decision { approves: bool, text: String },
    /// A command that did not begin, and why.
    Refused { command: String, agent: Option<String>, reason: String },
    /// Something to know.
    Notice { kind: NoticeKind, text: String },
    /// A text of ours, with a title.
    Card { title: String, rows: Vec<(String, String)> },
    /// A diff, with a title.
    Diff { title: String, diff: String },
    /// Markdown that did not come from the conversation, such as a review.
    Report(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    Told,
    Warning,
    Error,
}

#[derive(Debug, Clone)]
pub(crate) struct CommandCell {
    pub(crate) call_id: CallId,
    pub(crate) command: String,
    pub(crate) agent: Option<String>,
    /// Whether nothing confines it.
    pub(crate) unconfined: bool,
    pub(crate) output: Tail,
    pub(crate) omitted: bool,
    pub(crate) began: Duration,
    pub(crate) end: Option<CommandEnd>,
}

#[derive(Debug, Clone)]
pub(crate) enum CommandEnd {
    /// It has ended.
    Ended { took: Duration, exit_code: i32, how: How, denials: Vec<String>, more_denials: u64 },
    /// It lives on, and is no longer waited for.
    LivesOn,
    /// It serves the session, and lives as long as that does.
    Serves,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    ByItself,
    TimedOut,
    CalledOff,
}

#[derive(Debug, Clone)]
pub(crate) struct PatchCell {
    pub(crate) call_id: CallId,
    /// Where paths are named from.
    pub(crate) root: PathBuf,
    pub(crate) changes: Vec<PatchChange>,
    pub(crate) agent: Option<String>,
    pub(crate) end: Option<(bool, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct ToolCell {
    pub(crate) call_id: CallId,
    pub(crate) tool: String,
    pub(crate) input: String,
    pub(crate) agent: Option<String>,
    pub(crate) end: Option<(bool, String)>,
}

impl CommandCell {
    pub(crate) fn ended(&mut self, end: &ExecCommandEnd) {
        let output = &end.output;
        // All that there is of it: on the way some may have been left out.
        let mut all = Tail::default();
        all.push(output.aggregated_output.text.as_bytes());
        if !output.aggregated_output.text.is_empty() {
            self.output = all;
        }
        let denials = output.denials.evidence.iter().take(MOST_DENIALS);
        let hidden = output.denials.evidence.len().saturating_sub(MOST_DENIALS) as u64;
        self.end = Some(CommandEnd::Ended {
            took: output.duration,
            exit_code: output.exit_code,
            how: match (output.timed_out, output.cancelled) {
                (true, _) => How::TimedOut,
                (_, true) => How::CalledOff,
                _ => How::ByItself,
            },
            denials: denials.map(ToString::to_string).collect(),
            more_denials: output.denials.more + hidden,
        });
    }
}

/// How long something took, in the unit that people would use.
pub(crate) fn shown_time(took: Duration) -> String {
    match took.as_secs() {
        0..60 => format!("{:.1} s", took.as_secs_f32()),
        60..3_600 => format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

impl Cell {
    /// Whether it will not change any more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Agent { over, .. } | Self::Thought { over, .. } => *over,
            Self::Command(cell) => cell.end.is_some(),
            Self::Patch(cell) => cell.end.is_some(),
            Self::Tool(cell) => cell.end.is_some(),
            _ => true,
        }
    }

    /// Of a message that is still being said, what will stay as it is: it can go above.
    pub(crate) fn take_settled(&mut self, width: usize) -> Vec<Line<'static>> {
        let Self::Agent { text, shown, .. } = self else { return Vec::new() };
        let until = settled(text);
        if until <= *shown {
            return Vec::new();
        }
        let rows = said(&text[*shown..until], width, *shown == 0);
        *shown = until;
        rows
    }

    /// Draws it.
    pub(crate) fn rows(&self, width: usize, fold: Fold, now: Duration) -> Vec<Line<'static>> {
        let mut rows = match self {
            Self::User(text) => {
                let mut rows = Vec::new();
                for (number, line) in harmless_lines(text).into_iter().enumerate() {
                    let mark = if number == 0 { "› " } else { "  " };
                    let (first, rest) = (Span::styled(mark, ACCENT), Span::raw("  "));
                    rows.extend(wrap(&Line::styled(line, STRONG), width, &first, &rest));
                }
                rows
            }
            Self::Agent { text, shown, .. } => {
                let start = if fold == Fold::Open { 0 } else { *shown };
                said(&text[start..], width, start == 0)
            }
            Self::Thought { text, .. } => {
                let lead = Span::styled("  ┊ ", DIM);
                let lines = harmless_lines(text.trim());
                let skipped = match fold {
                    Fold::Folded => lines.len().saturating_sub(6),
                    Fold::Open => 0,
                };
                let shown = lines.into_iter().skip(skipped);
                shown.flat_map(|line| wrap(&Line::styled(line, DIM), width, &lead, &lead)).collect()
            }
            Self::Command(cell) => command_rows(cell, width, fold, now),
            Self::Patch(cell) => patch_rows(cell, width, fold),
            Self::Tool(cell) => tool_rows(cell, width, fold),
            Self::Decision { approves, text } => {
                let (mark, style) = if *approves { ("✓ ", GOOD) } else { ("✗ ", BAD) };
                let lead = Span::styled(mark, style);
                let text = match fold {
                    // What it was about has been on the screen, and may be a whole script.
                    Fold::Folded => cut(&harmless(text), width.saturating_sub(2)),
                    Fold::Open => harmless(text),
                };
                wrap(&Line::styled(text, DIM), width, &lead, &Span::raw("  "))
            }
            Self::Refused { command, agent, reason } => {
                let mut rows = called_rows(command, agent.as_deref(), width, fold);
                rows.extend(notice_rows(NoticeKind::Error, reason, width));
                rows
            }
            Self::Notice { kind, text } => notice_rows(*kind, text, width),
            Self::Card { title, rows } => card_rows(title, rows, width),
            Self::Diff { title, diff } => {
                let mut rows = vec![titled(title)];
                rows.extend(diff::unified(diff, width));
                rows
            }
            Self::Report(text) => said(text, width, true),
        };
        rows.push(Line::default());
        rows
    }
}

fn titled(title: &str) -> Line<'static> {
    Line::from(vec![Span::styled("• ", ACCENT), Span::styled(harmless(title), STRONG)])
}

fn said(text: &str, width: usize, begins: bool) -> Vec<Line<'static>> {
    let rows = markdown(text, width.saturating_sub(2));
    let mut shown = Vec::with_capacity(rows.len());
    for (number, row) in rows.into_iter().enumerate() {
        let mark =
            if number == 0 && begins { Span::styled("● ", ACCENT) } else { Span::raw("  ") };
        let mut spans = vec![mark];
        spans.extend(row.spans);
        shown.push(Line::from(spans));
    }
    if !shown.is_empty() {
        return shown;
    }
    Vec::new()
}

fn notice_rows(kind: NoticeKind, text: &str, width: usize) -> Vec<Line<'static>> {
    let (word, style) = match kind {
        NoticeKind::Told => ("· ", DIM),
        NoticeKind::Warning => ("! warning: ", MIND),
        NoticeKind::Error => ("✗ ", BAD),
    };
    let body = if kind == NoticeKind::Told { DIM } else { PLAIN };
    let mut rows = Vec::new();
    for (number, line) in harmless_lines(text).into_iter().enumerate() {
        let lead = if number == 0 { Span::styled(word, style) } else { Span::raw("  ") };
        rows.extend(wrap(&Line::styled(line, body), width, &lead, &Span::raw("  ")));
    }
    rows
}

fn card_rows(title: &str, facts: &[(String, String)], width: usize) -> Vec<Line<'static>> {
    let mark = Span::styled("• ", ACCENT);
    let mut rows = wrap(&Line::styled(harmless(title), STRONG), width, &mark, &Span::raw("  "));
    let widest = facts.iter().map(|(name, _)| Span::raw(name.as_str()).width()).max().unwrap_or(0);
    let widest = widest.min(width / 2);
    for (name, value) in facts {
        let name = cut(&harmless(name), widest);
        let room = widest - Span::raw(name.as_str()).width();
        let lead = format!("  {name}{}  ", " ".repeat(room));
        let rest = " ".repeat(Span::raw(lead.as_str()).width());
        for (number, line) in harmless_lines(value).into_iter().enumerate() {
            let first = if number == 0 { lead.clone() } else { rest.clone() };
            let (first, rest) = (Span::styled(first, DIM), Span::raw(rest.clone()));
            rows.extend(wrap(&Line::raw(line), width, &first, &rest));
        }
    }
    rows
}

/// A line that says whose command or call it is.
fn mark(agent: Option<&str>, mark: &'static str, style: Style) -> Span<'static> {
    match agent {
        Some(agent) => Span::styled(format!("{mark}[{}] ", cut(&harmless(agent), 24)), style),
        None => Span::styled(mark, style),
    }
}

/// A command as it was called.
fn called_rows(command: &str, agent: Option<&str>, width: usize, fold: Fold) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let lines = harmless_lines(command);
    let shown = if fold == Fold::Open { lines.len() } else { FOLDED_COMMAND };
    for (number, line) in lines.iter().enumerate().take(shown) {
        let first = match number {
            0 => mark(agent, "$ ", ACCENT),
            _ => Span::styled("  ", DIM),
        };
        rows.extend(wrap(&Line::styled(line.clone(), STRONG), width, &first, &Span::raw("    ")));
    }
    if lines.len() > shown {
        rows.push(Line::styled(format!("  … {} more lines of it", lines.len() - shown), DIM));
    }
    rows
}

fn command_rows(cell: &CommandCell, width: usize, fold: Fold, now: Duration) -> Vec<Line<'static>> {
    let mut rows = called_rows(&cell.command, cell.agent.as_deref(), width, fold);
    rows.extend(output_rows(&cell.output, cell.omitted, width, fold));
    rows.push(status_row(cell, now));
    if let Some(CommandEnd::Ended { denials, more_denials, .. }) = &cell.end {
        for denial in denials {
            let lead = Span::styled("  ⊘ blocked: ", BAD);
            rows.extend(wrap(&Line::raw(harmless(denial)), width, &lead, &Span::raw("    ")));
        }
        if *more_denials > 0 {
            rows.push(Line::styled(format!("  ⊘ blocked: {more_denials} more"), BAD));
        }
    }
    rows
}

fn output_rows(tail: &Tail, omitted: bool, width: usize, fold: Fold) -> Vec<Line<'static>> {
    let text = tail.text();
    if text.is_empty() {
        return Vec::new();
    }
    let lead = Span::styled("  │ ", DIM);
    let lines = output(&text);
    let (head, end) = match fold {
        Fold::Open => (lines.len(), 0),
        Fold::Folded if tail.gone() > 0 => (0, FOLDED_TAIL),
        Fold::Folded if lines.len() <= FOLDED_HEAD + FOLDED_TAIL + 1 => (lines.len(), 0),
        Fold::Folded => (FOLDED_HEAD, FOLDED_TAIL),
    };
    let mut rows = Vec::new();
    let mut draw = |line: &Line<'static>| {
        let line = Line::from(line.spans.clone()).style(DIM);
        let wrapped = wrap(&line, width, &lead, &lead);
        // A line may be as long as it likes; folded, its beginning is shown.
        let shown = if fold == Fold::Open { wrapped.len() } else { 2 };
        let hidden = wrapped.len().saturating_sub(shown);
        rows.extend(wrapped.into_iter().take(shown));
        if hidden > 0 {
            rows.push(Line::styled(format!("  │ … {hidden} more rows of this line"), DIM));
        }
    };
    if fold == Fold::Open && tail.gone() > 0 {
        draw(&Line::raw(format!("… {} lines before this are not kept here", tail.gone())));
    }
    lines.iter().take(head).for_each(&mut draw);
    let hidden = (lines.len() - head).saturating_sub(end) as u64;
    if fold == Fold::Folded && hidden + tail.gone() > 0 {
        let count = hidden + tail.gone();
        draw(&Line::raw(format!("… {count} lines · ctrl-t shows more")));
    }
    lines.iter().skip(head.max(lines.len().saturating_sub(end))).for_each(&mut draw);
    if omitted {
        draw(&Line::raw("… it prints more than is shown as it comes"));
    }
    rows
}

fn status_row(cell: &CommandCell, now: Duration) -> Line<'static> {
    let mut spans = vec![Span::raw("  ")];
    match &cell.end {
        None => {
            let took = now.saturating_sub(cell.began);
            spans.push(Span::styled(spinner(now), ACCENT));
            spans.push(Span::styled(format!(" {}", shown_time(took)), DIM));
        }
        Some(CommandEnd::Serves) => spans.push(Span::styled("↻ serves this session", ACCENT)),
        Some(CommandEnd::LivesOn) => {
            spans.push(Span::styled("↻ goes on in the background", ACCENT));
            spans.push(Span::styled(" · /processes", DIM));
        }
        Some(CommandEnd::Ended { took, exit_code, how, .. }) => {
            let (word, style) = match (how, exit_code) {
                (How::TimedOut, _) => ("✗ its time was over".to_owned(), BAD),
                (How::CalledOff, _) => ("✗ called off".to_owned(), BAD),
                (How::ByItself, 0) => ("✓ ok".to_owned(), GOOD),
                (How::ByItself, code) => (format!("✗ exit code {code}"), BAD),
            };
            spans.push(Span::styled(word, style));
            spans.push(Span::styled(format!(" in {}", shown_time(*took)), DIM));
        }
    }
    if cell.unconfined {
        spans.push(Span::styled(" · without a sandbox", MIND));
    }
    Line::from(spans)
}

/// Something that moves as time goes by.
pub(crate) fn spinner(now: Duration) -> &'static str {
    const FRAMES: [&str; 8] = ["⠁", "⠃", "⠇", "⡇", "⣇", "⣧", "⣷", "⣿"];
    let number = usize::try_from(now.as_millis() / 120).unwrap_or(0);
    FRAMES[number % FRAMES.len()]
}

fn patch_rows(cell: &PatchCell, width: usize, fold: Fold) -> Vec<Line<'static>> {
    let (word, style) = match &cell.end {
        None => ("changes files", ACCENT),
        Some((true, _)) => ("changed files", GOOD),
        Some((false, _)) => ("changed nothing", BAD),
    };
    let mut rows = vec![Line::from(vec![
        mark(cell.agent.as_deref(), "± ", style),
        Span::styled(word, STRONG),
    ])];
    for row in diff::files(&cell.changes, Some(&cell.root), width.saturating_sub(2)) {
        let mut spans = vec![Span::raw("  ")];
        spans.extend(row.spans);
        rows.push(Line::from(spans));
    }
    if let Some((false, why)) = &cell.end {
        let lead = Span::styled("  ✗ ", BAD);
        for line in harmless_lines(why).into_iter().take(4) {
            rows.extend(wrap(&Line::raw(line), width, &lead, &Span::raw("    ")));
        }
    }
    if fold == Fold::Open {
        for change in &cell.changes {
            rows.extend(diff::unified(&change.diff, width));
        }
    }
    rows
}

fn tool_rows(cell: &ToolCell, width: usize, fold: Fold) -> Vec<Line<'static>> {
    let (sign, style) = match &cell.end {
        None => ("◦ ", ACCENT),
        Some((true, _)) => ("✓ ", GOOD),
        Some((false, _)) => ("✗ ", BAD),
    };
    let first = mark(cell.agent.as_deref(), sign, style);
    let input = harmless(&cell.input);
    let line = Line::from(vec![
        Span::styled(harmless(&cell.tool), STRONG),
        Span::styled(format!(" {input}"), DIM),
    ]);
    let mut rows = wrap(&line, width, &first, &Span::raw("    "));
    if fold == Fold::Folded && rows.len() > 2 {
        let hidden = rows.len() - 2;
        rows.truncate(2);
        rows.push(Line::styled(format!("    … {hidden} more rows of it"), DIM));
    }
    let lead = Span::styled("  │ ", DIM);
    if let Some((success, text)) = &cell.end {
        let lines = harmless_lines(text);
        let shown = match (fold, success) {
            (Fold::Open, _) => lines.len(),
            (Fold::Folded, true) => 0,
            (Fold::Folded, false) => 3,
        };
        for line in lines.into_iter().take(shown) {
            rows.extend(wrap(&Line::styled(line, DIM), width, &lead, &lead));
        }
    }
    rows
}
