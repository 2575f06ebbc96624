//! Which keys answer a question.

use super::{Bench, blocked, patch, question};
use crate::app::{Change, Effect, Message};
use crate::composer::Composer;
use crate::question::{Asked, Question};
use crossterm::event::KeyCode;
use sandgate_protocol::{
    AgentEvent, ApprovalId, CallId, Event, ExecApprovalRequest, GrantScope, Notice, ReviewDecision,
    SandboxPermissions,
};

fn answers(bench: &Bench) -> Vec<ReviewDecision> {
    let decision = |effect: &Effect| match effect {
        Effect::Answer(_, decision) => Some(decision.clone()),
        _ => None,
    };
    bench.effects.iter().filter_map(decision).collect()
}

fn asked(id: &str) -> Event {
    Event::ExecApprovalRequest(Box::new(question(id, "git push origin main")))
}

/// spec TUI.20: A key answers a question only if the question has been on the screen for 300 ms in which
/// no key was pressed; a key that comes earlier is thrown away.
#[test]
fn what_was_typed_before_answers_nothing() {
    let mut bench = Bench::new((80, 24));
    bench.hear(asked("a"));
    // It has not been drawn.
    bench.write("y");
    bench.pass(10_000);
    bench.write("y");
    bench.draw();
    bench.pass(299);
    bench.write("y");
    // The moment begins anew with each.
    bench.pass(299);
    bench.write("y");
    assert_eq!(answers(&bench), []);
    assert!(bench.shown().contains("take your hands off the keys"), "{}", bench.shown());
    bench.pass(300);
    bench.write("y");
    assert_eq!(answers(&bench), [ReviewDecision::Approved]);
    // None of it went anywhere else.
    assert_eq!(bench.app.composer.text(), Composer::default().text());
}

/// spec TUI.21: The next question of a queue has to be seen by itself: an answer to the one before it, or
/// a key that was meant for that, does not answer it.
#[test]
fn each_question_has_a_moment_of_its_own() {
    let mut bench = Bench::new((80, 24));
    bench.hear(asked("a"));
    bench.hear(asked("b"));
    assert!(bench.shown().contains("1 of 2"));
    bench.pass(300);
    bench.write("yy");
    // The second one was answered to the first question too, which counts once.
    assert!(
        bench
            .effects
            .iter()
            .all(|effect| matches!(effect, Effect::Answer(id, _) if id.as_str() == "a"))
    );
    bench.hear(Event::ApprovalResponse(sandgate_protocol::ApprovalResponse::new(
        ApprovalId::new("a"),
        sandgate_protocol::CallId::new("call_1"),
        ReviewDecision::Approved,
        sandgate_protocol::AnsweredBy::Person("tui".to_owned()),
    )));
    bench.effects.clear();
    bench.write("y");
    bench.draw();
    bench.pass(200);
    bench.write("y");
    assert_eq!(answers(&bench), []);
    bench.pass(300);
    bench.write("a");
    assert_eq!(bench.effects, [Effect::Answer(ApprovalId::new("b"), ReviewDecision::Abort)]);
}

/// spec TUI.22: What is pasted answers no question, whatever it holds.
#[test]
fn a_paste_is_no_answer() {
    let mut bench = Bench::new((80, 24));
    bench.hear(asked("a"));
    bench.draw();
    bench.pass(5_000);
    bench.tell(Message::Paste("y\ny\n".to_owned()));
    assert_eq!(answers(&bench), []);
    assert!(bench.app.composer.is_empty());
}

