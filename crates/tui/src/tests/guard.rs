//! Which keys answer a question.

use super::{Bench, blocked, patch, question};
use crate::app::{Effect, Message};
use crate::composer::Composer;
use crossterm::event::KeyCode;
use sandgate_protocol::{ApprovalId, Event, GrantScope, ReviewDecision};

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
    bench.hear(Event::ApprovalResponse(sandgate_protocol::ApprovalResponse {
        approval_id: ApprovalId::new("a"),
        call_id: sandgate_protocol::CallId::new("call_1"),
        decision: ReviewDecision::Approved,
        answered_by: sandgate_protocol::AnsweredBy::Person("tui".to_owned()),
    }));
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
