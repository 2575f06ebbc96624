//! Text that wants to be something else.

use super::{Bench, begin, ended, patch, printed, question};
use crate::app::{Effect, Message};
use crate::question::BAR;
use proptest::prelude::*;
use sandgate_protocol::{AgentEvent, CallId, Event, ExecApprovalRequest, Notice, is_invisible};

/// Text with everything in it that terminals obey, and with what our own screens look like.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        any::<String>(),
        "[ -~\n]{0,120}",
        Just("▌ May this run?\n▌\n▌ [y] once   [n] no".to_owned()),
        Just("\x1b[2J\x1b[H\x1b[?1049h".to_owned()),
        Just("\x1b]0;title\x07\x1bP+q\x1b\\\x1b[6n\x1b[>c".to_owned()),
        Just("\r▌ The sandbox blocked this\x1b[K".to_owned()),
        Just("\u{202e}\u{200b}\u{feff}\u{2028}▌ \u{1b}[1A".to_owned()),
        Just("y\ny\ny\n".to_owned()),
        Just("漢字🦀e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".to_owned()),
        Just("x".repeat(5000)),
        Just("```\n▌ [y] once\n```\n> ▌ quote\n\n▌ line".to_owned()),
    ];
    prop::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

/// Nothing but the rows of a question begins like one.
fn no_row_is_faked(bench: &Bench, expected: usize) -> Result<(), TestCaseError> {
    let fakes = bench.scrollback().iter().filter(|row| row.starts_with(BAR.trim_end())).count();
    prop_assert_eq!(fakes, expected, "{:#?}", bench.rows());
    for row in bench.rows() {
        prop_assert!(!row.chars().any(|c| c.is_control() || is_invisible(c)), "{row:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// spec TUI.30: Whatever a model says, a command is called and prints, and a warning holds: no row of
    /// it begins like a question, none leaves the terminal's width, and no sequence of it is obeyed.
    #[test]
    fn nothing_that_is_shown_looks_like_a_question(
        said in hostile(),
        command in hostile(),
        output in hostile(),
        size in prop_oneof![Just((80, 24)), Just((40, 20)), Just((12, 6))],
    ) {
        let mut bench = Bench::new(size);
        bench.agent(AgentEvent::AgentMessageDelta { delta: said.clone() });
        bench.draw();
        bench.agent(AgentEvent::AgentMessage { message: said.clone() });
        bench.agent(AgentEvent::AgentReasoning { text: said.clone() });
        bench.app.running = 1;
        bench.hear(begin("c", &command));
        bench.hear(printed("c", &output));
        bench.draw();
        no_row_is_faked(&bench, 0)?;
        bench.hear(ended("c", &output, 1, Vec::new()));
        let call_id = CallId::new("t");
        bench.agent(AgentEvent::ToolCallBegin { call_id, tool: said.clone(), input: output.clone() });
        bench.hear(Event::Warning(Notice { call_id: None, message: said.clone() }));
        bench.tell(Message::Tell(crate::cell::Cell::Report(output.clone())));
        bench.tell(Message::WorkOver { failure: Some(output) });
        bench.app.submit(said);
        bench.draw();
        bench.control('t');
        bench.draw();
        no_row_is_faked(&bench, 0)?;
    }

    /// spec TUI.31: Whatever a question is about, it has one title and one row of each answer, all of its
    /// rows begin with the bar, and its command is shown to the last character.
    #[test]
    fn a_question_is_one_question(
        command in hostile(),
        words in hostile(),
        size in prop_oneof![Just((80, 24)), Just((40, 20)), Just((24, 10))],
    ) {
        let mut bench = Bench::new(size);
        let request = ExecApprovalRequest {
            reason: sandgate_protocol::visible(&words),
            justification: Some(sandgate_protocol::visible(&words)),
            without_sandbox: true,
            only_once: false,
            agent: Some(words.clone()),
            cwd: words.clone().into(),
            proposed_rule: Some(vec!["git".to_owned(), words.clone()]),
            ..question("a", &command)
        };
        bench.hear(Event::ExecApprovalRequest(Box::new(request)));
        let mut picture = bench.app.view(size.0, size.1);
        prop_assert!(picture.rows.len() < size.1);
        let text = |row: &ratatui::text::Line<'_>| {
            row.spans.iter().map(|span| span.content.as_ref()).collect::<String>()
        };
        let rows: Vec<String> = picture.rows.drain(..).map(|row| text(&row)).collect();
        prop_assert!(rows.iter().all(|row| row.starts_with(BAR)), "{rows:#?}");
        let begins = |what: &str| rows.iter().filter(|row| row.starts_with(&format!("{BAR}{what}"))).count();
        prop_assert!(begins("[y] ") <= 1 && begins("May this run WITHOUT") == 1, "{rows:#?}");
        let whole = bench.app.questions[0].plain("");
        let wanted: String = sandgate_protocol::visible(&command).split_whitespace().collect();
        let shown: String = whole.iter().flat_map(|row| row.split_whitespace()).collect();
        let shown: String = shown.replace(['↪', '│'], "");
        prop_assume!(!command.contains(['↪', '│']));
        // A character with too many marks is spelled out.
        if !wanted.contains('\u{301}') && wanted.len() < 2000 && wanted.is_ascii() {
            prop_assert!(shown.contains(&wanted), "{wanted}\n{shown}");
        }
    }

    /// spec TUI.32: No output, no patch and no message answers a question, however it comes.
    #[test]
    fn nothing_but_a_key_answers(text in hostile(), keys in "[ysgrna]{0,20}") {
        let mut bench = Bench::new((80, 24));
        // What is typed before the question is there is not for it.
        bench.write(&keys);
        bench.hear(Event::ExecApprovalRequest(Box::new(question("a", &text))));
        bench.hear(Event::ApplyPatchApprovalRequest(Box::new(patch("b", &text))));
        bench.write(&keys);
        bench.draw();
        bench.hear(printed("c", &text));
        bench.agent(AgentEvent::AgentMessageDelta { delta: text.clone() });
        bench.tell(Message::Paste(text));
        bench.write(&keys);
        prop_assert!(!bench.effects.iter().any(|effect| matches!(effect, Effect::Answer(..))));
    }

    /// spec TUI.33: A patch is drawn inside of its rows, whatever its lines hold.
    #[test]
    fn a_patch_stays_in_its_rows(diff in hostile(), size in prop_oneof![Just((80, 24)), Just((40, 20))]) {
        let mut bench = Bench::new(size);
        bench.hear(Event::ApplyPatchApprovalRequest(Box::new(patch("b", &diff))));
        bench.draw();
        bench.pass(300);
        bench.write("d");
        let picture = bench.app.view(size.0, size.1);
        let rows = picture.rows.len();
        prop_assert!(rows < size.1);
        prop_assert!(picture.rows.iter().all(|row| row.width() <= size.0));
        bench.draw();
        for row in bench.rows().iter().filter(|row| !row.is_empty()) {
            prop_assert!(row.starts_with(BAR.trim_end()), "{row:?}");
            prop_assert!(!row.chars().any(|c| c.is_control() || is_invisible(c)), "{row:?}");
        }
    }
}

/// spec TUI.34: A command that prints 200 MB, or every control sequence there is, leaves the interface
/// small and its screen whole.
#[test]
fn a_flood_is_bounded() {
    let mut bench = Bench::new((80, 24));
    bench.app.running = 1;
    bench.hear(begin("c", "yes"));
    let chunk = "\x1b[31m\x1b[5;5H\x1b[2Jyes it is\x07\x0e\n".repeat(200);
    let mut sent = 0;
    while sent < 200 << 20 {
        bench.hear(printed("c", &chunk));
        sent += chunk.len();
    }
    let shown = bench.shown();
    assert!(shown.contains("lines · ctrl-t shows more"), "{shown}");
    assert!(shown.contains("› what is to be done?"), "{shown}");
    for first in 0..=255_u8 {
        let every: String = (0..=255_u8)
            .map(|second| format!("\x1b{}{}5;5{}", char::from(first), char::from(second), '\n'))
            .collect();
        bench.hear(printed("c", &every));
    }
    let shown = bench.shown();
    assert!(shown.contains("$ yes") && shown.contains("› what is to be done?"), "{shown}");
}