/// spec TUI.23: The keys of a question are y, s, g, G, r, n and a, each only where its answer is offered;
/// n asks what the agent is to be told, Ctrl-C stops the work, and Esc, Enter and every other key decide
/// nothing.
#[test]
fn only_what_is_offered_can_be_pressed() {
    let pressed = |event: Event, keys: &[KeyCode]| {
        let mut bench = Bench::new((80, 24));
        bench.hear(event);
        bench.draw();
        bench.pass(300);
        keys.iter().for_each(|key| bench.key(*key));
        answers(&bench)
    };
    let first = || asked("a");
    let again = || Event::ExecApprovalRequest(Box::new(blocked("a")));
    let once = || {
        let request =
            sandgate_protocol::ApplyPatchApprovalRequest { only_once: true, ..patch("a", "+x\n") };
        Event::ApplyPatchApprovalRequest(Box::new(request))
    };
    let c = KeyCode::Char;
    let granted = |scope| ReviewDecision::ApprovedWithGrant { scope };
    assert_eq!(pressed(first(), &[c('g'), c('G'), c('s')]), [ReviewDecision::ApprovedForSession]);
    assert_eq!(pressed(first(), &[c('r')]), [ReviewDecision::ApprovedWithRule]);
    assert_eq!(pressed(again(), &[c('s'), c('g')]), [granted(GrantScope::Call)]);
    assert_eq!(pressed(again(), &[c('G')]), [granted(GrantScope::Session)]);
    assert_eq!(pressed(once(), &[c('s'), c('g'), c('r'), c('y')]), [ReviewDecision::Approved]);
    assert_eq!(pressed(first(), &[KeyCode::Enter, KeyCode::Esc, c('Y'), c(' '), c('1')]), []);
    let told = [c('n'), c('n'), c('o'), KeyCode::Backspace, c('y'), KeyCode::Enter];
    let no = ReviewDecision::Denied { feedback: Some("ny".to_owned()) };
    assert_eq!(pressed(first(), &told), [no]);
    assert_eq!(pressed(first(), &[c('n'), KeyCode::Enter]), [ReviewDecision::DENIED]);
    assert_eq!(pressed(first(), &[c('n'), KeyCode::Esc, c('a')]), [ReviewDecision::Abort]);
    let mut bench = Bench::new((80, 24));
    bench.hear(first());
    bench.draw();
    bench.pass(300);
    bench.control('c');
    assert_eq!(answers(&bench), [ReviewDecision::Abort]);
}

/// spec TUI.13: While the model works, what is sent waits and is sent when the work is over, in its order;
/// Esc calls the work off and gives what waits back to be written on.
#[test]
fn the_next_message_waits() {
    let mut bench = Bench::new((80, 24));
    let say = |bench: &mut Bench, text: &str| {
        bench.write(text);
        bench.key(KeyCode::Enter);
    };
    say(&mut bench, "first");
    say(&mut bench, "second");
    say(&mut bench, "third");
    assert_eq!(bench.effects, [Effect::Say("first".to_owned())]);
    assert!(bench.shown().contains("next: second"));
    bench.tell(Message::WorkOver { failure: None });
    assert_eq!(bench.effects.last(), Some(&Effect::Say("second".to_owned())));
    bench.key(KeyCode::Esc);
    assert_eq!(bench.effects.last(), Some(&Effect::Interrupt));
    assert_eq!(bench.app.composer.text(), "third");
    bench.tell(Message::WorkOver { failure: None });
    assert_eq!(bench.effects.last(), Some(&Effect::Interrupt));
    bench.key(KeyCode::Enter);
    say(&mut bench, "fourth");
    bench.write("half of the fi");
    bench.key(KeyCode::Esc);
    assert_eq!(bench.app.composer.text(), "fourth\nhalf of the fi");
    assert!(bench.app.queue.is_empty());
}

/// spec TUI.14: Ctrl-C empties the composer, then calls the work off, and pressed twice with nothing to do
/// it ends the program; so do Ctrl-D in an empty composer and /quit.
#[test]
fn there_are_ways_out() {
    let mut bench = Bench::new((80, 24));
    bench.write("text");
    bench.control('c');
    assert!(bench.app.composer.is_empty() && bench.effects.is_empty());
    bench.control('c');
    assert!(bench.effects.is_empty());
    bench.pass(3_000);
    bench.control('c');
    assert!(bench.effects.is_empty(), "the first one is forgotten");
    bench.control('c');
    assert_eq!(bench.effects, [Effect::Quit]);
    for leave in ["/quit", ""] {
        let mut bench = Bench::new((80, 24));
        bench.write(leave);
        match leave {
            "" => bench.control('d'),
            _ => bench.key(KeyCode::Enter),
        }
        assert_eq!(bench.effects, [Effect::Quit], "{leave}");
    }
}

