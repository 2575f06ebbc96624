//! What a model says, as lines.

use crate::highlight::code;
use crate::text::{harmless, wrap};
use crate::theme::{ACCENT, DIM, EMPHASIS, MIND, PLAIN, STRONG};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// The deepest nesting that is drawn as such.
const DEEPEST: usize = 8;

/// Draws markdown, no wider than it may be.
pub(crate) fn markdown(source: &str, width: usize) -> Vec<Line<'static>> {
    let mut page = Page { width: width.max(8), ..Page::default() };
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(source, options) {
        page.event(event);
    }
    page.end_paragraph();
    while page
        .rows
        .last()
        .is_some_and(|row| row.spans.iter().all(|span| span.content.trim().is_empty()))
    {
        page.rows.pop();
    }
    page.rows
}

/// How much of a text that still grows will look as it looks now: up to the last empty line that is not
/// inside of a block of code.
pub(crate) fn settled(source: &str) -> usize {
    let (mut settled, mut at, mut fence) = (0, 0, None);
    for line in source.split_inclusive('\n') {
        at += line.len();
        let trimmed = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if trimmed.is_empty() && line.ends_with('\n') => settled = at,
            _ => {}
        }
    }
    settled
}

#[derive(Default)]
struct Page {
    width: usize,
    rows: Vec<Line<'static>>,
    /// What stands in the paragraph that is being read.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    lists: Vec<Option<u64>>,
    /// What stands before the first row of the next paragraph.
    bullet: Option<String>,
    quotes: usize,
    code: Option<(String, String)>,
    link: Option<String>,
    cells: Option<Vec<String>>,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, PLAIN),
            Event::Code(text) => self.text(&text, ACCENT),
            // What would be code to a browser is text to us.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text, DIM),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, EMPHASIS),
            Event::FootnoteReference(text) => self.text(&format!("[{text}]"), DIM),
            Event::SoftBreak => self.text(" ", PLAIN),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.end_paragraph();
                self.rows.push(Line::styled("─".repeat(self.width.min(40)), DIM));
                self.space();
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }, PLAIN),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.styles.push(STRONG),
            Tag::Strong => self.styles.push(STRONG),
            Tag::Emphasis => self.styles.push(EMPHASIS),
            Tag::Strikethrough => {
                self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.bullet = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                });
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.styles.push(Style::new().add_modifier(Modifier::UNDERLINED));
            }
            Tag::TableHead | Tag::TableRow => self.cells = Some(Vec::new()),
            Tag::TableCell => {
                if let Some(cells) = &mut self.cells {
                    cells.push(String::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => match self.lists.is_empty() {
                true => self.end_paragraph(),
                false => self.flush(),
            },
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_paragraph();
            }
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
                self.space();
            }
            TagEnd::CodeBlock => {
                if let Some((language, source)) = self.code.take() {
                    self.code_block(&source, &language);
                }
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.space();
                }
            }
            TagEnd::Item => self.flush(),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                // Where a link leads is said: its text may say something else.
                if let Some(url) = self.link.take() {
                    let said: String =
                        self.spans.iter().map(|span| span.content.as_ref()).collect();
                    if !url.is_empty() && !said.ends_with(harmless(&url).as_str()) {
                        self.text(&format!(" ({url})"), DIM);
                    }
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                let head = matches!(tag, TagEnd::TableHead);
                if let Some(cells) = self.cells.take() {
                    let style = if head { STRONG } else { PLAIN };
                    for (number, cell) in cells.iter().enumerate() {
                        if number > 0 {
                            self.spans.push(Span::styled(" │ ", DIM));
                        }
                        self.spans.push(Span::styled(cell.clone(), style));
                    }
                    self.flush();
                }
            }
            TagEnd::Table => self.space(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some((_, source)) = &mut self.code {
            source.push_str(text);
            return;
        }
        if let Some(cell) = self.cells.as_mut().and_then(|cells| cells.last_mut()) {
            cell.push_str(&harmless(text));
            return;
        }
        let style = self.styles.iter().fold(style, |all, one| all.patch(*one));
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.flush();
            }
            if !line.is_empty() {
                self.spans.push(Span::styled(harmless(line), style));
            }
        }
    }

    fn code_block(&mut self, source: &str, language: &str) {
        let lead = Span::styled(format!("{}│ ", self.indent()), DIM);
        let more = Span::styled(format!("{}│ ↪ ", self.indent()), DIM);
        for line in code(source, language) {
            self.rows.extend(wrap(&line, self.width, &lead, &more));
        }
        self.space();
    }

    fn indent(&self) -> String {
        let depth = self.lists.len().saturating_sub(1).min(DEEPEST);
        "  ".repeat(depth) + &"▎ ".repeat(self.quotes.min(DEEPEST))
    }

    /// Ends a row.
    fn flush(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let line = Line::from(std::mem::take(&mut self.spans));
        let bullet = self.bullet.take();
        let inside = if self.lists.is_empty() { "" } else { "  " };
        let indent = self.indent();
        let style = if self.quotes > 0 { DIM } else { MIND };
        let first = match bullet {
            Some(bullet) => Span::styled(format!("{indent}{bullet}"), style),
            None => Span::styled(format!("{indent}{inside}"), DIM),
        };
        let rest = " ".repeat(first.width());
        let rest = if self.quotes > 0 { format!("{indent}{inside}") } else { rest };
        self.rows.extend(wrap(&line, self.width, &first, &Span::styled(rest, DIM)));
    }

    fn end_paragraph(&mut self) {
        if !self.spans.is_empty() {
            self.flush();
            self.space();
        }
    }

    fn space(&mut self) {
        if self.rows.last().is_some_and(|row| row.width() > 0) {
            self.rows.push(Line::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(source: &str, width: usize) -> String {
        let rows = markdown(source, width);
        let text =
            |row: &Line<'_>| row.spans.iter().map(|span| span.content.as_ref()).collect::<String>();
        rows.iter().map(|row| text(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn an_answer_is_drawn() {
        let source = "# Title\n\nSome *text* with `code` and [a link](https://x.y/z).\n\n- one\n- two\n  \
                      1. deep\n\n> quoted\n\n```rust\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        insta::assert_snapshot!(drawn(source, 40));
    }

    #[test]
    fn what_is_settled_ends_at_an_empty_line_outside_of_code() {
        assert_eq!(settled("one\n\ntwo"), 5);
        assert_eq!(settled("one\n"), 0);
        assert_eq!(settled("a\n\n```\nx\n\ny\n"), 3);
    }

    proptest! {
        #[test]
        fn markdown_stays_in_its_column(source in any::<String>(), width in 8_usize..80) {
            for row in markdown(&source, width) {
                prop_assert!(row.width() <= width.max(24));
                prop_assert!(row.spans.iter().all(|span| !span.content.contains(char::is_control)));
            }
        }
    }
}