/// spec TUI.24: A question whose yes means to run without the sandbox says so in its title and in every
/// answer that means it, also in those that are kept; one that only has a justification does not.
#[test]
fn what_a_yes_means_is_said_with_every_yes() {
    let shown = |without_sandbox| {
        let mut bench = Bench::new((80, 24));
        bench.hear(Event::ExecApprovalRequest(Box::new(ExecApprovalRequest {
            justification: Some("to fetch the newest index".to_owned()),
            without_sandbox,
            ..question("a", "cargo update")
        })));
        bench.shown()
    };
    let outside = shown(true);
    for words in [
        "May this run WITHOUT the sandbox?",
        "[y] yes, once, WITHOUT the sandbox",
        "[s] yes, for the same in this session, WITHOUT the sandbox",
        "[r] yes, always WITHOUT the sandbox for commands that begin with: git push",
    ] {
        assert!(outside.contains(words), "{words}: {outside}");
    }
    let inside = shown(false);
    assert!(inside.contains("May this run?"), "{inside}");
    assert!(!inside.contains("WITHOUT"), "{inside}");
}

/// spec TUI.25: However long a command is, its first and its last line, why it is asked about, what was
/// blocked and what confines it are on the screen; where there is no room for that, a yes counts only after
/// the end was shown.
#[test]
fn a_long_command_hides_nothing_that_matters() {
    let script: String = (1..=40).map(|number| format!("echo line {number}\n")).collect();
    let long = |size| {
        let mut bench = Bench::new(size);
        bench.hear(Event::ExecApprovalRequest(Box::new(ExecApprovalRequest {
            command_text: script.trim_end().to_owned(),
            agent: None,
            risk: None,
            ..blocked("a")
        })));
        bench.draw();
        bench.pass(300);
        bench
    };
    let mut bench = long((80, 24));
    let shown = bench.shown();
    for words in
        ["$ echo line 1\n", "echo line 40", "because ", "blocked ", "sandbox ", "more rows"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    bench.key(KeyCode::PageDown);
    let shown = bench.shown();
    assert!(shown.contains("echo line 12\n") && shown.contains("because "), "{shown}");
    bench.key(KeyCode::Char('y'));
    assert_eq!(answers(&bench), [ReviewDecision::Approved]);

    let mut bench = long((30, 10));
    bench.key(KeyCode::Char('y'));
    bench.key(KeyCode::Char('g'));
    assert_eq!(answers(&bench), []);
    for _ in 0..100 {
        bench.key(KeyCode::PageDown);
        bench.draw();
        bench.pass(300);
    }
    bench.key(KeyCode::Char('y'));
    assert_eq!(answers(&bench), [ReviewDecision::Approved]);
}

/// spec TUI.35: A yes to a patch counts only when all its files, and all that is known of it, have been on the screen.
#[test]
fn a_patch_of_many_files_is_read_before_a_yes() {
    for size in [(80, 24), (40, 20)] {
        let mut bench = Bench::new(size);
        let mut request = patch("a", &"+x\n".repeat(500));
        let change = request.changes[0].clone();
        let path = |file: usize| format!("/home/me/project/file-{file}.rs").into();
        request.changes = (0..60)
            .map(|file| sandgate_protocol::PatchChange { path: path(file), ..change.clone() })
            .collect();
        bench.hear(Event::ApplyPatchApprovalRequest(Box::new(request)));
        let mut seen = std::collections::BTreeSet::new();
        let mut is_told_why = false;
        while seen.len() < 60 || !is_told_why {
            bench.draw();
            bench.pass(300);
            let shown = bench.shown();
            seen.extend((0..60).filter(|file| shown.contains(&format!("file-{file}.rs"))));
            is_told_why |= shown.contains("your policy asks");
            let waits = shown.contains("more rows to see before a yes");
            assert_eq!(waits, seen.len() < 60 || !is_told_why, "{shown}");
            if waits {
                bench.key(KeyCode::Char('y'));
                assert_eq!(answers(&bench), []);
                bench.key(KeyCode::PageDown);
            }
        }
        bench.draw();
        bench.pass(300);
        bench.key(KeyCode::Char('y'));
        assert_eq!(answers(&bench), [ReviewDecision::Approved], "what changes need not be read");
    }
}

/// A patch's diff stands in a plain question once.
#[test]
fn a_plain_question_shows_a_diff_once() {
    let asked = Asked::Patch(Box::new(patch("a", "@@ -1 +1 @@\n-old\n+the new line\n")));
    let lines = Question::new(asked).plain("");
    let count = lines.iter().filter(|line| line.contains("the new line")).count();
    assert_eq!(count, 1, "{lines:#?}");
}

/// spec TUI.15: A sandbox is given up only by a second Enter.
#[test]
fn giving_up_the_sandbox_is_confirmed() {
    let mut bench = Bench::new((80, 24));
    bench.write("/sandbox danger-full-access");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects, []);
    assert!(bench.shown().contains("WITHOUT any sandbox"), "{}", bench.shown());
    bench.key(KeyCode::Enter);
    let change = Change::Sandbox("danger-full-access".to_owned());
    assert_eq!(bench.effects, [Effect::Change(change)]);

    let mut bench = Bench::new((80, 24));
    for line in ["/sandbox danger-full-access", "/status", "/sandbox danger-full-access"] {
        bench.control('u');
        bench.write(line);
        bench.key(KeyCode::Enter);
    }
    assert_eq!(bench.effects, [], "something else came in between");
}

/// spec TUI.26: What explains a question tells what led to it and what each of its answers does, and ends in
/// nothing else.
#[test]
fn an_explanation_is_of_this_question() {
    let mut bench = Bench::new((100, 40));
    bench.hear(Event::ExecApprovalRequest(Box::new(blocked("a"))));
    bench.draw();
    bench.pass(300);
    bench.key(KeyCode::Char('e'));
    let [Effect::Explain { permissions, .. }] = bench.effects.as_slice() else {
        panic!("{:?}", bench.effects);
    };
    assert_eq!(*permissions, SandboxPermissions::UseDefault);
    let text = "git push origin main\n└─ runs, nobody is asked".to_owned();
    bench.tell(Message::Explained { id: ApprovalId::new("a"), text });
    let shown = bench.shown();
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    let told = [
        "Before it ran, your policy said:",
        "runs, nobody is asked",
        "It ran, and the sandbox blocked:",
        "140.82.121.4:443",
        "So you are asked now: the sandbox blocked it",
        "g: it runs again in the sandbox, and this once may also reach the network",
        "y: it runs this once WITHOUT the sandbox, with all your rights",
        "r: it runs WITHOUT the sandbox, with all your rights, and a rule is kept: so does, unasked,",
        "a: it does not run, and the work stops",
    ];
    assert!(told.map(at).is_sorted(), "{shown}");

    let mut bench = Bench::new((80, 24));
    bench.hear(Event::ExecApprovalRequest(Box::new(ExecApprovalRequest {
        justification: Some("it needs the network".to_owned()),
        without_sandbox: true,
        ..question("a", "cargo update")
    })));
    bench.draw();
    bench.pass(300);
    bench.key(KeyCode::Char('e'));
    let escalated = SandboxPermissions::RequireEscalated;
    assert!(
        matches!(bench.effects.as_slice(), [Effect::Explain { permissions, .. }] if *permissions == escalated)
    );
}

/// spec TUI.27: A command that is refused is shown above the reason.
#[test]
fn what_was_refused_is_shown() {
    let mut bench = Bench::new((80, 24));
    for (id, input) in [
        ("one", r#"{"command":["rm","-rf","/"]}"#),
        ("two", r#"{"command":"rm -rf /two"}"#),
        ("three", "no JSON"),
    ] {
        bench.agent(AgentEvent::ToolCallBegin {
            call_id: CallId::new(id),
            tool: "shell".to_owned(),
            input: input.to_owned(),
        });
        let message = format!("refused: {id}");
        bench.hear(Event::Error(Notice { call_id: Some(CallId::new(id)), message }));
    }
    let shown = bench.shown();
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    let told =
        ["$ rm -rf /\n", "✗ refused: one", "$ rm -rf /two\n", "✗ refused: two", "✗ refused: three"];
    assert!(told.map(at).is_sorted(), "{shown}");
}
